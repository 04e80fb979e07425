//! The official MCP conformance suite against us, in four set-ups, with the token on: a relay adds it, because the
//! suite cannot send one. What we do not have yet is named in `tests/peers/baseline`, which may only shrink.

mod context_fixture;
mod fixture;

use crate::{
    binaries::{Home, Server, TOKEN, node_path, peer, python_program, stderr, stdout},
    support::{HttpFront, TestApp},
};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::Arc,
};

const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];

/// A helper process that prints `listening PORT`.
struct Listening {
    child: Child,
    port: String,
}

impl Listening {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { child, port }
    }

    /// Puts the token onto every request on its way to the server.
    pub(super) fn relay(address: &str) -> Self {
        let port = address.rsplit(':').next().unwrap();
        let mut command = Command::new("node");
        command.env("PATH", node_path()).arg(peer("bearer-relay.mjs")).args(["0", port, TOKEN]);
        Self::start(&mut command)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the suite as `conformance.mjs` judges it and shows its report where it failed.
#[track_caller]
fn judge(arguments: &[&str], setup: &str, revision: &str, environment: &[(&str, &str)]) {
    let results = tempfile::tempdir().unwrap();
    let baseline = match setup {
        "client" => peer(&format!("baseline/client.{revision}.yaml")),
        _ => peer(&format!("baseline/expected-failures.{setup}.{revision}.yaml")),
    };
    let mut command = Command::new("node");
    command.env("PATH", node_path()).envs(environment.iter().copied()).arg(peer("conformance.mjs")).args(arguments);
    command.arg(revision).arg(baseline).arg(results.path().join("results"));
    let demand = match (setup, revision) {
        ("client", _) => "json-schema-2020-12-preservation",
        (_, "2025-11-25") => "json-schema-2020-12,server-session-lifecycle",
        _ => "json-schema-2020-12,http-header-validation",
    };
    let output = command.args(["--demand", demand]).stdin(Stdio::null()).output().unwrap();
    let report = stdout(&output);
    println!("set-up {setup}, {revision}: {}", report.lines().last().unwrap_or("nothing"));
    assert!(output.status.success(), "set-up {setup}, {revision}:\n{report}\n{}", stderr(&output));
}

fn against(address: &str, setup: &str, revision: &str) {
    let relay = Listening::relay(address);
    judge(&["server", &format!("http://127.0.0.1:{}/mcp", relay.port)], setup, revision, &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn our_server_is_what_clients_expect() {
    for revision in REVISIONS {
        let app = TestApp::of(fixture::provider()).await;
        app.app.context.register(Arc::new(context_fixture::ContextFixture)).await.unwrap();
        let server = HttpFront::with(&app, |settings| settings.tokens[0].secret = TOKEN.into()).await;
        let address = server.address.to_string();
        tokio::task::spawn_blocking(move || against(&address, "A", revision)).await.unwrap();
        assert!(app.outcomes().len() >= 9, "the fixture's tools were really called");
    }
}

#[test]
fn nothing_is_lost_through_us_to_an_upstream_over_http() {
    let mut command = Command::new(python_program("python"));
    let fixture = Listening::start(command.arg(peer("fixture_server.py")).arg("--http"));
    for upstream in REVISIONS {
        let home = Home::new();
        let config = format!(
            "[mcp_servers.fixture]\nurl = \"http://127.0.0.1:{}/mcp\"\nnames = \"plain\"\nallow_tools = [\"*\"]\nprotocol = \"{upstream}\"\n",
            fixture.port
        );
        let server = Server::start(&home, &config);
        for revision in REVISIONS {
            against(&server.address, "B", revision);
        }
    }
}

#[test]
fn nothing_is_lost_through_us_to_an_upstream_over_stdio() {
    for upstream in REVISIONS {
        let home = Home::new();
        let config = format!(
            "[mcp_servers.fixture]\ncommand = {:?}\nargs = [{:?}]\nnames = \"plain\"\nallow_tools = [\"*\"]\nprotocol = \"{upstream}\"\n",
            python_program("python"),
            peer("fixture_server.py")
        );
        let server = Server::start(&home, &config);
        for revision in REVISIONS {
            against(&server.address, "C", revision);
        }
    }
}

#[test]
fn our_client_does_what_servers_expect() {
    for revision in REVISIONS {
        judge(&["client"], "client", revision, &[("TOOLSTEAD", env!("CARGO_BIN_EXE_toolstead"))]);
    }
}

#[test]
fn the_baselines_name_real_scenarios_and_do_not_grow() {
    let mut command = Command::new("node");
    let output = command.env("PATH", node_path()).arg(peer("check_baseline.mjs")).output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn the_lock_of_the_peers_names_no_host() {
    let lock = std::fs::read_to_string(peer("package-lock.json")).unwrap();
    assert!(!lock.contains("\"resolved\""));
}
