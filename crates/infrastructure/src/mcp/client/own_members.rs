//! Members that only Toolstead may set: what clients read in them is our word.

use serde_json::{Map, Value};

/// What the names of our members in `_meta` begin with, and those of our questions.
const OWN: &str = "toolstead/";

/// Whether the name is one of ours.
pub(super) fn is_own(name: &str) -> bool {
    name.get(..OWN.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(OWN))
}

/// Takes our members out of the `_meta` of an object that a server sent.
pub(super) fn take_out(object: &mut Map<String, Value>) {
    if let Some(Value::Object(meta)) = object.get_mut("_meta") {
        meta.retain(|name, _| !is_own(name));
    }
}

/// The same for the data of an error, and for such members of the data themselves.
pub(super) fn take_out_of_data(data: &mut Value) {
    if let Value::Object(data) = data {
        data.retain(|name, _| !is_own(name));
        take_out(data);
    }
}

/// The same for a result: its own `_meta`, and those of its blocks and of what they hold.
pub(super) fn take_out_of_result(result: &mut Map<String, Value>) {
    take_out(result);
    for block in result.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        let Value::Object(block) = block else { continue };
        take_out(block);
        if let Some(Value::Object(resource)) = block.get_mut("resource") {
            take_out(resource);
        }
    }
}
