//! A real server up to 2025-11-25 behind clients that can answer different things.

use crate::{
    binaries::{Home, Pipe, node_path, node_program},
    real_servers::{Gateway, children_with, succeeded},
};
use serde_json::{Value, json};

const ASKING: &str = "mcp__everything__trigger-elicitation-request";

fn connect(home: &Home, capabilities: Value) -> Gateway {
    let config = home.config(&format!(
        "[mcp_servers.everything]\ncommand = {:?}\nargs = [\"stdio\"]\nallow_tools = [\"*\"]\nenv = {{ PATH = {:?} }}\n",
        node_program("mcp-server-everything"),
        node_path()
    ));
    let mut command = home.toolstead(&["mcp", "--config"]);
    command.arg(config);
    let mut gateway = Gateway { pipe: Pipe::start(command), next: 0 };
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
    gateway.pipe.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string());
    gateway.pipe.answer(0);
    gateway.pipe.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    gateway
}

#[test]
fn who_can_be_asked_is_asked_by_a_real_server_and_who_cannot_is_not() {
    let home = Home::new();
    let mut gateway = connect(&home, json!({"elicitation": {"form": {}}}));
    assert!(gateway.tools().contains(&ASKING.to_owned()));
    gateway.next += 1;
    let call = json!({"name": ASKING, "arguments": {}});
    let id = gateway.next;
    gateway.pipe.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}).to_string());
    let question = loop {
        let message = gateway.pipe.receive();
        assert!(message["id"] != id, "{message}");
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let result = json!({"action": "decline"});
    gateway.pipe.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": result}).to_string());
    let answer = gateway.pipe.answer(id);
    assert!(succeeded(&answer) && answer.to_string().contains("declined"), "{answer}");
    assert!(gateway.pipe.finish().1.success());

    // Its tools are known now, so that it is started by the first call.
    let mut gateway = connect(&home, json!({}));
    assert!(gateway.tools().contains(&ASKING.to_owned()));
    assert_eq!(children_with("server-everything", gateway.pipe.child.id()), Vec::<u32>::new());
    assert!(succeeded(&gateway.call("mcp__everything__get-sum", json!({"a": 1, "b": 1}))));
    let refused = gateway.call(ASKING, json!({}));
    assert!(!succeeded(&refused), "over its connection the server has no such tool: {refused}");
    let children = children_with("server-everything", gateway.pipe.child.id());
    assert!(!children.is_empty());
    assert!(gateway.pipe.finish().1.success());
    assert!(children.iter().all(|process| !std::path::Path::new(&format!("/proc/{process}")).exists()));
}
