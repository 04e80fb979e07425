//! Context that the list of tools costs a model in every conversation.

use crate::binaries::{Home, Pipe};
use serde_json::{Value, json};

/// The tools that a coding agent needs.
const CORE: [&str; 10] = [
    "read_file",
    "write_file",
    "edit_file",
    "multi_edit",
    "list_directory",
    "glob",
    "grep",
    "bash",
    "task_output",
    "undo",
];

/// Returns the tools as they are sent to a client.
fn listed(config: &str) -> Vec<Value> {
    let home = Home::new();
    let config = home.config(config);
    let mut command = home.toolstead(&["mcp", "--config"]);
    command.arg(config);
    let mut client = Pipe::start(command);
    client.initialize();
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let mut answer = client.answer(1);
    serde_json::from_value(answer["result"]["tools"].take()).unwrap()
}

/// Four bytes are about a token.
fn tokens<'a>(tools: impl IntoIterator<Item = &'a Value>) -> usize {
    tools.into_iter().map(|tool| tool.to_string().len() + 1).sum::<usize>() / 4
}

#[test]
fn the_list_of_built_in_tools_stays_within_its_token_budget() {
    let tools = listed("");
    let core: Vec<&Value> = tools.iter().filter(|tool| CORE.contains(&tool["name"].as_str().unwrap())).collect();
    assert_eq!(core.len(), CORE.len(), "{core:?}");
    let (all, core) = (tokens(&tools), tokens(core));
    println!("{} tools: {all} tokens, the core: {core}", tools.len());
    assert!(core <= 1_800, "the core costs {core} tokens");
    assert!(all <= 4_700, "all cost {all} tokens");
}

#[test]
fn the_server_instructions_stay_within_their_token_budget() {
    let home = Home::new();
    let config = home.config("");
    let mut command = home.toolstead(&["mcp", "--config"]);
    command.arg(config);
    let mut client = Pipe::start(command);
    let answer = client.initialize();
    let guidance = &answer["result"]["instructions"];
    assert!(guidance.as_str().is_some_and(|text| !text.is_empty()), "{answer}");
    let tokens = tokens([guidance]);
    println!("the guidance: {tokens} tokens");
    assert!(tokens <= 100, "the guidance costs {tokens} tokens");
}

#[test]
fn output_schemas_are_listed_only_if_enabled() {
    let with_schema = |config| listed(config).iter().filter(|tool| tool.get("outputSchema").is_some()).count();
    assert_eq!(with_schema(""), 0);
    assert!(with_schema("[server]\noutput_schemas = true\n") > 20);
}

#[test]
fn unlisted_parameters_still_work_and_are_documented_by_help() {
    let home = Home::new();
    std::fs::write(home.work().join("a"), "x\ny\n").unwrap();
    let read = &listed("").into_iter().find(|tool| tool["name"] == "read_file").unwrap()["inputSchema"];
    assert_eq!(read["properties"].get("show_ends"), None, "{read}");
    let call = |arguments: Value| {
        let output = home.run(&["call", "read_file", &arguments.to_string()]);
        (output.status.code(), format!("{}{}", crate::binaries::stdout(&output), crate::binaries::stderr(&output)))
    };
    let (code, text) = call(json!({"path": "a", "show_ends": true}));
    assert!(code == Some(0) && text.contains("x$"), "{text}");
    let (code, text) = call(json!({"path": "a", "show_end": true}));
    assert!(code == Some(2) && text.contains("did you mean `show_ends` for `show_end`?"), "{text}");
    let help = crate::binaries::stdout(&home.run(&["call", "help", r#"{"topic": "read_file"}"#]));
    assert!(help.contains("- `show_ends` (boolean): ") && help.contains("Example: {\"path\":"), "{help}");
}
