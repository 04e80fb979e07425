//! `toolstead executions list|show`.

mod call_target;
mod listing;
mod record;
mod tree;

use super::{
    CommandResult,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::{StdoutWriter, note},
};
use crate::composition_root::{RunningApp, ServerSelection, StartupError, open_audit_log_read_only};
use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use toolstead_application::ListExecutionsHandler;
use toolstead_domain::{AuditedRequestKind, CallId, ExecutionFilter, OutcomeKind, Timestamp, labels::check_name};
use tree::CallTree;

/// Maximum number of calls to list if the prefix of an id is ambiguous.
const NAMED_CALLS: u32 = 5;

/// Shows the audit log.
#[derive(Debug, Args)]
pub struct ExecutionsCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists calls, the most recent first
    List {
        /// Only calls of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Only requests of this kind: tool, resource, prompt, completion, question or task
        #[arg(long)]
        kind: Option<String>,
        /// Only calls of this client: its name, or its name and version
        #[arg(long, value_name = "NAME")]
        client: Option<String>,
        /// Only calls with this label
        #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
        label: Option<(String, String)>,
        /// Only calls made by this call: its id or the beginning of it
        #[arg(long, value_name = "ID")]
        parent: Option<String>,
        /// Only calls since then: `30m`, `12h`, `7d`, a date or a time (2026-11-22T10:00:00Z)
        #[arg(long, value_name = "TIME", value_parser = since)]
        since: Option<Timestamp>,
        /// Only calls with this status: running, succeeded, failed, refused, cancelled, input_required or interrupted
        #[arg(long)]
        outcome: Option<String>,
        /// Maximum number of entries
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Only calls that were recorded before this one
        #[arg(long, value_name = "ID")]
        before: Option<String>,
    },
    /// Shows the complete record of a call
    Show {
        /// The call's id, or how it begins
        id: String,
    },
}

/// The audit log, and the application that must be closed after use.
struct AuditLogReader {
    executions: Arc<ListExecutionsHandler>,
    composition: Option<RunningApp>,
}

impl AuditLogReader {
    /// Opens the audit log of the database. If the database cannot be written, opens it read-only and prints a note.
    async fn open(global: &GlobalFlags) -> Result<Self, CommandError> {
        let why = match global.compose(ServerSelection::None).await {
            Ok(composition) => {
                let executions = composition.app.list_executions.clone();
                return Ok(Self { executions, composition: Some(composition) });
            }
            Err(CommandError::Startup(StartupError::Database(why))) if why.may_be_readable() => why,
            Err(other) => return Err(other),
        };
        match open_audit_log_read_only(&global.load()?).await {
            Ok(log) => {
                note(&format!(
                    "note: {why}; the audit log is read unrepaired: calls of dead processes are listed as running"
                ));
                Ok(Self { executions: Arc::new(ListExecutionsHandler::new(log)), composition: None })
            }
            // Report the first error, which is the one to correct.
            Err(_) => Err(CommandError::Startup(StartupError::Database(why))),
        }
    }

    /// Returns the call whose id is `id` or starts with it.
    async fn call(&self, id: &str) -> Result<CallId, CommandError> {
        let digits: String = id.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
        if digits.is_empty() || digits.len() > 32 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(CommandError::Usage(format!(
                "`{id}` is not a call id; take one from `toolstead executions list`"
            )));
        }
        let found = self.executions.beginning_with(&digits, NAMED_CALLS + 1).await?;
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(CommandError::NotFound(match digits.len() {
                32 => format!("no call with the id {id} is recorded"),
                _ => format!("no call whose id begins with {id} is recorded"),
            })),
            several => {
                let named: Vec<String> =
                    several.iter().take(NAMED_CALLS as usize).map(|id| id.0.simple().to_string()).collect();
                let more = if several.len() > named.len() { ", and more" } else { "" };
                Err(CommandError::Usage(format!("several calls begin with {id}: {}{more}", named.join(", "))))
            }
        }
    }

    /// Returns the call whose id is `id` or starts with it; `None` without an id.
    async fn find_optional_call(&self, id: Option<&str>) -> Result<Option<CallId>, CommandError> {
        match id {
            Some(id) => self.call(id).await.map(Some),
            None => Ok(None),
        }
    }

    async fn close(self) {
        if let Some(composition) = self.composition {
            composition.close().await;
        }
    }
}

impl ExecutionsCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let audit_log = AuditLogReader::open(global).await?;
        let outcome = self.command.run(&audit_log, global.json, output).await;
        audit_log.close().await;
        outcome.map(|()| Exit::Done)
    }
}

impl Command {
    async fn run(
        self,
        audit_log: &AuditLogReader,
        as_json: bool,
        output: &mut StdoutWriter,
    ) -> Result<(), CommandError> {
        match self {
            Self::List { tool, kind, client, label, parent, since, outcome, limit, before } => {
                let outcome =
                    outcome.map(|text| OutcomeKind::parse(&text).ok_or(text)).transpose().map_err(|text| {
                        let known: Vec<&str> = OutcomeKind::ALL.iter().map(|kind| kind.as_str()).collect();
                        CommandError::Usage(format!("`{text}` is not an outcome; use one of {}", known.join(", ")))
                    })?;
                let kind =
                    kind.map(|text| AuditedRequestKind::parse(&text).ok_or(text)).transpose().map_err(|text| {
                        let known: Vec<&str> = AuditedRequestKind::ALL.iter().map(|kind| kind.as_str()).collect();
                        CommandError::Usage(format!(
                            "`{text}` is not a kind of request; use one of {}",
                            known.join(", ")
                        ))
                    })?;
                let before = audit_log.find_optional_call(before.as_deref()).await?;
                let parent = audit_log.find_optional_call(parent.as_deref()).await?;
                let filter = ExecutionFilter {
                    tool,
                    kind,
                    client,
                    label,
                    parent,
                    since,
                    outcome,
                    limit,
                    before,
                    ..ExecutionFilter::default()
                };
                let executions = audit_log.executions.list(&filter).await?;
                if as_json {
                    let all: Vec<Value> = executions.iter().map(record::to_json).collect();
                    return Ok(output.json(&json!({"executions": all}))?);
                }
                for line in listing::lines(&executions, output.width()) {
                    output.line(&line)?;
                }
                Ok(())
            }
            Self::Show { id } => {
                let id = audit_log.call(&id).await?;
                let execution = audit_log.executions.get(id).await?;
                let execution =
                    execution.ok_or_else(|| CommandError::NotFound(format!("no call with the id {id} is recorded")))?;
                let tree = CallTree::below(id, &audit_log.executions).await?;
                match as_json {
                    true => {
                        let mut record = record::with_kodelets_names(&execution);
                        record["calls"] = tree.to_json();
                        output.json(&record)?;
                    }
                    false => {
                        output.line(&record::to_text(&execution))?;
                        for (at, line) in tree.lines().iter().enumerate() {
                            output.line(&format!("{:<11}  {line}", if at == 0 { "calls" } else { "" }))?;
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

/// Parses a label `NAME=VALUE` into its name and its value.
fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write `NAME=VALUE`")?;
    check_name(name).map_err(|error| error.to_string())?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses a point in time: an age such as `30m`, a day (its midnight in UTC), or a time with its zone (RFC 3339).
fn since(text: &str) -> Result<Timestamp, String> {
    let of = |time: DateTime<Utc>| Timestamp(time.timestamp_micros());
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(of(time.to_utc()));
    }
    if let Some(midnight) = text.parse::<NaiveDate>().ok().and_then(|day| day.and_hms_opt(0, 0, 0)) {
        return Ok(of(midnight.and_utc()));
    }
    let seconds = text.char_indices().next_back().and_then(|(at, unit)| {
        let unit = match unit {
            's' => 1,
            'm' => 60,
            'h' => 60 * 60,
            'd' => 24 * 60 * 60,
            _ => return None,
        };
        text[..at].parse::<u64>().ok()?.checked_mul(unit)
    });
    let ago = seconds.and_then(|seconds| {
        Utc::now().checked_sub_signed(chrono::Duration::from_std(Duration::from_secs(seconds)).ok()?)
    });
    ago.map(of).ok_or_else(|| "use `30m`, `12h` or `7d`, a date (2026-11-22) or a time (2026-11-22T10:00:00Z)".into())
}

pub(super) fn time(timestamp: Timestamp) -> String {
    DateTime::from_timestamp_micros(timestamp.0)
        .map_or("-".into(), |time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_name_and_a_value() {
        assert_eq!(label("ticket=a=b"), Ok(("ticket".into(), "a=b".into())));
        assert_eq!(label("ticket="), Ok(("ticket".into(), String::new())));
        for bad in ["ticket", "=x", "a b=c"] {
            assert!(label(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn parses_a_time_as_a_day_a_timestamp_or_an_age() {
        assert_eq!(since("2026-11-22").map(time), Ok("2026-11-22T00:00:00.000Z".into()));
        assert_eq!(since("2026-11-22T10:00:00+01:00").map(time), Ok("2026-11-22T09:00:00.000Z".into()));
        assert!(since("2h").unwrap() < since("1h").unwrap() && since("1d").unwrap() < since("90m").unwrap());
        for bad in ["", "h", "-1h", "yesterday", "1 h", "99999999999999999999d", "9999999999999999d", "ü"] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }
}
