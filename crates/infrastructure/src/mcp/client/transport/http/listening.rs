//! Stream of messages outside of requests, for servers up to 2025-11-25 (MCP 2025-11-25, basic/transports, "Listening
//! for Messages from the Server").

use super::{HttpTransport, answer::is_event_stream, stream::StreamPosition};
use crate::mcp::client::connection::request::ConnectionRequestSerializer;
use http::StatusCode;
use std::time::Duration;
use tokio::time::sleep;
use toolstead_domain::ProtocolGeneration;

/// Maximum pause between two streams without an event.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl HttpTransport {
    /// Listens for messages outside of requests on a stream, and opens the stream again when it ends. Returns when the
    /// server offers no stream or no new session can be opened, and at once for a modern server.
    pub(super) async fn keep_listening(&self, writer: &ConnectionRequestSerializer) {
        if writer.version.generation() == ProtocolGeneration::Modern {
            return;
        }
        let mut position = StreamPosition::default();
        let mut in_vain = 0_u32;
        loop {
            let session = self.session.load_full();
            let mut pause = Duration::ZERO;
            in_vain = in_vain.saturating_add(1);
            match self.open_stream(writer, &position).await {
                Ok(response) if response.status().is_success() && is_event_stream(&response) => {
                    // There is no response to wait for. After an overlong event a new stream is opened.
                    let _ = self.read_stream(response, None, &mut position).await;
                    if position.last_event_id.is_none() {
                        // Servers do not repeat messages from the time between the streams.
                        self.peer.everything_changed();
                    }
                    in_vain = if position.events == 0 { in_vain } else { 0 };
                    pause = position.delay();
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND && session.is_some() => {
                    position = StreamPosition::default();
                    if self.renew(writer, session).await.is_err() {
                        return;
                    }
                }
                Ok(response) if matches!(response.status().as_u16(), 429 | 500 | 502..=599) => {}
                Ok(response) => {
                    let status = response.status();
                    tracing::trace!(server = %self.peer.server, %status, "the server offers no stream");
                    return;
                }
                Err(error) => tracing::debug!(server = %self.peer.server, %error, "could not listen to the server"),
            }
            sleep(pause.max(pause_after(in_vain))).await;
        }
    }
}

/// Returns the pause after this number of consecutive streams without an event.
fn pause_after(in_vain: u32) -> Duration {
    match in_vain {
        0 | 1 => Duration::ZERO,
        more => (Duration::from_secs(1) * 2_u32.pow((more - 2).min(6))).min(LONGEST_PAUSE),
    }
}
