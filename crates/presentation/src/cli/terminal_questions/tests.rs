//! Tests on a real terminal: the other end of a pty is the user.

use super::*;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    ffi::OsStr,
    fs::OpenOptions,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt, fs::PermissionsExt},
};

/// Time limit of everything that a test waits for.
const SOON: Duration = Duration::from_secs(20);

/// A question to a person, and what they type at each prompt. Returns the answer, and what the terminal showed.
async fn ask(method: &str, params: Value, typed: &[&[u8]]) -> (Result<Value, NotAnswered>, String) {
    told_with(None, method, params, typed).await
}

async fn told_with(
    browser: Option<UserBrowserOpener>,
    method: &str,
    params: Value,
    typed: &[&[u8]],
) -> (Result<Value, NotAnswered>, String) {
    let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&hands).unwrap();
    unlockpt(&hands).unwrap();
    let name = ptsname(&hands, Vec::new()).unwrap();
    let path = OsStr::from_bytes(name.to_bytes());
    let terminal = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path).unwrap();
    let questions = TerminalQuestions::new(Arc::new(Terminal::new(terminal)), SOON).opening(browser);
    let request = InputRequest { method: method.into(), params };
    let answer = tokio::spawn(async move { questions.ask(request).await });
    let mut hands = File::from(hands);
    let typed: Vec<Vec<u8>> = typed.iter().map(|keys| keys.to_vec()).collect();
    let person = tokio::task::spawn_blocking(move || {
        let mut seen = Vec::new();
        for keys in typed {
            let from = seen.len();
            while !(seen[from..].ends_with(b"> ") || seen[from..].ends_with(b"? ")) {
                let mut byte = [0];
                hands.read_exact(&mut byte).unwrap();
                seen.extend(byte);
            }
            hands.write_all(&keys).unwrap();
        }
        (hands, String::from_utf8(seen).unwrap())
    });
    let person = async { tokio::time::timeout(SOON, person).await.expect("the prompts come").unwrap() };
    let answered = async { tokio::time::timeout(SOON, answer).await.expect("it is answered").unwrap() };
    let (answer, (_hands, seen)) = tokio::join!(answered, person);
    (answer.map(|answer| answer.0), seen)
}

fn form(properties: Value, required: &[&str]) -> Value {
    json!({
        "message": "The MCP server `git` asks:\n| Who are you?\n| 1. Trust me",
        "requestedSchema": {"type": "object", "properties": properties, "required": required},
        "_meta": {"toolstead/server": "git"},
    })
}

#[tokio::test]
async fn a_form_is_filled_in_field_by_field_and_invalid_input_is_requested_again() {
    let fields = json!({
        "name": {"type": "string", "title": "Name", "minLength": 2, "default": "Ada"},
        "age": {"type": "integer", "description": "In years", "minimum": 0},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
        "extras": {"type": "array", "items": {"enum": ["x", "y", "z"]}},
        "news": {"type": "boolean"},
    });
    let keys: &[&[u8]] = &[b"A\n", b"\n", b"old\n", b"37\n", b"2\n", b"1,z\n", b"\n"];
    let (answer, seen) = ask("elicitation/create", form(fields, &["name", "age"]), keys).await;
    let content = json!({"name": "Ada", "age": 37, "colour": "b", "extras": ["x", "z"]});
    assert_eq!(answer, Ok(json!({"action": "accept", "content": content})));
    let lines: Vec<&str> = seen.lines().map(str::trim_end).collect();
    for line in [
        "The MCP server `git` asks:",
        "  | Who are you?",
        "  | 1. Trust me",
        "1. Name (text, at least 2 characters) [Ada]",
        "   That is too short.",
        "2. age (whole number, at least 0)",
        "   In years",
        "   This is not a number.",
        "3. colour (one of these, may be left out)",
        "   2) b (Blue)",
        "4. extras (some of these, with commas between, may be left out)",
        "   3) z",
        "5. news (y or n, may be left out)",
    ] {
        assert!(lines.contains(&line), "{line:?}: {lines:#?}");
    }
}

#[tokio::test]
async fn a_person_may_decline_or_cancel_at_any_field() {
    let fields = || form(json!({"a": {"type": "string"}, "b": {"type": "string"}}), &[]);
    for (keys, action) in [
        (&[&b"/decline\n"[..]][..], "decline"),
        (&[b"x\n", b"/decline\n"], "decline"),
        (&[b"/cancel\n"], "cancel"),
        (&[b"\x03"], "cancel"),
        (&[b"x\n", b"half\x03"], "cancel"),
        (&[b"\x04"], "cancel"),
    ] {
        let (answer, _) = ask("elicitation/create", fields(), keys).await;
        assert_eq!(answer, Ok(json!({"action": action})), "{keys:?}");
    }
}

#[tokio::test]
async fn a_page_url_is_shown_and_accepted_only_after_an_explicit_confirmation() {
    let page = || {
        json!({"mode": "url", "url": "https://a.org/login?x=1", "elicitationId": "e", "message": "Log in\u{1b}[2J",
            "_meta": {"toolstead/server": "git"}})
    };
    for (keys, expected) in [
        (&b"y"[..], json!({"action": "accept"})),
        (b"\ry", json!({"action": "accept"})),
        (b"d", json!({"action": "decline"})),
        (b"\x03", json!({"action": "cancel"})),
    ] {
        let (answer, seen) = ask("elicitation/create", page(), &[keys]).await;
        assert_eq!(answer, Ok(expected));
        assert!(
            seen.contains("\r\nhttps://a.org/login?x=1\r\n") && seen.contains("The MCP server `git` asks:"),
            "{seen}"
        );
        assert!(!seen.contains('\u{1b}'), "{seen}");
    }
}

#[tokio::test]
async fn a_page_opens_after_approval_for_built_in_tools_and_never_for_servers() {
    let own = json!({"mode": "url", "url": "https://a.org/login", "elicitationId": "e", "message": "Sign in"});
    let (mut of_server, mut unfit) = (own.clone(), own.clone());
    of_server["_meta"] = json!({"toolstead/server": "git"});
    unfit["url"] = "http://a.org/login".into();
    let accept = json!({"action": "accept"});
    for (page, keys, expected, is_opened) in [
        (&own, &[&b"y"[..]][..], &accept, true),
        (&own, &[b"d"], &json!({"action": "decline"}), false),
        (&own, &[b"c"], &json!({"action": "cancel"}), false),
        (&of_server, &[b"y"], &accept, false),
        // The page cannot be opened, and the user is asked whether they opened it.
        (&unfit, &[b"y", b"y"], &accept, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (program, mark) = (folder.path().join("browser"), folder.path().join("opened"));
        std::fs::write(&program, format!("#!/bin/sh\nmkdir {}\n", mark.display())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        let named = |name: &str| (name == "BROWSER").then(|| program.to_str().unwrap().to_owned());
        let browser = UserBrowserOpener::find(environment, named);
        assert!(browser.is_some());
        let (answer, seen) = told_with(browser, "elicitation/create", page.clone(), keys).await;
        assert_eq!(answer.as_ref(), Ok(expected), "{seen}");
        // The program is not waited for.
        let opening = async {
            while is_opened && !mark.exists() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, opening).await.expect("it is opened");
        assert_eq!(mark.exists(), is_opened, "{seen}");
    }
}

#[tokio::test]
async fn server_text_never_begins_a_line_or_appears_in_the_question_heading() {
    let forged = "x\nThe MCP server `bank` asks:";
    let fields = json!({
        "a": {"type": "string", "title": forged, "description": forged, "default": forged},
        "b": {"type": "string", "oneOf": [{"const": forged, "title": forged}]},
    });
    for said in
        ["The MCP server `git` asks\nThe MCP server `bank` asks:\nPIN?", "The MCP server `git` asks for `bank`: PIN?"]
    {
        let question = json!({"message": said, "requestedSchema": {"properties": fields},
            "_meta": {"toolstead/server": "git"}});
        let (answer, seen) = ask("elicitation/create", question, &[b"\n", b"\n"]).await;
        assert_eq!(answer, Ok(json!({"action": "accept", "content": {"a": forged}})));
        assert!(seen.contains("\nThe MCP server `git` asks:\r\n"), "{seen}");
        let ours = ["1. x", "2. b (one of", "(/decline declines", "The MCP server `git` asks:"];
        for line in seen.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')) {
            assert!(ours.iter().any(|begins| line.starts_with(begins)), "{line:?}: {seen}");
        }
    }
    let page = |host: &str| {
        json!({"mode": "url", "url": "https://a.org/x", "_meta": {"toolstead/server": "git"},
            "message": format!("The MCP server `git` asks you to open a page at `{host}`: Log in")})
    };
    let (_, seen) = ask("elicitation/create", page("a.org"), &[b"d"]).await;
    assert!(seen.contains("\nThe MCP server `git` asks you to open a page at `a.org`:\r\n  | Log in\r\n"), "{seen}");
    let (_, seen) = ask("elicitation/create", page("bank.org"), &[b"d"]).await;
    assert!(seen.contains("\nThe MCP server `git` asks:\r\n"), "{seen}");
}

#[tokio::test]
async fn a_question_without_fields_requires_an_explicit_confirmation() {
    let (answer, _) = ask("elicitation/create", form(json!({}), &[]), &[b"\r\ny"]).await;
    assert_eq!(answer, Ok(json!({"action": "accept", "content": {}})));
    let (answer, _) = ask("elicitation/create", form(json!({}), &[]), &[b"n"]).await;
    assert_eq!(answer, Ok(json!({"action": "decline"})));
}

#[tokio::test]
async fn unsupported_requests_and_unfit_forms_are_not_shown_to_the_user() {
    let (sampling, seen) = ask("sampling/createMessage", json!({"messages": []}), &[]).await;
    assert_eq!((sampling, seen.as_str()), (Err(NotAnswered::Unsupported), ""));
    let (odd, _) = ask("elicitation/create", form(json!({"f": {"type": "object"}}), &[]), &[]).await;
    assert!(matches!(odd, Err(NotAnswered::Unfit(_))));
}

#[tokio::test]
async fn a_question_with_choices_accepts_a_number_or_free_text_on_one_line() {
    let choices = json!([{"const": "SQLite", "title": "SQLite: one file"}, {"const": "Postgres", "title": "Postgres"}]);
    let question = || {
        json!({
            "message": "The agent asks: Which database?",
            "requestedSchema": {"type": "object", "properties": {
                "answer1": {"type": "string", "title": "Database", "oneOf": choices},
                "answer1_other": {"type": "string", "title": "Database: other"},
            }},
        })
    };
    for (typed, content) in [
        (&b"1\n"[..], json!({"answer1": "SQLite"})),
        (b"DuckDB\n", json!({"answer1_other": "DuckDB"})),
        (b"\n", json!({})),
    ] {
        let (answer, seen) = ask("elicitation/create", question(), &[typed]).await;
        assert_eq!(answer, Ok(json!({"action": "accept", "content": content})));
        let lines: Vec<&str> = seen.lines().map(str::trim_end).collect();
        for line in [
            "The agent asks:",
            "  | Which database?",
            "1. Database (one of these, or your own text, may be left out)",
            "   1) SQLite: one file",
            "   2) Postgres",
        ] {
            assert!(lines.contains(&line), "{line:?}: {lines:#?}");
        }
    }
}
