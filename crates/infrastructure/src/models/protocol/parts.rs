//! Parts of requests and answers that several protocols have in common.

use crate::models::{
    failure::{ReportedError, error_of},
    settings::ModelSettings,
};
use serde_json::Value;
use toolstead_domain::{Block, Image, ModelError, TokenUsage};

/// Returns the path to append to the base URL. A base URL without a path gets the usual version prefix.
pub(super) fn path(settings: &ModelSettings, version: &str, path: &str) -> String {
    let rest = settings.base_url.split_once("://").map_or(&*settings.base_url, |(_, rest)| rest);
    let has_path = rest.trim_end_matches('/').contains('/');
    if has_path { path.to_owned() } else { format!("{version}{path}") }
}

/// Returns the images among the blocks.
pub(super) fn images(blocks: &[Block]) -> impl Iterator<Item = &Image> {
    blocks.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    })
}

/// Returns the error in a piece of a stream.
pub(super) fn error(document: &Value) -> ModelError {
    let error = document.get("error").filter(|error| !error.is_null()).unwrap_or(document);
    let status = ["code", "status", "status_code"].into_iter().find_map(|name| error.get(name)?.as_u64());
    let status = status.and_then(|status| u16::try_from(status).ok());
    let said = ReportedError::of(document)
        .unwrap_or_else(|| ReportedError { kind: String::new(), message: "no reason was given".into() });
    error_of(status, &said, None)
}

/// Returns the error for a document that the protocol does not allow.
pub(super) fn unexpected(what: &str) -> ModelError {
    ModelError::Protocol(format!(
        "the model's server sent {what}; check that `base_url` and `provider` of the model fit"
    ))
}

/// Returns the token usage. Cached tokens are counted separately from the input, in which the provider includes them.
pub(super) fn usage(input: u64, cache_read: u64, cache_write: u64, output: u64) -> TokenUsage {
    TokenUsage {
        input_tokens: input.saturating_sub(cache_read).saturating_sub(cache_write),
        cache_read_tokens: cache_read,
        cache_write_tokens: cache_write,
        output_tokens: output,
    }
}

/// Returns the number at the pointer, or 0. Limited to a maximum that no provider reaches.
pub(super) fn count(document: &Value, pointer: &str) -> u64 {
    document.pointer(pointer).and_then(Value::as_u64).unwrap_or(0).min(1 << 40)
}

/// Returns the text of a result. It begins with `Error:` for an error, for providers without an error flag.
pub(super) fn result_text(content: &[Block], is_error: bool) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let text = texts.join("\n");
    if is_error { format!("Error: {text}") } else { text }
}
