//! Sign-in to an MCP server that a real authorization server (oidc-provider) protects.

use crate::binaries::{Home, node_path, node_program, peer, stderr, stdout};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::task::block_in_place;
use toolstead_domain::{CredentialHeaders, Credentials, CredentialsError, Principal};
use toolstead_infrastructure::{
    accounts::vault::Vault,
    egress::{connector::SystemNetwork, host::HostPatterns},
    system_clock::SystemClock,
    upstream_auth::{
        settings::{SignInSettings, UpstreamAuth},
        upstream_accounts::{UpstreamServerCredentials, UpstreamServerCredentialsParts},
    },
    web::web_client::WebClient,
};

/// Timeout of everything that a test waits for.
const SOON: Duration = Duration::from_secs(60);

/// MCP server with its authorization server. Dropping it ends the process.
struct Protected {
    child: Child,
    address: String,
}

impl Protected {
    fn start() -> Self {
        let mut command = Command::new(node_program("node"));
        command.arg(peer("protected.mjs")).env("PATH", node_path()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.address)
    }

    /// Returns the account that the server sees in a call with these headers; the HTTP status if it refuses them.
    async fn account(&self, headers: &CredentialHeaders) -> Result<String, u16> {
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami", "arguments": {}}});
        let mut request = reqwest::Client::new().post(self.url()).body(call.to_string());
        for (name, value) in headers {
            request = request.header(name, value.expose());
        }
        let answer = request.send().await.unwrap();
        match answer.status().as_u16() {
            200 => {
                let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
                Ok(body["result"]["content"][0]["text"].as_str().unwrap().to_owned())
            }
            status => Err(status),
        }
    }
}

impl Drop for Protected {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Signs a principal in as the user with this name at the authorization server.
async fn sign_in(accounts: &UpstreamServerCredentials, principal: &Principal, person: &str) {
    let sign_in = accounts.begin(principal).await.unwrap();
    let mut browser = Command::new(node_program("node"));
    browser.arg(peer("person.mjs")).arg(sign_in.page().as_str()).env("PERSON", person).stdin(Stdio::null());
    let mut browser = browser.stdout(Stdio::null()).spawn().unwrap();
    let code = tokio::time::timeout(SOON, sign_in.wait_for_code()).await.unwrap().unwrap();
    sign_in.finish(code).await.unwrap();
    assert!(block_in_place(|| browser.wait().unwrap()).success());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_principals_sign_in_renew_and_revoke_at_a_real_authorization_server() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = block_in_place(Protected::start);
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::open(folder.path().join("accounts"), folder.path().join("key")).unwrap();
    let accounts = UpstreamServerCredentials::new(UpstreamServerCredentialsParts {
        server: server.url().parse().unwrap(),
        auth: UpstreamAuth::OAuth(SignInSettings::default()),
        vault: Ok(vault),
        web: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        clock: Arc::new(SystemClock),
    });
    let resource = accounts.resource();
    let (ada, bob) = (Principal::token("ada"), Principal::token("bob"));
    sign_in(&accounts, &ada, "ada").await;
    sign_in(&accounts, &bob, "bob").await;
    let mut held = Vec::new();
    for (principal, person) in [(&ada, "ada"), (&bob, "bob")] {
        let headers = accounts.headers(principal, &resource).await.unwrap();
        assert_eq!(server.account(&headers).await.as_deref(), Ok(person));
        held.push(headers);
    }
    // Its refresh tokens are good once.
    let renewed = accounts.renewed(&ada, &resource, &held[0]).await.unwrap();
    assert_ne!(renewed, held[0]);
    assert_eq!(server.account(&renewed).await.as_deref(), Ok("ada"));
    let signed_out = accounts.sign_out(&ada).await.unwrap();
    assert_eq!(signed_out.iter().map(|one| one.revoked.clone()).collect::<Vec<_>>(), [Ok(())]);
    assert_eq!(server.account(&renewed).await, Err(401));
    assert!(matches!(accounts.headers(&ada, &resource).await, Err(CredentialsError::SignIn(_))));
    assert_eq!(server.account(&accounts.headers(&bob, &resource).await.unwrap()).await.as_deref(), Ok("bob"));
}

/// Home whose configuration names the server.
struct ConfiguredHome {
    home: Home,
    config: PathBuf,
}

impl ConfiguredHome {
    fn at(server: &Protected) -> Self {
        let home = Home::new();
        let config = home.config(&format!("[mcp_servers.notes]\nurl = {:?}\nallow_tools = [\"*\"]\n", server.url()));
        Self { home, config }
    }

    /// `toolstead ARGUMENTS…`, without a terminal and with a browser.
    #[track_caller]
    fn printed(&self, arguments: &[&str], code: i32) -> String {
        let (printed, exit) = self.run(arguments);
        assert_eq!(exit, Some(code), "{printed}");
        printed
    }

    /// Returns what the command prints, and its exit code.
    fn run(&self, arguments: &[&str]) -> (String, Option<i32>) {
        let mut command =
            self.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead"), "--config"]);
        command.arg(&self.config).args(arguments).stdin(Stdio::null());
        command.env("BROWSER", format!("{} {}", node_program("node").display(), peer("person.mjs").display()));
        let output: Output = block_in_place(|| command.output().unwrap());
        (format!("{}{}", stdout(&output), stderr(&output)), output.status.code())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_signs_in_calls_and_signs_out() {
    let server = block_in_place(Protected::start);
    let place = ConfiguredHome::at(&server);
    let (refused, exit) = place.run(&["call", "mcp__notes__whoami", "{}"]);
    assert!(exit != Some(0) && refused.contains("401"), "{refused}");
    let (servers, _) = place.run(&["servers"]);
    assert!(servers.contains("toolstead auth login server:notes"), "{servers}");
    place.printed(&["auth", "login", "notes"], 0);
    assert!(place.printed(&["call", "mcp__notes__whoami", "{}"], 0).contains("ada"));
    let status: Value = serde_json::from_str(&place.printed(&["auth", "status", "server:notes", "--json"], 0)).unwrap();
    let [account] = status["accounts"].as_array().unwrap().as_slice() else { panic!("{status}") };
    assert_eq!((account["grant"].as_str(), account["is_renewable"].as_bool()), (Some("server:notes"), Some(true)));
    place.printed(&["auth", "logout", "notes"], 0);
    place.printed(&["auth", "login", "nowhere"], 4);
    assert!(place.printed(&["auth", "status"], 0).contains("No account is signed in"));
}
