//! Checks a tree of values against the schema. Returns the valid entries and all problems.

use crate::config::{
    sections::database_url::{DatabaseUrl, DatabaseUrlError},
    tree::{
        node::{Member, Node, NodeContent},
        origin::Origin,
        problem::Problem,
        schema::{self, KeyDefinition, KeyLookup, ValueKind},
        value::{RuleExample, TextItem, ValidatedConfigValue},
    },
};
use serde_json::Map;
use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::{Path, PathBuf},
};
use toolstead_domain::{
    PatternContext, PermissionRule, ServerName, ToolName, ToolSelection, tool_input_schema::nearest_name,
    workspace_roots::lexical,
};
use toolstead_infrastructure::{
    builtin,
    egress::{
        address,
        host::{Host, HostPatterns, parse_authority},
    },
    shell_analysis::catalogue::LOOKED_THROUGH,
};

/// One value of a layer.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::config) struct LayerEntry {
    /// Names of the key, from the root.
    pub(in crate::config) path: Vec<String>,
    pub(in crate::config) key: &'static KeyDefinition,
    pub(in crate::config) value: ValidatedConfigValue,
    pub(in crate::config) origin: Origin,
}

/// Base folder for relative paths.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) struct PathBase<'a> {
    /// Folder of the file, or the start folder for the environment and flags.
    pub(in crate::config) folder: &'a Path,
    pub(in crate::config) home: Option<&'a Path>,
}

impl PathBase<'_> {
    /// Returns the base for parsing the rules of this layer.
    pub(in crate::config) fn patterns(&self) -> PatternContext {
        PatternContext {
            folder: Some(self.folder.to_path_buf()),
            home: self.home.map(Path::to_path_buf),
            command_tools: builtin::command_tools(),
            transparent_programs: LOOKED_THROUGH,
        }
    }

    fn absolute(&self, text: &str) -> Result<PathBuf, String> {
        let below_home = if text == "~" { Some("") } else { text.strip_prefix("~/") };
        match (below_home, self.home) {
            (Some(rest), Some(home)) => Ok(lexical(home, Path::new(rest))),
            (Some(_), None) => Err(format!("`{text}` is in the home folder, which is unknown")),
            (None, _) => Ok(lexical(self.folder, Path::new(text))),
        }
    }
}

/// Checks a configuration tree against the schema. Returns the valid values and all problems.
pub(in crate::config) fn check(root: &Node, base: PathBase<'_>) -> (Vec<LayerEntry>, Vec<Problem>) {
    let mut checker = Checker { base, entries: Vec::new(), problems: Vec::new() };
    if let NodeContent::Table(members) = &root.content {
        checker.table(&mut Vec::new(), members);
    }
    (checker.entries, checker.problems)
}

struct Checker<'a> {
    base: PathBase<'a>,
    entries: Vec<LayerEntry>,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn problem(&mut self, origin: &Origin, message: impl Into<String>) {
        self.problems.push(Problem::new(origin.clone(), message));
    }

    fn table(&mut self, path: &mut Vec<String>, members: &[Member]) {
        let mut seen = BTreeSet::new();
        for member in members {
            path.push(member.name.clone());
            if !seen.insert(member.name.as_str()) {
                self.problem(&member.origin, format!("`{}` is given twice", written(path)));
            } else if let Err(reason) = name_fits(path) {
                self.problem(&member.origin, reason);
            } else {
                self.member(path, member);
            }
            path.pop();
        }
    }

    fn member(&mut self, path: &mut Vec<String>, member: &Member) {
        match (schema::find(path), &member.node.content) {
            (KeyLookup::Key(key), content) => {
                let found = self.problems.len();
                let value = self.value(key.kind, content, &member.node.origin, path);
                match value {
                    Ok(value) if self.problems.len() == found => {
                        let origin = member.origin.clone();
                        self.entries.push(LayerEntry { path: path.clone(), key, value, origin });
                    }
                    Ok(_) => {}
                    Err(message) => self.problem(&member.node.origin, message),
                }
            }
            (KeyLookup::Table, NodeContent::Table(members)) => self.table(path, members),
            (KeyLookup::Table, other) => {
                self.problem(&member.node.origin, format!("`{}` must be a table, got {other}", written(path)));
            }
            (KeyLookup::Nothing, _) => {
                let known = schema::names_below(&path[..path.len() - 1]);
                let advice = match nearest_key(&member.name, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known here: {}", known.join(", ")),
                };
                self.problem(&member.origin, format!("unknown key `{}`; {advice}", written(path)));
            }
        }
    }

    /// Converts a value to the type of its key, or returns the reason why that fails. Problems with single items are
    /// added to `self.problems`.
    fn value(
        &mut self,
        kind: ValueKind,
        content: &NodeContent,
        origin: &Origin,
        path: &[String],
    ) -> Result<ValidatedConfigValue, String> {
        let key = written(path);
        let wrong = || Err(format!("`{key}` must be {}, got {content}", kind.describe()));
        match (kind, content) {
            (ValueKind::Boolean, NodeContent::Boolean(value)) => Ok(ValidatedConfigValue::Boolean(*value)),
            (ValueKind::Boolean, NodeContent::Untyped(text)) => match text.trim() {
                "true" | "1" => Ok(ValidatedConfigValue::Boolean(true)),
                "false" | "0" => Ok(ValidatedConfigValue::Boolean(false)),
                _ => wrong(),
            },
            (ValueKind::Boolean, _) => wrong(),
            (ValueKind::Integer { least, most }, content) => {
                let number = match content {
                    NodeContent::Integer(number) => u64::try_from(*number).ok(),
                    NodeContent::Untyped(text) => text.trim().parse().ok(),
                    _ => None,
                };
                number
                    .filter(|number| (least..=most).contains(number))
                    .map_or_else(wrong, |n| Ok(ValidatedConfigValue::Integer(n)))
            }
            (ValueKind::Number { least, most }, content) => {
                let number = match content {
                    NodeContent::Integer(number) => Some(*number as f64),
                    NodeContent::Fraction(number) => Some(*number),
                    NodeContent::Untyped(text) => text.trim().parse().ok(),
                    _ => None,
                };
                number
                    .filter(|number| (least..=most).contains(number))
                    .map_or_else(wrong, |n| Ok(ValidatedConfigValue::Number(n)))
            }
            (
                ValueKind::Texts | ValueKind::Words(_) | ValueKind::Paths | ValueKind::Rules(_) | ValueKind::Origins,
                _,
            ) => match items(content, origin) {
                Some(items) => Ok(ValidatedConfigValue::List(self.items(kind, &items, &key))),
                None => wrong(),
            },
            (ValueKind::Hosts, NodeContent::Text(text) | NodeContent::Untyped(text)) if text.trim() == "none" => {
                Ok(ValidatedConfigValue::List(Vec::new()))
            }
            // In a file, a single text is more likely a mistake than a list with one item.
            (ValueKind::Hosts, NodeContent::Text(_)) => wrong(),
            (ValueKind::Hosts, _) => match items(content, origin) {
                Some(items) => Ok(ValidatedConfigValue::List(self.items(kind, &items, &key))),
                None => wrong(),
            },
            (ValueKind::Selection, content) => {
                let text = match content {
                    NodeContent::Text(text) | NodeContent::Untyped(text) => text.clone(),
                    NodeContent::List(nodes) => {
                        let words: Vec<String> =
                            self.items(ValueKind::Texts, nodes, &key).into_iter().map(|item| item.text).collect();
                        words.join(",")
                    }
                    _ => return wrong(),
                };
                ToolSelection::all().adjusted(&text).map_err(|error| format!("`{key}`: {error}"))?;
                Ok(ValidatedConfigValue::Text(text))
            }
            (ValueKind::Map, NodeContent::Table(members)) => Ok(ValidatedConfigValue::Map(self.map(members, &key))),
            (ValueKind::Map, NodeContent::Untyped(text)) => {
                let Ok(serde_json::Value::Object(object)) = serde_json::from_str(text) else {
                    return Err(format!("`{key}` must be a JSON object here, got {content}"));
                };
                let member = |(name, value): (String, serde_json::Value)| {
                    let content = match value {
                        serde_json::Value::String(text) => NodeContent::Text(text),
                        _ => NodeContent::Other("something else"),
                    };
                    Member { name, origin: origin.clone(), node: Node { content, origin: origin.clone() } }
                };
                Ok(ValidatedConfigValue::Map(self.map(&object.into_iter().map(member).collect::<Vec<_>>(), &key)))
            }
            (ValueKind::Map, _) => wrong(),
            (ValueKind::Json, NodeContent::Table(members)) => {
                Ok(ValidatedConfigValue::Json(self.json_members(members, &key)))
            }
            (ValueKind::Json, NodeContent::Untyped(text)) => match serde_json::from_str(text) {
                Ok(serde_json::Value::Object(members)) => Ok(ValidatedConfigValue::Json(members)),
                _ => Err(format!("`{key}` must be a JSON object here, got {content}")),
            },
            (ValueKind::Json, _) => wrong(),
            (ValueKind::Database, content) => {
                let parse = |text| DatabaseUrl::parse(text, |path| self.base.absolute(path));
                match text_of(content).map(parse) {
                    Some(Ok(url)) => Ok(ValidatedConfigValue::Database(url)),
                    None | Some(Err(DatabaseUrlError::Malformed)) => wrong(),
                    Some(Err(error)) => Err(format!("`{key}`: {error}")),
                }
            }
            (_, content) => match text_of(content) {
                Some(text) => self.text(kind, text).map_or_else(
                    |reason| match reason {
                        Some(reason) => Err(format!("`{key}`: {reason}")),
                        None => wrong(),
                    },
                    |text| Ok(ValidatedConfigValue::Text(text)),
                ),
                None => wrong(),
            },
        }
    }

    fn items(&mut self, kind: ValueKind, nodes: &[Node], key: &str) -> Vec<TextItem> {
        let mut checked = Vec::with_capacity(nodes.len());
        for node in nodes {
            if let (ValueKind::Rules(_), NodeContent::DerivedRule { rule, entry }) = (kind, &node.content) {
                match self.item(kind, rule, &node.origin) {
                    Ok(text) => {
                        checked
                            .push(TextItem { entry: Some(entry.clone()), ..TextItem::new(text, node.origin.clone()) });
                    }
                    Err(reason) => self.problem(&node.origin, format!("`{key}`: {reason}")),
                }
                continue;
            }
            if let (ValueKind::Rules(_), NodeContent::Table(members)) = (kind, &node.content) {
                checked.extend(self.rule_with_examples(kind, members, &node.origin, key));
                continue;
            }
            let text = match text_of(&node.content) {
                Some(text) => self.item(kind, text, &node.origin),
                None => Err(format!("must be a list of texts, got {} in it", node.content)),
            };
            match text {
                Ok(text) => checked.push(TextItem::new(text, node.origin.clone())),
                Err(reason) => self.problem(&node.origin, format!("`{key}`: {reason}")),
            }
        }
        checked
    }

    /// Parses the table `{ rule = "…", matches = […], not_matches = […] }`; `None` without a valid rule. Errors are
    /// added to `self.problems`.
    fn rule_with_examples(
        &mut self,
        kind: ValueKind,
        members: &[Member],
        origin: &Origin,
        key: &str,
    ) -> Option<TextItem> {
        const KEYS: [&str; 3] = ["rule", "matches", "not_matches"];
        let found = self.problems.len();
        let mut rule = None;
        let mut examples = Vec::new();
        for Member { name, origin, node } in members {
            match (name.as_str(), &node.content) {
                ("rule", NodeContent::Text(text)) => match self.item(kind, text, &node.origin) {
                    Ok(text) => rule = Some((text, node.origin.clone())),
                    Err(reason) => self.problem(&node.origin, format!("`{key}`: {reason}")),
                },
                ("matches" | "not_matches", NodeContent::List(nodes)) => {
                    let texts = self.items(ValueKind::Texts, nodes, &format!("{key}.{name}"));
                    let matches = name == "matches";
                    examples.extend(texts.into_iter().map(|TextItem { text, origin, .. }| RuleExample {
                        text,
                        origin,
                        matches,
                    }));
                }
                ("rule", other) => self.problem(&node.origin, format!("`{key}.rule` must be a text, got {other}")),
                ("matches" | "not_matches", other) => {
                    self.problem(&node.origin, format!("`{key}.{name}` must be a list of texts, got {other}"));
                }
                _ => {
                    let advice = nearest_name(name, KEYS);
                    let advice = advice
                        .map_or(format!("known here: {}", KEYS.join(", ")), |near| format!("did you mean `{near}`?"));
                    self.problem(origin, format!("unknown key `{key}.{name}`; {advice}"));
                }
            }
        }
        if rule.is_none() && self.problems.len() == found {
            self.problem(origin, format!("`{key}`: a table must hold `rule`"));
        }
        rule.map(|(text, origin)| TextItem { text, origin, examples, entry: None })
    }

    fn item(&self, kind: ValueKind, text: &str, origin: &Origin) -> Result<String, String> {
        match kind {
            ValueKind::Rules(effect) => {
                PermissionRule::parse(effect, text, origin.to_rule_origin(), &self.base.patterns())
                    .map_err(|error| format!("`{text}` is not a valid rule: {}", error.reason))?;
                Ok(text.to_owned())
            }
            ValueKind::Hosts => match (HostPatterns::parse([text]), never_reached(text)) {
                (Err(error), _) => Err(error.to_string()),
                (Ok(_), Some(reason)) => {
                    Err(format!("{text:?} could never be reached: {reason}, and commands reach public hosts alone"))
                }
                (Ok(_), None) => Ok(text.to_owned()),
            },
            ValueKind::Origins if !is_origin(text) => Err(format!(
                "{text:?} is not an origin as browsers send it, such as `https://app.example.com` or \
                 `http://localhost:*`"
            )),
            ValueKind::Words(words) if !words.contains(&text) => {
                Err(format!("`{text}` is not known here; known: {}", words.join(", ")))
            }
            ValueKind::Paths => {
                self.text(ValueKind::Path, text).map_err(|reason| reason.unwrap_or("a path is empty".into()))
            }
            _ => self.text(ValueKind::Text, text).map_err(|reason| reason.unwrap_or("a text is empty".into())),
        }
    }

    /// Returns a valid text of this kind, with a path made absolute. `Err(None)` means that the text is not of that
    /// kind and there is no further explanation.
    fn text(&self, kind: ValueKind, text: &str) -> Result<String, Option<String>> {
        if text.contains('\0') {
            return Err(Some("a text must not hold a NUL character".into()));
        }
        match kind {
            _ if text.is_empty() => Err(None),
            ValueKind::Word(words) => words.contains(&text).then(|| text.to_owned()).ok_or(None),
            ValueKind::Variable => match is_variable(text) {
                true => Ok(text.to_owned()),
                false => {
                    Err(Some(format!("it must be {}: letters, digits and `_`, not the secret itself", kind.describe())))
                }
            },
            ValueKind::Path => {
                let path = self.base.absolute(text).map_err(Some)?;
                path.into_os_string().into_string().map_err(|_| Some("the path is not UTF-8".into()))
            }
            ValueKind::Url if !text.contains("${") => match url::Url::parse(text) {
                Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(text.to_owned()),
                Ok(_) | Err(_) => Err(None),
            },
            ValueKind::Address => match text.parse::<SocketAddr>() {
                Ok(address) => Ok(address.to_string()),
                Err(_) => Err(None),
            },
            _ => Ok(text.to_owned()),
        }
    }

    /// Converts a table to JSON. Values that JSON cannot express are reported as problems.
    fn json_members(&mut self, members: &[Member], key: &str) -> Map<String, serde_json::Value> {
        let mut checked = Map::new();
        for Member { name, origin, node } in members {
            let key = format!("{key}.{name}");
            if checked.contains_key(name) {
                self.problem(origin, format!("`{key}` is given twice"));
                continue;
            }
            let value = self.json(node, &key);
            checked.extend(value.map(|value| (name.clone(), value)));
        }
        checked
    }

    fn json(&mut self, node: &Node, key: &str) -> Option<serde_json::Value> {
        match &node.content {
            NodeContent::Boolean(value) => Some((*value).into()),
            NodeContent::Integer(value) => Some((*value).into()),
            NodeContent::Text(text) | NodeContent::Untyped(text) => Some(text.as_str().into()),
            NodeContent::List(nodes) => Some(nodes.iter().filter_map(|node| self.json(node, key)).collect()),
            NodeContent::Table(members) => Some(self.json_members(members, key).into()),
            NodeContent::Fraction(value) if value.is_finite() => Some((*value).into()),
            other @ (NodeContent::Fraction(_) | NodeContent::DerivedRule { .. } | NodeContent::Other(_)) => {
                self.problem(&node.origin, format!("`{key}` must have a value that JSON can express, got {other}"));
                None
            }
        }
    }

    fn map(&mut self, members: &[Member], key: &str) -> Vec<(String, TextItem)> {
        let mut seen = BTreeSet::new();
        let mut checked = Vec::with_capacity(members.len());
        for Member { name, origin, node } in members {
            match text_of(&node.content) {
                _ if !seen.insert(name) => self.problem(origin, format!("`{key}.{name}` is given twice")),
                _ if name.is_empty() || name.contains(['\0', '=']) => {
                    self.problem(origin, format!("`{key}`: {name:?} is not a valid name"));
                }
                Some(text) if !text.contains('\0') => {
                    checked.push((name.clone(), TextItem::new(text, origin.clone())));
                }
                _ => self.problem(&node.origin, format!("`{key}.{name}` must be a text, got {}", node.content)),
            }
        }
        checked
    }
}

/// Returns the names joined with dots. Names that contain a dot are quoted.
pub(in crate::config) fn written(path: &[String]) -> String {
    let names: Vec<String> =
        path.iter().map(|name| if name.contains('.') { format!("{name:?}") } else { name.clone() }).collect();
    names.join(".")
}

/// Returns the key that was probably meant: the nearest by edit distance, or else one that contains the name or is
/// contained in it.
fn nearest_key(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let kin = |key: &&&str| name.len() > 2 && (key.contains(name) || name.contains(**key));
    nearest_name(name, known.iter().copied()).or_else(|| known.iter().find(kin).copied())
}

fn name_fits(path: &[String]) -> Result<(), String> {
    match path {
        [section, name] if section == "mcp_servers" => {
            ServerName::parse(name).map(drop).map_err(|error| format!("`{}`: {error}", written(path)))
        }
        [section, name] if section == "tools" || section == "hooks" => {
            ToolName::parse(name).map(drop).map_err(|error| format!("`{}`: {error}", written(path)))
        }
        [section, name] if section == "views" => match is_view_name(name) {
            true => Ok(()),
            false => Err(format!(
                "`{}`: the name of a view is 1 to 64 letters, digits and `_`, `-`, because it is a part of a URL",
                written(path)
            )),
        },
        [section, _, key, tool] if section == "views" && key == "overlay" => {
            ToolName::parse(tool).map(drop).map_err(|error| format!("`{}`: {error}", written(path)))
        }
        [section, name] if section == "models" || section == "profiles" => match is_plain_name(name) {
            true => Ok(()),
            false => Err(format!(
                "`{}`: a name here is 1 to 64 letters, digits and `_`, `-`, `.`, `:` and `/`",
                written(path)
            )),
        },
        _ => Ok(()),
    }
}

/// Returns `true` if the name is valid for a view.
fn is_view_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns `true` if the name is valid for a model or a profile.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    (1..=64).contains(&name.len()) && name.chars().all(is_plain)
}

fn is_variable(text: &str) -> bool {
    text.len() <= 128
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn text_of(content: &NodeContent) -> Option<&str> {
    match content {
        NodeContent::Text(text) | NodeContent::Untyped(text) => Some(text),
        NodeContent::Boolean(_)
        | NodeContent::Integer(_)
        | NodeContent::Fraction(_)
        | NodeContent::DerivedRule { .. }
        | NodeContent::List(_)
        | NodeContent::Table(_)
        | NodeContent::Other(_) => None,
    }
}

/// Returns the items of a list; `None` for any other value. Text from the environment is a JSON array, or items
/// separated by commas; a comma within parentheses does not separate items.
fn items(content: &NodeContent, origin: &Origin) -> Option<Vec<Node>> {
    match content {
        NodeContent::List(nodes) => Some(nodes.clone()),
        NodeContent::Untyped(text) => {
            let texts: Vec<String> = match text.trim_start().starts_with('[') {
                true => serde_json::from_str(text).ok()?,
                false => split(text),
            };
            let node = |text| Node { content: NodeContent::Text(text), origin: origin.clone() };
            Some(texts.into_iter().map(node).collect())
        }
        NodeContent::Boolean(_)
        | NodeContent::Integer(_)
        | NodeContent::Fraction(_)
        | NodeContent::DerivedRule { .. }
        | NodeContent::Text(_)
        | NodeContent::Table(_)
        | NodeContent::Other(_) => None,
    }
}

fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Returns `true` if a browser may send this as `Origin`: no path and no default port. `*` matches any port.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let host = host.strip_suffix(":*").unwrap_or(host);
    let usual_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    let is_named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '[' | ']');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && !host.is_empty()
        && host.chars().all(is_named)
        && (usual_port.is_empty() || !host.ends_with(usual_port))
}

/// Returns the reason why commands cannot reach the host even if it is listed; `None` if they may reach it.
fn never_reached(pattern: &str) -> Option<String> {
    match parse_authority(pattern, Some(443)).ok()?.0 {
        Host::Address(address) => address::check_public(address).err().map(|error| error.to_string()),
        Host::Name(name) => (&*name == "localhost" || name.ends_with(".localhost"))
            .then(|| format!("{name} is not a public host but this machine itself")),
    }
}
