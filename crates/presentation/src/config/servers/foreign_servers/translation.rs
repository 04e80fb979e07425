//! Translates the keys of a server in a file of another program to Toolstead's own.

mod codex;
mod key_groups;

use super::client::ServerConfigDialect;
use crate::config::{
    imports::prohibitions,
    tree::{
        check::PathBase,
        node::{Member, Node, NodeContent},
        origin::Origin,
        problem::Problem,
    },
};
use key_groups::{DENY_TOOLS, HARMLESS, ONLY_TOOLS, is_transport, widens};
use std::path::Path;

/// Maximum value of `timeout_seconds` of an imported server. Longer times are cut to it.
const MAX_SECONDS: u64 = 24 * 3600;
const MAX_CONNECT_SECONDS: u64 = 3600;

/// Surroundings of a file with servers.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) struct FileSurroundings<'a> {
    pub(in crate::config) base: PathBase<'a>,
    /// Folder that replaces `${workspaceFolder}`; `None` for a file of the user, which is for all projects.
    pub(in crate::config) workspace: Option<&'a Path>,
    pub(in crate::config) dialect: ServerConfigDialect,
}

/// Translates the table of one server. Keys without an equivalent are omitted, with a note.
///
/// # Errors
/// A [`Problem`] if the transport is unknown, if a key may restrict the server and has no equivalent, or if two keys
/// have the same meaning.
pub(in crate::config) fn translate(
    server: Member,
    surroundings: FileSurroundings<'_>,
    notes: &mut Vec<Problem>,
) -> Result<Node, Problem> {
    let Member { name, origin, node } = server;
    let NodeContent::Table(members) = node.content else { return Ok(node) };
    let mut translator = Translator {
        surroundings,
        keys: Vec::new(),
        env: Vec::new(),
        headers: Vec::new(),
        transport: None,
        ignored: Vec::new(),
        widening: Vec::new(),
        is_required: false,
    };
    for member in members {
        translator.take(member)?;
    }
    let keys = translator.finish(&name, &origin, notes)?;
    Ok(Node { content: NodeContent::Table(keys), origin: node.origin })
}

struct Translator<'a> {
    surroundings: FileSurroundings<'a>,
    keys: Vec<Member>,
    env: Vec<Member>,
    headers: Vec<Member>,
    transport: Option<Member>,
    ignored: Vec<String>,
    widening: Vec<String>,
    /// `true` if the other program does not start without the server.
    is_required: bool,
}

impl Translator<'_> {
    fn take(&mut self, member: Member) -> Result<(), Problem> {
        let Member { name, origin, node } = member;
        let dialect = self.surroundings.dialect;
        match (name.as_str(), node.content) {
            (_, NodeContent::Other("nothing")) => {}
            ("command", NodeContent::Table(members)) if members.iter().any(|one| one.name == "path") => {
                for one in members {
                    let name = if one.name == "path" { "command".to_owned() } else { one.name };
                    self.take(Member { name, ..one })?;
                }
            }
            ("env" | "envs", NodeContent::Table(members)) => {
                self.env.extend(members.into_iter().filter_map(environment))
            }
            ("headers" | "http_headers" | "httpHeaders", NodeContent::Table(members)) => self.headers.extend(members),
            // Gemini CLI prefers `httpUrl`.
            ("url", _) if dialect == ServerConfigDialect::Gemini && self.keys.iter().any(|key| key.name == "url") => {}
            ("command" | "args" | "env" | "cwd" | "url" | "headers" | "disabled", content) => {
                self.put(&name, content, &origin);
            }
            ("envFile" | "envfile" | "env_file", content) => self.put("env_file", content, &origin),
            ("serverUrl" | "base_url" | "httpUrl", content) => {
                if name == "httpUrl" {
                    let kind = NodeContent::Text("http".into());
                    self.transport = Some(member_of("type", kind, &origin));
                    self.keys.retain(|member| member.name != "url" || dialect != ServerConfigDialect::Gemini);
                }
                self.put("url", content, &origin);
            }
            ("enabled", content) => self.put("disabled", negated(content), &origin),
            (key, content) if ONLY_TOOLS.contains(&key) => self.only_tools(key, content, &origin)?,
            // GitHub Copilot.
            ("tools", content @ NodeContent::List(_)) => self.only_tools("tools", content, &origin)?,
            (key, content) if DENY_TOOLS.contains(&key) => {
                check_names(key, &content, &origin)?;
                self.put("deny_tools", content, &origin);
            }
            ("timeout", content) if dialect.timeout_unit().is_some() => {
                let unit = dialect.timeout_unit().unwrap_or(1);
                self.seconds("timeout_seconds", &name, content, unit, MAX_SECONDS, &origin);
            }
            ("timeout_seconds", content) => {
                self.seconds("timeout_seconds", &name, content, 1000, MAX_SECONDS, &origin);
            }
            ("connect_timeout_seconds", content) => {
                self.seconds("connect_timeout_seconds", &name, content, 1000, MAX_CONNECT_SECONDS, &origin);
            }
            (key, content) if is_transport(key) => {
                if self.transport.is_none() {
                    self.transport = kind_of_url(&content, &node.origin)?.map(|kind| member_of("type", kind, &origin));
                }
            }
            ("source", NodeContent::Text(source)) if source == "extension" => {
                let message =
                    "its program belongs to an extension of the editor; write its command into `[mcp_servers]`";
                return Err(Problem::new(origin, message));
            }
            (key, content) if dialect == ServerConfigDialect::Codex && codex::is_key(key) => {
                codex::take(self, &name, content, &origin)?;
            }
            (key, content) if widens(key, &content) => self.widening.push(format!("`{key}`")),
            (key, content) if prohibitions::may_narrow(key, &content) => return Err(narrows(key, origin)),
            (key, _) if HARMLESS.contains(&key) => {}
            (key, _) => self.ignored.push(format!("`{key}`")),
        }
        Ok(())
    }

    fn put(&mut self, name: &str, content: NodeContent, origin: &Origin) {
        self.keys.push(member_of(name, content, origin));
    }

    /// Adds the list of the only tools that a server may offer, except an empty list of kodelet.
    ///
    /// # Errors
    /// A [`Problem`] if an entry also restricts the arguments of a tool, which `only_tools` cannot do.
    fn only_tools(&mut self, key: &str, content: NodeContent, origin: &Origin) -> Result<(), Problem> {
        check_names(key, &content, origin)?;
        // kodelet writes an empty list if it is not set.
        let is_empty = matches!(&content, NodeContent::List(items) if items.is_empty());
        if !(is_empty && self.surroundings.dialect == ServerConfigDialect::Kodelet) {
            self.put("only_tools", content, origin);
        }
        Ok(())
    }

    /// Adds `key` with a time in units of `unit` milliseconds, rounded up to seconds and at most `max` seconds. A value
    /// that is not a positive number is recorded as ignored.
    fn seconds(&mut self, key: &str, foreign: &str, content: NodeContent, unit: u64, max: u64, origin: &Origin) {
        let milliseconds = match content {
            NodeContent::Integer(number) if number > 0 => Some((number.unsigned_abs()).saturating_mul(unit)),
            NodeContent::Fraction(number) if number > 0.0 => Some((number * unit as f64).min(1e15) as u64),
            _ => None,
        };
        match milliseconds {
            Some(time) => {
                let seconds = i64::try_from(time.div_ceil(1000).clamp(1, max)).unwrap_or(i64::MAX);
                self.put(key, NodeContent::Integer(seconds), origin);
            }
            None => self.ignored.push(format!("`{foreign}`")),
        }
    }

    /// Returns the keys in Toolstead's form. Removes keys that the kind of server does not have, and notes what has no
    /// effect. Fails if two keys have the same meaning, or if there are both a command and a URL.
    fn finish(mut self, name: &str, origin: &Origin, notes: &mut Vec<Problem>) -> Result<Vec<Member>, Problem> {
        for (key, members) in [("env", std::mem::take(&mut self.env)), ("headers", std::mem::take(&mut self.headers))] {
            if let Some(first) = members.first() {
                let place = first.origin.clone();
                self.put(key, NodeContent::Table(members), &place);
            }
        }
        if let Some(key) = repeated(&self.keys) {
            return Err(Problem::new(origin.clone(), format!("two of its keys mean `{key}`: keep one")));
        }
        let has = |keys: &[Member], name: &str| keys.iter().any(|member| member.name == name);
        let foreign_to_transport: &[&str] = match (has(&self.keys, "command"), has(&self.keys, "url")) {
            (true, true) => {
                return Err(Problem::new(origin.clone(), "it has both a command and a URL: keep one"));
            }
            (false, true) => &["args", "env", "env_file", "cwd"],
            (true, false) => &["headers"],
            (false, false) => &[],
        };
        for key in foreign_to_transport.iter().filter(|key| has(&self.keys, key)) {
            self.ignored.push(format!("`{key}`"));
        }
        self.keys.retain(|member| !foreign_to_transport.contains(&member.name.as_str()));
        if has(&self.keys, "url") {
            self.keys.extend(self.transport.take());
        }
        for member in &mut self.keys {
            if let ("env_file" | "cwd", NodeContent::Text(path)) = (member.name.as_str(), &mut member.node.content) {
                *path = in_folder(path, self.surroundings);
            }
        }
        let mut note = |message: String| notes.push(Problem::new(origin.clone(), message));
        if !self.ignored.is_empty() {
            note(format!("the server `{name}` has keys without a meaning here: {}", self.ignored.join(", ")));
        }
        if !self.widening.is_empty() {
            note(format!(
                "the server `{name}` runs tools without approval by {}, which does not apply here: name such tools in \
                 `allow_tools`",
                self.widening.join(", ")
            ));
        }
        if self.is_required {
            note(format!(
                "the server `{name}` is `required`, which does not apply here: without it a start would fail"
            ));
        }
        Ok(self.keys)
    }
}

/// Returns a variable of the environment. Numbers become texts, and variables without a value are omitted.
fn environment(mut variable: Member) -> Option<Member> {
    variable.node.content = match variable.node.content {
        NodeContent::Other("nothing") => return None,
        NodeContent::Integer(number) => NodeContent::Text(number.to_string()),
        NodeContent::Fraction(number) => NodeContent::Text(number.to_string()),
        NodeContent::Boolean(value) => NodeContent::Text(value.to_string()),
        other => other,
    };
    Some(variable)
}

/// Checks the entries of a list of tools.
///
/// # Errors
/// A [`Problem`] for an entry that also restricts the arguments of a tool, which a list of tools in Toolstead cannot
/// do.
fn check_names(key: &str, content: &NodeContent, origin: &Origin) -> Result<(), Problem> {
    let NodeContent::List(items) = content else { return Ok(()) };
    let restricts = |item: &&Node| matches!(&item.content, NodeContent::Text(text) if text.contains('('));
    match items.iter().find(restricts) {
        Some(item) => {
            let message =
                format!("`{key}` restricts arguments ({}), which a list of tools cannot do here", item.content);
            Err(Problem::new(origin.clone(), message))
        }
        None => Ok(()),
    }
}

fn narrows(key: &str, origin: Origin) -> Problem {
    let message = format!(
        "`{key}` is unknown here and may restrict the server; describe the server in `toolstead.toml`, with \
         `only_tools` or `deny_tools`"
    );
    Problem::new(origin, message)
}

/// Returns the opposite of a boolean. Other values are returned unchanged, because the configuration check rejects them
/// later.
fn negated(content: NodeContent) -> NodeContent {
    match content {
        NodeContent::Boolean(value) => NodeContent::Boolean(!value),
        other => other,
    }
}

/// Returns the first name that two members have.
fn repeated(members: &[Member]) -> Option<&str> {
    let is_repeated = |(at, member): &(usize, &Member)| members[..*at].iter().any(|one| one.name == member.name);
    members.iter().enumerate().find(is_repeated).map(|(_, member)| member.name.as_str())
}

/// Returns the `type` of a server with a URL; `None` for `stdio`, which is implied by `command`.
///
/// # Errors
/// A [`Problem`] if the type is unknown.
fn kind_of_url(content: &NodeContent, origin: &Origin) -> Result<Option<NodeContent>, Problem> {
    let NodeContent::Text(kind) = content else { return Ok(None) };
    let word = match kind.as_str() {
        "stdio" => return Ok(None),
        "http" | "streamable-http" | "streamableHttp" | "streamable_http" => "http",
        "sse" => "sse",
        other => {
            let message = format!("its type must be `stdio`, `http` or `sse`, not {other:?}");
            return Err(Problem::new(origin.clone(), message));
        }
    };
    Ok(Some(NodeContent::Text(word.into())))
}

/// Replaces the variables with which other programs name the project and the home folder in a path.
fn in_folder(path: &str, surroundings: FileSurroundings<'_>) -> String {
    let path = path.replace("${pathSeparator}", "/").replace("${/}", "/");
    let path = match surroundings.workspace {
        Some(folder) => path.replace("${workspaceFolder}", &folder.to_string_lossy()),
        None => path,
    };
    match surroundings.base.home {
        Some(home) => path.replace("${userHome}", &home.to_string_lossy()),
        None => path,
    }
}

pub(super) fn member_of(name: &str, content: NodeContent, origin: &Origin) -> Member {
    let node = Node { content, origin: origin.clone() };
    Member { name: name.to_owned(), origin: origin.clone(), node }
}
