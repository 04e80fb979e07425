//! Arguments of a package or of its runtime.

use super::{InputDescriptions, find, id_of, text};
use crate::config::tree::node::{Member, NodeContent};

/// Returns the arguments in their order. Optional ones without a value are omitted.
///
/// # Errors
/// The reason why an argument cannot be understood.
pub(super) fn translate(list: Option<&NodeContent>, inputs: &mut InputDescriptions) -> Result<Vec<String>, String> {
    let Some(NodeContent::List(nodes)) = list else { return Ok(Vec::new()) };
    let mut arguments = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let NodeContent::Table(argument) = &node.content else { return Err("an argument is not an object".into()) };
        let value = inputs.value(&id_of(argument, at + 1), argument);
        match text(argument, &["type"]) {
            Some("positional") => arguments.extend(value),
            Some("named") => {
                let name = text(argument, &["name"]).ok_or("a named argument has no name")?;
                if takes_value(argument) {
                    arguments.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
                } else {
                    arguments.push(name.to_owned());
                }
            }
            other => return Err(format!("an argument is of the type {:?}", other.unwrap_or("none"))),
        }
    }
    Ok(arguments)
}

/// Returns `true` if a named argument is followed by a value. An argument without a member about a value is a switch.
pub(super) fn takes_value(argument: &[Member]) -> bool {
    let members: [&[&str]; 8] = [
        &["value"],
        &["default"],
        &["valueHint", "value_hint"],
        &["format"],
        &["choices"],
        &["variables"],
        &["placeholder"],
        &["isRequired", "is_required"],
    ];
    members.iter().any(|names| find(argument, names).is_some())
}
