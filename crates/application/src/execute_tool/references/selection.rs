//! Selection of a part of a JSON text by JSON Pointer (RFC 6901). The text is read once, and only the part is retained,
//! so that a small part of a large output takes little memory.

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use std::{collections::BTreeSet, fmt};
use toolstead_domain::json_memory::has_too_many_values;

/// Maximum number of steps of a pointer. serde_json does not parse deeper texts either.
const MAX_STEPS: usize = 100;
/// Maximum number of keys that an error about a missing member names.
const TOLD_KEYS: usize = 20;
/// Maximum number of characters of a key in an error about a missing member.
const TOLD_KEY: usize = 60;

/// Returns the part of a JSON text at the pointer, with the part's own JSON text if it is not a string. `most` is its
/// maximum size in bytes.
///
/// # Errors
/// Description of the fault, as a clause: what is at the nearest existing part instead, or why the pointer, the text or
/// the part cannot be used.
pub(super) fn select(text: &str, pointer: &str, most: usize) -> Result<(Value, Option<String>), String> {
    let steps: Vec<String> = match pointer.strip_prefix('/') {
        Some(steps) => {
            steps.split('/').take(MAX_STEPS + 1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
        }
        None if pointer.is_empty() => Vec::new(),
        None => return Err("a JSON Pointer is empty or begins with `/`, such as `/rows/3`".into()),
    };
    if steps.len() > MAX_STEPS {
        return Err(format!("a JSON Pointer of more than {MAX_STEPS} steps is not followed"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = PointerSteps { steps: &steps }.deserialize(&mut reader).and_then(|found| reader.end().map(|()| found));
    let part = match found.map_err(|error| format!("it is not JSON ({error})"))? {
        Ok(part) => part.get(),
        Err(end) => {
            let way: Vec<&str> = pointer.split('/').take(steps.len() - end.left + 1).collect();
            let place = if way.len() > 1 { format!("`{}`", way.join("/")) } else { "the whole".into() };
            return Err(format!("{place} is {}", end.instead));
        }
    };
    if part.len() > most {
        return Err(format!("it has {} bytes, which are too many", part.len()));
    }
    if has_too_many_values(part.as_bytes()) {
        return Err("it contains too many values".into());
    }
    match serde_json::from_str(part).map_err(|error| error.to_string())? {
        Value::String(text) => Ok((text.into(), None)),
        value => Ok((value, Some(part.to_owned()))),
    }
}

/// Remaining steps of a pointer.
#[derive(Clone, Copy)]
struct PointerSteps<'s> {
    steps: &'s [String],
}

/// Error: the pointer leads nowhere.
struct PointerError {
    /// Number of steps that could not be followed.
    left: usize,
    /// Description of the value at the last step.
    instead: String,
}

impl<'de> DeserializeSeed<'de> for PointerSteps<'_> {
    type Value = Result<&'de RawValue, PointerError>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        match self.steps {
            [] => <&RawValue>::deserialize(reader).map(Ok),
            _ => reader.deserialize_any(self),
        }
    }
}

impl PointerSteps<'_> {
    fn ends<'de, E>(self, instead: impl Into<String>) -> Result<Result<&'de RawValue, PointerError>, E> {
        Ok(Err(PointerError { left: self.steps.len(), instead: instead.into() }))
    }
}

/// One step. Values outside of the pointer's path are skipped.
impl<'de> Visitor<'de> for PointerSteps<'_> {
    type Value = Result<&'de RawValue, PointerError>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (mut found, mut count, mut keys) = (None, 0_usize, BTreeSet::new());
        while let Some(key) = members.next_key::<String>()? {
            count += 1;
            // Of several members with the same name the last one applies, as elsewhere in serde_json.
            if key == self.steps[0] {
                found = Some(members.next_value_seed(PointerSteps { steps: &self.steps[1..] })?);
                continue;
            }
            members.next_value::<IgnoredAny>()?;
            if found.is_none() {
                keys.insert(key.chars().take(TOLD_KEY).collect::<String>());
                if keys.len() > TOLD_KEYS {
                    keys.pop_last();
                }
            }
        }
        found.map_or_else(|| self.ends(describe_object(&keys, count)), Ok)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let step = &self.steps[0];
        // RFC 6901, section 4: digits without a leading zero.
        let is_index = step == "0" || !step.starts_with(['0', '+']);
        let wanted = step.parse::<usize>().ok().filter(|_| is_index);
        let (mut found, mut count) = (None, 0_usize);
        loop {
            if wanted == Some(count) {
                match items.next_element_seed(PointerSteps { steps: &self.steps[1..] })? {
                    Some(item) => found = Some(item),
                    None => break,
                }
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            count += 1;
        }
        found.map_or_else(|| self.ends(format!("an array of {count} items, counted from 0")), Ok)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        self.ends("a string")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        self.ends(value.to_string())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        self.ends(value.to_string())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        self.ends(value.to_string())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        self.ends(value.to_string())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        self.ends("null")
    }
}

fn describe_object(keys: &BTreeSet<String>, count: usize) -> String {
    let named: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    let more = count.saturating_sub(keys.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("an object with the keys {}{more}", named.join(", "))
}
