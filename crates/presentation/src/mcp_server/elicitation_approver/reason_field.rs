//! The optional field of an approval form in which the user says why a call is denied.

use serde_json::{Map, Value, json};

pub(super) const REASON: &str = "reason";

/// Returns the JSON schema of the form field for the reason of a denial.
pub(super) fn schema() -> Value {
    json!({
        "type": "string",
        "title": "Only to deny: the reason, or what to do instead",
        "description": "The model reads it. A form with a text here denies the call.",
        "maxLength": 1000,
    })
}

/// Returns the reason for a denial in a form's content; `None` if the user gave none.
pub(super) fn reason(content: &Map<String, Value>) -> Option<String> {
    content.get(REASON)?.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Returns `true` if the field for the reason of a denial is absent or empty, so that the other fields decide.
pub(super) fn is_empty(content: &Map<String, Value>) -> bool {
    content.get(REASON).is_none_or(|value| value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty()))
}
