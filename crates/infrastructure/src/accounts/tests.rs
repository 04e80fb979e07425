//! Sign-in, renewal and sign-out against a local issuer whose answers each test defines.

mod answers;
mod calls;
mod tokens;

use super::{
    credentials::{AccountsParts, OAuthAccounts, PendingSignIn},
    grant::{CALENDAR, GMAIL, GrantDefinition},
    oauth_client::OAuthClient,
    vault::Vault,
};
use crate::{
    egress::{connector::SystemNetwork, host::HostPatterns},
    web::{
        testing::{ReceivedRequest, Reply, TestServer},
        web_client::WebClient,
    },
};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use toolstead_domain::{Clock, Principal, Secret, Timestamp, ports::credentials::ProtectedResource};
use url::Url;

const CLIENT_SECRET: &str = "GOCSPX-word";
const GMAIL_ORIGIN: &str = "https://gmail.googleapis.com";
/// Timeout of everything that a test waits for.
const SOON: Duration = Duration::from_secs(60);

/// Clock that a test sets, in seconds.
#[derive(Debug, Default)]
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(i64::try_from(self.0.load(Ordering::SeqCst) * 1_000_000).unwrap())
    }
}

/// Accounts at an issuer of the test.
struct Bench {
    issuer: TestServer,
    folder: TempDir,
    clock: Arc<SetClock>,
    accounts: OAuthAccounts,
}

impl Bench {
    /// Creates accounts with an issuer that gives these answers, also in place of Google's own endpoints.
    async fn new(answers: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        let issuer = TestServer::plain(answers).await;
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(SetClock::default()));
        let accounts = accounts(&issuer, folder.path(), clock.clone());
        Self { issuer, folder, clock, accounts }
    }

    /// Returns the accounts of another process with the same files.
    fn of_another_process(&self) -> OAuthAccounts {
        accounts(&self.issuer, self.folder.path(), self.clock.clone())
    }

    /// Signs in on a page that grants all requested scopes.
    async fn sign_in(&self, grant: &'static GrantDefinition) {
        let sign_in = self.accounts.begin(&Principal::local(), grant).unwrap();
        let came = sign_in.pasted(&answer_of(&sign_in, "code=c0de")).unwrap().unwrap();
        sign_in.finish(came).await.unwrap();
    }

    /// Returns the forms that the issuer received at this path.
    fn forms(&self, path: &str) -> Vec<ReceivedRequest> {
        self.issuer.requests().into_iter().filter(|seen| seen.path() == path).collect()
    }

    fn pass(&self, seconds: u64) {
        self.clock.0.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Returns the number of stored files without locks.
    fn kept(&self) -> usize {
        let Ok(files) = std::fs::read_dir(self.folder.path().join("accounts")) else { return 0 };
        files.filter(|file| file.as_ref().unwrap().path().extension().is_none_or(|end| end != "lock")).count()
    }
}

fn accounts(issuer: &TestServer, folder: &Path, clock: Arc<SetClock>) -> OAuthAccounts {
    let vault = Vault::open(folder.join("accounts"), folder.join("secrets.key"));
    OAuthAccounts::new(AccountsParts {
        client: Ok(client(issuer)),
        services: vec![
            (&GMAIL, Url::parse(GMAIL_ORIGIN).unwrap()),
            (&CALENDAR, Url::parse("https://www.googleapis.com").unwrap()),
        ],
        vault: vault.map_err(|error| error.to_string()),
        reach: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        clock,
        patience: SOON,
    })
}

fn client(issuer: &TestServer) -> OAuthClient {
    OAuthClient {
        issuer: "https://accounts.google.com".into(),
        client_id: "42.apps".into(),
        client_secret: Secret::new(CLIENT_SECRET),
        authorization_url: issuer.url("/auth"),
        token_url: issuer.url("/token"),
        revocation_url: issuer.url("/revoke"),
    }
}

fn gmail() -> ProtectedResource {
    ProtectedResource { grant: "gmail".into(), origin: GMAIL_ORIGIN.into() }
}

/// Returns Google's response with tokens.
fn issued(access: &str, refresh: Option<&str>, scopes: &[&str]) -> Reply {
    let mut answer =
        json!({"access_token": access, "expires_in": 3599, "scope": scopes.join(" "), "token_type": "Bearer"});
    if let Some(refresh) = refresh {
        answer["refresh_token"] = refresh.into();
    }
    Reply::json(&answer)
}

fn refusal(status: u16, error: &str) -> Reply {
    Reply::json(&json!({"error": error, "error_description": "Bad Request"})).status(status)
}

/// Returns a parameter of the page's URL.
fn parameter(page: &Url, name: &str) -> String {
    page.query_pairs().find(|(own, _)| own == name).unwrap_or_else(|| panic!("no {name} in {page}")).1.into_owned()
}

/// Returns the redirect URL of the page with its state and further parameters.
fn answer_of(sign_in: &PendingSignIn, rest: &str) -> String {
    let page = sign_in.page();
    format!("{}/?state={}&{rest}", parameter(page, "redirect_uri"), parameter(page, "state"))
}

/// Sends a request to a redirect target. Returns the whole response.
async fn sent(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The server may close the connection before the request is written.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

fn value(headers: &toolstead_domain::ports::credentials::CredentialHeaders) -> &str {
    let [(name, value)] = headers.as_slice() else { panic!("one header") };
    assert_eq!(name, "authorization");
    value.expose()
}
