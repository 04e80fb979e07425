use super::*;
use mail_parser::{MessageParser, MimeHeaders};
use proptest::prelude::*;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_772_366_400, 0).unwrap()
}

fn to(address: &str) -> Result<OutgoingMessage, OutgoingMessageError> {
    OutgoingMessage::new(&UncheckedMessage {
        to: &[address.to_owned()],
        subject: "Hi",
        body: "Hello",
        ..UncheckedMessage::default()
    })
}

fn raw(draft: &UncheckedMessage<'_>, original: Option<&OriginalMessage>) -> String {
    String::from_utf8(OutgoingMessage::new(draft).unwrap().raw(original, now())).unwrap()
}

/// The names of the headers of a raw message.
fn names(raw: &str) -> Vec<&str> {
    let (head, _) = raw.split_once("\r\n\r\n").unwrap();
    head.split("\r\n")
        .filter(|line| !line.starts_with([' ', '\t']))
        .map(|line| line.split(':').next().unwrap())
        .collect()
}

#[test]
fn common_address_formats_are_accepted_and_shown_with_the_real_host() {
    for (text, expected) in [
        ("ann@example.com", "ann@example.com; subject: Hi"),
        (" Ann Example <ann.e+x@mail.example.com> ", "ann.e+x@mail.example.com; subject: Hi"),
        (r#""Doe, \"J\"" <j@example.com>"#, "j@example.com; subject: Hi"),
        ("ann@EXAMPLE.com", "ann@example.com; subject: Hi"),
        ("ann@bücher.example", "ann@xn--bcher-kva.example; subject: Hi"),
        // Resembles `apple.example`.
        ("a@аpple.example", "a@xn--pple-43d.example; subject: Hi"),
    ] {
        assert_eq!(to(text).unwrap().to_string(), expected, "{text}");
    }
}

#[test]
fn rejects_invalid_mail_addresses() {
    for text in [
        "",
        "ann",
        "@example.com",
        "ann@",
        "ann@localhost",
        "ann@127.0.0.1",
        "ann@[127.0.0.1]",
        "ann@-x.example",
        "a b@example.com",
        "ann@example.com, bob@example.com",
        "ann@example.com;bob@example.com",
        "ann@exa mple.com",
        ".ann@example.com",
        "an..n@example.com",
        "\"a b\"@example.com",
        "änn@example.com",
        "ann@example.com>",
        "<ann@example.com",
        "ann@@example.com",
        "ann@example.com?bcc=x@example.com",
        "ann@example.com/x",
        "ann@a_b.example",
    ] {
        assert!(matches!(to(text), Err(OutgoingMessageError::Address { field: "to", .. })), "{text}: {:?}", to(text));
    }
    assert!(matches!(to(&format!("{}@example.com", "a".repeat(65))), Err(OutgoingMessageError::Address { .. })));
    assert!(matches!(
        to(&format!("a@{}example.com", "abcdefg.".repeat(40))),
        Err(OutgoingMessageError::Address { .. })
    ));
    assert_eq!(
        OutgoingMessage::new(&UncheckedMessage { subject: "x", ..UncheckedMessage::default() }),
        Err(OutgoingMessageError::NoRecipient)
    );
}

#[test]
fn a_line_break_in_a_header_is_refused() {
    let one = |address: &str| vec![address.to_owned()];
    let good = one("ann@example.com");
    for bad in ["\r\nBcc: eve@example.com", "\n", "\r", "\0", "\u{7f}", "\u{85}", "\u{2028}", "\u{1b}[0m"] {
        let address = one(&format!("Ann{bad} <ann@example.com>"));
        let behind = one(&format!("ann@example.com{bad}"));
        let subject = format!("Hi{bad}");
        for (draft, field) in [
            (UncheckedMessage { to: &address, ..UncheckedMessage::default() }, "to"),
            (UncheckedMessage { to: &behind, ..UncheckedMessage::default() }, "to"),
            (UncheckedMessage { to: &good, cc: &address, ..UncheckedMessage::default() }, "cc"),
            (UncheckedMessage { to: &good, bcc: &behind, ..UncheckedMessage::default() }, "bcc"),
            (UncheckedMessage { to: &good, subject: &subject, ..UncheckedMessage::default() }, "subject"),
        ] {
            assert_eq!(OutgoingMessage::new(&draft), Err(OutgoingMessageError::Control(field)), "{bad:?}");
        }
    }
    let draft = UncheckedMessage { to: &good, body: "a\0b", ..UncheckedMessage::default() };
    assert_eq!(OutgoingMessage::new(&draft), Err(OutgoingMessageError::ControlInText("body")));
    let draft = UncheckedMessage { to: &good, html: Some("\u{1b}"), ..UncheckedMessage::default() };
    assert_eq!(OutgoingMessage::new(&draft), Err(OutgoingMessageError::ControlInText("html")));
}

#[test]
fn a_sent_message_contains_all_fields_of_its_draft() {
    let (ann, bob, eve) =
        (["Ann <ann@example.com>".to_owned()], ["bob@example.com".to_owned()], ["eve@example.com".into()]);
    let draft = UncheckedMessage {
        to: &ann,
        cc: &bob,
        bcc: &eve,
        subject: "Grüße aus Köln",
        body: "Schöne Grüße\n.\nEnde",
        html: Some("<p>Schöne Grüße</p>"),
    };
    let raw = raw(&draft, None);
    assert!(raw.is_ascii(), "{raw}");
    assert!(raw.contains("MIME-Version: 1.0\r\n") && raw.contains("Date: Sun, 1 Mar 2026 12:00:00 +0000\r\n"), "{raw}");
    assert!(raw.contains("Subject: =?utf-8?"), "{raw}");
    assert!(raw.lines().all(|line| line.len() <= 998), "{raw}");
    let parsed = MessageParser::default().parse(&raw).unwrap();
    assert_eq!(parsed.subject(), Some("Grüße aus Köln"));
    assert_eq!(parsed.to().unwrap().first().unwrap().address.as_deref(), Some("ann@example.com"));
    assert_eq!(parsed.cc().unwrap().first().unwrap().address.as_deref(), Some("bob@example.com"));
    assert_eq!(parsed.bcc().unwrap().first().unwrap().address.as_deref(), Some("eve@example.com"));
    assert_eq!(parsed.content_type().unwrap().subtype(), Some("alternative"));
    assert_eq!(parsed.body_text(0).unwrap().replace("\r\n", "\n").trim_end(), "Schöne Grüße\n.\nEnde");
    assert_eq!(parsed.body_html(0).unwrap().trim_end(), "<p>Schöne Grüße</p>");
}

#[test]
fn a_reply_references_only_valid_message_ids_of_its_thread() {
    let to = ["ann@example.com".to_owned()];
    let draft = UncheckedMessage { to: &to, subject: "Re: Plan", body: "Yes", ..UncheckedMessage::default() };
    for (message_id, references, expected_to, expected_references) in [
        (
            "<m2@example.com>",
            "<m0@example.com>\r\n <m1@example.com>",
            Some("<m2@example.com>"),
            "<m0@example.com> <m1@example.com> <m2@example.com>",
        ),
        ("m2@example.com", "", None, ""),
        ("<m2@example.com\r\nBcc: eve@example.com>", "<m1@x>", None, ""),
        ("<a b@example.com>", "", None, ""),
        ("<m2@example.com>", "<\u{e9}@x> <m1@x\0> <m1@x>", Some("<m2@example.com>"), "<m1@x> <m2@example.com>"),
    ] {
        let original = OriginalMessage::of(Some("t1"), message_id, references);
        let raw = raw(&draft, Some(&original)).replace("\r\n ", " ").replace("\r\n\t", " ");
        let header = |name: &str| {
            let line = raw.lines().find(|line| line.starts_with(&format!("{name}: ")))?;
            Some(line[name.len() + 2..].split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(header("In-Reply-To").as_deref(), expected_to, "{message_id:?}");
        assert_eq!(header("References").unwrap_or_default(), expected_references, "{message_id:?}");
        assert!(!raw.contains("eve"), "{raw}");
    }
    let many: String = (0..100).map(|number| format!("<m{number}@x>")).collect();
    let original = OriginalMessage::of(None, "<last@x>", &many);
    assert_eq!((original.references.len(), original.references[0].as_str()), (REFERENCES, "m80@x"));
}

#[test]
fn rejects_messages_whose_recipients_and_subject_cannot_be_shown_in_full() {
    let many: Vec<String> =
        (0..50).map(|number| format!("somebody.with.a.long.name.{number}@mail.example.com")).collect();
    let draft = UncheckedMessage { to: &many, subject: "Hi", ..UncheckedMessage::default() };
    assert!(matches!(OutgoingMessage::new(&draft), Err(OutgoingMessageError::TooMuch(_))));
    let subject = "x".repeat(SHOWN_CHARACTERS);
    assert!(matches!(
        OutgoingMessage::new(&UncheckedMessage { subject: &subject, ..draft }),
        Err(OutgoingMessageError::TooMuch(_))
    ));
}

proptest! {
    #[test]
    fn no_text_adds_a_header(
        name in any::<String>(), subject in any::<String>(), body in any::<String>(), html in any::<Option<String>>()
    ) {
        let to = [format!("{name} <ann@example.com>")];
        let draft = UncheckedMessage { to: &to, subject: &subject, body: &body, html: html.as_deref(), ..UncheckedMessage::default() };
        if let Ok(mail) = OutgoingMessage::new(&draft) {
            prop_assert!(mail.to_string().starts_with("ann@example.com; subject: "));
            let raw = String::from_utf8(mail.raw(None, now())).unwrap();
            let known = ["Date", "To", "Subject", "Message-ID", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"];
            prop_assert!(names(&raw).iter().all(|name| known.contains(name)), "{}", raw);
            let parsed = MessageParser::default().parse(&raw).unwrap();
            prop_assert_eq!(parsed.to().unwrap().first().unwrap().address.as_deref(), Some("ann@example.com"));
            prop_assert_eq!(parsed.to().unwrap().iter().count(), 1);
        }
    }
}
