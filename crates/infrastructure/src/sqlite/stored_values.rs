//! Parses stored values of audit records, both from the columns of rows of earlier versions and from encoded records.

use super::fault::Fault;
use serde_json::Value;
use std::{collections::BTreeMap, error::Error};
use toolstead_domain::{
    AuditedRequestKind, CallLabels, CancelReason, ExecutionOutcome, OutcomeKind, error_kind::ErrorKind,
};

/// Parses a value of a record; an absent one is `Null`. A value that the parser rejects, for example because it is
/// nested too deeply, is returned as its text: one record must not make a whole page unreadable.
pub(super) fn value(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap_or_else(|_| text.into()))
}

/// Parses a kind of request; an absent one is a tool call.
pub(super) fn kind(text: Option<&str>) -> Result<AuditedRequestKind, Fault> {
    let Some(text) = text else { return Ok(AuditedRequestKind::Tool) };
    AuditedRequestKind::parse(text).ok_or_else(|| unreadable(format!("the kind of request `{text}` is unknown")))
}

pub(super) fn labels(all: BTreeMap<String, String>) -> Result<CallLabels, Fault> {
    all.into_iter()
        .try_fold(CallLabels::default(), |labels, (name, value)| labels.with(&name, value))
        .map_err(unreadable)
}

pub(super) fn outcome(kind: &str, error_kind: Option<&str>, detail: String) -> Result<ExecutionOutcome, Fault> {
    let unknown = || unreadable(format!("the outcome `{kind}` is unknown"));
    Ok(match OutcomeKind::parse(kind).ok_or_else(unknown)? {
        OutcomeKind::Running => ExecutionOutcome::Running,
        OutcomeKind::Succeeded => ExecutionOutcome::Succeeded,
        OutcomeKind::InputRequired => ExecutionOutcome::InputRequired,
        OutcomeKind::Interrupted => ExecutionOutcome::Interrupted,
        OutcomeKind::Cancelled => {
            let unknown = || unreadable(format!("the reason `{detail}` for a cancellation is unknown"));
            ExecutionOutcome::Cancelled(CancelReason::parse(&detail).ok_or_else(unknown)?)
        }
        OutcomeKind::Failed => {
            let (kind, message) = error(error_kind, detail);
            ExecutionOutcome::Failed(kind, message)
        }
        OutcomeKind::Refused => {
            let (kind, message) = error(error_kind, detail);
            ExecutionOutcome::Refused(kind, message)
        }
    })
}

/// Returns the error kind. An unknown one, which a later version recorded, is prepended to the message: one record must
/// not make a whole page unreadable.
fn error(kind: Option<&str>, message: String) -> (ErrorKind, String) {
    let kind = kind.unwrap_or_default();
    match ErrorKind::from_name(kind) {
        Some(kind) => (kind, message),
        None => (ErrorKind::Internal, format!("{kind}: {message}")),
    }
}

pub(super) fn unreadable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Fault {
    Fault::Unreadable(cause.into())
}
