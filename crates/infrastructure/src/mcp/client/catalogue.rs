//! Tools that a server lists, with limits on their number and size.

pub(super) mod identity;
pub(super) mod pooled_tools;

use crate::mcp::{
    client::{
        config::{ToolNaming, UpstreamConfig},
        connection::{Connection, foreign_text::shown, own_members, request_error::RequestError},
    },
    wire::{
        headers::ParamHeaders,
        incoming::RawResponse,
        message::{RpcError, parse_exact},
        meta, numbers,
    },
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::Arc,
};
use toolstead_domain::{Category, ProtocolGeneration, Tool, ToolName, ToolSource, json_memory};

/// Maximum length of a cursor to send back, in bytes.
pub(super) const MAX_CURSOR_BYTES: usize = 64 << 10;
/// Maximum size of all definitions of one server together, in bytes.
const MAX_CATALOGUE_BYTES: usize = 64 << 20;
/// Maximum memory of all definitions of one server as parsed values, in bytes.
const MAX_CATALOGUE_MEMORY: usize = 128 << 20;
/// Maximum number of definitions of one page to read.
const MAX_PAGE: usize = 100_000;
/// Maximum number of members of one page to retain, beside the tools and the cursor.
const MAX_REST: usize = 64;
/// Members of a list that are valid for one connection only.
const CONNECTION_MEMBERS: &[&str] = &["resultType", "ttlMs", "cacheScope"];
/// Maximum number of omitted tools to name in a note.
const NAMED_TOOLS: usize = 3;

/// Tools of a server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ToolCatalogue {
    /// Tools in the server's order. Their names are unique.
    pub(super) tools: Vec<Tool>,
    /// Parameters that headers repeat, by the server's own tool name. Only tools with such parameters are included.
    pub(super) mirrored: HashMap<Arc<str>, ParamHeaders>,
    /// Members of the list's first page, except the tools, the cursor and those for one connection only.
    pub(super) rest: Map<String, Value>,
    /// Notes for the operator about what was omitted, with reasons.
    pub(super) notes: Vec<String>,
}

/// One page as received. Each definition is parsed separately, so that an invalid one does not affect the others.
#[derive(Default)]
struct ToolListPage<'a> {
    tools: CappedDefinitionList<'a>,
    next_cursor: Option<&'a RawValue>,
    /// Members of the page, except the tools, the cursor and those for one connection only.
    rest: Vec<(String, &'a RawValue)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ToolListPage<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PageVisitor;
        impl<'de> Visitor<'de> for PageVisitor {
            type Value = ToolListPage<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a page of a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut page = ToolListPage::default();
                while let Some(name) = members.next_key::<Cow<'de, str>>()? {
                    match name.as_ref() {
                        "tools" => page.tools = members.next_value()?,
                        "nextCursor" => page.next_cursor = members.next_value()?,
                        name if page.rest.len() < MAX_REST && !CONNECTION_MEMBERS.contains(&name) => {
                            page.rest.push((name.to_owned(), members.next_value()?));
                        }
                        _ => {
                            members.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(page)
            }
        }
        deserializer.deserialize_map(PageVisitor)
    }
}

/// First definitions of a page, up to `MAX_PAGE`. The rest is skipped to save memory.
#[derive(Default)]
pub(super) struct CappedDefinitionList<'a>(pub(super) Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for CappedDefinitionList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DefinitionsVisitor;
        impl<'de> Visitor<'de> for DefinitionsVisitor {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of definitions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut first = Vec::new();
                while first.len() < MAX_PAGE {
                    let Some(definition) = items.next_element()? else { return Ok(first) };
                    first.push(definition);
                }
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(first)
            }
        }
        deserializer.deserialize_seq(DefinitionsVisitor).map(Self)
    }
}

impl ToolCatalogue {
    /// Lists the tools, page by page, within the limits, and logs the notes. A server that does not know `tools/list`
    /// has no tools.
    ///
    /// # Errors
    /// Returns [`RequestError`] if the first page fails. A failure of a later page ends the list with a note.
    pub(super) async fn fetch(connection: &Connection, config: &UpstreamConfig) -> Result<Self, RequestError> {
        let mirrors = connection.transport.mirrors_parameters()
            && connection.writer.version.generation() == ProtocolGeneration::Modern;
        let mut draft = CatalogueDraft::new(config, mirrors);
        let mut cursors = HashSet::new();
        let mut params = Map::new();
        for page in 1.. {
            let answer = connection.transport.request(&connection.writer, "tools/list", &params).await;
            let next = match answer.and_then(|answer| draft.take_page(answer)) {
                Ok(next) => next,
                // A server without tools may not implement the method.
                Err(RequestError::Rpc(error)) if page == 1 && error.code == RpcError::METHOD_NOT_FOUND => {
                    draft.note("it does not know `tools/list`");
                    None
                }
                Err(error) if page == 1 => return Err(error),
                Err(error) => {
                    draft.note(format!("the list of tools ends after {} pages: {error}", page - 1));
                    None
                }
            };
            let Some(cursor) = next else { break };
            if page == config.limits.pages {
                draft.note(format!("the list of tools was cut off after {page} pages"));
                break;
            }
            if !cursors.insert(cursor.clone()) {
                draft.note(format!("the list of tools was cut off after {page} pages: the server repeats a cursor"));
                break;
            }
            params.insert("cursor".into(), cursor.into());
        }
        Ok(draft.finish())
    }
}

struct CatalogueDraft<'a> {
    config: &'a UpstreamConfig,
    /// `true` if HTTP headers repeat parameters of calls.
    mirrors: bool,
    catalogue: ToolCatalogue,
    known: HashSet<ToolName>,
    bytes: usize,
    memory: usize,
    /// Names of the omitted tools by reason.
    left_out: BTreeMap<String, Vec<String>>,
    is_first_page: bool,
}

impl<'a> CatalogueDraft<'a> {
    fn new(config: &'a UpstreamConfig, mirrors: bool) -> Self {
        Self {
            config,
            mirrors,
            catalogue: ToolCatalogue::default(),
            known: HashSet::new(),
            bytes: 0,
            memory: 0,
            left_out: BTreeMap::new(),
            is_first_page: true,
        }
    }

    /// Parses members, up to the maximum size of a definition in all. Returns those that can be represented, except the
    /// server's description and those that only Toolstead may set.
    fn rest(&self, members: Vec<(String, &RawValue)>) -> Map<String, Value> {
        let mut left = self.config.limits.definition_bytes;
        let mut rest = Map::new();
        for (name, value) in members {
            let Some(fewer) = left.checked_sub(name.len() + value.get().len()) else { break };
            left = fewer;
            if let Ok(value) = parse_exact(value.get()) {
                rest.insert(name, value);
            }
        }
        own_members::take_out(&mut rest);
        match rest.get_mut("_meta") {
            Some(Value::Object(meta)) => drop(meta.shift_remove(meta::SERVER_INFO)),
            Some(_) => drop(rest.shift_remove("_meta")),
            None => {}
        }
        rest
    }

    /// Adds the tools of one page. Returns the cursor of the next page if it should be requested.
    fn take_page(&mut self, answer: RawResponse) -> Result<Option<String>, RequestError> {
        let malformed = |reason: String| RequestError::Malformed(reason);
        let text = match answer.result_text().map_err(|reason| malformed(reason.to_string()))? {
            Ok(text) => text,
            Err(error) => return Err(RequestError::Rpc(error)),
        };
        let page: ToolListPage<'_> = serde_json::from_str(text)
            .map_err(|reason| malformed(format!("its answer to `tools/list` is not a list of tools: {reason}")))?;
        if self.is_first_page {
            self.catalogue.rest = self.rest(page.rest);
            self.is_first_page = false;
        }
        for definition in page.tools.0 {
            if self.catalogue.tools.len() >= self.config.limits.tools {
                self.note(format!("the list of tools was cut off after {} tools", self.config.limits.tools));
                return Ok(None);
            }
            if self.bytes + definition.get().len() > MAX_CATALOGUE_BYTES {
                self.note(format!("the list of tools was cut off after {} MiB", MAX_CATALOGUE_BYTES >> 20));
                return Ok(None);
            }
            self.memory += json_memory::memory(definition.get().as_bytes());
            if self.memory > MAX_CATALOGUE_MEMORY {
                self.note("the list of tools was cut off: its definitions hold too many values");
                return Ok(None);
            }
            if let Err((name, reason)) = self.take_tool(definition.get()) {
                self.left_out.entry(reason.into_owned()).or_default().push(name);
            }
        }
        let cursor = page.next_cursor.map(RawValue::get).filter(|cursor| *cursor != "null");
        match cursor.map(|cursor| (cursor.len() <= MAX_CURSOR_BYTES, serde_json::from_str(cursor))) {
            None => Ok(None),
            Some((true, Ok(cursor))) => Ok(Some(cursor)),
            Some(_) => {
                self.note("the list of tools was cut off: the server gave a cursor that is not a string, or too long");
                Ok(None)
            }
        }
    }

    /// Adds one definition unless the configuration excludes the tool. The error has the name of the omitted tool and
    /// the reason.
    fn take_tool(&mut self, definition: &str) -> Result<(), (String, Cow<'static, str>)> {
        let nameless = || "(without a name)".to_owned();
        if definition.len() > self.config.limits.definition_bytes {
            let name = serde_json::from_str::<DefinitionName<'_>>(definition)
                .map_or_else(|_| nameless(), |tool| shown(&tool.name, 80));
            return Err((name, format!("more than {} bytes", self.config.limits.definition_bytes).into()));
        }
        let object = match serde_json::from_str(definition) {
            Ok(Value::Object(mut object)) => {
                own_members::take_out(&mut object);
                object
            }
            Ok(_) => return Err((nameless(), "no object".into())),
            Err(error) => {
                let name = serde_json::from_str::<DefinitionName<'_>>(definition)
                    .map_or_else(|_| nameless(), |tool| shown(&tool.name, 80));
                return Err((name, shown(&error.to_string(), 120).into()));
            }
        };
        let Some(tool) = object.get("name").and_then(Value::as_str).map(Arc::<str>::from) else {
            return Err((nameless(), "no name".into()));
        };
        if !self.config.only_tools.includes(&tool) {
            return Ok(());
        }
        if let Some(number) = numbers::first_inexact(definition.as_bytes()) {
            return Err((shown(&tool, 80), format!("the number {} cannot be carried", shown(number, 40)).into()));
        }
        let mirrored = match object.get("inputSchema").map(ParamHeaders::of_schema) {
            Some(Err(reason)) if self.mirrors => return Err((shown(&tool, 80), reason.to_string().into())),
            Some(Ok(mirrored)) if self.mirrors && !mirrored.is_empty() => Some(mirrored),
            Some(_) | None => None,
        };
        let name = match self.config.names {
            ToolNaming::Qualified => ToolName::for_upstream(&self.config.name, &tool),
            ToolNaming::Plain => ToolName::for_plain_upstream(&tool),
        };
        if !self.known.insert(name.clone()) {
            return Err((shown(&tool, 80), "another tool has its name".into()));
        }
        self.bytes += definition.len();
        let source = ToolSource::McpServer { server: self.config.name.clone(), tool: tool.clone() };
        self.catalogue.tools.push(Tool::new(name, object, Category::Mcp, source));
        if let Some(mirrored) = mirrored {
            self.catalogue.mirrored.insert(tool, mirrored);
        }
        Ok(())
    }

    fn note(&mut self, note: impl Into<String>) {
        self.catalogue.notes.push(note.into());
    }

    fn finish(mut self) -> ToolCatalogue {
        for (reason, names) in std::mem::take(&mut self.left_out) {
            let shown: Vec<_> = names.iter().take(NAMED_TOOLS).map(|name| format!("`{name}`")).collect();
            let more = match names.len().saturating_sub(NAMED_TOOLS) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            self.note(format!("left out ({reason}): {}{more}", shown.join(", ")));
        }
        for note in &self.catalogue.notes {
            tracing::warn!(server = %self.config.name, "{note}");
        }
        self.catalogue
    }
}

#[derive(Deserialize)]
struct DefinitionName<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{
        client::config::{McpTransport, StdioUpstream, ToolAllowlist, UpstreamSizeLimits},
        wire::incoming::IncomingMessage,
    };
    use serde_json::json;
    use toolstead_domain::ServerName;

    fn answer(result: &str) -> RawResponse {
        match IncomingMessage::read(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).into()) {
            Ok(IncomingMessage::Answer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn config() -> UpstreamConfig {
        let server = StdioUpstream { command: "s".into(), args: Vec::new(), env: BTreeMap::new(), working_dir: None };
        let transport = McpTransport::Stdio(server);
        UpstreamConfig::new(ServerName::parse("s").unwrap(), transport)
    }

    fn take(definitions: &[&str], limits: UpstreamSizeLimits, names: ToolNaming, mirrors: bool) -> ToolCatalogue {
        let config = UpstreamConfig { limits, names, ..config() };
        let mut draft = CatalogueDraft::new(&config, mirrors);
        draft.take_page(answer(&format!(r#"{{"tools":[{}]}}"#, definitions.join(",")))).unwrap();
        draft.finish()
    }

    fn names(catalogue: &ToolCatalogue) -> Vec<&str> {
        catalogue.tools.iter().map(|tool| tool.name().as_str()).collect()
    }

    #[track_caller]
    fn left_out(definition: &str, reason: &str) {
        let catalogue =
            take(&[definition, r#"{"name":"good"}"#], UpstreamSizeLimits::default(), ToolNaming::Qualified, true);
        assert_eq!(names(&catalogue), ["mcp__s__good"]);
        assert!(catalogue.notes.len() == 1 && catalogue.notes[0].contains(reason), "{:?}", catalogue.notes);
    }

    #[test]
    fn an_invalid_definition_is_left_out_and_valid_definitions_are_kept() {
        left_out("7", "no object");
        left_out(r#"{"description":"x"}"#, "(no name): `(without a name)`");
        left_out(r#"{"name":7}"#, "no name");
        let deep = format!(
            r#"{{"name":"deep","inputSchema":{}{}}}"#,
            r#"{"a":"#.repeat(10_000),
            "1".to_owned() + &"}".repeat(10_000)
        );
        left_out(&deep, "`deep`");
        left_out(
            &format!(r#"{{"name":"big","description":"{}"}}"#, "x".repeat(300 << 10)),
            "(more than 278528 bytes): `big`",
        );
        left_out(r#"{"name":"n","inputSchema":{"maximum":18446744073709551617}}"#, "the number 18446744073709551617");
        left_out(
            r#"{"name":"h","inputSchema":{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}}"#,
            "x-mcp-header",
        );
        left_out(r#"{"name":"good","x":1},{"name":"good","y":2}"#, "another tool has its name): `good`, `good`");
    }

    #[test]
    fn a_definition_is_kept_unchanged_except_for_its_name() {
        let raw =
            r#"{"z":1,"name":"a b","execution":{"taskSupport":"required"},"inputSchema":true,"icons":[{"x":null}]}"#;
        let catalogue = take(&[raw], UpstreamSizeLimits::default(), ToolNaming::Qualified, false);
        let [tool] = catalogue.tools.as_slice() else { panic!("{catalogue:?}") };
        let wire = Value::Object(tool.definition().clone()).to_string();
        assert_eq!(wire, raw.replace("a b", tool.name().as_str()));
        let server = ServerName::parse("s").unwrap();
        assert_eq!(*tool.source(), ToolSource::McpServer { server, tool: "a b".into() });
    }

    #[test]
    fn reserved_toolstead_metadata_is_removed_from_definitions() {
        let raw = r#"{"name":"t","_meta":{"toolstead/x":1,"a/b":2},"inputSchema":{"_meta":{"toolstead/x":3}}}"#;
        let catalogue = take(&[raw], UpstreamSizeLimits::default(), ToolNaming::Plain, false);
        let definition = Value::Object(catalogue.tools[0].definition().clone());
        assert_eq!(definition, json!({"name": "t", "_meta": {"a/b": 2}, "inputSchema": {"_meta": {"toolstead/x": 3}}}));
    }

    #[test]
    fn plain_naming_keeps_names_unchanged_and_the_first_of_two_equal_names() {
        let definitions = [r#"{"name":"a","x":1}"#, r#"{"name":"A"}"#, r#"{"name":"a","x":2}"#, r#"{"name":"a__b"}"#];
        let catalogue = take(&definitions, UpstreamSizeLimits::default(), ToolNaming::Plain, false);
        assert_eq!(names(&catalogue), ["a", "A", "a__b"]);
        assert_eq!(catalogue.tools[0].definition()["x"], json!(1));
    }

    #[test]
    fn too_many_tools_are_cut_off_with_a_note() {
        let definitions: Vec<String> = (0..100).map(|n| format!(r#"{{"name":"t{n}"}}"#)).collect();
        let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
        let limits = UpstreamSizeLimits { tools: 7, ..UpstreamSizeLimits::default() };
        let catalogue = take(&definitions, limits, ToolNaming::Qualified, false);
        assert_eq!(
            (catalogue.tools.len(), catalogue.notes.as_slice()),
            (7, ["the list of tools was cut off after 7 tools".to_owned()].as_slice())
        );
    }

    #[test]
    fn definitions_of_very_many_values_are_cut_off_with_a_note() {
        let definition = |n: usize| format!(r#"{{"name":"t{n}","x":[{}0]}}"#, "{},".repeat(40_000));
        let definitions: Vec<String> = (0..100).map(definition).collect();
        let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
        let catalogue = take(&definitions, UpstreamSizeLimits::default(), ToolNaming::Qualified, false);
        assert!((5..50).contains(&catalogue.tools.len()), "{}", catalogue.tools.len());
        assert_eq!(catalogue.notes, ["the list of tools was cut off: its definitions hold too many values"]);
        let zeros = take(&["0"; 150_000], UpstreamSizeLimits::default(), ToolNaming::Qualified, false);
        assert!(zeros.notes[0].contains("and 99997 more"), "{:?}", zeros.notes);
    }

    #[test]
    fn a_definition_with_hidden_characters_is_kept_but_its_tool_is_unavailable() {
        let raw = "{\"name\":\"a\",\"description\":\"x\\u202ey\"}";
        let catalogue = take(&[raw, r#"{"name":"good"}"#], UpstreamSizeLimits::default(), ToolNaming::Qualified, false);
        assert_eq!(catalogue.tools[0].description(), "x\u{202e}y");
        assert!(!catalogue.tools[0].is_callable() && catalogue.tools[1].is_callable());
    }

    #[test]
    fn extra_members_of_the_first_page_are_kept_unless_oversized_or_reserved() {
        let limits = UpstreamSizeLimits { definition_bytes: 100, ..UpstreamSizeLimits::default() };
        let config = UpstreamConfig { limits, names: ToolNaming::Plain, ..config() };
        let mut draft = CatalogueDraft::new(&config, false);
        let meta = r#"{"toolstead/x":1,"io.modelcontextprotocol/serverInfo":{},"a/b":null}"#;
        let first = format!(
            r#"{{"z":[1.0],"resultType":"complete","tools":[],"ttlMs":7,"big":1e400,"_meta":{meta},"a":"{}"}}"#,
            "x".repeat(100)
        );
        draft.take_page(answer(&first)).unwrap();
        draft.take_page(answer(r#"{"tools":[],"second":1}"#)).unwrap();
        let rest = Value::Object(draft.finish().rest).to_string();
        assert_eq!(rest, r#"{"z":[1.0],"_meta":{"a/b":null}}"#);
    }

    #[test]
    fn annotated_parameters_are_recorded_only_if_the_transport_mirrors_headers() {
        let raw = r#"{"name":"t","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}"#;
        assert!(take(&[raw], UpstreamSizeLimits::default(), ToolNaming::Qualified, true).mirrored.contains_key("t"));
        assert!(take(&[raw], UpstreamSizeLimits::default(), ToolNaming::Qualified, false).mirrored.is_empty());
    }

    #[test]
    fn tools_outside_the_allowlist_are_not_listed() {
        let listed = |patterns: &[&str]| {
            let only_tools = ToolAllowlist::of(patterns.iter().map(|pattern| (*pattern).to_owned()).collect());
            let config = UpstreamConfig { only_tools, ..config() };
            let mut draft = CatalogueDraft::new(&config, false);
            let tools = r#"{"tools":[{"name":"read_file"},{"name":"read_folder"},{"name":"write"}]}"#;
            draft.take_page(answer(tools)).unwrap();
            names(&draft.finish()).join(" ")
        };
        assert_eq!(listed(&["write"]), "mcp__s__write");
        assert_eq!(listed(&["read_*"]), "mcp__s__read_file mcp__s__read_folder");
        assert_eq!(listed(&[]), "");
    }
}
