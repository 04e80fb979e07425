//! MCP over a pair of byte streams, one message a line (MCP 2025-11-25 and 2026-07-28, basic/transports, "stdio").

mod connection;
mod lost_id;
pub mod process_streams;

use super::{McpServer, server_identity::ServerIdentity};
use crate::app::App;
use connection::Connection;
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use toolstead_domain::{principal::Principal, tool_execution::CancelReason};
use toolstead_infrastructure::mcp::wire::lines::{BoundedLines, Line, LineSender, MAX_MESSAGE_BYTES};

/// After the end of input, calls may still end by themselves for this long, so that `… | toolstead mcp` gets its
/// answers. Then they are cancelled; all together stays under the second in which the process must be gone.
const LAST_CALLS: Duration = Duration::from_millis(400);
/// How long cancelled calls have to record their outcome.
const LAST_RECORDS: Duration = Duration::from_millis(300);
/// How long the other side has to take the last answers.
const LAST_LINES: Duration = Duration::from_millis(200);

/// How a connection is served.
#[derive(Debug, Clone)]
pub struct StdioSettings {
    /// What clients are told about this server.
    pub identity: ServerIdentity,
    /// On whose behalf calls are made.
    pub principal: Principal,
    /// Requests that run at once; the others wait for their turn.
    pub max_in_flight: usize,
    /// How much may run and wait together, in bytes of messages. What comes beyond it is refused.
    pub max_waiting_bytes: usize,
    /// How long the first list waits for servers of which nothing is known yet: many clients list once.
    pub first_list_waits: Duration,
}

impl Default for StdioSettings {
    fn default() -> Self {
        Self {
            identity: ServerIdentity::default(),
            principal: Principal::local(),
            max_in_flight: 64,
            max_waiting_bytes: 64 << 20,
            first_list_waits: Duration::from_secs(10),
        }
    }
}

/// Serves one client until its input ends, it reads no more, or `stop` is given. Returns within a second after that;
/// by then every call of the client has ended and is recorded, and answers that were due are written.
///
/// The application stays open: whoever made it closes it ([`App::close`]) before the process ends.
///
/// # Errors
/// The reader's, when input could not be read.
pub async fn serve_stdio<R, W>(
    app: App,
    settings: StdioSettings,
    reader: R,
    writer: W,
    stop: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (lines, mut writing) = LineSender::spawn(writer);
    let server = Arc::new(McpServer::new(app, settings.identity.clone(), settings.first_list_waits));
    let mut connection = Connection::new(server, &settings, lines);
    let mut input = BoundedLines::new(reader, MAX_MESSAGE_BYTES);
    let read_all = async {
        while let Some(line) = input.next().await? {
            let taken = match line {
                Line::Whole(line) => connection.take(&line).await,
                Line::TooLong(beginning) => connection.refuse(&beginning, input.end_of_long_line()).await,
            };
            if taken.is_err() {
                break;
            }
        }
        Ok(())
    };
    let end = tokio::select! {
        read = read_all => End::Input(read),
        () = stop.cancelled() => End::Stopped,
        written = &mut writing => End::Output(written.unwrap_or_else(|panic| Err(io::Error::other(panic)))),
    };
    match end {
        End::Input(read) => {
            connection.end(LAST_CALLS, CancelReason::Client, LAST_RECORDS).await;
            write_rest(connection, writing).await;
            read
        }
        End::Stopped => {
            connection.end(Duration::ZERO, CancelReason::Shutdown, LAST_RECORDS).await;
            write_rest(connection, writing).await;
            Ok(())
        }
        End::Output(written) => {
            if let Err(error) = written {
                tracing::debug!(error = &error as &dyn std::error::Error, "the client reads no more");
            }
            connection.end(Duration::ZERO, CancelReason::Client, LAST_RECORDS).await;
            Ok(())
        }
    }
}

enum End {
    Input(io::Result<()>),
    Stopped,
    Output(io::Result<()>),
}

/// Writes what is queued, as far as the other side takes it.
async fn write_rest(connection: Connection, mut writing: JoinHandle<io::Result<()>>) {
    drop(connection);
    if tokio::time::timeout(LAST_LINES, &mut writing).await.is_err() {
        writing.abort();
    }
}
