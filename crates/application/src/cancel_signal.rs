//! The signal that ends a call from outside, with its reason.

use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;
use toolstead_domain::tool_execution::CancelReason;

/// Ends one call, or a group of them. Cheap to clone; the first reason stands.
#[derive(Debug, Clone, Default)]
pub struct CancelSignal {
    token: CancellationToken,
    reason: Arc<OnceLock<CancelReason>>,
    /// The signal that is given to this one as well.
    above: Option<Arc<CancelSignal>>,
}

impl CancelSignal {
    /// A signal that nobody has given yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A signal that is given with this one, with its reason, and can be given alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { token: self.token.child_token(), reason: Arc::default(), above: Some(Arc::new(self.clone())) }
    }

    /// Gives the signal.
    pub fn cancel(&self, reason: CancelReason) {
        // A call ends once; what came later changes nothing, also where the signal came from above.
        match self.reason() {
            Some(_) => {}
            None => _ = self.reason.set(reason),
        }
        self.token.cancel();
    }

    /// Returns when the signal is given, with its reason.
    pub async fn cancelled(&self) -> CancelReason {
        self.token.cancelled().await;
        self.given()
    }

    /// The reason, once the signal is given.
    pub fn reason(&self) -> Option<CancelReason> {
        self.token.is_cancelled().then(|| self.given())
    }

    fn given(&self) -> CancelReason {
        let above = || self.above.as_ref().map_or(CancelReason::Client, |above| above.given());
        *self.reason.get_or_init(above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_reaches_those_below_it_with_its_reason_and_never_those_above() {
        let above = CancelSignal::new();
        let (one, other) = (above.child(), above.child());
        let below = one.child();
        one.cancel(CancelReason::Deadline);
        assert_eq!(below.reason(), Some(CancelReason::Deadline));
        assert_eq!((above.reason(), other.reason()), (None, None));
        above.cancel(CancelReason::Shutdown);
        one.cancel(CancelReason::Client);
        let late = above.child();
        late.cancel(CancelReason::Client);
        assert_eq!(late.reason(), Some(CancelReason::Shutdown), "the first reason stands");
        assert_eq!(other.child().reason(), Some(CancelReason::Shutdown), "also of one that comes later");
        assert_eq!((one.reason(), below.reason()), (Some(CancelReason::Deadline), Some(CancelReason::Deadline)));
    }
}
