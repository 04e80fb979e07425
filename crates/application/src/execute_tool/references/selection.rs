//! A part of a JSON text, by JSON Pointer (RFC 6901). Only the way to it is read, so that a small part of a large output
//! costs little memory.

use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;

/// So many keys of an object are named where a pointer leads nowhere.
const TOLD_KEYS: usize = 20;
/// A key is named up to this length, in characters.
const TOLD_KEY: usize = 60;

/// The part to which the pointer leads, and its text where it is no text itself.
///
/// # Errors
/// Why there is none, as the end of a sentence that names the nearest place on the way.
pub(super) fn select(text: &str, pointer: &str, most: usize) -> Result<(Value, Option<String>), String> {
    let mut at: &RawValue = serde_json::from_str(text).map_err(|error| format!("it is no JSON text ({error})"))?;
    let steps = match pointer.strip_prefix('/') {
        Some(steps) => steps.split('/').collect(),
        None if pointer.is_empty() => Vec::new(),
        None => return Err("a JSON Pointer is empty or begins with `/`, such as `/rows/3`".into()),
    };
    let mut way = String::new();
    for step in steps {
        at = below(at, &step.replace("~1", "/").replace("~0", "~")).map_err(|why| {
            let place = if way.is_empty() { "the whole" } else { way.as_str() };
            format!("{} is {why}", if way.is_empty() { place.to_owned() } else { format!("`{place}`") })
        })?;
        way.push('/');
        way.push_str(step);
    }
    if at.get().len() > most {
        return Err(format!("it has {} bytes, which are too many", at.get().len()));
    }
    match serde_json::from_str(at.get()).map_err(|error| error.to_string())? {
        Value::String(text) => Ok((text.into(), None)),
        value => Ok((value, Some(at.get().to_owned()))),
    }
}

/// One step on the way; an error says what there is instead.
fn below<'a>(value: &'a RawValue, step: &str) -> Result<&'a RawValue, String> {
    match value.get().as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).map_err(|e| e.to_string())?;
            members.get(step).copied().ok_or_else(|| keys(&members))
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(|error| error.to_string())?;
            // RFC 6901, section 4: digits without a leading zero.
            let is_index = step == "0" || !step.starts_with(['0', '+']);
            let item = step.parse().ok().filter(|_| is_index).and_then(|at: usize| items.get(at).copied());
            item.ok_or_else(|| format!("an array of {} items, counted from 0", items.len()))
        }
        Some(b'"') => Err("a string".into()),
        _ => Err(value.get().to_owned()),
    }
}

fn keys(members: &BTreeMap<String, &RawValue>) -> String {
    let named: Vec<String> = members
        .keys()
        .take(TOLD_KEYS)
        .map(|key| format!("`{}`", key.chars().take(TOLD_KEY).collect::<String>()))
        .collect();
    let more = members.len().saturating_sub(TOLD_KEYS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("an object with the keys {}{more}", named.join(", "))
}
