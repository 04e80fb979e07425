//! Server-sent events (WHATWG HTML, "Server-sent events"), with limits while they are read.

use std::{collections::VecDeque, time::Duration};

/// A comment that prevents intermediaries from closing an idle stream.
pub const KEEP_ALIVE: &[u8] = b":\n\n";

/// Maximum number of bytes of an event id. After a longer one, there is no id to resume from.
const MAX_ID_BYTES: usize = 4 << 10;
/// Maximum time that a `retry` field may request.
const MAX_RETRY: Duration = Duration::from_secs(3600);

/// An event with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Type of the event; empty if the stream names none, which means `message`.
    pub event: String,
    /// Data: the lines joined by line feeds. Never empty. The reader has to check that it is UTF-8.
    pub data: Vec<u8>,
}

/// Decodes events from the bytes of a stream, in chunks of any size.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    /// Data of the event that is being read, each line followed by a line feed.
    data: Vec<u8>,
    event: String,
    ready: VecDeque<SseEvent>,
    last_event_id: Option<String>,
    retry: Option<Duration>,
    /// `true` if the last byte was a carriage return, so that a following line feed belongs to it.
    after_return: bool,
    at_start: bool,
}

/// An event longer than the limit of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {limit} bytes")]
pub struct EventTooLong {
    /// The limit, in bytes.
    pub limit: usize,
}

impl SseDecoder {
    /// Creates a decoder at the start of a stream; an event of more than `limit` bytes is an error.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            event: String::new(),
            ready: VecDeque::new(),
            last_event_id: None,
            retry: None,
            after_return: false,
            at_start: true,
        }
    }

    /// Decodes the next bytes of the stream. [`next_event`](Self::next_event) returns the events in them.
    ///
    /// # Errors
    /// [`EventTooLong`]; the stream cannot be read any further then.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), EventTooLong> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + self.data.len() + part.len() > self.limit {
                return Err(EventTooLong { limit: self.limit });
            }
            let Some(end) = end else {
                self.line.extend_from_slice(part);
                return Ok(());
            };
            self.after_return = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(part);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(part);
                self.take_line(&line);
            }
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// Returns the next complete event.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// Returns the id from which to resume when the stream breaks (`Last-Event-ID`).
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// Returns the time to wait before the stream is opened again, if the server has specified one.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn take_line(&mut self, line: &[u8]) {
        let line = match line.strip_prefix("\u{feff}".as_bytes()) {
            Some(rest) if self.at_start => rest,
            _ => line,
        };
        self.at_start = false;
        if line.is_empty() {
            self.end_event();
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.reserve(value.len() + 1);
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"id" if value.contains(&0) => {}
            b"id" => {
                let kept = (!value.is_empty() && value.len() <= MAX_ID_BYTES).then_some(value);
                self.last_event_id = kept.map(|value| String::from_utf8_lossy(value).into_owned());
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let milliseconds = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = milliseconds.map(|ms| Duration::from_millis(ms).min(MAX_RETRY)).or(self.retry);
            }
            // A comment, or a field that this version of the standard does not define.
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        let mut data = std::mem::take(&mut self.data);
        data.pop();
        // An event without data only changes the id.
        if !data.is_empty() {
            self.ready.push_back(SseEvent { event, data });
        }
    }
}

/// Appends an event of type `message`. Preserves line breaks in the data.
pub fn write_event(stream: &mut Vec<u8>, id: Option<&str>, data: &[u8]) {
    stream.reserve(data.len() + 64);
    write_id(stream, id);
    for line in data.split(|byte| *byte == b'\n') {
        stream.extend_from_slice(b"data: ");
        stream.extend_from_slice(line);
        stream.push(b'\n');
    }
    stream.push(b'\n');
}

/// Appends an event without data, with an id from which the client can resume, and the time that it waits before it
/// reconnects (MCP 2025-11-25, basic/transports, "Sending Messages to the Server", 6).
pub fn write_priming_event(stream: &mut Vec<u8>, id: &str, retry: Option<Duration>) {
    write_id(stream, Some(id));
    if let Some(retry) = retry {
        stream.extend_from_slice(format!("retry: {}\n", retry.as_millis()).as_bytes());
    }
    stream.extend_from_slice(b"data: \n\n");
}

fn write_id(stream: &mut Vec<u8>, id: Option<&str>) {
    if let Some(id) = id {
        stream.extend_from_slice(b"id: ");
        // A line break would end the field and begin another.
        stream.extend(id.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | 0)));
        stream.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]]) -> (Vec<(String, String)>, SseDecoder) {
        let mut decoder = SseDecoder::new(1 << 20);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk).unwrap();
            while let Some(SseEvent { event, data }) = decoder.next_event() {
                events.push((event, String::from_utf8(data).unwrap()));
            }
        }
        (events, decoder)
    }

    #[track_caller]
    fn check(stream: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(event, data)| ((*event).into(), (*data).into())).collect();
        assert_eq!(decode(&[stream.as_bytes()]).0, expected, "whole: {stream:?}");
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(decode(&bytes).0, expected, "byte by byte: {stream:?}");
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        check("data: a\n\n", &[("", "a")]);
        check("data:a\r\n\r\ndata: b\r\rdata:  c\n\n", &[("", "a"), ("", "b"), ("", " c")]);
        check("event: endpoint\ndata: /x\n\ndata: y\n\n", &[("endpoint", "/x"), ("", "y")]);
        check("data: a\ndata\ndata: b\n\n", &[("", "a\n\nb")]);
        check(":comment\n\n\nfoo: bar\ndata: a\n\n", &[("", "a")]);
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[("", "a")]);
        check("data\n\nid: 7\n\nevent: x\n\ndata: cut off", &[]);
    }

    #[test]
    fn event_id_and_retry_time_persist_after_their_event() {
        let (events, decoder) = decode(&[b"id: 1\ndata: a\n\nid: 2\nretry: 500\ndata: \n\nretry: soon\nid: \0\n\n"]);
        assert_eq!(events.len(), 1);
        assert_eq!((decoder.last_event_id(), decoder.retry()), (Some("2"), Some(Duration::from_millis(500))));
        let (_, decoder) = decode(&[b"id: 1\nid\nretry: 99999999999999999999\nretry: 999999999999\n\n"]);
        assert_eq!((decoder.last_event_id(), decoder.retry()), (None, Some(MAX_RETRY)));
    }

    #[test]
    fn an_event_over_the_limit_is_rejected_before_it_is_buffered() {
        for endless in ["x", "data: x", "data: x\n", "event: x", ":x"] {
            let mut decoder = SseDecoder::new(1000);
            let pushes = (0..2000).find(|_| decoder.push(endless.as_bytes()).is_err());
            assert!(pushes.is_some(), "{endless:?}");
            assert!(decoder.line.len() + decoder.data.len() <= 1000);
        }
    }

    #[test]
    fn a_priming_event_sets_the_event_id_and_yields_no_event() {
        let mut stream = Vec::new();
        write_priming_event(&mut stream, "a\nid: b", Some(Duration::from_millis(250)));
        let (events, decoder) = decode(&[&stream]);
        assert_eq!((events.len(), decoder.last_event_id()), (0, Some("aid: b")));
        assert_eq!(decoder.retry(), Some(Duration::from_millis(250)));
    }

    proptest! {
        #[test]
        fn a_written_event_is_decoded_from_any_division_into_chunks(
            data in "[^\r]{1,200}",
            cuts in proptest::collection::vec(1_usize..40, 0..20),
        ) {
            let mut stream = Vec::new();
            write_event(&mut stream, Some("1"), data.as_bytes());
            let mut rest = stream.as_slice();
            let mut chunks = Vec::new();
            for cut in cuts {
                let (chunk, after) = rest.split_at(cut.min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            chunks.push(rest);
            prop_assert_eq!(decode(&chunks).0, vec![(String::new(), data)]);
        }
    }
}
