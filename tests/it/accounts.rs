//! Signing in to services through the binaries: at a terminal, by a client, and at a real issuer.

use crate::{
    binaries::{Home, Pipe, kill, node_path, node_program, peer, python_program, stderr, stdout},
    google_server::{CALENDAR, CLIENT_ID, CLIENT_SECRET, GMAIL_READ, GMAIL_SEND, GoogleServer},
    web_server::{Reply, TestServer},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::task::block_in_place;
use toolstead_domain::{Credentials, Principal, Secret, ports::credentials::ProtectedResource};
use toolstead_infrastructure::{
    accounts::{
        credentials::{AccountsParts, OAuthAccounts},
        grant::GMAIL,
        oauth_client::OAuthClient,
        vault::Vault,
    },
    egress::{connector::SystemNetwork, host::HostPatterns},
    system_clock::SystemClock,
    web::web_client::WebClient,
};
use url::Url;

/// A home whose configuration names this issuer.
struct Place {
    home: Home,
    config: PathBuf,
}

impl Place {
    fn at(base: &str) -> Self {
        Self::with(&format!("{base}/auth"), &format!("{base}/token"), &format!("{base}/revoke"), base)
    }

    fn with(page: &str, tokens: &str, revocation: &str, api: &str) -> Self {
        let home = Home::new();
        let config = home.config(&format!(
            "[permissions]\nallow = [\"WebFetch(domain:127.0.0.1)\"]\n[google]\nclient_id = {CLIENT_ID:?}\n\
             client_secret_env = \"GOOGLE_CLIENT_SECRET\"\nauthorization_url = {page:?}\n\
             token_url = {tokens:?}\nrevocation_url = {revocation:?}\n\
             gmail_base_url = {api:?}\ncalendar_base_url = {api:?}\n"
        ));
        Self { home, config }
    }

    /// `toolstead ARGUMENTS…`, without a terminal.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command =
            self.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead"), "--config"]);
        command.arg(&self.config).args(arguments).env("GOOGLE_CLIENT_SECRET", CLIENT_SECRET).stdin(Stdio::null());
        command
    }

    /// Returns the output of a command that exits with this code.
    #[track_caller]
    fn printed(&self, arguments: &[&str], code: i32) -> String {
        output_of(&mut self.command(arguments), code)
    }

    fn grants(&self) -> Vec<String> {
        let listed: Value = serde_json::from_str(&self.printed(&["auth", "status", "--json"], 0)).unwrap();
        let listed = listed["accounts"].as_array().unwrap();
        listed.iter().map(|one| one["grant"].as_str().unwrap().to_owned()).collect()
    }

    /// Starts a sign-in whose answer is pasted.
    fn pasting(&self) -> Pasting {
        self.pasting_for(&["--grant", "gmail"])
    }

    fn pasting_for(&self, grants: &[&str]) -> Pasting {
        // Without `setsid`, so that the process is its own.
        let mut command = self.home.toolstead(&["--config", self.config.to_str().unwrap(), "auth", "login", "google"]);
        command.args(grants).arg("--no-browser").env("GOOGLE_CLIENT_SECRET", CLIENT_SECRET);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let page = lines.find_map(|line| Url::parse(&line.unwrap()).ok().filter(|url| url.has_host())).unwrap();
        Pasting { child, page, lines: Box::new(lines.map(Result::unwrap)) }
    }

    /// No file below the data folder holds any of these in clear.
    #[track_caller]
    fn check_holds_none(&self, secrets: &[&str]) {
        fn look(folder: &Path, secrets: &[&str], files: &mut usize) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    look(&path, secrets, files);
                    continue;
                }
                *files += 1;
                let bytes = std::fs::read(&path).unwrap();
                for secret in secrets {
                    let holds = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
                    assert!(!holds, "{secret} stands in {}", path.display());
                }
            }
        }
        let mut files = 0;
        look(&self.home.data(), secrets, &mut files);
        assert!(files > 0);
    }
}

#[track_caller]
fn output_of(command: &mut Command, code: i32) -> String {
    let output: Output = block_in_place(|| command.output().unwrap());
    assert_eq!(output.status.code(), Some(code), "{} {}", stdout(&output), stderr(&output));
    check_no_secret(&(stdout(&output) + &stderr(&output)));
    stdout(&output)
}

/// Nothing that is printed shows a token, a code or this program's word.
#[track_caller]
fn check_no_secret(text: &str) {
    for secret in [CLIENT_SECRET, "ya29.", "1//refresh", "4/code", "4%2Fcode"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

struct Pasting {
    child: Child,
    page: Url,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Pasting {
    fn parameter(&self, name: &str) -> String {
        self.page.query_pairs().find(|(own, _)| own == name).unwrap().1.into_owned()
    }

    /// The code that a user gets on the page.
    fn code(&self, google: &GoogleServer, scopes: &[&str]) -> String {
        google.code("ada", scopes, &self.parameter("redirect_uri"), Some(&self.parameter("code_challenge")))
    }

    fn paste(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The exit code, and all that was printed.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut printed: String = self.lines.map(|line| line + "\n").collect();
        self.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        (self.child.wait().unwrap().code(), printed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_signs_in_by_pasting_the_redirect_address_and_signs_out() {
    let google = GoogleServer::start().await;
    let place = Place::at(google.url());
    block_in_place(|| {
        let mut pasting = place.pasting();
        let code = pasting.code(&google, &[GMAIL_READ, GMAIL_SEND]);
        let (back, state) = (pasting.parameter("redirect_uri"), pasting.parameter("state"));
        pasting.paste(&format!("{back}/?state=other&code={code}"));
        let again = pasting.lines.find(|line| line.contains("not the response")).unwrap();
        assert!(again.contains("its state belongs to another sign-in"), "{again}");
        pasting.paste(&format!("{back}/?state={state}&code={code}&scope=x"));
        let (exit, printed) = pasting.end();
        assert_eq!(exit, Some(0), "{printed}");
        assert!(printed.contains("Signed in: gmail"), "{printed}");
        check_no_secret(&printed);
        assert_eq!(place.grants(), ["gmail"]);
        place.printed(&["call", "gmail_search", r#"{"query": "is:unread"}"#], 0);
        // Another access token is got where the first one does not count any more.
        google.expire_access_tokens();
        place.printed(&["call", "gmail_search", r#"{"query": "is:unread"}"#], 0);
        place.check_holds_none(&["ya29.", "1//refresh", "4/code", "4%2Fcode", CLIENT_SECRET, &state]);
        let out = place.printed(&["auth", "logout", "google"], 0);
        assert!(out.contains("gmail: signed out") && out.contains("calendar: was not signed in"), "{out}");
        assert_eq!(google.seen_at("/revoke").len(), 1);
        assert_eq!(place.grants(), [""; 0]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_in_for_two_grants_reads_one_pasted_code_per_page() {
    let google = GoogleServer::start().await;
    let place = Place::at(google.url());
    block_in_place(|| {
        let mut pasting = place.pasting_for(&[]);
        let code = pasting.code(&google, &[GMAIL_READ, GMAIL_SEND]);
        pasting.paste(&code);
        let page = |line: String| Url::parse(&line).ok().filter(|url| url.has_host());
        pasting.page = pasting.lines.find_map(page).unwrap();
        let code = pasting.code(&google, &[CALENDAR]);
        pasting.paste(&code);
        let (exit, printed) = pasting.end();
        assert_eq!(exit, Some(0), "{printed}");
        assert_eq!(place.grants(), ["calendar", "gmail"]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_deletes_the_tokens_and_exits_with_1_if_revocation_fails() {
    let google = GoogleServer::start().await;
    let place = Place::at(google.url());
    block_in_place(|| {
        let mut pasting = place.pasting();
        let code = pasting.code(&google, &[GMAIL_READ, GMAIL_SEND]);
        pasting.paste(&code);
        assert_eq!(pasting.end().0, Some(0));
        let gone = Place { home: place.home, config: place.config.clone() };
        let text = std::fs::read_to_string(&place.config).unwrap().replace("/revoke", "/gone");
        std::fs::write(&gone.config, text).unwrap();
        let out = gone.printed(&["auth", "logout", "google", "--grant", "gmail"], 1);
        assert!(out.contains("signed out here, but"), "{out}");
        assert_eq!(gone.grants(), [""; 0]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_revokes_tokens_of_an_earlier_address_and_lists_unreadable_ones() {
    let google = GoogleServer::start().await;
    let place = Place::at(google.url());
    block_in_place(|| {
        let mut pasting = place.pasting();
        let code = pasting.code(&google, &[GMAIL_READ, GMAIL_SEND]);
        pasting.paste(&code);
        assert_eq!(pasting.end().0, Some(0));
        let text = std::fs::read_to_string(&place.config).unwrap();
        let moved =
            text.replace(&format!("gmail_base_url = {:?}", google.url()), "gmail_base_url = \"http://127.0.0.1:1\"");
        assert_ne!(moved, text);
        std::fs::write(&place.config, moved).unwrap();
        let broken = place.home.data().join(format!("toolstead/accounts/{}.sealed", "0".repeat(32)));
        std::fs::write(&broken, "{}").unwrap();
        let out = place.printed(&["auth", "status"], 1);
        assert!(out.contains(google.url()) && out.contains(broken.to_str().unwrap()), "{out}");
        let out = place.printed(&["auth", "logout", "google"], 0);
        assert!(out.contains("gmail: signed out") && out.contains("calendar: was not signed in"), "{out}");
        assert_eq!(google.seen_at("/revoke").len(), 1);
        let left: Value = serde_json::from_str(&place.printed(&["auth", "status", "--json"], 1)).unwrap();
        let [left] = left["accounts"].as_array().unwrap().as_slice() else { panic!("{left}") };
        assert!(left["resource"].is_null() && left["error"].as_str().unwrap().contains("chmod 600"), "{left}");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_grant_is_reported_and_revoked_and_no_token_is_kept() {
    let google = GoogleServer::start().await;
    let place = Place::at(google.url());
    block_in_place(|| {
        let mut pasting = place.pasting();
        let code = pasting.code(&google, &[GMAIL_READ]);
        pasting.paste(&code);
        let (exit, printed) = pasting.end();
        assert_eq!(exit, Some(3), "{printed}");
        assert!(printed.contains("gmail.send") && printed.contains("not granted"), "{printed}");
        assert_eq!(google.seen_at("/revoke").len(), 1);
        assert_eq!(place.grants(), [""; 0]);
    });
}

/// A program that opens pages as a browser does, and follows where they lead.
fn browser(home: &Home) -> String {
    let file = home.data().join("browser.py");
    let program = "import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n";
    std::fs::write(&file, program).unwrap();
    format!("/usr/bin/python3 {}", file.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_from_the_environment_opens_the_page_and_completes_the_sign_in() {
    let google = GoogleServer::start().await;
    let place = Place::at(google.url());
    let login = |arguments: &[&str], code| {
        let mut command = place.command(&[&["auth", "login", "google"], arguments].concat());
        output_of(command.env("BROWSER", browser(&place.home)), code)
    };
    login(&[], 3);
    assert_eq!(place.grants(), [""; 0]);
    google.at_browser(Some("ada"));
    let signed_in: Value = serde_json::from_str(&login(&["--json"], 0)).unwrap();
    assert_eq!(signed_in["signed_in"].as_array().unwrap().len(), 2, "{signed_in}");
    assert_eq!(place.grants(), ["calendar", "gmail"]);
    // No other principal is signed in.
    let others: Value =
        serde_json::from_str(&place.printed(&["auth", "status", "--json", "--principal", "token:ada"], 0)).unwrap();
    assert_eq!(others, json!({"accounts": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_sign_in_leaves_no_partial_account() {
    let issuer = TestServer::plain(|seen| match seen.path() {
        "/token" => Reply::silence(),
        _ => Reply::new(404, ""),
    })
    .await;
    let place = Place::at(issuer.url("").as_str().trim_end_matches('/'));
    block_in_place(|| {
        for is_exchanging in [false, true] {
            let mut pasting = place.pasting();
            if is_exchanging {
                pasting.paste("c0de");
                while issuer.requests().is_empty() {
                    std::thread::yield_now();
                }
            }
            kill(pasting.child.id(), Signal::KILL);
            pasting.child.wait().unwrap();
            assert_eq!(place.grants(), [""; 0]);
            let kept = std::fs::read_dir(place.home.data().join("toolstead/accounts"));
            assert!(kept.is_err(), "nothing is there yet");
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_either_generation_opens_the_sign_in_page_and_the_call_continues() {
    for mode in ["legacy", "2026-07-28"] {
        let google = GoogleServer::start().await;
        google.at_browser(Some("ada"));
        let place = Place::at(google.url());
        let events = place.home.work().join("events.jsonl");
        let mut command = place.home.command(python_program("python"), &[]);
        command.arg(peer("asked_client.py")).arg(env!("CARGO_BIN_EXE_toolstead")).arg("--config").arg(&place.config);
        command.arg("--events").arg(&events).arg("mcp").env("GOOGLE_CLIENT_SECRET", CLIENT_SECRET);
        command.env("MODE", mode).env("TOOLS", "gmail_search").env("ARGUMENTS", r#"{"query": "x"}"#).env("ROOTS", "");
        let output = block_in_place(|| command.stdin(Stdio::null()).output().unwrap());
        assert!(output.status.success(), "{mode}: {}", stderr(&output));
        let heard: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
        let [asked] = heard["asked"].as_array().unwrap().as_slice() else { panic!("{mode}: {heard}") };
        let page = Url::parse(asked["page"].as_str().unwrap()).unwrap();
        assert_eq!(page.path(), "/auth");
        let said = heard["said"]["gmail_search"].as_str().unwrap();
        assert!(!said.contains("sign") && !said.contains("Error"), "{mode}: {said}");
        assert_eq!(google.seen_at("/token").len(), 1, "{mode}");
        assert_eq!(place.grants(), ["gmail"], "{mode}");
        let state = page.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
        let secrets = ["ya29.", "1//refresh", "4/code", "4%2Fcode", CLIENT_SECRET, &state];
        place.check_holds_none(&secrets);
        let message = std::fs::read_to_string(&events).unwrap() + &stderr(&output);
        for secret in secrets {
            assert!(!message.contains(secret), "{mode}: {secret} in {message}");
        }
        let rows = place.printed(&["executions", "list", "--kind", "question", "--json"], 0);
        assert!(rows.contains("succeeded") && !rows.contains(&state), "{mode}: {rows}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_url_elicitation_receives_the_sign_in_command() {
    let google = GoogleServer::start().await;
    let place = Place::at(google.url());
    block_in_place(|| {
        let mut client = Pipe::start(place.command(&["mcp"]));
        client.initialize();
        client.send(
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "gmail_search", "arguments": {"query": "x"}}})
            .to_string(),
        );
        let answer = client.answer(1);
        let meta = &answer["result"]["_meta"];
        assert_eq!(meta["toolstead/errorKind"], "auth_required", "{answer}");
        let suggestion = meta["toolstead/suggestion"].as_str().unwrap();
        assert!(suggestion.contains("toolstead auth login google --grant gmail"), "{answer}");
        let text = answer["result"]["content"].to_string();
        assert!(text.contains("Ask your user to sign in.") && !text.contains("toolstead "), "{answer}");
        assert!(google.seen().is_empty());
    });
}

#[test]
fn signing_in_without_a_client_id_fails_and_names_the_missing_variable() {
    let home = Home::new();
    let output = home.run(&["auth", "login", "google"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("GOOGLE_CLIENT_ID"), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_another_program_are_imported_only_after_confirmation() {
    let google = GoogleServer::start().await;
    let place = Place::at(google.url());
    let folder = place.home.work().join(".gmail-tokens");
    std::fs::create_dir(&folder).unwrap();
    let refresh = google.refresh_token("ada", &[GMAIL_READ, GMAIL_SEND]);
    let token = json!({"token": "ya29.old", "refresh_token": refresh, "client_id": CLIENT_ID,
        "token_uri": format!("{}/token", google.url()), "scopes": [GMAIL_READ, GMAIL_SEND], "expiry": "2020-01-01T00:00:00Z"});
    let file = folder.join("token.json");
    std::fs::write(&file, token.to_string()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    // No terminal is available for a confirmation.
    place.printed(&["auth", "import"], 2);
    assert_eq!(place.grants(), [""; 0]);
    place.printed(&["auth", "import", "--yes"], 0);
    // Also if the path is not UTF-8.
    let odd = place.home.work().join(OsStr::from_bytes(b"odd-\xff"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::copy(&file, odd.join("token.json")).unwrap();
    output_of(place.command(&["auth", "import", "--yes", "--json"]).arg(&odd), 0);
    assert_eq!(place.grants(), ["gmail"]);
    place.printed(&["call", "gmail_search", r#"{"query": "x"}"#], 0);
}

/// A real issuer, `issuer.mjs`. It ends with this value.
struct Issuer {
    child: Child,
    address: String,
}

impl Issuer {
    fn start() -> Self {
        let mut command = Command::new(node_program("node"));
        command.arg(peer("issuer.mjs")).env("PATH", node_path()).env("SCOPES", format!("{GMAIL_READ} {GMAIL_SEND}"));
        command.env("CLIENT_ID", CLIENT_ID).env("CLIENT_SECRET", CLIENT_SECRET).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_renewal_and_revocation_work_with_a_real_issuer() {
    let issuer = block_in_place(Issuer::start);
    let folder = tempfile::tempdir().unwrap();
    let service = Url::parse("https://gmail.googleapis.com").unwrap();
    let accounts = OAuthAccounts::new(AccountsParts {
        client: Ok(OAuthClient {
            issuer: issuer.address.clone(),
            client_id: CLIENT_ID.into(),
            client_secret: Secret::new(CLIENT_SECRET),
            authorization_url: Url::parse(&issuer.url("/auth")).unwrap(),
            token_url: Url::parse(&issuer.url("/token")).unwrap(),
            revocation_url: Url::parse(&issuer.url("/token/revocation")).unwrap(),
        }),
        services: vec![(&GMAIL, service)],
        vault: Ok(Vault::open(folder.path().join("accounts"), folder.path().join("key")).unwrap()),
        reach: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        clock: Arc::new(SystemClock),
        patience: Duration::from_secs(60),
    });
    let principal = Principal::local();
    let sign_in = accounts.begin(&principal, &GMAIL).unwrap();
    let mut person = Command::new(node_program("node"));
    person.arg(peer("person.mjs")).arg(sign_in.page().as_str()).stdin(Stdio::null()).stdout(Stdio::piped());
    let person = person.spawn().unwrap();
    let came = tokio::time::timeout(Duration::from_secs(60), sign_in.wait_for_code()).await.unwrap().unwrap();
    let signed_in = sign_in.finish(came).await.unwrap();
    let seen = stdout(&block_in_place(|| person.wait_with_output().unwrap()));
    assert!(seen.contains("You may close this page."), "{seen}");
    assert!(signed_in.is_renewable);
    let gmail = ProtectedResource { grant: "gmail".into(), origin: "https://gmail.googleapis.com".into() };
    let mut headers = accounts.headers(&principal, &gmail).await.unwrap();
    // Its refresh tokens are good once: each renewal keeps the next one.
    for _ in 0..3 {
        let renewed = accounts.renewed(&principal, &gmail, &headers).await.unwrap();
        assert_ne!(renewed, headers);
        headers = renewed;
    }
    assert_eq!(accounts.sign_out(&principal, &GMAIL).await.unwrap()[0].revoked, Ok(()));
    assert!(accounts.headers(&principal, &gmail).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_signs_in_and_out_at_a_real_issuer() {
    let issuer = block_in_place(Issuer::start);
    let place = Place::with(
        &issuer.url("/auth"),
        &issuer.url("/token"),
        &issuer.url("/token/revocation"),
        "https://gmail.googleapis.com",
    );
    let browser = format!("{} {}", node_program("node").display(), peer("person.mjs").display());
    let mut login = place.command(&["auth", "login", "google", "--grant", "gmail"]);
    output_of(login.env("BROWSER", browser), 0);
    assert_eq!(place.grants(), ["gmail"]);
    place.printed(&["auth", "logout", "google", "--grant", "gmail"], 0);
    assert_eq!(place.grants(), [""; 0]);
}
