//! Members that only Toolstead may set, because clients trust their contents.

use serde_json::{Map, Value};

/// Prefix of Toolstead's own members in `_meta` and of the keys of its own questions.
const OWN: &str = "toolstead/";

/// Returns `true` if the name has Toolstead's prefix.
pub(in crate::mcp::client) fn is_own(name: &str) -> bool {
    name.get(..OWN.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(OWN))
}

/// Removes Toolstead's members from the `_meta` of an object that a server sent.
pub(in crate::mcp::client) fn take_out(object: &mut Map<String, Value>) {
    if let Some(Value::Object(meta)) = object.get_mut("_meta") {
        meta.retain(|name, _| !is_own(name));
    }
}

/// Removes Toolstead's members from the data of an error and from its `_meta`.
pub(in crate::mcp::client) fn take_out_of_data(data: &mut Value) {
    if let Value::Object(data) = data {
        data.retain(|name, _| !is_own(name));
        take_out(data);
    }
}

/// Removes Toolstead's members from the `_meta` of a result, of its content blocks, and of the resources in them.
pub(in crate::mcp::client) fn take_out_of_result(result: &mut Map<String, Value>) {
    take_out(result);
    for block in result.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        let Value::Object(block) = block else { continue };
        take_out(block);
        if let Some(Value::Object(resource)) = block.get_mut("resource") {
            take_out(resource);
        }
    }
}
