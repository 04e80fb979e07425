use super::*;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::{Map, json};

fn part(mime: &str, name: &str, headers: &[(&str, &str)], text: impl AsRef<[u8]>) -> Value {
    let headers: Vec<Value> = headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let data = URL_SAFE_NO_PAD.encode(text.as_ref());
    json!({"mimeType": mime, "filename": name, "headers": headers, "body": {"size": text.as_ref().len(), "data": data}})
}

fn plain(text: &str) -> Value {
    part("text/plain", "", &[("Content-Type", "text/plain; charset=\"UTF-8\"")], text)
}

fn html(text: &str) -> Value {
    part("text/html", "", &[("Content-Type", "text/html; charset=\"UTF-8\"")], text)
}

fn many(mime: &str, parts: Vec<Value>) -> Value {
    json!({"mimeType": mime, "filename": "", "headers": [], "body": {"size": 0}, "parts": parts})
}

fn of(payload: Value) -> DecodedMailMessage {
    DecodedMailMessage::of(&json!({"id": "m1", "threadId": "t1", "payload": payload}))
}

/// The pieces, as `text:…`, `html:…` and `forwarded:subject`.
fn lines_of(message: &DecodedMailMessage) -> Vec<String> {
    let text = |content: &PartContentSource| match content {
        PartContentSource::Here { bytes, .. } => content.text(bytes),
        PartContentSource::Elsewhere { id, .. } => format!("at {id}"),
    };
    let piece = |piece: &BodyPiece| match piece {
        BodyPiece::Text(content) => format!("text:{}", text(content)),
        BodyPiece::Html(content) => format!("html:{}", text(content)),
        BodyPiece::Forwarded(heading) => format!("forwarded:{}", heading.subject),
    };
    message.body.iter().map(piece).collect()
}

#[track_caller]
fn check(payload: Value, expected: &[&str]) {
    assert_eq!(lines_of(&of(payload)), expected);
}

#[test]
fn the_body_of_a_message_is_its_richest_alternative() {
    check(plain("Hello"), &["text:Hello"]);
    check(html("<p>x"), &["html:<p>x"]);
    check(many("multipart/alternative", vec![plain("p"), html("h")]), &["html:h"]);
    check(many("multipart/alternative", vec![html("1"), plain("p"), html("2")]), &["html:2"]);
    let related = many("multipart/related", vec![html("h"), part("image/png", "", &[], "png")]);
    check(many("multipart/alternative", vec![plain("p"), related.clone()]), &["html:h"]);
    check(many("multipart/alternative", vec![plain("p"), many("multipart/mixed", vec![])]), &["text:p"]);
    check(many("multipart/alternative", vec![plain("1"), plain("2")]), &["text:1"]);
    check(
        many("multipart/mixed", vec![plain("1"), many("multipart/alternative", vec![plain("p"), related]), html("2")]),
        &["text:1", "html:h", "html:2"],
    );
    check(many("multipart/mixed", vec![]), &[]);
    check(json!({"mimeType": "text/plain", "body": {"size": 0}}), &[]);
    check(Value::Null, &[]);
    let far = json!({"mimeType": "text/plain", "filename": "", "body": {"attachmentId": "A1", "size": 9_000_000}});
    check(many("multipart/mixed", vec![far]), &["text:at A1"]);
}

#[test]
fn attachment_names_are_decoded_and_contain_no_path() {
    let attached = |name: &str, id: &str| json!({"mimeType": "application/pdf", "filename": name, "body": {"attachmentId": id, "size": 15000}});
    for (name, expected) in [
        ("plan.pdf", "plan.pdf"),
        ("../../.ssh/authorized_keys", "authorized_keys"),
        ("C:\\Windows\\x.exe", "x.exe"),
        ("..", ""),
        (".bashrc", "bashrc"),
        ("a\r\nSubject: b.pdf", "a Subject: b.pdf"),
        ("=?UTF-8?B?UGzDpG4ucGRm?=", "Plän.pdf"),
    ] {
        let message = of(many("multipart/mixed", vec![plain("x"), attached(name, "A-1_=")]));
        let [attachment] = &message.attachments[..] else { panic!("{:?}", message.attachments) };
        assert_eq!((attachment.name.as_str(), attachment.size), (expected, 15000), "{name:?}");
        assert_eq!(attachment.content.id(), Some("A-1_="));
    }
    // An id that leads elsewhere is invalid, and a text with a name is an attachment.
    let elsewhere = attached("x.pdf", "../../profile");
    let text = part("text/plain", "notes.txt", &[], "notes");
    let disposed = part("text/html", "", &[("content-disposition", "ATTACHMENT; filename=x")], "<p>");
    let message = of(many("multipart/mixed", vec![elsewhere, text, disposed]));
    let names: Vec<&str> = message.attachments.iter().map(|one| one.name.as_str()).collect();
    assert_eq!((names, message.body), (vec!["notes.txt", ""], vec![]));
    for (said, expected) in [
        ("IMAGE/png", "image/png"),
        ("text/plain; x=y\r\nA: b", "application/octet-stream"),
        ("", "application/octet-stream"),
    ] {
        assert_eq!(mime(said), expected);
    }
}

#[test]
fn decodes_character_sets_and_base64_without_padding() {
    for (charset, bytes, expected) in [
        ("iso-8859-1", &b"Gr\xfc\xdfe"[..], "Grüße"),
        ("\"windows-1251\"", b"\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"),
        ("iso-2022-jp", b"\x1b$B$3$s\x1b(B", "こん"),
        ("utf-8", b"a\xffb", "a\u{fffd}b"),
        ("unheard-of", "ä".as_bytes(), "ä"),
        // The tools remove invisible characters, and report their number.
        ("us-ascii", b"a\r\nb\x1b[1m", "a\nb\u{1b}[1m"),
    ] {
        let kind = format!("text/plain; charset={charset}");
        let message = of(part("text/plain", "", &[("content-type", &kind)], bytes));
        assert_eq!(lines_of(&message), [format!("text:{expected}")], "{charset}");
    }
    for text in ["", "a", "ab", "abc", "Hello?>"] {
        assert_eq!(decoded(&URL_SAFE.encode(text)).unwrap(), text.as_bytes());
        assert_eq!(decoded(&URL_SAFE_NO_PAD.encode(text)).unwrap(), text.as_bytes());
    }
    assert_eq!(decoded("+/=!"), None);
}

#[test]
fn headings_are_decoded_and_in_one_line() {
    let headers = json!([
        {"name": "from", "value": "=?UTF-8?Q?J=C3=B6rg?= <j@example.com>"},
        {"name": "From", "value": "second@example.com"},
        {"name": "To", "value": "\"Doe, Jane\" <jane@example.com>, bob@example.com,\r\n carl@example.com"},
        {"name": "Subject", "value": "=?ISO-8859-1?Q?Gr=FC=DFe?=\r\n =?gb2312?B?xOO6ww==?="},
        {"name": "Date", "value": "Thu, 1 Jan 2026 10:00:00 +0000"}]);
    let message = of(json!({"mimeType": "text/plain", "headers": headers}));
    let MessageHeaders { from, to, cc, date, subject } = message.heading;
    assert_eq!(from, "Jörg <j@example.com>");
    assert_eq!(to, ["\"Doe, Jane\" <jane@example.com>", "bob@example.com", "carl@example.com"]);
    assert_eq!((cc.len(), date.as_str()), (0, "Thu, 1 Jan 2026 10:00:00 +0000"));
    assert_eq!(subject, "Grüße你好");
    // An encoded name cannot pass for an address, nor a subject for another header.
    let headers = json!([
        {"name": "From", "value": "=?UTF-8?Q?boss=40good=2Eexample_=3Cboss=40good=2Eexample=3E?= <eve@example.com>"},
        {"name": "Subject", "value": "=?UTF-8?Q?Hi=0D=0AFrom:_boss=40good=2Eexample?="}]);
    let message = DecodedMailMessage::of(&json!({"internalDate": "1767261600000", "payload": {"headers": headers}}));
    assert_eq!(message.heading.from, "\"boss@good.example <boss@good.example>\" <eve@example.com>");
    assert_eq!(message.heading.subject, "Hi From: boss@good.example");
    assert_eq!(message.heading.date, "2026-01-01T10:00:00Z");
}

#[test]
fn forwarded_messages_are_read_at_their_position() {
    let inner = json!({"mimeType": "message/rfc822", "filename": "", "headers": [{"name": "Subject", "value": "Inner"}],
        "body": {"size": 0}, "parts": [many("multipart/mixed", vec![plain("within"), part("image/png", "a.png", &[], "x")])]});
    let message = of(many("multipart/mixed", vec![plain("outer"), inner, plain("end")]));
    assert_eq!(lines_of(&message), ["text:outer", "forwarded:Inner", "text:within", "text:end"]);
    assert_eq!(message.attachments[0].name, "a.png");

    let deepest = "Subject: deepest\r\n\r\nbottom";
    let raw = format!(
        "From: Ann <ann@example.com>\r\nSubject: =?UTF-8?Q?R=C3=A4w?=\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/html; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>=FC\r\n\
         --b\r\nContent-Type: application/pdf; name=\"../x.pdf\"\r\n\r\nPDF\r\n\
         --b\r\nContent-Type: message/rfc822\r\n\r\n{deepest}\r\n--b--\r\n"
    );
    let message = of(many("multipart/mixed", vec![part("message/rfc822", "mail.eml", &[], &raw)]));
    assert_eq!(lines_of(&message), ["forwarded:Räw", "html:<p>ü", "forwarded:deepest", "text:bottom"]);
    let names: Vec<&str> = message.attachments.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["mail.eml", "x.pdf"]);
}

#[test]
fn hostile_structures_are_bounded() {
    let wide = many("multipart/mixed", (0..2_000).map(|_| plain("x")).collect());
    let message = of(wide);
    assert_eq!((message.body.len(), message.notes.len()), (PARTS - 1, 1));
    let attached = (0..300).map(|_| part("image/png", "a.png", &[], "x")).collect();
    let message = of(many("multipart/mixed", attached));
    assert_eq!((message.attachments.len(), message.notes.len()), (ATTACHMENTS, 1));
    let mut deep = plain("bottom");
    for _ in 0..10_000 {
        let mut level = Map::new();
        level.insert("mimeType".into(), "multipart/mixed".into());
        level.insert("parts".into(), Value::Array(vec![deep]));
        deep = Value::Object(level);
    }
    let mut resource = Map::new();
    resource.insert("payload".into(), deep);
    let resource = Value::Object(resource);
    assert_eq!(DecodedMailMessage::of(&resource).body, []);
    // Dropping a value of this depth would need as many stack frames.
    std::mem::forget(resource);
    // With as many levels as fit into the bytes, under names that the parser treats alike, the levels are not dropped
    // recursively.
    for level in ["Content-Type: message/rfc822\r\n\r\n", "conTENT -type: message/rfc822\r\n\r\n"] {
        let message = of(part("message/rfc822", "deep.eml", &[], level.repeat(50_000)));
        assert_eq!((message.body.len(), message.attachments.len()), (0, 1), "{level}");
    }
}

proptest! {
    #[test]
    fn message_fields_contain_no_control_characters(value in any::<String>()) {
        let headers: Vec<Value> =
            ["From", "To", "Cc", "Subject", "Date"].iter().map(|name| json!({"name": name, "value": value})).collect();
        let resource = json!({"id": value, "threadId": value, "labelIds": [value], "payload":
            {"mimeType": value, "headers": headers, "parts": [{"mimeType": value, "filename": value,
                "body": {"attachmentId": "A", "size": 1}}]}});
        let DecodedMailMessage { id, thread_id, labels, heading, attachments, .. } = DecodedMailMessage::of(&resource);
        let mut lines = vec![id, thread_id, heading.from, heading.date, heading.subject];
        lines.extend(labels.into_iter().chain(heading.to).chain(heading.cc));
        lines.extend(attachments.into_iter().flat_map(|one| [one.name, one.mime]));
        for line in lines {
            prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
        }
    }
}
