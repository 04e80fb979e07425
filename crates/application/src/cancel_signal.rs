//! The signal that ends a call from outside, with its reason.

use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;
use toolstead_domain::tool_execution::CancelReason;

/// Ends one call, or a group of them. Cheap to clone; the first reason stands.
#[derive(Debug, Clone, Default)]
pub struct CancelSignal {
    token: CancellationToken,
    reason: Arc<OnceLock<CancelReason>>,
}

impl CancelSignal {
    /// A signal that nobody has given yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the signal.
    pub fn cancel(&self, reason: CancelReason) {
        let _ = self.reason.set(reason); // A call ends once; what came later changes nothing.
        self.token.cancel();
    }

    /// Returns when the signal is given, with its reason.
    pub async fn cancelled(&self) -> CancelReason {
        self.token.cancelled().await;
        self.reason.get().copied().unwrap_or(CancelReason::Client)
    }

    /// The reason, once the signal is given.
    pub fn reason(&self) -> Option<CancelReason> {
        self.token.is_cancelled().then(|| self.reason.get().copied().unwrap_or(CancelReason::Client))
    }
}
