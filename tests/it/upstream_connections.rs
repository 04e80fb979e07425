//! A real server up to 2025-11-25 behind clients that can answer different things.

use crate::{
    binaries::{Home, Pipe, node_path, node_program, peer},
    real_servers::{Gateway, children_with, succeeded},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ASKING: &str = "mcp__everything__trigger-elicitation-request";

fn connect(home: &Home, capabilities: Value) -> Gateway {
    let server = format!(
        "[mcp_servers.everything]\ncommand = {:?}\nargs = [\"stdio\"]\nallow_tools = [\"*\"]\nenv = {{ PATH = {:?} }}\n",
        node_program("mcp-server-everything"),
        node_path()
    );
    connect_to(home, &server, capabilities)
}

fn connect_to(home: &Home, server: &str, capabilities: Value) -> Gateway {
    let config = home.config(server);
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
fn a_real_server_can_request_input_only_from_a_client_that_supports_it() {
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
    let servers = children_with("server-everything", gateway.pipe.child.id());
    assert_eq!(servers.len(), 1, "one client has one process: {servers:?}");
    assert!(gateway.pipe.finish().1.success());

    // The server receives the capabilities of this client, so that the listed tools are those that its calls find.
    let mut gateway = connect(&home, json!({}));
    assert!(!gateway.tools().contains(&ASKING.to_owned()));
    assert!(succeeded(&gateway.call("mcp__everything__get-sum", json!({"a": 1, "b": 1}))));
    let process = gateway.pipe.child.id();
    let servers = children_with("server-everything", process);
    assert_eq!(servers.len(), 1, "one client has one process: {servers:?}");
    assert!(gateway.pipe.finish().1.success());

    // Its tools are known for such clients now, so that it is started by the first call.
    let mut gateway = connect(&home, json!({}));
    assert!(gateway.tools().contains(&"mcp__everything__get-sum".to_owned()));
    assert_eq!(children_with("server-everything", gateway.pipe.child.id()), Vec::<u32>::new());
    assert!(succeeded(&gateway.call("mcp__everything__get-sum", json!({"a": 1, "b": 1}))));
    let children = children_with("server-everything", gateway.pipe.child.id());
    assert!(!children.is_empty());
    assert!(gateway.pipe.finish().1.success());
    assert!(children.iter().all(|process| !std::path::Path::new(&format!("/proc/{process}")).exists()));
}

#[test]
fn tool_changes_made_by_a_call_to_its_server_are_listed() {
    for capabilities in [json!({}), json!({"elicitation": {"form": {}}})] {
        let home = Home::new();
        let server = format!(
            "[mcp_servers.fixture]\ncommand = {:?}\nargs = [{:?}]\nprotocol = \"2025-11-25\"\nallow_tools = [\"*\"]\n",
            node_program("node"),
            peer("fixture_server.mjs")
        );
        let mut gateway = connect_to(&home, &server, capabilities);
        let before = gateway.tools();
        gateway.next += 1;
        let (id, call) = (gateway.next, json!({"name": "mcp__fixture__test_trigger_tool_change", "arguments": {}}));
        gateway.pipe.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}).to_string());
        let (mut is_answered, mut is_told) = (false, false);
        while !(is_answered && is_told) {
            let message = gateway.pipe.receive();
            is_answered |= message["id"] == id;
            is_told |= message["method"] == "notifications/tools/list_changed";
        }
        let name = "mcp__fixture__test_dynamic_tool".to_owned();
        // The notification may have been about the first list.
        let deadline = Instant::now() + Duration::from_secs(120);
        while gateway.tools().contains(&name) == before.contains(&name) {
            assert!(Instant::now() < deadline, "it is not listed");
        }
        assert_eq!(children_with("fixture_server.mjs", gateway.pipe.child.id()).len(), 1);
        assert!(gateway.pipe.finish().1.success());
    }
}
