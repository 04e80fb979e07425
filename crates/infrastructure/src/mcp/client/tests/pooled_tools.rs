//! Tools and notifications of pooled connections.

use super::{
    line_server::line_server,
    pooling::serving,
    provider_calls::{SOON, call, config, tool_names, until_ready},
};
use crate::mcp::client::config::{McpTransport, ToolNaming, UpstreamConfig};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use toolstead_domain::{ContextNotice, ContextProvider, ToolProvider};

/// Returns a server up to 2025-11-25 whose process adds a tool, a resource and a prompt after a call and reports the
/// change.
fn growing_server() -> McpTransport {
    line_server(move |_, mut end| {
        Box::pin(async move {
            let (mut has_grown, mut watched) = (false, Vec::new());
            while let Some(message) = end.hear().await {
                let more = |one: Value, two: Value| if has_grown { json!([one, two]) } else { json!([one]) };
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                let prompt = |name: &str| json!({"name": name});
                let resource = |name: &str| json!({"uri": format!("a://{name}"), "name": name});
                match message["method"].as_str() {
                    Some("initialize") => {
                        let capabilities = json!({
                            "tools": {"listChanged": true},
                            "prompts": {"listChanged": true},
                            "resources": {"subscribe": true, "listChanged": true},
                        });
                        let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
                            "serverInfo": {"name": "s", "version": "1"}});
                        end.answer(&message, result).await;
                    }
                    Some("tools/list") => {
                        end.answer(&message, json!({"tools": more(tool("grow"), tool("grown"))})).await
                    }
                    Some("prompts/list") => {
                        end.answer(&message, json!({"prompts": more(prompt("one"), prompt("two"))})).await;
                    }
                    Some("resources/list") => {
                        end.answer(&message, json!({"resources": more(resource("one"), resource("two"))})).await;
                    }
                    Some("resources/subscribe") => {
                        watched.push(message["params"]["uri"].clone());
                        end.answer(&message, json!({})).await;
                    }
                    Some("tools/call") => {
                        has_grown = true;
                        end.answer_plainly(&message).await;
                        for kind in ["tools", "prompts", "resources"] {
                            let method = format!("notifications/{kind}/list_changed");
                            end.say(json!({"jsonrpc": "2.0", "method": method})).await;
                        }
                        for uri in &watched {
                            let method = "notifications/resources/updated";
                            end.say(json!({"jsonrpc": "2.0", "method": method, "params": {"uri": uri}})).await;
                        }
                    }
                    _ => end.answer_plainly(&message).await,
                }
            }
        })
    })
}

#[tokio::test]
async fn changes_on_a_pooled_connection_are_listed_and_reported() {
    let server = serving(UpstreamConfig { names: ToolNaming::Plain, ..config(growing_server()) });
    until_ready(&server).await;
    server.settled().await;
    server.subscribe("a://one").await.unwrap();
    // Opens the shared pooled connection. Its changes are reported from now on.
    call(&server, "grow", json!({})).await.unwrap();
    let grown = async {
        while tool_names(&server).await != ["grow", "grown"] {
            ToolProvider::changed(&*server).await;
        }
        loop {
            let offered = ContextProvider::list(&*server).await.unwrap();
            if (offered.prompts.len(), offered.resources.len()) == (2, 2) {
                break;
            }
            ContextProvider::changed(&*server).await;
        }
    };
    timeout(SOON, grown).await.expect("it is listed");
    assert_eq!(server.status().connections, 2);
    // The first notification may have arrived before the subscription on the new connection.
    call(&server, "grow", json!({})).await.unwrap();
    let message = timeout(SOON, server.notice()).await.expect("it is told");
    assert_eq!(message, ContextNotice::ResourceUpdated { uri: "a://one".into() });
}

#[tokio::test(start_paused = true)]
async fn tools_of_a_pooled_connection_are_unlisted_after_the_connection_ends() {
    let server = serving(UpstreamConfig {
        names: ToolNaming::Plain,
        ends_unused_after: Some(Duration::from_secs(900)),
        ..config(growing_server())
    });
    until_ready(&server).await;
    let _used = server.in_use();
    call(&server, "grow", json!({})).await.unwrap();
    for expected in [&["grow", "grown"][..], &["grow"]] {
        while tool_names(&server).await != expected {
            ToolProvider::changed(&*server).await;
        }
    }
    assert_eq!(server.status().connections, 1);
}
