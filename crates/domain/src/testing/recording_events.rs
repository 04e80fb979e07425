//! An event sink that records all events.

use super::{lock, waitable_counter::WaitableCounter};
use crate::{
    event::{EventKind, EventOrigin},
    ports::event_sink::EventSink,
};
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

/// Sink that records every event while it is watched.
#[derive(Debug, Default)]
pub struct RecordingEvents {
    is_unwatched: AtomicBool,
    events: Mutex<Vec<(EventOrigin, EventKind)>>,
    published: WaitableCounter,
}

impl RecordingEvents {
    /// Creates a watched sink without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets if the sink is watched from now on.
    pub fn be_watched(&self, is_watched: bool) {
        self.is_unwatched.store(!is_watched, Ordering::SeqCst);
    }

    /// Returns the events, in the order in which they were sent.
    pub fn events(&self) -> Vec<(EventOrigin, EventKind)> {
        lock(&self.events).clone()
    }

    /// Returns the kinds of the events as words, in order.
    pub fn labels(&self) -> Vec<&'static str> {
        lock(&self.events).iter().map(|(_, kind)| kind.label()).collect()
    }

    /// Returns once this number of events was recorded.
    pub async fn wait_for_events(&self, events: u64) {
        self.published.reached(events).await;
    }
}

impl EventSink for RecordingEvents {
    fn is_watched(&self) -> bool {
        !self.is_unwatched.load(Ordering::SeqCst)
    }

    fn send(&self, origin: EventOrigin, kind: EventKind) {
        if self.is_watched() {
            lock(&self.events).push((origin, kind));
            self.published.raise();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on::block_on;

    #[test]
    fn events_are_recorded_in_order_only_while_the_sink_is_watched() {
        let sink = RecordingEvents::new();
        let changed = |version| EventKind::RegistryChanged { version, tools: 1 };
        for (version, is_watched) in [(1, true), (2, false), (3, true)] {
            sink.be_watched(is_watched);
            sink.send(EventOrigin::default(), changed(version));
        }
        block_on(sink.wait_for_events(2));
        assert_eq!(sink.events(), [1, 3].map(|version| (EventOrigin::default(), changed(version))));
    }
}
