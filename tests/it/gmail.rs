//! Mail through the binaries, at a fake Google, with tokens in the vault.

use crate::{
    binaries::{Home, Pipe, node_path, node_program, peer, stderr, stdout},
    google_server::{CLIENT_ID, CLIENT_SECRET, GMAIL_READ, GMAIL_SEND, GoogleServer, Reply},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
};
use tokio::task::block_in_place;
use toolstead_domain::{Principal, Secret};
use toolstead_infrastructure::accounts::vault::{TokenLookupKey, Tokens, Vault};

const BOTH: &[&str] = &[GMAIL_READ, GMAIL_SEND];

/// A home whose user signed in at the fake Google.
struct Mail {
    home: Home,
    config: PathBuf,
    google: GoogleServer,
}

impl Mail {
    /// Signs in with these scopes, and with a valid or an invalid token.
    async fn signed_in(scopes: &[&str], counts: bool) -> Self {
        let google = GoogleServer::start().await;
        let home = Home::new();
        let url = google.url();
        let config = home.config(&format!(
            "[audit]\narguments = \"none\"\n[permissions]\nallow = [\"WebFetch(domain:127.0.0.1)\"]\n[google]\nclient_id = \"{CLIENT_ID}\"\nclient_secret_env = \"GOOGLE_CLIENT_SECRET\"\n\
             gmail_base_url = \"{url}\"\ncalendar_base_url = \"{url}\"\nauthorization_url = \"{url}/auth\"\n\
             token_url = \"{url}/token\"\nrevocation_url = \"{url}/revoke\"\n"
        ));
        let key_file = home.work().parent().unwrap().join("config/toolstead/secrets.key");
        let vault = Vault::open(home.data().join("toolstead/accounts"), key_file).unwrap();
        let refresh_token = google.refresh_token("me", scopes);
        let access_token = if counts { google.signed_in("me", scopes) } else { "ya29.old".into() };
        let tokens = Tokens {
            access_token: Secret::new(access_token),
            refresh_token: Some(Secret::new(refresh_token)),
            expires_at: None,
            scopes: BOTH.iter().map(ToString::to_string).collect(),
            registration: None,
        };
        let key =
            TokenLookupKey { principal: Principal::local(), issuer: url.into(), resource: format!("gmail {url}") };
        vault.put(&key, tokens).await.unwrap();
        Self { home, config, google }
    }

    fn toolstead(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.toolstead(arguments);
        command.arg("--config").arg(&self.config).env("GOOGLE_CLIENT_SECRET", CLIENT_SECRET).stdin(Stdio::null());
        command
    }

    /// Makes a call on the command line without a terminal, so that no approver is available.
    fn call(&self, dialect: &[&str], tool: &str, arguments: &Value) -> Output {
        let arguments = arguments.to_string();
        let words = [&["call"], dialect, &[tool, &arguments]].concat();
        let mut command = self.toolstead(&words);
        block_in_place(|| command.output().unwrap())
    }

    #[track_caller]
    fn says(&self, dialect: &[&str], tool: &str, arguments: &Value) -> String {
        let output = self.call(dialect, tool, arguments);
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        stdout(&output).trim_end().to_owned()
    }

    /// An MCP server whose client fills in forms.
    fn asked(&self, dialect: &[&str]) -> Pipe {
        let mut pipe = Pipe::start(self.toolstead(&[&["mcp"], dialect].concat()));
        let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"}}});
        pipe.send(opening.to_string());
        block_in_place(|| pipe.answer(0));
        pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        pipe
    }

    /// The last row of a tool, as JSON.
    fn row(&self, tool: &str) -> String {
        let said = |arguments: &[&str]| stdout(&block_in_place(|| self.toolstead(arguments).output().unwrap()));
        let list: Value = serde_json::from_str(&said(&["executions", "list", "--tool", tool, "--json"])).unwrap();
        said(&["executions", "show", list["executions"][0]["id"].as_str().unwrap(), "--json"])
    }

    fn sent(&self) -> usize {
        self.google.mailbox("me", |mailbox| mailbox.sent().len())
    }
}

fn letter() -> Value {
    json!({"to": ["ann@example.com"], "cc": ["Bob <bob@example.com>"], "subject": "Grüße", "body": "the secret word"})
}

/// The next question of a call, whose answer is given by the id that comes with it.
fn question(pipe: &mut Pipe, id: i64, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    pipe.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
    loop {
        let message = pipe.receive();
        if message["method"] == "elicitation/create" {
            return message;
        }
        assert!(message.get("id").is_none(), "{tool} was not asked about: {message}");
    }
}

fn answered(pipe: &mut Pipe, question: &Value, scope: &str, id: i64) -> Value {
    let result = json!({"action": "accept", "content": {"part_1": scope}});
    pipe.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": result}).to_string());
    pipe.answer(id)
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_mail_by_page_and_reads_a_message_with_one_token_renewal() {
    let mail = Mail::signed_in(BOTH, false).await;
    mail.google.mailbox("me", |mailbox| {
        for number in 1..=3 {
            let subject = format!("=?UTF-8?Q?Gr=C3=BC=C3=9Fe?= {number}");
            mailbox.add_text(
                &format!("m{number}"),
                "Ann <ann@example.com>",
                &subject,
                "Hi <you> & all",
                &["INBOX", "UNREAD"],
            );
        }
        mailbox.add_text("m4", "bob@example.com", "Other", "x", &["INBOX"]);
        mailbox.add_text("m5", "ann@example.com", "Buy", "x", &["SPAM"]);
    });
    let found = mail.says(&[], "gmail_search", &json!({"query": "from:ann is:unread", "max_results": 2}));
    assert!(found.contains("m1 (unread)\n  Date: Thu, 1 Jan 2026 10:00:00 +0000\n  From: Ann <ann@example.com>\n  Subject: Grüße 1\n  Begins: Hi <you> & all"), "{found}");
    assert!(found.contains("m2 (unread)") && !found.contains("m3") && found.contains("`page_token` \"2\""), "{found}");
    let rest =
        mail.says(&[], "gmail_search", &json!({"query": "from:ann is:unread", "max_results": 2, "page_token": "2"}));
    assert!(rest.contains("m3 (unread)") && !rest.contains("page_token"), "{rest}");
    assert_eq!(mail.says(&[], "gmail_search", &json!({"query": "from:nobody"})), "No messages were found.");
    let read = mail.says(&[], "gmail_read", &json!({"message_id": "m4"}));
    assert!(
        read.starts_with("From: bob@example.com\nTo: me@example.com\n") && read.ends_with("1 line follows.\n\nx"),
        "{read}"
    );
    assert_eq!(mail.google.seen_at("/token").len(), 1, "the first call renews for all");
    let gone = mail.call(&[], "gmail_read", &json!({"message_id": "nope"}));
    assert_eq!(gone.status.code(), Some(4), "{}", stderr(&gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn html_is_read_as_text_and_an_attachment_by_its_handle() {
    let mail = Mail::signed_in(BOTH, true).await;
    let data = |text: &str| json!({"size": text.len(), "data": URL_SAFE_NO_PAD.encode(text)});
    let html =
        "<style>p {}</style><p>Gr&uuml;&szlig;e,<br><a href='https://example.com/x'>look</a></p><script>x()</script>";
    let part = |mime: &str, text: &str| json!({"mimeType": mime, "filename": "", "headers": [], "body": data(text)});
    let both = json!({"mimeType": "multipart/alternative", "filename": "", "headers": [], "body": {"size": 0},
        "parts": [part("text/plain", "plain"), part("text/html", html)]});
    let attached = json!({"mimeType": "text/csv", "filename": "../plan.csv", "headers": [],
        "body": {"attachmentId": "A1", "size": 7}});
    mail.google.mailbox("me", |mailbox| {
        mailbox.add(json!({"id": "m1", "threadId": "t1", "labelIds": ["INBOX"], "payload": {"mimeType": "multipart/mixed",
            "filename": "", "headers": [{"name": "From", "value": "ann@example.com"}, {"name": "Subject", "value": "Plan"}],
            "body": {"size": 0}, "parts": [both, attached]}}));
        mailbox.attach("m1", "A1", b"a,b\n1,2");
    });
    let read = mail.says(&[], "gmail_read", &json!({"message_id": "m1", "include_attachments": "save"}));
    assert!(read.contains("Attachment: plan.csv (text/csv, 7 bytes, stored as `o1`)"), "{read}");
    assert!(read.ends_with("2 lines follow.\n\nGrüße,\nlook (https://example.com/x)"), "{read}");
    assert!(mail.says(&[], "read_file", &json!({"path": "o1"})).contains("1,2"));
    assert!(mail.says(&[], "gmail_read", &json!({"message_id": "m1", "format": "html"})).ends_with(html));
}

#[tokio::test(flavor = "multi_thread")]
async fn micro_x_calls_return_results_in_the_micro_x_format() {
    let mail = Mail::signed_in(BOTH, true).await;
    mail.google.mailbox("me", |mailbox| mailbox.add_text("m1", "ann@example.com", "Plan", "Hi & co", &["INBOX"]));
    let micro_x = &["--dialect", "micro_x"][..];
    assert_eq!(
        mail.says(micro_x, "gmail_search", &json!({"query": "is:inbox", "maxResults": 5})),
        "ID: m1\n  Date: Thu, 1 Jan 2026 10:00:00 +0000\n  From: ann@example.com\n  Subject: Plan\n  Snippet: Hi & co"
    );
    assert_eq!(
        mail.says(micro_x, "gmail_search", &json!({"query": "from:nobody"})),
        "No emails found matching your query."
    );
    assert_eq!(
        mail.says(micro_x, "gmail_read", &json!({"messageId": "m1"})),
        "From: ann@example.com\nTo: me@example.com\nDate: Thu, 1 Jan 2026 10:00:00 +0000\nSubject: Plan\n\nHi & co"
    );
    for (tool, arguments, begins) in [
        ("gmail_read", json!({"messageId": "m9"}), "Error reading email: "),
        ("gmail_search", json!({"query": 5, "maxResults": 0}), "Error searching Gmail: "),
        (
            "gmail_send",
            json!({"to": "a@example.com, b@example.com", "subject": "x", "body": "y"}),
            "Error sending email: ",
        ),
    ] {
        let output = mail.call(micro_x, tool, &arguments);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(!output.status.success() && said.contains(begins), "{said}");
    }
    assert_eq!(mail.sent(), 0, "nobody was there to be asked");

    let mut pipe = mail.asked(micro_x);
    let arguments = json!({"to": "a@example.com, B <b@example.com>", "subject": "Hi", "body": "Hello"});
    let answer = block_in_place(|| {
        let asked = question(&mut pipe, 1, "gmail_send", arguments);
        answered(&mut pipe, &asked, "once", 1)
    });
    assert_eq!(answer["result"]["content"][0]["text"], "Email sent successfully (ID: sent-1)", "{answer}");
    let sent = mail.google.mailbox("me", |mailbox| mailbox.sent());
    let to = sent[0].header("To").join("").replace(['<', '>', '"'], "");
    assert_eq!(to, "a@example.com, B b@example.com", "{}", sent[0].raw);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sent_message_requires_approval_that_shows_recipients_and_subject() {
    let mail = Mail::signed_in(BOTH, true).await;
    let mut pipe = mail.asked(&[]);
    block_in_place(|| {
        for id in 1..=2 {
            let asked = question(&mut pipe, id, "gmail_send", letter());
            let message = asked["params"]["message"].as_str().unwrap();
            let what = "1. send to `ann@example.com; cc: bob@example.com; subject: Grüße`";
            assert!(message.contains(what), "{message}");
            let choices = &asked["params"]["requestedSchema"]["properties"]["part_1"]["enum"];
            assert_eq!(*choices, json!(["deny", "once"]), "a yes holds once");
            let answer = answered(&mut pipe, &asked, "once", id);
            assert_eq!(answer["result"]["structuredContent"]["id"], format!("sent-{id}"), "{answer}");
        }
        // A batch asks as well, and a refusal sends nothing.
        let invocations = json!([{"tool_name": "gmail_send", "parameters": letter()}]);
        let asked = question(&mut pipe, 3, "batch", json!({"invocations": invocations}));
        assert!(asked["params"]["message"].as_str().unwrap().contains("called by the tool `batch`"), "{asked}");
        answered(&mut pipe, &asked, "deny", 3);
    });
    assert_eq!(mail.sent(), 2);
    let sent = mail.google.mailbox("me", |mailbox| mailbox.sent().remove(0));
    let (to, cc) = (sent.header("To").join(""), sent.header("Cc").join(""));
    assert!(to.contains("ann@example.com") && cc.contains("<bob@example.com>"), "{}", sent.raw);
    assert_eq!(sent.header("Bcc").len() + sent.header("From").len(), 0, "{:?}", sent.names());
    assert!(sent.body().contains("the secret word"), "{}", sent.raw);
    drop(pipe);
    let row = mail.row("gmail_send");
    assert!(!row.contains("ya29.") && !row.contains("the secret word"), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_control_characters_in_header_fields_and_sends_nothing() {
    let mail = Mail::signed_in(BOTH, true).await;
    for (name, value) in [
        ("subject", json!("Hi\r\nBcc: eve@example.com")),
        ("to", json!(["ann@example.com\r\nBcc: eve@example.com"])),
        ("cc", json!(["Bob\nBcc: eve@example.com <bob@example.com>"])),
        ("to", json!("ann@example.com\nBcc: eve@example.com")),
    ] {
        let mut arguments = letter();
        arguments[name] = value;
        let output = mail.call(&["--dialect", "micro_x"], "gmail_send", &arguments);
        assert!(!output.status.success(), "{}", stdout(&output));
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(said.contains("control character"), "{said}");
    }
    assert!(mail.google.seen().is_empty(), "{:?}", mail.google.seen());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_scope_suggests_signing_in_and_a_deny_rule_blocks_the_host() {
    let mail = Mail::signed_in(&[GMAIL_SEND], true).await;
    let output = mail.call(&[], "gmail_search", &json!({"query": "x"}));
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(!output.status.success() && said.contains("toolstead auth login google"), "{said}");
    let seen = mail.google.seen().len();
    let config = std::fs::read_to_string(&mail.config).unwrap();
    let denying = "\ndeny = [\"WebFetch(domain:127.0.0.1)\"]\n[google]";
    std::fs::write(&mail.config, config.replace("\n[google]", denying)).unwrap();
    let denied = mail.call(&[], "gmail_search", &json!({"query": "x"}));
    assert_eq!(denied.status.code(), Some(3), "{}", stderr(&denied));
    assert_eq!(mail.google.seen().len(), seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_is_retried_after_a_rate_limit_and_sending_is_never_retried() {
    let mail = Mail::signed_in(BOTH, true).await;
    mail.google.mailbox("me", |mailbox| mailbox.add_text("m1", "ann@example.com", "Plan", "Hi", &["INBOX"]));
    let busy = || Reply::error(429, "rateLimitExceeded", "RESOURCE_EXHAUSTED", "Too many").with("retry-after", "0");
    let list = "/gmail/v1/users/me/messages";
    mail.google.answer_next(list, busy());
    assert!(mail.says(&[], "gmail_search", &json!({"query": "plan"})).contains("m1"));
    assert_eq!(mail.google.seen_at(list).len(), 2);
    let send = "/gmail/v1/users/me/messages/send";
    mail.google.answer_next(send, Reply::error(503, "backendError", "UNAVAILABLE", "Try later"));
    let mut pipe = mail.asked(&[]);
    let answer = block_in_place(|| {
        let asked = question(&mut pipe, 1, "gmail_send", letter());
        answered(&mut pipe, &asked, "once", 1)
    });
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("may have been sent"), "{answer}");
    assert_eq!((mail.google.seen_at(send).len(), mail.sent()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_sent_only_after_a_real_client_approves() {
    let mail = Mail::signed_in(BOTH, true).await;
    for (number, (client, mode)) in (0..).zip([("client1.mjs", ""), ("client2.mjs", "2026-07-28")]) {
        for (scope, sent) in [("deny", number), ("once", number + 1)] {
            let mut command = mail.home.command(node_program("node"), &[]);
            command.arg(peer(client)).env("PATH", node_path()).env("MODE", mode).stdin(Stdio::null());
            command.arg(env!("CARGO_BIN_EXE_toolstead")).arg("mcp").arg("--config").arg(&mail.config);
            command
                .env("GOOGLE_CLIENT_SECRET", CLIENT_SECRET)
                .env("TOOL", "gmail_send")
                .env("ARGS", letter().to_string());
            command.env("ANSWER", json!({"part_1": scope}).to_string());
            let output = block_in_place(|| command.output().unwrap());
            assert!(output.status.success(), "{client}: {}", stderr(&output));
            assert_eq!(mail.sent(), sent, "{client} {scope}: {}", stdout(&output));
        }
    }
}
