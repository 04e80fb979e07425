//! Work that blocks, on threads of its own.

use toolstead_domain::{error_kind::ErrorKind, tool_failure::ToolFailure};

/// Does work that blocks where it holds up nobody.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(ToolFailure::new(ErrorKind::Internal, "the tool failed inside: this is a fault of Toolstead")
            .caused_by(error))
    })
}
