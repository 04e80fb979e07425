//! Trace of a request (W3C Trace Context and Baggage; MCP 2026-07-28, basic, "`_meta`").
//!
//! Each server on the way is a span: the trace continues with the same id and flags, and with the id of this span as
//! the parent.

use serde_json::{Map, Value};
use toolstead_domain::CallLabels;
use uuid::Uuid;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
const BAGGAGE: &str = "baggage";

/// Maximum length of the trace state. A longer one is dropped (Trace Context, 3.3.1.5, requires support for at least
/// 512 characters).
const MAX_STATE: usize = 512;
/// Maximum length of the baggage. Longer baggage is dropped (Baggage, 3.3.2, requires support for at least 8192 bytes).
const MAX_BAGGAGE: usize = 8192;
/// Label of an audit record that belongs to a trace.
const LABEL: &str = "trace";

/// Replaces the trace context of a request by one with a span of this server. If the metadata contain no trace context,
/// that of the carrier is used, such as HTTP headers. Malformed values are dropped.
pub(super) fn continue_trace<'h>(meta: &mut Map<String, Value>, carrier: impl Fn(&'static str) -> Option<&'h str>) {
    if meta.is_empty() && carrier(TRACEPARENT).is_none() && carrier(BAGGAGE).is_none() {
        return;
    }
    if !meta.contains_key(TRACEPARENT) {
        for name in [TRACEPARENT, TRACESTATE, BAGGAGE] {
            if let (false, Some(value)) = (meta.contains_key(name), carrier(name)) {
                meta.insert(name.into(), value.into());
            }
        }
    }
    match meta.get(TRACEPARENT).and_then(Value::as_str).and_then(child) {
        Some(parent) => drop(meta.insert(TRACEPARENT.into(), parent.into())),
        None => {
            meta.shift_remove(TRACEPARENT);
            meta.shift_remove(TRACESTATE);
        }
    }
    for (name, most) in [(TRACESTATE, MAX_STATE), (BAGGAGE, MAX_BAGGAGE)] {
        let fits = |value: &Value| value.as_str().is_some_and(|text| is_list(text, most));
        if meta.get(name).is_some_and(|value| !fits(value)) {
            meta.shift_remove(name);
        }
    }
}

/// Returns the label with which the audit records of a trace are found, from metadata processed by [`continue_trace`];
/// no label without a trace.
pub(super) fn labels(meta: &Map<String, Value>) -> CallLabels {
    let id = meta.get(TRACEPARENT).and_then(Value::as_str).and_then(|parent| parent.split('-').nth(1));
    // Cannot fail: a trace id is short, and it is the only label.
    id.and_then(|id| CallLabels::default().with(LABEL, id).ok()).unwrap_or_default()
}

/// Returns `version-traceid-parentid-flags` with a new parent; `None` if the value is malformed. Of later versions,
/// only the known fields are used.
fn child(parent: &str) -> Option<String> {
    let (version, rest) = parent.split_once('-')?;
    let mut fields = rest.split('-');
    let (trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |text: &str, length: usize| is_hex(text, length) && text.bytes().any(|byte| byte != b'0');
    let is_whole = version != "00" || fields.next().is_none();
    let is_valid =
        is_hex(version, 2) && version != "ff" && is_id(trace, 32) && is_id(span, 16) && is_hex(flags, 2) && is_whole;
    // The second half of the UUID is random and never zero.
    let own = Uuid::new_v4().as_u64_pair().1;
    is_valid.then(|| format!("00-{trace}-{own:016x}-{flags}"))
}

/// Returns `true` if the text is a valid list for both headers: visible ASCII characters and blanks.
fn is_list(text: &str, most: usize) -> bool {
    !text.is_empty() && text.len() <= most && text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    fn hopped(meta: Value, carrier: &[(&str, &'static str)]) -> Map<String, Value> {
        let mut meta = meta.as_object().unwrap().clone();
        continue_trace(&mut meta, |name| carrier.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
        meta
    }

    #[track_caller]
    fn check_child(meta: &Map<String, Value>) {
        let parent = meta[TRACEPARENT].as_str().unwrap();
        assert!(parent.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && parent.ends_with("-01"), "{parent}");
        assert!(parent.len() == PARENT.len() && parent != PARENT, "{parent}");
        assert_eq!(labels(meta).get("trace"), Some("0af7651916cd43dd8448eb211c80319c"));
    }

    #[test]
    fn the_trace_continues_with_a_new_span_and_other_metadata_is_kept() {
        let meta = hopped(json!({"a": 1, TRACEPARENT: PARENT, TRACESTATE: "x=1", BAGGAGE: "u=2", "z": 2}), &[]);
        check_child(&meta);
        assert_eq!(meta.keys().collect::<Vec<_>>(), ["a", TRACEPARENT, TRACESTATE, BAGGAGE, "z"]);
        assert_eq!((&meta[TRACESTATE], &meta[BAGGAGE]), (&json!("x=1"), &json!("u=2")));
        assert_ne!(meta, hopped(json!({"a": 1, TRACEPARENT: PARENT, TRACESTATE: "x=1", BAGGAGE: "u=2", "z": 2}), &[]));
        check_child(&hopped(json!({TRACEPARENT: PARENT.replacen("00", "cc", 1) + "-more"}), &[]));
    }

    #[test]
    fn trace_headers_are_used_only_if_the_metadata_has_no_traceparent() {
        let headers = [(TRACEPARENT, PARENT), (TRACESTATE, "h=1"), (BAGGAGE, "h=2")];
        let meta = hopped(json!({BAGGAGE: "m=1"}), &headers);
        check_child(&meta);
        assert_eq!((&meta[TRACESTATE], &meta[BAGGAGE]), (&json!("h=1"), &json!("m=1")));
        assert_eq!(Value::Object(hopped(json!({}), &headers[1..])), json!({BAGGAGE: "h=2"}), "it needs no trace");
        let other = PARENT.replace("0af", "1af");
        let meta = hopped(json!({TRACEPARENT: other}), &headers);
        assert!(meta[TRACEPARENT].as_str().unwrap().contains("-1af7") && meta.len() == 1, "{meta:?}");
    }

    #[test]
    fn malformed_trace_context_is_dropped_and_no_new_trace_is_started() {
        assert_eq!(hopped(json!({}), &[]), Map::new());
        for parent in [
            "",
            "00-1-2-01",
            "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0AF7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-x",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7",
        ] {
            let meta = hopped(json!({TRACEPARENT: parent, TRACESTATE: "x=1", BAGGAGE: "u=2"}), &[]);
            assert_eq!(Value::Object(meta), json!({BAGGAGE: "u=2"}), "{parent}");
        }
        let odd = json!({TRACEPARENT: PARENT, TRACESTATE: "x=\u{7f}", BAGGAGE: "b".repeat(MAX_BAGGAGE + 1)});
        assert_eq!(hopped(odd, &[]).len(), 1);
        assert_eq!(hopped(json!({TRACEPARENT: 5, BAGGAGE: ["x"]}), &[]), Map::new());
    }
}
