//! References among arguments: `{"$ref": "o17"}` is replaced by a stored output, which does not pass through the model.
//!
//! A reference is an object with the member `$ref`, a handle, optionally the member `select`, a JSON Pointer, and no
//! other. Anything else is data, including `{"$ref": "#/…"}` of a JSON Schema. Substituted values are not searched
//! again: a reference inside a stored output is data.

mod selection;

use base64::{Engine, engine::general_purpose::STANDARD};
use selection::select;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, io::Read};
use tokio::sync::Semaphore;
use toolstead_domain::{
    OutputHandle, OutputStore, Principal, StoreError, StoredOutput, ToolFailure, error_kind::ErrorKind,
    json_memory::has_too_many_values,
};

/// Maximum number of references per call.
const MAX_REFERENCES: usize = 64;
/// Maximum number of bytes of a call's arguments after the substitution, as JSON. It equals the maximum size of a
/// message.
const MAX_BYTES: usize = 16 << 20;
/// Maximum number of bytes of stored outputs that are read for the `select` of one call. An output counts once per
/// reference.
const MAX_READ_THROUGH: u64 = 64 << 20;
/// Maximum number of outputs that are read concurrently by all calls: each takes a thread and the memory of its content
/// and values.
static READERS: Semaphore = Semaphore::const_new(2);
/// Maximum number of handles that an error about an unknown handle names.
const TOLD_HANDLES: usize = 5;

const TAKE_A_PART: &str = "Take a part of it with `select`, or of a file.";

/// Arguments in which stored outputs have replaced the references (`$ref`).
#[derive(Debug)]
pub(super) struct SubstitutedArguments {
    pub(super) arguments: Map<String, Value>,
    /// Stored texts of the substituted values other than texts.
    pub(super) texts: ReferencedTexts,
    /// Descriptions of the substitutions.
    pub(super) references: Vec<String>,
}

/// Stored texts by handle and selection.
pub(super) type ReferencedTexts = BTreeMap<(OutputHandle, Option<String>), String>;

#[derive(Debug)]
struct OutputReference {
    /// JSON Pointer into the arguments.
    place: String,
    select: Option<String>,
}

/// Returns `true` if the arguments contain a reference.
pub(super) fn are_in(arguments: &Map<String, Value>) -> bool {
    let mut open: Vec<&Value> = arguments.values().filter(|value| value.is_object() || value.is_array()).collect();
    while let Some(value) = open.pop() {
        if reference(value).is_some() {
            return true;
        }
        let is_nested = |value: &&Value| value.is_object() || value.is_array();
        match value {
            Value::Object(members) => open.extend(members.values().filter(is_nested)),
            Value::Array(items) => open.extend(items.iter().filter(is_nested)),
            _ => {}
        }
    }
    false
}

/// Replaces references by the principal's stored outputs.
pub(super) async fn substitute(
    arguments: Map<String, Value>,
    principal: &Principal,
    outputs: &dyn OutputStore,
) -> Result<SubstitutedArguments, ToolFailure> {
    let mut arguments = Value::Object(arguments);
    let mut found = BTreeMap::new();
    collect(&arguments, &mut String::new(), &mut found);
    let mut substituted =
        SubstitutedArguments { arguments: Map::new(), texts: ReferencedTexts::new(), references: Vec::new() };
    let count: usize = found.values().map(Vec::len).sum();
    if count > MAX_REFERENCES {
        let message = format!(
            "the arguments contain {count} references to stored outputs, at most {MAX_REFERENCES} are followed"
        );
        return Err(ToolFailure::new(ErrorKind::TooLarge, message));
    }
    // Each output is read once, and released before the next one is read.
    let mut left = if count > 0 { MAX_BYTES.saturating_sub(length(&arguments)) } else { 0 };
    let mut to_read_through = MAX_READ_THROUGH;
    for (handle, references) in found {
        let Some(stored) = outputs.find(principal, handle).await.map_err(unreadable)? else {
            return Err(unknown(handle, principal, outputs).await);
        };
        let (parts, whole): (Vec<_>, Vec<_>) = references.iter().partition(|reference| reference.select.is_some());
        if stored.bytes.saturating_mul(whole.len() as u64) > left as u64 {
            return Err(over(&stored));
        }
        let through = stored.bytes.saturating_mul(parts.len() as u64);
        to_read_through = to_read_through.checked_sub(through).ok_or_else(|| too_much_to_read(&stored))?;
        let Some(content) = outputs.open(principal, handle).await.map_err(unreadable)? else {
            return Err(unknown(handle, principal, outputs).await);
        };
        // The thread retains its permit even if the call ends earlier.
        let permit = READERS.acquire().await.map_err(|closed| unreadable_content(closed.into()))?;
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            values(content, &stored, references, left)
        });
        for resolved in read.await.map_err(|ended| unreadable_content(ended.into()))?? {
            left = left.saturating_sub(resolved.bytes);
            substituted.references.push(resolved.description);
            if let Some(text) = resolved.text {
                substituted.texts.insert((handle, resolved.reference.select), text);
            }
            if let Some(place) = arguments.pointer_mut(&resolved.reference.place) {
                *place = resolved.value;
            }
        }
    }
    if let Value::Object(members) = arguments {
        substituted.arguments = members;
    }
    Ok(substituted)
}

/// Replaces substituted values by their stored texts: those that are or contain a place in `paths` (JSON Pointers), or
/// all of them if none does. `given` are the arguments with the references.
///
/// # Errors
/// `too_large` if the arguments exceed the limit then.
pub(super) fn put_texts(
    arguments: Map<String, Value>,
    given: Map<String, Value>,
    texts: &ReferencedTexts,
    paths: &[String],
) -> Result<Map<String, Value>, ToolFailure> {
    let mut found = BTreeMap::new();
    collect(&Value::Object(given), &mut String::new(), &mut found);
    let mut places: Vec<(String, &String)> = Vec::new();
    for (handle, references) in found {
        for OutputReference { place, select } in references {
            places.extend(texts.get(&(handle, select)).map(|text| (place, text)));
        }
    }
    let is_meant = |place: &str| {
        paths.iter().any(|path| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    if places.iter().any(|(place, _)| is_meant(place)) {
        places.retain(|(place, _)| is_meant(place));
    }
    let mut arguments = Value::Object(arguments);
    for (place, text) in places {
        if let Some(place) = arguments.pointer_mut(&place) {
            *place = text.as_str().into();
        }
    }
    if length(&arguments) > MAX_BYTES {
        let message = format!("with the stored outputs as texts the arguments are larger than {MAX_BYTES} bytes");
        return Err(ToolFailure::new(ErrorKind::TooLarge, message).next(TAKE_A_PART));
    }
    match arguments {
        Value::Object(members) => Ok(members),
        _ => Ok(Map::new()),
    }
}

/// Collects the references at any depth. The arguments object itself is not a reference.
fn collect(value: &Value, place: &mut String, found: &mut BTreeMap<OutputHandle, Vec<OutputReference>>) {
    if !place.is_empty()
        && let Some((handle, select)) = reference(value)
    {
        found.entry(handle).or_default().push(OutputReference { place: place.clone(), select });
        return;
    }
    let mut below = |step: &str, value: &Value| {
        let length = place.len();
        place.push('/');
        place.push_str(step);
        collect(value, place, found);
        place.truncate(length);
    };
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| below(&name.replace('~', "~0").replace('/', "~1"), value));
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| below(&at.to_string(), value)),
        _ => {}
    }
}

/// Returns handle and selection if the value is a reference.
fn reference(value: &Value) -> Option<(OutputHandle, Option<String>)> {
    let members = value.as_object()?;
    let handle = members.get("$ref")?.as_str()?.parse().ok()?;
    match (members.len(), members.get("select")) {
        (1, None) => Some((handle, None)),
        (2, Some(Value::String(pointer))) => Some((handle, Some(pointer.clone()))),
        _ => None,
    }
}

/// Value of a reference.
struct ResolvedReference {
    reference: OutputReference,
    value: Value,
    /// Stored text if the value is not a text itself.
    text: Option<String>,
    /// Length of the value as compact JSON.
    bytes: usize,
    /// Description of the substitution.
    description: String,
}

/// Reads the output and resolves each reference to it, at most `left` bytes in all.
fn values(
    content: impl Read,
    stored: &StoredOutput,
    references: Vec<OutputReference>,
    mut left: usize,
) -> Result<Vec<ResolvedReference>, ToolFailure> {
    // The caller has checked the size against the limits.
    let mut bytes = Vec::with_capacity(stored.bytes as usize);
    // Limited to the declared size, so that a faulty store cannot exhaust the memory.
    content.take(stored.bytes).read_to_end(&mut bytes).map_err(|error| unreadable_content(error.into()))?;
    let text = String::from_utf8(bytes);
    let value = |reference: &OutputReference, left: usize| match (&text, &reference.select) {
        (Ok(text), Some(pointer)) => select(text, pointer, left).map_err(|why| {
            let message = format!("`{pointer}` cannot be selected in `{}`: {why}", stored.handle);
            ToolFailure::new(ErrorKind::InvalidInput, message)
        }),
        // JSON that would take many times its size as values, or is nested too deeply, remains a text.
        (Ok(text), None) if has_too_many_values(text.as_bytes()) => Ok((text.as_str().into(), None)),
        (Ok(text), None) if stored.media_type == "application/json" => Ok(match serde_json::from_str(text) {
            Ok(Value::String(text)) => (text.into(), None),
            Ok(value) => (value, Some(text.clone())),
            Err(_) => (text.as_str().into(), None),
        }),
        (Ok(text), None) => Ok((text.as_str().into(), None)),
        // Base64, as MCP represents binary content.
        (Err(bytes), None) => Ok((STANDARD.encode(bytes.as_bytes()).into(), None)),
        (Err(_), Some(_)) => {
            let message =
                format!("nothing can be selected in `{}`: it is binary ({})", stored.handle, stored.media_type);
            Err(ToolFailure::new(ErrorKind::InvalidInput, message))
        }
    };
    let mut all = Vec::with_capacity(references.len());
    for reference in references {
        let (value, text) = value(&reference, left)?;
        let bytes = length(&value);
        left = left.checked_sub(bytes).ok_or_else(|| over(stored))?;
        let description = describe(&reference, stored, bytes);
        all.push(ResolvedReference { reference, value, text, bytes, description });
    }
    Ok(all)
}

/// Returns the length of the value as compact JSON in bytes.
fn length(value: &Value) -> usize {
    struct ByteCounter(usize);
    impl std::io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter(0);
    // Serializing JSON values never fails, and the writer accepts every byte.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

fn describe(reference: &OutputReference, stored: &StoredOutput, bytes: usize) -> String {
    let OutputReference { place, select } = reference;
    let whole = format!("the stored output `{}` ({} bytes of {})", stored.handle, stored.bytes, stored.media_type);
    match select {
        None => format!("`{place}` is {whole}"),
        Some(pointer) => format!("`{place}` is `{pointer}` of {whole}: {bytes} bytes"),
    }
}

async fn unknown(handle: OutputHandle, principal: &Principal, outputs: &dyn OutputStore) -> ToolFailure {
    let message = format!("`{handle}` names no stored output: there never was one, or it has expired");
    let failure = ToolFailure::new(ErrorKind::InvalidInput, message);
    let latest = outputs.latest(principal, TOLD_HANDLES).await.unwrap_or_default();
    let latest: Vec<String> =
        latest.iter().map(|one| format!("`{}` ({} bytes of {})", one.handle, one.bytes, one.media_type)).collect();
    match latest.is_empty() {
        true => failure.next("Nothing is stored: call the tool again whose output you want."),
        false => failure.next(format!("The latest are {}.", latest.join(", "))),
    }
}

fn over(stored: &StoredOutput) -> ToolFailure {
    let message = format!(
        "with the stored output `{}` ({} bytes) the arguments are larger than {MAX_BYTES} bytes",
        stored.handle, stored.bytes
    );
    ToolFailure::new(ErrorKind::TooLarge, message).next(TAKE_A_PART)
}

fn too_much_to_read(stored: &StoredOutput) -> ToolFailure {
    let message = format!(
        "with `select` in the stored output `{}` ({} bytes) more than {MAX_READ_THROUGH} bytes would be read through, \
         which count for each reference",
        stored.handle, stored.bytes
    );
    ToolFailure::new(ErrorKind::TooLarge, message).next("Select fewer parts in one call.")
}

fn unreadable(error: StoreError) -> ToolFailure {
    unreadable_content(error.into())
}

fn unreadable_content(cause: Box<dyn std::error::Error + Send + Sync>) -> ToolFailure {
    tracing::warn!(error = &*cause as &dyn std::error::Error, "a stored output could not be read");
    ToolFailure::new(ErrorKind::Io, "the stored output could not be read").caused_by(cause)
}

#[cfg(test)]
mod tests;
