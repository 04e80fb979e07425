//! Lists of a server other than its tools, with limits on their size.

use crate::mcp::{
    client::{
        catalogue::{CappedDefinitionList, MAX_CURSOR_BYTES},
        config::UpstreamSizeLimits,
        connection::{Connection, foreign_text::shown, own_members, request_error::RequestError},
    },
    wire::{
        incoming::RawResponse,
        message::{RpcError, parse_exact},
    },
};
use serde_json::{Map, Value, value::RawValue};
use std::collections::{BTreeMap, HashSet};
use toolstead_domain::{InvalidContextDefinition, ServerName, json_memory};

/// Maximum number of definitions of one list.
const MAX_DEFINITIONS: usize = 10_000;
/// Maximum memory of all definitions of one list as parsed values, in bytes.
const MAX_MEMORY: usize = 32 << 20;

/// Kind of list that servers provide, with the method that requests it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListMethod {
    method: &'static str,
    member: &'static str,
    /// Member by which definitions are identified.
    known_by: &'static str,
}

impl ListMethod {
    pub(super) const RESOURCES: Self = Self { method: "resources/list", member: "resources", known_by: "uri" };
    pub(super) const TEMPLATES: Self =
        Self { method: "resources/templates/list", member: "resourceTemplates", known_by: "uriTemplate" };
    pub(super) const PROMPTS: Self = Self { method: "prompts/list", member: "prompts", known_by: "name" };

    /// Fetches the list, page by page. An invalid definition does not affect the others. The list is empty if the
    /// server does not know the method.
    ///
    /// # Errors
    /// Returns [`RequestError`] if the first page fails. A failure of a later page ends the list.
    pub(super) async fn fetch<T>(
        self,
        connection: &Connection,
        limits: &UpstreamSizeLimits,
        parse: impl Fn(Map<String, Value>) -> Result<T, InvalidContextDefinition>,
    ) -> Result<Vec<T>, RequestError> {
        let server = &connection.transport.peer().server;
        let mut draft =
            ListDraft { list: self, server, limits, parse, taken: Vec::new(), known: HashSet::new(), memory: 0 };
        let (mut cursors, mut params) = (HashSet::new(), Map::new());
        for page in 1..=limits.pages {
            let answer = connection.transport.request(&connection.writer, self.method, &params).await;
            let next = match answer.and_then(|answer| draft.take_page(&answer)) {
                Ok(next) => next,
                // A server with resources may have no templates.
                Err(RequestError::Rpc(error)) if page == 1 && error.code == RpcError::METHOD_NOT_FOUND => None,
                Err(error) if page == 1 => return Err(error),
                Err(error) => {
                    draft.note(&format!("the list ends after {} pages: {error}", page - 1));
                    None
                }
            };
            let Some(cursor) = next else { break };
            if !cursors.insert(cursor.clone()) {
                draft.note("the list was cut off: the server repeats a cursor");
                break;
            }
            params.insert("cursor".into(), cursor.into());
        }
        Ok(draft.taken)
    }
}

struct ListDraft<'a, T, P> {
    list: ListMethod,
    server: &'a ServerName,
    limits: &'a UpstreamSizeLimits,
    parse: P,
    taken: Vec<T>,
    known: HashSet<String>,
    memory: usize,
}

impl<T, P: Fn(Map<String, Value>) -> Result<T, InvalidContextDefinition>> ListDraft<'_, T, P> {
    /// Adds the definitions of one page. Returns the cursor of the next page if it should be requested.
    fn take_page(&mut self, answer: &RawResponse) -> Result<Option<String>, RequestError> {
        let text = match answer.result_text().map_err(|reason| RequestError::Malformed(reason.to_string()))? {
            Ok(text) => text,
            Err(error) => return Err(RequestError::Rpc(error)),
        };
        let no_list =
            |reason| RequestError::Malformed(format!("its answer to `{}` is not a list: {reason}", self.list.method));
        let page: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(no_list)?;
        let definitions = page.get(self.list.member).map_or("[]", |list| list.get());
        let definitions: CappedDefinitionList<'_> = serde_json::from_str(definitions).map_err(no_list)?;
        for definition in definitions.0 {
            self.memory += json_memory::memory(definition.get().as_bytes());
            if self.taken.len() >= MAX_DEFINITIONS || self.memory > MAX_MEMORY {
                self.note(&format!("the list was cut off after {} definitions", self.taken.len()));
                return Ok(None);
            }
            if let Err(reason) = self.take(definition.get()) {
                self.note(&format!("a definition was left out: {reason}"));
            }
        }
        let cursor = page.get("nextCursor").map(|cursor| cursor.get()).filter(|cursor| *cursor != "null");
        match cursor.map(|cursor| (cursor.len() <= MAX_CURSOR_BYTES, serde_json::from_str(cursor))) {
            None => Ok(None),
            Some((true, Ok(cursor))) => Ok(Some(cursor)),
            Some(_) => {
                self.note("the list was cut off: the server gave a cursor that is not a string, or too long");
                Ok(None)
            }
        }
    }

    fn take(&mut self, definition: &str) -> Result<(), String> {
        if definition.len() > self.limits.definition_bytes {
            return Err(format!("more than {} bytes", self.limits.definition_bytes));
        }
        let Value::Object(mut definition) = parse_exact(definition).map_err(|error| error.to_string())? else {
            return Err("no object".into());
        };
        own_members::take_out(&mut definition);
        let name = definition.get(self.list.known_by).and_then(Value::as_str).unwrap_or_default().to_owned();
        let taken = (self.parse)(definition).map_err(|error| error.to_string())?;
        if !self.known.insert(name.clone()) {
            return Err(format!("`{name}` is there already"));
        }
        self.taken.push(taken);
        Ok(())
    }

    fn note(&self, note: &str) {
        tracing::warn!(server = %self.server, list = self.list.method, note = shown(note, 300), "list is incomplete");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::wire::incoming::IncomingMessage;
    use toolstead_domain::{ResourceTemplate, context::Resource};

    fn answer(result: &str) -> RawResponse {
        match IncomingMessage::read(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).into()) {
            Ok(IncomingMessage::Answer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn check<T>(
        list: ListMethod,
        parse: impl Fn(Map<String, Value>) -> Result<T, InvalidContextDefinition>,
        result: &str,
        taken: usize,
        next: Option<&str>,
    ) -> Vec<T> {
        let (server, limits) = (
            ServerName::parse("s").unwrap(),
            UpstreamSizeLimits { definition_bytes: 200, ..UpstreamSizeLimits::default() },
        );
        let mut draft = ListDraft {
            list,
            server: &server,
            limits: &limits,
            parse,
            taken: Vec::new(),
            known: HashSet::new(),
            memory: 0,
        };
        assert_eq!(draft.take_page(&answer(result)).unwrap().as_deref(), next, "{result}");
        assert_eq!(draft.taken.len(), taken, "{result}");
        draft.taken
    }

    #[test]
    fn an_invalid_definition_is_left_out_and_valid_definitions_are_kept() {
        let resources = |definitions: &str, taken| {
            let result = format!(r#"{{"resources":[{definitions}],"nextCursor":"n"}}"#);
            check(ListMethod::RESOURCES, Resource::new, &result, taken, Some("n"))
        };
        let good = r#"{"z":1.0,"uri":"a://b","name":"b","_meta":{"toolstead/x":1,"y":null}}"#;
        let taken = resources(good, 1);
        let kept = r#"{"z":1.0,"uri":"a://b","name":"b","_meta":{"y":null}}"#;
        assert_eq!(Value::Object(taken[0].definition().clone()).to_string(), kept);
        let large = format!(r#"{{"uri":"a://l","name":"{}"}}"#, "x".repeat(300));
        for bad in
            ["7", r#"{"name":"x"}"#, r#"{"uri":"x"}"#, r#"{"uri":"a://c","name":"n","size":1e400}"#, &large, good]
        {
            resources(&format!("{good},{bad}"), 1);
        }
        let templates =
            r#"{"resourceTemplates":[{"uriTemplate":"a://{b}{?c,d}","name":"x"},{"uriTemplate":"a://{","name":"y"}]}"#;
        check(ListMethod::TEMPLATES, ResourceTemplate::new, templates, 1, None);
        check(ListMethod::RESOURCES, Resource::new, r#"{"nextCursor":7}"#, 0, None);
    }
}
