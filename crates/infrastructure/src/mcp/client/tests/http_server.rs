//! Small HTTP/1.1 server on a loopback port, whose replies a test writes byte by byte.

use crate::mcp::client::config::{HttpUpstream, McpTransport};
use serde_json::{Value, json};
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    sync::mpsc::UnboundedReceiver,
};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    /// Path and query.
    pub(super) target: String,
    pub(super) headers: BTreeMap<String, String>,
    /// JSON-RPC message; null if there is none.
    pub(super) message: Value,
}

pub(super) enum Reply {
    /// Status, further headers, body.
    Whole(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Event stream of raw pieces, each in a write of its own. The connection is closed after it.
    Stream(Vec<Piece>),
    /// No reply. The connection remains open until the client closes it.
    Hang,
    /// No reply. The connection is closed.
    Cut,
}

pub(super) enum Piece {
    Bytes(Vec<u8>),
    Wait(Duration),
    /// Bytes from this channel, until its sender is dropped or the client disconnects.
    From(UnboundedReceiver<Vec<u8>>),
    /// Nothing, until the client disconnects.
    StayOpen,
}

/// Running server with its URL. Dropping it stops the server.
pub(super) struct HttpEnd {
    pub(super) url: Url,
    _serving: AbortOnDropHandle<()>,
}

/// Starts a server on a free port.
pub(super) async fn http_server(reply: impl Fn(Request) -> Reply + Send + Sync + 'static) -> HttpEnd {
    http_server_at(([127, 0, 0, 1], 0).into(), reply).await
}

/// Starts a server at this address.
pub(super) async fn http_server_at(
    address: SocketAddr,
    reply: impl Fn(Request) -> Reply + Send + Sync + 'static,
) -> HttpEnd {
    let listener = TcpListener::bind(address).await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let reply = Arc::new(reply);
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, reply.clone()));
        }
    });
    HttpEnd { url, _serving: AbortOnDropHandle::new(serving) }
}

impl HttpEnd {
    pub(super) fn transport(&self) -> McpTransport {
        let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer secret".to_owned())]);
        McpTransport::Http(HttpUpstream { url: self.url.clone(), headers })
    }
}

async fn serve(stream: TcpStream, reply: Arc<impl Fn(Request) -> Reply>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    loop {
        let request = read(&mut reader).await?;
        match reply(request) {
            Reply::Whole(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                writer.write_all(format!("{head}\r\n").as_bytes()).await.ok()?;
                writer.write_all(&body).await.ok()?;
            }
            Reply::Stream(pieces) => return stream_pieces(&mut reader, &mut writer, pieces).await,
            Reply::Hang => {
                let _ = reader.read_u8().await;
                return None;
            }
            Reply::Cut => return None,
        }
    }
}

async fn stream_pieces(
    reader: &mut (impl AsyncReadExt + Unpin),
    writer: &mut OwnedWriteHalf,
    pieces: Vec<Piece>,
) -> Option<()> {
    writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await.ok()?;
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => {
                writer.write_all(&bytes).await.ok()?;
                writer.flush().await.ok()?;
            }
            Piece::Wait(time) => tokio::time::sleep(time).await,
            Piece::From(mut source) => loop {
                tokio::select! {
                    bytes = source.recv() => match bytes {
                        Some(bytes) => writer.write_all(&bytes).await.ok()?,
                        None => break,
                    },
                    _ = reader.read_u8() => return None,
                }
            },
            Piece::StayOpen => {
                let _ = reader.read_u8().await;
            }
        }
    }
    None
}

async fn read(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    Some(Request { method, target, headers, message: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}

impl Request {
    /// Returns the JSON-RPC method; empty if there is none.
    pub(super) fn rpc(&self) -> &str {
        self.message["method"].as_str().unwrap_or("")
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(super) fn result_message(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result})
    }

    /// Returns a reply with a JSON-RPC result.
    pub(super) fn answer(&self, result: &Value) -> Reply {
        json_reply(200, &self.result_message(result))
    }

    pub(super) fn fail(&self, status: u16, code: i64, message: &str) -> Reply {
        let error = json!({"code": code, "message": message});
        json_reply(status, &json!({"jsonrpc": "2.0", "id": self.message["id"], "error": error}))
    }

    /// Returns the reply of a legacy server, with this session id.
    pub(super) fn answer_plainly(&self, session: Option<&str>) -> Reply {
        let reply = match (self.method.as_str(), super::line_server::plain_answer(&self.message)) {
            ("POST", Some(Ok(result))) => self.answer(&result),
            ("POST", Some(Err(code))) => self.fail(404, code, "no"),
            ("POST", None) => Reply::Whole(202, vec![], vec![]),
            ("DELETE", _) => Reply::Whole(200, vec![], vec![]),
            _ => Reply::Whole(405, vec![], vec![]),
        };
        match (reply, session) {
            (Reply::Whole(status, mut headers, body), Some(session)) if self.rpc() == "initialize" => {
                headers.push(("mcp-session-id", session.to_owned()));
                Reply::Whole(status, headers, body)
            }
            (reply, _) => reply,
        }
    }

    /// Returns the reply of a 2026-07-28 server.
    pub(super) fn answer_as_new_server(&self) -> Reply {
        match (self.method.as_str(), super::line_server::modern_answer(&self.message)) {
            ("POST", Some(Ok(result))) => self.answer(&result),
            ("POST", Some(Err(code))) => self.fail(400, code, "no"),
            ("POST", None) => Reply::Whole(202, vec![], vec![]),
            _ => Reply::Whole(405, vec![], vec![]),
        }
    }
}

pub(super) fn json_reply(status: u16, message: &Value) -> Reply {
    Reply::Whole(status, vec![("content-type", "application/json".to_owned())], message.to_string().into_bytes())
}

pub(super) fn event(id: &str, message: &Value) -> Piece {
    Piece::Bytes(format!("id: {id}\ndata: {message}\n\n").into_bytes())
}
