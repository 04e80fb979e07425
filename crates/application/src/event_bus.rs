//! The event stream and its subscriptions.

use crate::redaction::redacted;
use std::sync::Arc;
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};
use toolstead_domain::{Clock, Event, EventKind, EventOrigin, EventSink, Principal};
use uuid::Uuid;

/// Maximum number of events that wait for a slow watcher, before it loses the oldest ones.
const KEPT_EVENTS: usize = 1024;

/// Sends every event to all watchers. Never waits. Without watchers, sending costs only the check of a counter.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::event_bus::EventBus;
/// use toolstead_domain::{
///     event::{EventKind, EventOrigin},
///     ports::event_sink::EventSink,
///     testing::{fixed_clock::FixedClock, samples::START},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let bus = EventBus::new(Arc::new(FixedClock::at(START)));
/// let mut events = bus.subscribe();
/// bus.send(EventOrigin::default(), EventKind::RegistryChanged { version: 2, tools: 7 });
/// assert!(events.next().await.is_some());
/// # }
/// ```
pub struct EventBus {
    sender: broadcast::Sender<Arc<Event>>,
    clock: Arc<dyn Clock>,
}

/// An item that a watcher receives.
#[derive(Debug, Clone, PartialEq)]
pub enum ReceivedEvent {
    /// An event.
    Event(Arc<Event>),
    /// The watcher was too slow and lost this number of events, counted over all principals.
    Lost(u64),
}

/// A subscription to the events. Dropping it ends the subscription.
#[derive(Debug)]
pub struct EventSubscription {
    receiver: broadcast::Receiver<Arc<Event>>,
    /// Principal whose events are received, besides those without a principal; `None`: those of all principals.
    principal: Option<Principal>,
}

impl EventBus {
    /// Creates a stream without watchers.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { sender: broadcast::Sender::new(KEPT_EVENTS), clock })
    }

    /// Subscribes to all events from now on.
    pub fn subscribe(&self) -> EventSubscription {
        EventSubscription { receiver: self.sender.subscribe(), principal: None }
    }

    /// Subscribes to the events of the principal, and to those without a principal.
    pub fn subscribe_as(&self, principal: Principal) -> EventSubscription {
        EventSubscription { receiver: self.sender.subscribe(), principal: Some(principal) }
    }
}

impl EventSink for EventBus {
    fn is_watched(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    fn send(&self, origin: EventOrigin, kind: EventKind) {
        if self.is_watched() {
            let kind = kind.with_texts(|text| redacted(&text).into_owned());
            let event = Event::new(Uuid::now_v7(), self.clock.now(), origin, kind);
            // Fails only if the last watcher has left meanwhile.
            let _ = self.sender.send(Arc::new(event));
        }
    }
}

impl EventSubscription {
    /// Returns the next item; `None` once the stream has ended.
    pub async fn next(&mut self) -> Option<ReceivedEvent> {
        loop {
            match self.receiver.recv().await {
                Ok(event) if self.accepts(&event) => return Some(ReceivedEvent::Event(event)),
                Ok(_) => {}
                Err(RecvError::Lagged(lost)) => return Some(ReceivedEvent::Lost(lost)),
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Returns the next item if one was sent already, without waiting.
    pub fn waiting(&mut self) -> Option<ReceivedEvent> {
        loop {
            match self.receiver.try_recv() {
                Ok(event) if self.accepts(&event) => return Some(ReceivedEvent::Event(event)),
                Ok(_) => {}
                Err(TryRecvError::Lagged(lost)) => return Some(ReceivedEvent::Lost(lost)),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    fn accepts(&self, event: &Event) -> bool {
        match (&self.principal, &event.origin.principal) {
            (Some(own), Some(owner)) => own == owner,
            (None, _) | (_, None) => true,
        }
    }
}

impl ReceivedEvent {
    /// Returns one JSON object: the event, or `{"type": "lost", "events": N}`.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Event(event) => event.to_json(),
            Self::Lost(events) => serde_json::json!({"type": "lost", "events": events}),
        }
    }
}

impl std::fmt::Debug for EventBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventBus").field("watchers", &self.sender.receiver_count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Timestamp, testing::fixed_clock::FixedClock};

    fn bus() -> Arc<EventBus> {
        EventBus::new(Arc::new(FixedClock::at(Timestamp(7))))
    }

    fn task(number: usize) -> EventKind {
        EventKind::TaskStarted { task: number.to_string(), title: "t".into() }
    }

    fn of(principal: &Principal) -> EventOrigin {
        EventOrigin { principal: Some(principal.clone()), ..Default::default() }
    }

    #[test]
    fn an_event_bus_without_subscribers_is_unwatched_and_retains_no_events() {
        let bus = bus();
        assert!(!bus.is_watched());
        bus.send(EventOrigin::default(), task(1));
        let mut watch = bus.subscribe();
        assert!(bus.is_watched());
        assert_eq!(watch.waiting(), None);
        drop(watch);
        assert!(!bus.is_watched());
    }

    #[tokio::test]
    async fn a_slow_subscriber_receives_the_number_of_lost_events_and_does_not_block_senders() {
        let bus = bus();
        let mut slow = bus.subscribe();
        for number in 0..KEPT_EVENTS + 5 {
            bus.send(EventOrigin::default(), task(number));
        }
        assert_eq!(slow.next().await, Some(ReceivedEvent::Lost(5)));
        let Some(ReceivedEvent::Event(event)) = slow.next().await else { panic!("the oldest that is left") };
        assert_eq!(event.kind, task(5));
        assert_eq!(ReceivedEvent::Lost(5).to_json(), serde_json::json!({"type": "lost", "events": 5}));
    }

    #[test]
    fn a_subscriber_of_one_principal_receives_its_events_and_events_without_a_principal() {
        let bus = bus();
        let (mine, other) = (Principal::token("mine"), Principal::token("other"));
        let mut watch = bus.subscribe_as(mine.clone());
        bus.send(of(&other), task(1));
        bus.send(of(&mine), task(2));
        bus.send(EventOrigin::default(), task(3));
        let mut heard = Vec::new();
        while let Some(ReceivedEvent::Event(event)) = watch.waiting() {
            heard.push(event.kind.clone());
        }
        assert_eq!(heard, [task(2), task(3)]);
    }
}
