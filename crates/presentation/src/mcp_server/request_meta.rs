//! `_meta` of a request: members for this server, and members that are passed on with the call.

use super::{
    protocol_error::{invalid_params, unsupported_version},
    trace_context,
};
use serde_json::{Map, Value};
use toolstead_domain::{ClientProfile, LogLevel, ProtocolVersion};
use toolstead_infrastructure::mcp::wire::{
    message::RpcError,
    meta::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROGRESS_TOKEN, PROTOCOL_VERSION},
};

/// Maximum length in characters of a client's name in the audit log.
const CLIENT_CHARACTERS: usize = 128;

/// Members of `_meta`, moved out of the parameters.
#[derive(Debug, Default)]
pub(super) struct RequestMeta {
    protocol_version: Option<Value>,
    client_info: Option<Value>,
    client_capabilities: Option<Value>,
    log_level: Option<Value>,
    /// Token for progress notifications: a text or a whole number. With any other value, progress is not reported.
    pub(super) progress_token: Option<Value>,
    /// All other members, for the provider of the tool.
    pub(super) rest: Map<String, Value>,
}

impl RequestMeta {
    /// Removes `_meta` from the parameters of a request.
    ///
    /// # Errors
    /// -32602 if it is not an object.
    pub(super) fn take(params: &mut Map<String, Value>) -> Result<Self, RpcError> {
        match params.shift_remove("_meta") {
            None => Ok(Self::default()),
            Some(Value::Object(meta)) => Ok(Self::of(meta)),
            Some(_) => Err(invalid_params("`_meta` must be an object")),
        }
    }

    /// Splits `_meta` into the members for this server and the rest. A progress token that is neither a text nor a
    /// whole number is dropped.
    pub(super) fn of(mut rest: Map<String, Value>) -> Self {
        let is_token = |value: &Value| value.is_string() || value.is_i64() || value.is_u64();
        // Removed one by one, because `shift_remove` preserves the order of the members that are passed on.
        Self {
            protocol_version: rest.shift_remove(PROTOCOL_VERSION),
            client_info: rest.shift_remove(CLIENT_INFO),
            client_capabilities: rest.shift_remove(CLIENT_CAPABILITIES),
            log_level: rest.shift_remove(LOG_LEVEL),
            progress_token: rest.shift_remove(PROGRESS_TOKEN).filter(is_token),
            rest,
        }
    }

    /// Adds this server as a span of the request's trace. The trace may also be in the carrier, such as HTTP headers.
    pub(super) fn traced<'h>(mut self, carrier: impl Fn(&'static str) -> Option<&'h str>) -> Self {
        trace_context::continue_trace(&mut self.rest, carrier);
        self
    }

    /// Returns the protocol version that the request itself names, as clients since 2026-07-28 do.
    pub(super) fn named_version(&self) -> Option<&str> {
        self.protocol_version.as_ref()?.as_str()
    }

    /// Checks that the members are present that 2026-07-28 requires in every request (basic, "Per-request protocol
    /// fields").
    ///
    /// # Errors
    /// -32602 with the names of the missing or malformed members.
    pub(super) fn check_complete(&self) -> Result<(), RpcError> {
        let mut lacking = Vec::new();
        if self.named_version().is_none() {
            lacking.push(PROTOCOL_VERSION);
        }
        if !self.client_capabilities.as_ref().is_some_and(Value::is_object) {
            lacking.push(CLIENT_CAPABILITIES);
        }
        if lacking.is_empty() {
            return Ok(());
        }
        let hint = "clients up to 2025-11-25 send `initialize` first";
        Err(invalid_params(format!("the request's `_meta` lacks or misstates `{}` ({hint})", lacking.join("`, `"))))
    }

    /// Returns the name that the client declares; empty if it declares none.
    pub(super) fn client_name(&self) -> &str {
        self.client_info.as_ref().and_then(|info| info.get("name")).and_then(Value::as_str).unwrap_or_default()
    }

    /// Removes and returns the profile of the client of this request.
    ///
    /// # Errors
    /// -32602 as in [`check_complete`](Self::check_complete) and for an unknown log level; -32022 for an unsupported
    /// version.
    pub(super) fn take_profile(&mut self) -> Result<ClientProfile, RpcError> {
        self.check_complete()?;
        let named = self.named_version().unwrap_or_default();
        let protocol = ProtocolVersion::parse(named).ok_or_else(|| unsupported_version(named))?;
        let log_level = self.log_level.as_ref().map(log_level).transpose()?;
        let capabilities = match self.client_capabilities.take() {
            Some(Value::Object(capabilities)) => capabilities,
            _ => Map::new(),
        };
        let client = self.client_info.as_ref().map_or_else(String::new, client_label);
        Ok(ClientProfile { protocol: Some(protocol), capabilities, client, log_level })
    }
}

/// Parses a log level.
///
/// # Errors
/// -32602 with the valid levels.
pub(super) fn log_level(value: &Value) -> Result<LogLevel, RpcError> {
    value.as_str().and_then(LogLevel::parse).ok_or_else(|| {
        let levels: Vec<&str> = LogLevel::ALL.iter().map(|level| level.as_str()).collect();
        invalid_params(format!("the log level must be one of {}", levels.join(", ")))
    })
}

/// Returns name and version of MCP's `Implementation` as one text of at most 128 characters without control characters.
pub(super) fn client_label(info: &Value) -> String {
    let part = |name: &str| info.get(name).and_then(Value::as_str).unwrap_or("");
    let (name, version) = (part("name"), part("version"));
    let space = if name.is_empty() || version.is_empty() { "" } else { " " };
    let characters = name.chars().chain(space.chars()).chain(version.chars());
    characters.filter(|character| !character.is_control()).take(CLIENT_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn taken(meta: Value) -> RequestMeta {
        let mut params = Map::from_iter([("_meta".to_owned(), meta), ("name".to_owned(), json!("x"))]);
        let meta = RequestMeta::take(&mut params).unwrap();
        assert_eq!(Value::Object(params), json!({"name": "x"}));
        meta
    }

    #[test]
    fn protocol_metadata_is_removed_and_other_metadata_is_kept_in_order() {
        let mut meta = taken(json!({
            "traceparent": "00-1-2-01",
            PROTOCOL_VERSION: "2026-07-28",
            "com.example/a": {"b": 1},
            CLIENT_CAPABILITIES: {"elicitation": {}},
            CLIENT_INFO: {"name": "c\u{1b}lient", "version": "1"},
            LOG_LEVEL: "error",
            PROGRESS_TOKEN: 7,
        }));
        let profile = meta.take_profile().unwrap();
        assert_eq!(Value::Object(meta.rest).to_string(), r#"{"traceparent":"00-1-2-01","com.example/a":{"b":1}}"#);
        assert_eq!(meta.progress_token, Some(json!(7)));
        let expected = ClientProfile {
            protocol: Some(ProtocolVersion::V20260728),
            capabilities: json!({"elicitation": {}}).as_object().unwrap().clone(),
            client: "client 1".into(),
            log_level: Some(LogLevel::Error),
        };
        assert_eq!(profile, expected);
    }

    #[track_caller]
    fn check_refused(meta: Value, code: i64, part: &str) {
        let error = taken(meta).take_profile().unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(part), "{error}");
    }

    #[test]
    fn rejects_incomplete_or_invalid_metadata_and_names_the_problem() {
        check_refused(json!({}), -32602, PROTOCOL_VERSION);
        check_refused(json!({PROTOCOL_VERSION: "2026-07-28"}), -32602, CLIENT_CAPABILITIES);
        check_refused(json!({PROTOCOL_VERSION: 1, CLIENT_CAPABILITIES: {}}), -32602, PROTOCOL_VERSION);
        check_refused(json!({PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: []}), -32602, CLIENT_CAPABILITIES);
        check_refused(
            json!({PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}, LOG_LEVEL: "loud"}),
            -32602,
            "debug, info",
        );
        check_refused(json!({PROTOCOL_VERSION: "1900-01-01", CLIENT_CAPABILITIES: {}}), -32022, "Unsupported");
    }

    #[test]
    fn a_progress_token_is_a_text_or_a_whole_number() {
        for (token, taken_as) in [
            (json!("t"), Some(json!("t"))),
            (json!(-3), Some(json!(-3))),
            (json!(1.5), None),
            (json!(null), None),
            (json!({}), None),
        ] {
            assert_eq!(taken(json!({PROGRESS_TOKEN: token})).progress_token, taken_as);
        }
    }

    #[test]
    fn metadata_that_is_no_object_is_refused() {
        let mut params = Map::from_iter([("_meta".to_owned(), json!("x"))]);
        assert_eq!(RequestMeta::take(&mut params).unwrap_err().code, -32602);
    }
}
