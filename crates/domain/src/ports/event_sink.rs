//! The place that events go to.

use crate::event::{EventKind, EventOrigin};

/// Takes events. It never blocks, never fails and never slows whoever sends: a watcher that is slow loses events, and is
/// told how many.
pub trait EventSink: Send + Sync {
    /// Tells whether anybody watches. Whoever would have to work for an event asks first.
    fn is_watched(&self) -> bool;

    /// Sends an event; without anybody who watches it is dropped.
    fn send(&self, origin: EventOrigin, kind: EventKind);
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn is_watched(&self) -> bool {
        false
    }

    fn send(&self, _: EventOrigin, _: EventKind) {}
}
