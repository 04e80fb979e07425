//! `GET /events`: stream of events for the holder of a token.

use super::{
    call_response::pulse,
    event_stream::{ALIVE, EventStreamBody, body},
};
use bytes::Bytes;
use futures::stream;
use std::time::Duration;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;
use toolstead_application::{EventSubscription, ReceivedEvent};
use toolstead_infrastructure::http::sse::write_event;

/// Returns a stream of future events, one JSON object each, until `end` is cancelled.
pub(super) fn event_feed(events: EventSubscription, keep_alive: Duration, end: CancellationToken) -> EventStreamBody {
    let feed = EventFeed { events, alive: pulse(keep_alive), end };
    body(stream::unfold(feed, EventFeed::next))
}

struct EventFeed {
    events: EventSubscription,
    alive: Interval,
    end: CancellationToken,
}

impl EventFeed {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let heard = tokio::select! {
            biased;
            () = self.end.cancelled() => return None,
            heard = self.events.next() => heard?,
            _ = self.alive.tick() => return Some((ALIVE, self)),
        };
        Some((piece(&heard), self))
    }
}

fn piece(heard: &ReceivedEvent) -> Bytes {
    let mut piece = Vec::new();
    let id = match heard {
        ReceivedEvent::Event(event) => Some(event.id.to_string()),
        ReceivedEvent::Lost(_) => None,
    };
    write_event(&mut piece, id.as_deref(), heard.to_json().to_string().as_bytes());
    piece.into()
}
