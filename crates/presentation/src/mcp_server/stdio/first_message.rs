//! Reads the first message of a client before the application is built, because it declares the capabilities of the
//! client.

use serde_json::{Map, Value};
use std::io::Cursor;
use tokio::io::{AsyncRead, AsyncReadExt, Chain};
use tokio_util::sync::CancellationToken;
use toolstead_infrastructure::mcp::{
    client::connection::question_kind,
    wire::{message::RpcMessage, meta::CLIENT_CAPABILITIES},
};

/// Maximum size of the first message in bytes.
const LOOKED_AT: usize = 1 << 20;
/// Number of bytes to read at once.
const CHUNK: usize = 8 << 10;

/// Returns the capabilities of the client (MCP's `ClientCapabilities`), and the input including the first message. If
/// the first message does not declare capabilities, all are assumed. Also returns at the end of the input, and when
/// `stop` is cancelled.
pub async fn read_capabilities<R: AsyncRead + Unpin>(
    mut input: R,
    stop: &CancellationToken,
) -> (Map<String, Value>, Chain<Cursor<Vec<u8>>, R>) {
    let mut read = Vec::new();
    let reading = async {
        // An error occurs again when the rest is read.
        while first_line(&read).is_none() && read.len() < LOOKED_AT {
            read.reserve(CHUNK);
            match input.read_buf(&mut read).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = stop.cancelled() => {}
    }
    let capabilities = first_line(&read).and_then(declared).unwrap_or_else(question_kind::all_capabilities);
    (capabilities, Cursor::new(read).chain(input))
}

/// Returns the first complete line that is not empty.
fn first_line(read: &[u8]) -> Option<&[u8]> {
    let end = read.iter().rposition(|byte| *byte == b'\n')?;
    read[..end].split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())
}

/// Returns the capabilities that the message declares: in `initialize` up to 2025-11-25, in every request since.
fn declared(line: &[u8]) -> Option<Map<String, Value>> {
    let Ok(RpcMessage::Request { method, mut params, .. }) = RpcMessage::parse(line) else { return None };
    let declared = match method.as_str() {
        "initialize" => params.remove("capabilities").unwrap_or_else(|| Map::new().into()),
        _ => params.get_mut("_meta")?.get_mut(CLIENT_CAPABILITIES)?.take(),
    };
    match declared {
        Value::Object(capabilities) => Some(capabilities),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    async fn check(said: &str, capabilities: Value) {
        let (heard, mut input) = read_capabilities(said.as_bytes(), &CancellationToken::new()).await;
        assert_eq!(Value::Object(heard), capabilities, "{said}");
        let mut all = String::new();
        input.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, said);
    }

    #[tokio::test]
    async fn reads_capabilities_from_the_first_message_without_consuming_it() {
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}}}});
        check(&format!("{initialize}\n{{}}\nrest"), json!({"elicitation": {"form": {}}})).await;
        let modern = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list",
            "params": {"_meta": {CLIENT_CAPABILITIES: {"roots": {}}}}});
        check(&format!("\r\n \n{modern}\n"), json!({"roots": {}})).await;
        let plain = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
        check(&format!("{plain}\n"), json!({})).await;
        for other in ["", "\n", "no json\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n", "{\"cut"] {
            check(other, question_kind::all_capabilities().into()).await;
        }
        check(&format!("{}\n", "x".repeat(2 * LOOKED_AT)), question_kind::all_capabilities().into()).await;
    }

    #[tokio::test]
    async fn a_client_that_is_silent_until_shutdown_is_assumed_to_have_all_capabilities() {
        let (_client, input) = tokio::io::duplex(64);
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(read_capabilities(input, &stop).await.0, question_kind::all_capabilities());
    }
}
