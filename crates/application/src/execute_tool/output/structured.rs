//! Structured content over the budget.
//!
//! Clients reject a result whose structured content is missing or does not fit the tool's output schema. If the tool
//! has a schema, the result therefore has shortened content that fits it: long texts are cut in the middle, and long
//! lists at the end.

use super::{OutputSchema, is_longer, overflow_writer::StorageOutcome};
use crate::{execute_tool::validation::validated, tool_registry::output_readers::OutputReaders};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::timeout;
use toolstead_domain::SchemaValidationError;

/// Maximum lengths of texts in characters and of lists in items, tried in this order.
const STEPS: &[(usize, usize)] = &[(8_000, 1_000), (2_000, 200), (1_000, 50), (400, 20), (200, 5), (100, 1), (60, 0)];

/// Maximum time of all validations of one result. The schema may be from an upstream server.
const TIME_TO_SHORTEN: Duration = Duration::from_secs(30);

/// Returns the content, shortened until it fits the budget; `None` if it does not fit the schema then, or cannot be
/// validated in time.
pub(super) async fn shortened(content: &Value, promised: OutputSchema<'_>, budget: usize) -> Option<Value> {
    timeout(TIME_TO_SHORTEN, fitting(content, promised, budget)).await.ok().flatten()
}

async fn fitting(content: &Value, promised: OutputSchema<'_>, budget: usize) -> Option<Value> {
    for (characters, items) in STEPS {
        let short = short(content, *characters, *items);
        if is_longer(&short, budget) {
            continue;
        }
        match validated(promised.schemas, promised.schema, &short).await {
            Ok(()) => return Some(short),
            Err(SchemaValidationError::Invalid(_)) => {}
            Err(_) => return None,
        }
    }
    None
}

fn short(value: &Value, characters: usize, items: usize) -> Value {
    match value {
        Value::String(text) => short_text(text, characters).into(),
        Value::Array(all) => {
            all.iter().take(items).map(|item| short(item, characters, items)).collect::<Vec<_>>().into()
        }
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), short(value, characters, items)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn short_text(text: &str, characters: usize) -> String {
    // A text has at least as many bytes as characters.
    if text.len() <= characters {
        return text.to_owned();
    }
    let total = text.chars().count();
    if total <= characters {
        return text.to_owned();
    }
    let head: String = text.chars().take(characters / 2).collect();
    let tail = text.char_indices().rev().nth((characters / 2).saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    format!("{head}[… {} of {total} characters are left out here …]{}", total - characters / 2 * 2, &text[tail..])
}

/// Returns the notice about removed structured content.
pub(super) fn left_out(kept: &StorageOutcome, readers: &OutputReaders) -> String {
    format!("[the structured content is too large and left out; {}{}]", kept.describe(), how(kept, readers))
}

/// Returns the notice about shortened structured content.
pub(super) fn shortened_notice(kept: &StorageOutcome, readers: &OutputReaders) -> String {
    format!(
        "[the structured content is too large: its long texts are cut and its long lists end early; {}{}]",
        kept.describe(),
        how(kept, readers)
    )
}

/// Returns the error text for structured content that cannot be shortened under the schema.
pub(super) fn unfit(kept: &StorageOutcome, readers: &OutputReaders) -> String {
    format!(
        "The call was done, do not repeat it. Its structured content is too large to pass on, and shortened it does \
         not fit the tool's output schema; {}{}",
        kept.describe(),
        how(kept, readers)
    )
}

fn how(kept: &StorageOutcome, readers: &OutputReaders) -> String {
    let Some(handle) = kept.handle() else { return String::new() };
    let read = readers.full_read_call(handle).map_or_else(String::new, |call| format!("{call}, or "));
    format!(": {read}as an argument {{\"$ref\": \"{handle}\", \"select\": \"/…\"}}")
}
