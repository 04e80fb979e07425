//! The port that events are sent to.

use crate::event::{EventKind, EventOrigin};

/// Receives events. It never blocks, never fails and never slows the sender: a slow subscriber loses events, and
/// receives their number.
///
/// ```
/// use toolstead_domain::{EventKind, EventOrigin, EventSink};
///
/// /// Prints the label of each event.
/// struct PrintedEvents;
///
/// impl EventSink for PrintedEvents {
///     fn is_watched(&self) -> bool {
///         true
///     }
///
///     fn send(&self, _: EventOrigin, kind: EventKind) {
///         println!("{}", kind.label());
///     }
/// }
/// ```
pub trait EventSink: Send + Sync {
    /// Returns `true` if there is a subscriber. Check this before building an event that is costly to build.
    fn is_watched(&self) -> bool;

    /// Sends an event. Without subscribers it is dropped.
    fn send(&self, origin: EventOrigin, kind: EventKind);
}

/// Sink without subscribers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn is_watched(&self) -> bool {
        false
    }

    fn send(&self, _: EventOrigin, _: EventKind) {}
}
