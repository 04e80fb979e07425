//! The id of a message of which only the beginning and the end are left.

use toolstead_infrastructure::mcp::wire::message::Id;

/// What is left of an over-long message tells this.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LostMessage {
    /// A request, or something that may have been one; its id, if that was among what is left.
    Request(Option<Id>),
    /// An answer to a question of ours, or a notification: nobody waits for an answer to it.
    Unanswered,
}

/// Reads the members of the outermost object as far as they go. Some clients write the id last.
pub(super) fn read(beginning: &[u8], end: &[u8]) -> LostMessage {
    let mut members = Members { json: beginning, at: 0 };
    let (mut id, mut method, mut outcome) = (None, None, false);
    if members.skip_to(b'{').is_none() {
        return LostMessage::Request(None);
    }
    while let Some((name, value)) = members.next() {
        match name {
            b"id" => id = serde_json::from_slice(value).ok().and_then(|value| Id::from_value(&value)),
            b"method" => method = serde_json::from_slice::<String>(value).ok(),
            b"result" | b"error" => outcome = true,
            _ => {}
        }
    }
    // The member that did not end still counts by its name.
    outcome |= members.unfinished().is_some_and(|name| matches!(name, b"result" | b"error"));
    let is_notification = method.is_some_and(|method| method.starts_with("notifications/"));
    if outcome || is_notification { LostMessage::Unanswered } else { LostMessage::Request(id.or_else(|| last_id(end))) }
}

/// The id as the last member of the outermost object, `"jsonrpc"` aside. One of an inner object has more than one
/// bracket behind it, and so is no id.
fn last_id(end: &[u8]) -> Option<Id> {
    let members = end.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let members = members.strip_suffix(br#","jsonrpc":"2.0""#).unwrap_or(members);
    let name = br#""id""#;
    let at = members.windows(name.len()).rposition(|window| window == name)?;
    let value = members[at + name.len()..].trim_ascii_start().strip_prefix(b":")?;
    serde_json::from_slice(value).ok().and_then(|value| Id::from_value(&value))
}

/// Walks over the members of one object without building anything.
struct Members<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    /// The next member that is there as a whole: its name as written, without quotes, and its value.
    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let from = self.at;
        self.skip_to(b'"')
            .and_then(|()| {
                let name = self.string()?;
                self.skip_to(b':')?;
                let value = self.value()?;
                Some((name, value))
            })
            .or_else(|| {
                self.at = from;
                None
            })
    }

    /// The name of the member that began and did not end.
    fn unfinished(&mut self) -> Option<&'a [u8]> {
        self.skip_to(b'"')?;
        self.string()
    }

    /// Goes behind the next `wanted`, over blanks and commas alone.
    fn skip_to(&mut self, wanted: u8) -> Option<()> {
        while let Some(byte) = self.json.get(self.at) {
            self.at += 1;
            match byte {
                byte if *byte == wanted => return Some(()),
                b' ' | b'\t' | b'\r' | b'\n' | b',' => {}
                _ => return None,
            }
        }
        None
    }

    /// The rest of a text, behind its opening quote.
    fn string(&mut self) -> Option<&'a [u8]> {
        let from = self.at;
        while let Some(byte) = self.json.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return self.json.get(from..self.at - 1);
                }
                _ => self.at += 1,
            }
        }
        None
    }

    /// A value up to the comma or bracket behind it.
    fn value(&mut self) -> Option<&'a [u8]> {
        let from = self.at;
        let mut depth = 0_usize;
        while let Some(byte) = self.json.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                b',' | b'}' | b']' if depth == 0 => return self.json.get(from..self.at),
                _ => {}
            }
            self.at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(beginning: &str, expected: LostMessage) {
        assert_eq!(read(beginning.as_bytes(), b"xxx\"}}"), expected, "{beginning}");
    }

    fn request(id: impl Into<Option<Id>>) -> LostMessage {
        LostMessage::Request(id.into())
    }

    #[test]
    fn an_id_near_the_beginning_is_found() {
        check(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":"xxx"#, request(Id::Number(7)));
        check(r#" { "id" : "a\"b" , "params":{"id":9"#, request(Id::Text("a\"b".into())));
        check(r#"{"x":{"id":1,"y":["}"]},"id":-2,"params":"#, request(Id::Number(-2)));
        check(r#"{"params":{"id":1,"a":"xxxxx"#, request(None));
        check(r#"{"id":12345"#, request(None));
        check(r#"{"id":1.5,"method":"m","params":{"#, request(None));
        check("xxxx", request(None));
        check("", request(None));
    }

    #[test]
    fn an_id_at_the_end_is_found() {
        let read = |end: &str| read(br#"{"method":"tools/call","params":{"a":"xxx"#, end.as_bytes());
        assert_eq!(read(r#"xxx"},"jsonrpc":"2.0","id":7}"#), request(Id::Number(7)));
        assert_eq!(read(r#"xxx"}, "id" : "seven" , "jsonrpc":"2.0" } "#), request(None));
        assert_eq!(read(r#"xxx"},"id":"seven","jsonrpc":"2.0"}"#), request(Id::Text("seven".into())));
        for inner in [r#"xxx","id":7}}"#, r#"xxx","b":{"id":7}}}"#, r#"xxx"}}"#, ""] {
            assert_eq!(read(inner), request(None), "{inner}");
        }
    }

    #[test]
    fn nobody_waits_for_an_answer_to_an_answer_or_a_notification() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"a":"xxx"#, LostMessage::Unanswered);
        check(r#"{"jsonrpc":"2.0","id":7,"error":{"message":"xxx"#, LostMessage::Unanswered);
        check(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"xxx"#, LostMessage::Unanswered);
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in prop::collection::vec(prop::sample::select(br#"{}[]":,\ id1x"#.to_vec()), 0..64)) {
            read(&text, &text);
        }
    }
}
