//! Summary of a call's subject: the command, the path, the host.

use serde_json::Value;
use toolstead_domain::{AuditedRequestKind, ToolExecution};

/// Returns the subject of a call on one line: the URI or name of another request than a tool call, the command line, the
/// first access with the number of further ones, or else the arguments.
pub(super) fn call_target(execution: &ToolExecution) -> String {
    // The URI or name is more specific than the accesses.
    if execution.kind != AuditedRequestKind::Tool {
        return one_line(&execution.called_as);
    }
    let runs = execution.accesses.iter().any(|access| access.starts_with("run "));
    if let (true, Some(command)) = (runs, execution.arguments.get("command").and_then(Value::as_str)) {
        return one_line(command);
    }
    let mut touched: Vec<&str> = execution.accesses.iter().filter_map(|access| object_of(access)).collect();
    // A tool that reads a file before it writes it names the file twice.
    touched.dedup();
    match touched.split_first() {
        Some((first, [])) => one_line(first),
        Some((first, more)) => format!("{} (+{})", one_line(first), more.len()),
        None => match &execution.arguments {
            Value::Object(members) if !members.is_empty() => one_line(&execution.arguments.to_string()),
            _ => String::new(),
        },
    }
}

/// Returns what an access such as `read /etc/hosts` names after its kind; `None` for other kinds of access.
fn object_of(access: &str) -> Option<&str> {
    ["run ", "read ", "write ", "reach ", "send to "].iter().find_map(|kind| access.strip_prefix(kind))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolstead_domain::testing::samples;

    #[test]
    fn the_target_of_a_resource_or_prompt_request_is_its_uri_or_name() {
        for kind in [
            AuditedRequestKind::Resource,
            AuditedRequestKind::Prompt,
            AuditedRequestKind::Completion,
            AuditedRequestKind::Question,
        ] {
            let execution = ToolExecution { kind, called_as: "config://server".into(), ..samples::execution(1) };
            assert_eq!(call_target(&execution), "config://server");
        }
    }

    #[test]
    fn the_target_of_a_call_is_its_command_path_host_or_arguments() {
        for (accesses, arguments, expected) in [
            (&["run cd d", "run make"][..], json!({"command": "cd d &&\n  make"}), "cd d && make"),
            (&["run git log"], json!({"args": "log"}), "git log"),
            (&["read /w/a", "write /w/a"], json!({"path": "a"}), "/w/a"),
            (&["write /w/a", "write /w/b", "write /w/c"], json!({}), "/w/a (+2)"),
            (&["reach a.org"], json!({}), "a.org"),
            (&["call log of the MCP server git"], json!({"n": 3}), r#"{"n":3}"#),
            (&["run"], Value::Null, ""),
            (&[], json!({}), ""),
        ] {
            let accesses = accesses.iter().map(ToString::to_string).collect();
            let execution = ToolExecution { accesses, arguments, ..samples::execution(1) };
            assert_eq!(call_target(&execution), expected);
        }
    }
}
