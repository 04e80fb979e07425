//! Schemas that would take a runtime down, from a server of the configuration, with the real binary.

use crate::binaries::{Home, Pipe};
use serde_json::{Map, Value, json};
use std::fs;

/// A server on standard streams whose tools have these schemas, in any order, and answer "ran".
const SERVER: &str = r#"
import json, sys
tools = json.load(open(sys.argv[1]))
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message.get("method")
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "ran"}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "?"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Links `l0` to `l60`, each of which is two times the one before.
fn chain() -> Value {
    let link = |at: usize| {
        let before = json!({"$ref": format!("#/$defs/l{}", at.saturating_sub(1))});
        let link = if at == 0 { json!({"type": "object"}) } else { json!({"allOf": [before.clone(), before]}) };
        (format!("l{at}"), link)
    };
    let links: Map<String, Value> = (0..=60).map(link).collect();
    json!({"allOf": [{"$ref": "#/$defs/l60"}], "$defs": links})
}

fn server_with(rules: &str) -> (Home, Pipe) {
    let twice = json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "required": ["b"]});
    let patterns: Map<String, Value> =
        (0..800).map(|at| (format!("p{at}"), json!({"pattern": format!("^[a-z]{{{}}}$", 100 + at)}))).collect();
    let schemas = [
        ("chain", chain()),
        ("twice", twice),
        ("patterns", json!({"properties": patterns})),
        ("fine", json!({"properties": {"n": {"type": "integer"}}})),
    ];
    let mut tools: Vec<Value> =
        schemas.into_iter().map(|(name, schema)| json!({"name": name, "inputSchema": schema})).collect();
    tools.push(json!({"name": "hiding", "description": "x\u{202e}y", "inputSchema": {"type": "object"}}));
    let home = Home::new();
    let (script, list) = (home.work().join("server.py"), home.work().join("tools.json"));
    fs::write(&script, SERVER).unwrap();
    fs::write(&list, Value::from(tools).to_string()).unwrap();
    let config = home.config(&format!(
        "[mcp_servers.s]\ncommand = \"python3\"\nargs = [{:?}, {:?}]\nprofile = \"open\"\n{rules}",
        script.to_str().unwrap(),
        list.to_str().unwrap(),
    ));
    let mut pipe = Pipe::start(home.toolstead(&["--config", config.to_str().unwrap(), "mcp"]));
    pipe.initialize();
    (home, pipe)
}

fn call(pipe: &mut Pipe, id: usize, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": format!("mcp__s__{tool}"), "arguments": arguments});
    pipe.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
    pipe.answer(id)
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!({"b": 1}), |inner, _| json!({"a": inner, "b": 1}))
}

#[test]
fn unbounded_schema_validation_fails_only_its_own_call() {
    let (_home, mut pipe) = server_with("allow_tools = [\"*\"]\n");
    let kind = |answer: &Value| answer["result"]["_meta"]["toolstead/errorKind"].clone();
    let text = |answer: &Value| answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    // Many at once, and then a ping and a call that are answered all the same. Which answer comes first depends on the machine.
    let request = |id: usize, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    for id in 1..=4 {
        pipe.send(request(id, "tools/call", json!({"name": "mcp__s__chain", "arguments": {}})));
    }
    pipe.send(request(5, "ping", json!({})));
    pipe.send(request(6, "tools/call", json!({"name": "mcp__s__fine", "arguments": {"n": 1}})));
    let mut answers = Vec::new();
    while answers.len() < 6 {
        let message = pipe.receive();
        // A server that starts may announce its tools in between.
        if message.get("method").is_none() {
            answers.push(message);
        }
    }
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!((&answers[4]["id"], &answers[4]["result"]), (&json!(5), &json!({})));
    assert_eq!((&answers[5]["id"], text(&answers[5]).as_str()), (&json!(6), "ran"));
    for (id, answer) in (1..).zip(&answers[..4]) {
        assert_eq!(answer["id"], id, "{answer}");
        assert!(["timeout", "too_large"].contains(&kind(answer).as_str().unwrap()), "{answer}");
        assert!(text(answer).contains("cannot be validated, so it was not called"), "{answer}");
        let is_late = kind(answer) == "timeout";
        assert!(!is_late || text(answer).contains("used more than 1 second of processor time"), "{answer}");
    }
    // What has no bound is validated all the same where it ends soon.
    assert_eq!(text(&call(&mut pipe, 7, "twice", &deep(3))), "ran");
    let wrong = call(&mut pipe, 8, "twice", &json!({"c": 1}));
    assert!(text(&wrong).contains("expected the property \"b\""), "{wrong}");
    let endless = call(&mut pipe, 9, "twice", &json!({"a": {"a": deep(0)}, "b": 1}));
    assert!(text(&endless).contains("do not fit"), "{endless}");
    assert_eq!(text(&call(&mut pipe, 10, "patterns", &json!({"p0": "x".repeat(100)}))), "ran");
    assert!(text(&call(&mut pipe, 11, "patterns", &json!({"p0": "x"}))).contains("a text that matches"));
    let hidden = call(&mut pipe, 12, "hiding", &json!({}));
    assert_eq!(hidden["error"]["data"]["kind"], "unavailable", "{hidden}");
    let suggestion = hidden["error"]["data"]["_meta"]["toolstead/suggestion"].as_str().unwrap();
    assert!(suggestion.contains("U+202E") && suggestion.contains("in `description`"), "{hidden}");
    pipe.send(json!({"jsonrpc": "2.0", "id": 13, "method": "tools/list"}).to_string());
    let listed = pipe.answer(13).to_string();
    assert!(listed.contains("mcp__s__fine") && !listed.contains("mcp__s__hiding"));
}

#[test]
fn a_denied_call_is_refused_before_its_arguments_are_validated() {
    let (_home, mut pipe) = server_with("[permissions]\ndeny = [\"mcp__s__*\"]\n");
    for (id, tool) in (1..).zip(["chain", "twice", "patterns"]) {
        let answer = call(&mut pipe, id, tool, &deep(40));
        assert_eq!(answer["result"]["_meta"]["toolstead/errorKind"], "permission_denied", "{answer}");
    }
}
