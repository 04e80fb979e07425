//! MCP over a pair of byte streams, one message per line (MCP 2025-11-25 and 2026-07-28, basic/transports, "stdio").

pub mod client_roots;
mod connection;
pub mod first_message;
pub mod process_streams;
mod server_handle;

use super::{McpServer, server_identity::ServerIdentity};
use crate::app::App;
use client_roots::{AppLauncher, ClientRootsWatcher, RootsEventSender};
use connection::Connection;
use futures::{FutureExt, future::FusedFuture};
use server_handle::{CurrentServer, CurrentServerState};
use std::{io, pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use toolstead_domain::{CancelReason, Principal};
use toolstead_infrastructure::mcp::wire::lines::{BoundedLines, Line, LineSender, MAX_MESSAGE_BYTES};

/// Time after the end of the input in which calls may finish, so that `… | toolstead mcp` gets its answers. Then they
/// are cancelled.
const LAST_CALLS: Duration = Duration::from_millis(400);
/// Time for the answers to lists after the end of input. Only a list that waits for a slow server reaches it.
const LAST_LISTS: Duration = Duration::from_secs(5);
/// Time for cancelled calls to be recorded.
const LAST_RECORDS: Duration = Duration::from_millis(300);
/// Maximum time for the client to read the last answers after the end of the input.
const LAST_LINES: Duration = Duration::from_secs(2);
const LAST_LINES_AFTER_STOP: Duration = Duration::from_millis(200);
/// Maximum number of queued events about the client's folders.
const WAITING_OCCASIONS: usize = 16;

/// Settings of a connection.
#[derive(Debug, Clone)]
pub struct StdioSettings {
    /// Identity of the server.
    pub identity: ServerIdentity,
    /// Principal of all calls.
    pub principal: Principal,
    /// Name of the view whose tools, resources and prompts are served; `None`: all.
    pub view: Option<String>,
    /// Maximum number of requests that run concurrently. Others wait.
    pub max_in_flight: usize,
    /// Maximum total size of running and waiting requests, in bytes of their messages. Further requests are rejected.
    pub max_waiting_bytes: usize,
    /// Maximum time that the first list waits for servers whose tools are not known yet. It matters because many
    /// clients list only once.
    pub first_list_waits: Duration,
}

impl Default for StdioSettings {
    fn default() -> Self {
        Self {
            identity: ServerIdentity::default(),
            principal: Principal::local(),
            view: None,
            max_in_flight: 64,
            max_waiting_bytes: 64 << 20,
            first_list_waits: Duration::from_secs(10),
        }
    }
}

/// Serves one client until its input ends, it stops reading, or `stop` is cancelled. Then every call of the client ends
/// and is recorded, and pending answers are written. Returns within a second after that, or later if the client reads
/// its answers slowly or has requested a list that is not known yet; `stop` ends these waits.
///
/// The application stays open. Its creator must close it ([`App::close`]) before the process ends.
///
/// # Errors
/// The error of the reader if the input could not be read.
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
    let (lines, writing) = LineSender::spawn(writer);
    let server = McpServer::new(app, settings.identity.clone(), settings.first_list_waits);
    let served = CurrentServer::fixed(Arc::new(server.with_view(settings.view.as_deref())));
    let connection = Connection::new(served, &settings, lines);
    serve(connection, writing, reader, stop, std::future::pending()).await
}

/// Serves one client like [`serve_stdio`], with an application that is built once the folders of the client are known,
/// and rebuilt when they change. `patience` is the maximum time for the user to approve the folders.
///
/// Also returns if the application cannot be built. The creator of the workplace must close everything that it opened.
///
/// # Errors
/// The error of the reader if the input could not be read.
pub async fn serve_stdio_in<R, W>(
    workplace: &dyn AppLauncher,
    settings: StdioSettings,
    patience: Duration,
    reader: R,
    writer: W,
    stop: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (lines, writing) = LineSender::spawn(writer);
    let stages = watch::Sender::new(CurrentServerState::default());
    let (events, receiver) = mpsc::channel(WAITING_OCCASIONS);
    let connection = Connection::new(CurrentServer::from_stages(&stages), &settings, lines.clone());
    let (connection, questions) = connection.with_roots_events(RootsEventSender { events, stages: stages.clone() });
    let identity = settings.identity.clone();
    let roots = ClientRootsWatcher {
        workplace,
        identity,
        view: settings.view.clone(),
        first_list_waits: settings.first_list_waits,
        stages,
        lines,
        questions,
        patience,
    };
    serve(connection, writing, reader, stop, roots.follow(receiver)).await
}

/// Serves the connection. Also ends when `background` ends.
async fn serve<R: AsyncRead + Unpin + Send>(
    mut connection: Connection,
    mut writing: JoinHandle<io::Result<()>>,
    reader: R,
    stop: CancellationToken,
    background: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut input = BoundedLines::new(reader, MAX_MESSAGE_BYTES);
    let mut background = pin!(background.fuse());
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
        read = read_all => StdioEndReason::Input(read),
        () = stop.cancelled() => StdioEndReason::Stopped,
        () = &mut background => StdioEndReason::Stopped,
        written = &mut writing => StdioEndReason::Output(written.unwrap_or_else(|panic| Err(io::Error::other(panic)))),
    };
    if matches!(end, StdioEndReason::Input(_)) {
        connection.input_ended();
        // If the application is still starting, this waits as long as the machine needs for that.
        tokio::select! {
            () = connection.lists_answered(LAST_LISTS) => {}
            () = stop.cancelled() => {}
            () = &mut background, if !background.is_terminated() => {}
        }
    }
    let ending = async {
        match end {
            StdioEndReason::Input(read) => {
                connection.end(LAST_CALLS, CancelReason::Client, LAST_RECORDS).await;
                tokio::select! {
                    () = write_rest(connection, &mut writing, LAST_LINES) => {}
                    () = stop.cancelled() => {}
                }
                writing.abort();
                read
            }
            StdioEndReason::Stopped => {
                connection.end(Duration::ZERO, CancelReason::Shutdown, LAST_RECORDS).await;
                write_rest(connection, &mut writing, LAST_LINES_AFTER_STOP).await;
                writing.abort();
                Ok(())
            }
            StdioEndReason::Output(written) => {
                if let Err(error) = written {
                    tracing::debug!(error = &error as &dyn std::error::Error, "the client no longer reads");
                }
                connection.end(Duration::ZERO, CancelReason::Client, LAST_RECORDS).await;
                Ok(())
            }
        }
    };
    let mut ending = pin!(ending);
    // `beside` continues while the connection ends.
    tokio::select! {
        ended = &mut ending => ended,
        () = &mut background, if !background.is_terminated() => ending.await,
    }
}

enum StdioEndReason {
    Input(io::Result<()>),
    Stopped,
    Output(io::Result<()>),
}

/// Writes the queued lines, as far as the client reads them within this time.
async fn write_rest(connection: Connection, writing: &mut JoinHandle<io::Result<()>>, time: Duration) {
    drop(connection);
    let _ = tokio::time::timeout(time, writing).await;
}
