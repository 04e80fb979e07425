//! List of calls, with one line per call.

use super::call_target::call_target;
use crate::cli::output::visible;
use chrono::DateTime;
use toolstead_domain::ToolExecution;

/// Minimum number of digits of an id in the list. They contain its time stamp in milliseconds, which two calls rarely
/// share.
const ID_DIGITS: usize = 12;
/// Minimum width of the terminal for showing all columns.
const WIDE: usize = 120;
/// Maximum length in characters of a tool's name on a narrower terminal.
const TOOL: usize = 16;

/// Returns the lines of the list with a header, truncated to the width if there is one.
pub(super) fn lines(executions: &[ToolExecution], width: Option<usize>) -> Vec<String> {
    let is_wide = width.is_none_or(|width| width >= WIDE);
    let digits = digits_needed(executions);
    let head = match is_wide {
        true => vec!["ID", "STARTED", "TOOL", "OUTCOME", "TOOK", "CLIENT", "CALLED"],
        false => vec!["ID", "STARTED", "TOOL", "OUTCOME", "CALLED"],
    };
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    rows.extend(executions.iter().map(|one| {
        let id = one.id.0.simple().to_string()[..digits].to_owned();
        let outcome = one.outcome.kind().as_str().to_owned();
        let row = match is_wide {
            true => {
                let outcome = one.outcome.error_kind().map_or(outcome.clone(), |kind| format!("{outcome} ({kind})"));
                vec![
                    id,
                    started(one, "%Y-%m-%d %H:%M:%S"),
                    one.tool.clone(),
                    outcome,
                    took(one),
                    one.client.clone(),
                    call_target(one),
                ]
            }
            false => vec![id, started(one, "%m-%d %H:%M"), shortened(&one.tool, TOOL), outcome, call_target(one)],
        };
        // An unknown name is text of the client, which must not create a second line.
        row.iter().map(|cell| visible(cell).replace('\n', "\\n").replace('\t', "\\t")).collect()
    }));
    let columns = rows.first().map_or(0, Vec::len);
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let line = |row: Vec<String>| {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            match column + 1 == columns {
                true => {
                    let left = width.map_or(usize::MAX, |width| width.saturating_sub(line.chars().count()));
                    line.push_str(&shortened(cell, left));
                }
                false => line.push_str(&format!("{cell:<0$}  ", widths[column])),
            }
        }
        shortened(line.trim_end(), width.unwrap_or(usize::MAX))
    };
    rows.into_iter().map(line).collect()
}

/// Returns the number of leading digits that distinguish the ids of the list, at least [`ID_DIGITS`].
fn digits_needed(executions: &[ToolExecution]) -> usize {
    let mut ids: Vec<String> = executions.iter().map(|one| one.id.0.simple().to_string()).collect();
    ids.sort();
    let shared = |pair: &[String]| pair[0].chars().zip(pair[1].chars()).take_while(|(one, other)| one == other).count();
    ids.windows(2).map(|pair| shared(pair) + 1).max().unwrap_or(0).clamp(ID_DIGITS, 32)
}

fn started(execution: &ToolExecution, format: &str) -> String {
    DateTime::from_timestamp_micros(execution.started.0).map_or("-".into(), |time| time.format(format).to_string())
}

pub(super) fn took(execution: &ToolExecution) -> String {
    let took = |ended: toolstead_domain::ports::clock::Timestamp| ended.since(execution.started).as_secs_f64();
    execution.ended.map_or("-".to_owned(), |ended| format!("{:.1} ms", took(ended) * 1e3))
}

/// Truncates a text to this number of characters: a path at its beginning, any other text at its end.
fn shortened(text: &str, at_most: usize) -> String {
    let count = text.chars().count();
    if count <= at_most {
        return text.to_owned();
    }
    let kept = at_most.saturating_sub(1);
    match text.starts_with('/') && !text.contains(' ') {
        true => std::iter::once('…').chain(text.chars().skip(count - kept)).collect(),
        false => text.chars().take(kept).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolstead_domain::{ExecutionOutcome, error_kind::ErrorKind, testing::samples};

    fn executions() -> Vec<ToolExecution> {
        let path = "/home/somebody/projects/one/crates/presentation/src/cli/executions.rs";
        let long = "cargo test --workspace --all-targets -- --nocapture some_test";
        vec![
            ToolExecution { accesses: vec![format!("read {path}")], tool: "read_file".into(), ..samples::execution(3) },
            ToolExecution {
                accesses: vec![format!("run {long}")],
                arguments: json!({"command": long}),
                tool: "mcp__a_long_server__a_long_tool".into(),
                outcome: ExecutionOutcome::Failed(ErrorKind::Timeout, "late".into()),
                ..samples::execution(2)
            },
            ToolExecution { accesses: vec![], arguments: json!({"message": "a\u{1b}[31m"}), ..samples::execution(1) },
        ]
    }

    #[test]
    fn an_80_column_list_shows_id_time_tool_outcome_and_call_target() {
        let listed = lines(&executions(), Some(80));
        assert_eq!(
            listed,
            [
                "ID            STARTED      TOOL              OUTCOME    CALLED",
                "01990292d003  09-01 00:00  read_file         succeeded  …n/src/cli/executions.rs",
                "01990292d002  09-01 00:00  mcp__a_long_ser…  failed     cargo test --workspace …",
                r#"01990292d001  09-01 00:00  echo              succeeded  {"message":"a\u001b[31m…"#
            ]
        );
    }

    #[test]
    fn a_list_without_a_width_limit_shows_all_columns_in_full() {
        let listed = lines(&executions(), None);
        assert!(listed[0].starts_with("ID            STARTED"), "{listed:#?}");
        assert!(listed[1].ends_with("src/cli/executions.rs") && listed[2].contains("failed (timeout)"), "{listed:#?}");
        assert!(listed[2].contains("test 1.0") && listed[2].contains("0.2 ms"), "{listed:#?}");
    }

    #[test]
    fn a_listed_call_is_a_single_line_whatever_its_tool_name() {
        let forged = "x\n01990292d003  09-01 00:00\techo";
        let execution = ToolExecution { tool: forged.into(), ..samples::execution(1) };
        for width in [None, Some(80)] {
            assert!(lines(std::slice::from_ref(&execution), width).iter().all(|line| !line.contains(['\n', '\t'])));
        }
    }

    #[test]
    fn listed_ids_are_shortened_only_as_far_as_they_remain_distinct() {
        let mut executions = executions();
        assert_eq!(digits_needed(&executions), 12);
        executions[0].id.0 = uuid::Uuid::from_u128(executions[1].id.0.as_u128() ^ 1);
        assert_eq!(digits_needed(&executions), 32);
        assert_eq!(digits_needed(&[]), 12);
    }
}
