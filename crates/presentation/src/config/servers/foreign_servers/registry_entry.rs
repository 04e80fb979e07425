//! `server.json` of the MCP registry (schema 2025-12-11, and the names of 2025-07-09): a package or a remote server as
//! one server with an exact version. Values that users must supply become variables.

mod arguments;
mod mounts;
mod packages;

use super::{
    references::{escaped, variable_for},
    server_list::ServerList,
    translation::member_of,
};
use crate::config::tree::{
    node::{Member, Node, NodeContent},
    origin::Origin,
    problem::Problem,
};
use std::collections::BTreeMap;

/// Returns the members of a registry entry, which may be wrapped as the registry's API returns it; `None` for any other
/// file.
pub(super) fn of(root: &Node) -> Option<Vec<Member>> {
    let NodeContent::Table(members) = &root.content else { return None };
    if let Some(NodeContent::Table(inner)) = find(members, &["server"])
        && is_entry(inner)
    {
        return Some(inner.clone());
    }
    is_entry(members).then(|| members.clone())
}

fn is_entry(members: &[Member]) -> bool {
    let is_list = |name: &str| matches!(find(members, &[name]), Some(NodeContent::List(_)));
    text(members, &["name"]).is_some() && (is_list("packages") || is_list("remotes"))
}

/// Translates an entry to a list with one server, under the entry's name: the first package that can be run, else the
/// first remote.
///
/// # Errors
/// A [`Problem`] with the reason why none of the packages and remotes can be used.
pub(super) fn translate(entry: Vec<Member>, origin: &Origin) -> Result<ServerList, Problem> {
    let name = text(&entry, &["name"]).unwrap_or_default().to_owned();
    if text(&entry, &["status"]) == Some("deleted") {
        return Err(Problem::new(origin.clone(), "the entry was deleted from the registry"));
    }
    let mut reasons = Vec::new();
    for (kind, translate) in [("packages", packages::translate as TranslateFn), ("remotes", remote as TranslateFn)] {
        let Some(NodeContent::List(nodes)) = find(&entry, &[kind]) else { continue };
        for node in nodes {
            let NodeContent::Table(members) = &node.content else { continue };
            let mut inputs = InputDescriptions::default();
            match translate(members, &node.origin, &mut inputs) {
                Ok(keys) => {
                    let server = member_of(&name, NodeContent::Table(keys), origin);
                    return Ok(ServerList::with(vec![server], inputs.described));
                }
                Err(reason) => reasons.push(reason),
            }
        }
    }
    if reasons.is_empty() {
        reasons.push("it has neither packages nor remotes".into());
    }
    Err(Problem::new(origin.clone(), format!("`{name}` cannot be used: {}", reasons.join("; "))))
}

type TranslateFn = fn(&[Member], &Origin, &mut InputDescriptions) -> Result<Vec<Member>, String>;

/// Descriptions of the values that users supply for the server of a registry entry.
#[derive(Debug, Default)]
struct InputDescriptions {
    /// Descriptions of inputs, by id of the input.
    described: BTreeMap<String, String>,
}

impl InputDescriptions {
    /// Returns the text for an input: its fixed value, or a reference to a variable, with its default. `None` for an
    /// input that may be omitted.
    fn value(&mut self, id: &str, input: &[Member]) -> Option<String> {
        if let Some(value) = text(input, &["value"]) {
            return Some(self.filled(value, input));
        }
        let is_required = flag(input, &["isRequired", "is_required"]);
        let default = text(input, &["default"]).filter(|default| !default.contains('}'));
        if !is_required && default.is_none() {
            return None;
        }
        Some(self.reference(id, default, input))
    }

    /// Returns the reference to the variable of an input, and records its description.
    fn reference(&mut self, id: &str, default: Option<&str>, input: &[Member]) -> String {
        let mut about = text(input, &["description"]).unwrap_or_default().to_owned();
        if let Some(NodeContent::List(choices)) = find(input, &["choices"]) {
            let choices: Vec<&str> = choices.iter().filter_map(|choice| as_text(&choice.content)).collect();
            about = format!("{about} ({})", choices.join(", "));
        }
        self.described.insert(id.to_owned(), about);
        let default = default.map(|default| format!(":-{}", escaped(default))).unwrap_or_default();
        format!("${{input:{id}{default}}}")
    }

    /// Returns the text with each `{name}` replaced by the fixed value of this variable of the input, or by a reference
    /// to it. Escapes the remaining text.
    fn filled(&mut self, value: &str, input: &[Member]) -> String {
        let Some(NodeContent::Table(variables)) = find(input, &["variables"]) else { return escaped(value) };
        let mut written = String::new();
        let mut rest = value;
        while let Some(start) = rest.find('{') {
            let Some(end) = rest[start..].find('}') else { break };
            let name = &rest[start + 1..start + end];
            let variable = variables.iter().find(|one| one.name == name).map(|one| &one.node.content);
            match variable {
                Some(NodeContent::Table(variable)) => {
                    written.push_str(&escaped(&rest[..start]));
                    let fixed = text(variable, &["value"]).map(escaped);
                    let default = text(variable, &["default"]).filter(|default| !default.contains('}'));
                    written.push_str(&fixed.unwrap_or_else(|| self.reference(name, default, variable)));
                }
                _ => written.push_str(&escaped(&rest[..=start + end])),
            }
            rest = &rest[start + end + 1..];
        }
        written.push_str(&escaped(rest));
        written
    }

    /// Returns the names with values of a list of variables or headers. Optional ones without a value are omitted.
    fn named(&mut self, list: Option<&NodeContent>, origin: &Origin) -> Vec<Member> {
        let Some(NodeContent::List(nodes)) = list else { return Vec::new() };
        let one = |node: &Node| {
            let NodeContent::Table(input) = &node.content else { return None };
            let name = text(input, &["name"])?;
            let value = self.value(name, input)?;
            Some(member_of(name, NodeContent::Text(value), origin))
        };
        nodes.iter().filter_map(one).collect()
    }
}

/// Returns the keys `url`, `type` and `headers` of a remote server in a registry entry; an error for an unknown
/// transport or no address.
fn remote(members: &[Member], origin: &Origin, inputs: &mut InputDescriptions) -> Result<Vec<Member>, String> {
    let kind = match text(members, &["type", "transport_type"]) {
        Some("streamable-http" | "streamable") => "http",
        Some("sse") => "sse",
        other => return Err(format!("a remote server has the transport {:?}", other.unwrap_or("none"))),
    };
    let url = text(members, &["url"]).ok_or("a remote server has no address")?;
    let url = inputs.filled(url, members);
    let mut keys = vec![
        member_of("url", NodeContent::Text(url), origin),
        member_of("type", NodeContent::Text(kind.into()), origin),
    ];
    let headers = inputs.named(find(members, &["headers"]), origin);
    if !headers.is_empty() {
        keys.push(member_of("headers", NodeContent::Table(headers), origin));
    }
    Ok(keys)
}

/// Returns the value of the first of `names` that a member has; `None` if no member has one.
fn find<'m>(members: &'m [Member], names: &[&str]) -> Option<&'m NodeContent> {
    let of_name = |name: &&str| members.iter().find(|member| member.name == **name);
    names.iter().find_map(of_name).map(|member| &member.node.content)
}

fn text<'m>(members: &'m [Member], names: &[&str]) -> Option<&'m str> {
    find(members, names).and_then(as_text)
}

fn as_text(content: &NodeContent) -> Option<&str> {
    match content {
        NodeContent::Text(text) => Some(text),
        _ => None,
    }
}

fn flag(members: &[Member], names: &[&str]) -> bool {
    find(members, names) == Some(&NodeContent::Boolean(true))
}

/// Returns the id of an argument: its hint or name in the form of a variable, or else `ARGUMENT_` with the number
/// `fallback`.
fn id_of(argument: &[Member], fallback: usize) -> String {
    let name = text(argument, &["valueHint", "value_hint", "name"]).map(|name| name.trim_start_matches('-'));
    match name.filter(|name| !name.is_empty()) {
        Some(name) => variable_for(name),
        None => format!("ARGUMENT_{fallback}"),
    }
}
