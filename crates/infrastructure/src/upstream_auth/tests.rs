//! Sign-in, renewal and the other sources of credentials against a local authorization server that protects an MCP
//! server.

mod hostile;
mod machine_tokens;
mod signing_in;

use super::{
    settings::{SignInSettings, UpstreamAuth},
    sign_in::UpstreamSignInAttempt,
    upstream_accounts::{UpstreamServerCredentials, UpstreamServerCredentialsParts},
};
use crate::{
    accounts::vault::Vault,
    egress::{connector::SystemNetwork, host::HostPatterns},
    web::{
        testing::{ReceivedRequest, Reply, TestServer},
        web_client::WebClient,
    },
};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};
use tempfile::TempDir;
use toolstead_domain::{Clock, CredentialHeaders, Principal, Timestamp, ports::credentials::Challenge};

/// Clock that a test sets, in seconds.
#[derive(Debug, Default)]
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(i64::try_from(self.0.load(Ordering::SeqCst) * 1_000_000).unwrap())
    }
}

/// Changes of the two metadata documents, and the reply of the token endpoint if it is not the usual one.
#[derive(Default)]
struct Behavior {
    resource: Option<fn(&mut Value)>,
    server: Option<fn(&mut Value)>,
    token: Option<fn() -> Reply>,
    issued: u64,
}

type Shared = Arc<Mutex<Behavior>>;

/// Accounts at an MCP server of the test.
struct Bench {
    server: TestServer,
    folder: TempDir,
    clock: Arc<SetClock>,
    behavior: Shared,
    accounts: UpstreamServerCredentials,
}

impl Bench {
    async fn new(auth: UpstreamAuth) -> Self {
        let behavior = Shared::default();
        let own = behavior.clone();
        let server = TestServer::plain(move |seen| reply(seen, &mut own.lock().unwrap())).await;
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(SetClock::default()));
        let accounts = accounts(&server, &folder, clock.clone(), auth);
        Self { server, folder, clock, behavior, accounts }
    }

    async fn for_sign_in() -> Self {
        Self::new(UpstreamAuth::OAuth(SignInSettings::default())).await
    }

    /// Returns the accounts of another process with the same files.
    fn of_another_process(&self) -> UpstreamServerCredentials {
        accounts(&self.server, &self.folder, self.clock.clone(), UpstreamAuth::OAuth(SignInSettings::default()))
    }

    async fn sign_in(&self, principal: &Principal) {
        let sign_in = self.accounts.begin(principal).await.unwrap();
        let code = sign_in.pasted(&answer_of(&sign_in, "code=c0de")).unwrap().unwrap();
        sign_in.finish(code).await.unwrap();
    }

    /// Returns the requests at this path.
    fn seen(&self, path: &str) -> Vec<ReceivedRequest> {
        self.server.requests().into_iter().filter(|seen| seen.path() == path).collect()
    }

    fn pass(&self, seconds: u64) {
        self.clock.0.fetch_add(seconds, Ordering::SeqCst);
    }

    fn set(&self, change: impl FnOnce(&mut Behavior)) {
        change(&mut self.behavior.lock().unwrap());
    }
}

fn accounts(
    server: &TestServer,
    folder: &TempDir,
    clock: Arc<SetClock>,
    auth: UpstreamAuth,
) -> UpstreamServerCredentials {
    let vault = Vault::open(folder.path().join("accounts"), folder.path().join("secrets.key"));
    UpstreamServerCredentials::new(UpstreamServerCredentialsParts {
        server: server.url("/mcp"),
        auth,
        vault: vault.map_err(|error| error.to_string()),
        web: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        clock,
    })
}

/// Answers as an MCP server with its authorization server at the same address.
fn reply(seen: &ReceivedRequest, behavior: &mut Behavior) -> Reply {
    let base = format!("http://{}", seen.header("host"));
    match seen.path() {
        "/mcp" => {
            let metadata = format!("Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
            Reply::new(401, "").header("WWW-Authenticate", &metadata)
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            let mut document = json!({
                "resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["notes.read"],
            });
            behavior.resource.iter().for_each(|change| change(&mut document));
            Reply::json(&document)
        }
        "/.well-known/oauth-authorization-server" => {
            let mut document = json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "revocation_endpoint": format!("{base}/revoke"), "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_post", "none"],
            });
            behavior.server.iter().for_each(|change| change(&mut document));
            Reply::json(&document)
        }
        "/register" => Reply::json(&json!({
            "client_id": "registered", "client_secret": "registered-secret",
            "redirect_uris": seen.json()["redirect_uris"],
        }))
        .status(201),
        "/token" => match behavior.token {
            Some(token) => token(),
            None => {
                behavior.issued += 1;
                let number = behavior.issued;
                Reply::json(&json!({
                    "access_token": format!("access-{number}"), "refresh_token": format!("refresh-{number}"),
                    "token_type": "Bearer", "expires_in": 3600,
                }))
            }
        },
        "/revoke" => Reply::new(200, ""),
        _ => Reply::new(404, ""),
    }
}

fn refusal(error: &str) -> Reply {
    Reply::json(&json!({"error": error, "error_description": "no"})).status(400)
}

/// Returns a parameter of the page's URL.
fn parameter(sign_in: &UpstreamSignInAttempt, name: &str) -> Option<String> {
    sign_in.page().query_pairs().find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
}

/// Returns the redirect URL of the page with its state and further parameters.
fn answer_of(sign_in: &UpstreamSignInAttempt, rest: &str) -> String {
    let value = |name: &str| parameter(sign_in, name).unwrap();
    format!("{}/?state={}&{rest}", value("redirect_uri"), value("state"))
}

fn token(headers: &CredentialHeaders) -> &str {
    let [(name, value)] = headers.as_slice() else { panic!("one header") };
    assert_eq!(name, "authorization");
    value.expose().strip_prefix("Bearer ").unwrap()
}

fn insufficient(scope: &str) -> Challenge {
    let header = Some(format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""));
    Challenge { status: 403, header }
}
