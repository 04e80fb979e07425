//! Blocking work on its own threads.

use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Runs blocking work on a thread for it. A panic of the work becomes an `internal` failure.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(ToolFailure::new(ErrorKind::Internal, "the tool failed inside: this is a fault of Toolstead")
            .caused_by(error))
    })
}
