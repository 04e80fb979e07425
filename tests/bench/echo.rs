//! The smallest MCP server that can answer a call, over HTTP and over stdio. Benchmarks and counts use it as the
//! upstream.

use crate::Outcome;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, header, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    io::{BufRead, BufReader, BufWriter, Write},
};
use tokio::net::TcpListener;

/// Returns the answer to a message: there are `tools` tools, all echo their message, and all are marked as read-only or
/// none is.
fn answer(message: &Value, tools: usize, read_only: bool) -> Option<Value> {
    let id = message.get("id")?;
    let tool = |n: usize| {
        let name = if n == 0 { "echo".to_owned() } else { format!("tool_{n}") };
        json!({"name": name, "description": "Repeats the message, which is what a description of usual length says.",
               "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
               "annotations": if read_only { json!({"readOnlyHint": true}) } else { json!({}) }})
    };
    let result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                               "serverInfo": {"name": "echo", "version": "1"}}),
        "tools/list" => json!({"tools": (0..tools).map(tool).collect::<Vec<_>>()}),
        "tools/call" => {
            let text = message["params"]["arguments"]["message"].as_str().unwrap_or("");
            json!({"content": [{"type": "text", "text": format!("Echo: {text}")}]})
        }
        "ping" => json!({}),
        _ => {
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "method not found"}}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Serves MCP over HTTP, on hyper alone, until the process is killed. Prints its port first.
pub(crate) async fn echo_http(read_only: bool) -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    announce(&listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| async move {
                let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                let message = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let mut response = Response::new(Full::new(Bytes::new()));
                match answer(&message, 1, read_only) {
                    Some(answer) => {
                        response
                            .headers_mut()
                            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
                        *response.body_mut() = Full::new(Bytes::from(answer.to_string()));
                    }
                    None => *response.status_mut() = hyper::StatusCode::ACCEPTED,
                }
                Ok::<_, Infallible>(response)
            });
            // A client may disconnect at any time.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Serves MCP on standard input and output. Writes the answers to all requests that were read together at once.
pub(crate) fn echo_stdio(tools: usize, read_only: bool) -> Outcome<()> {
    let mut input = BufReader::with_capacity(64 << 10, std::io::stdin().lock());
    let mut output = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        if let Some(answer) = serde_json::from_str(&line).ok().and_then(|message| answer(&message, tools, read_only)) {
            writeln!(output, "{answer}")?;
        }
        line.clear();
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    Ok(())
}

/// Prints the port for the parent process.
pub(crate) fn announce(listener: &TcpListener) -> Outcome<()> {
    println!("{}", listener.local_addr()?.port());
    Ok(())
}
