//! The official MCP conformance suite against us, in four set-ups, with the token on: a relay adds it, because the
//! suite cannot send one. What we do not have yet is named in `tests/peers/baseline`, which may only shrink.

mod context_fixture;
mod fixture;

use self::context_fixture::ContextFixture;
use crate::{
    binaries::{Home, Server, TOKEN, node_path, node_program, peer, python_program, stderr, stdout},
    support::{HttpFront, TestApp},
};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, OnceLock},
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

/// Tools of the fixture that each required scenario calls. The audit log must contain these calls, which shows that
/// each scenario reached the fixture through Toolstead.
const CALLED: &[(&str, &str)] = &[
    ("tools-call-simple-text", "test_simple_text"),
    ("tools-call-image", "test_image_content"),
    ("tools-call-audio", "test_audio_content"),
    ("tools-call-embedded-resource", "test_embedded_resource"),
    ("tools-call-mixed-content", "test_multiple_content_types"),
    ("tools-call-error", "test_error_handling"),
    ("tools-call-with-logging", "test_tool_with_logging"),
    ("tools-call-with-progress", "test_tool_with_progress"),
    ("tools-call-sampling", "test_sampling"),
    ("tools-call-elicitation", "test_elicitation"),
    ("elicitation-sep1034-defaults", "test_elicitation_sep1034_defaults"),
    ("elicitation-sep1330-enums", "test_elicitation_sep1330_enums"),
    ("server-stateless", "test_trigger_tool_change"),
    ("server-stateless", "test_trigger_prompt_change"),
    ("server-stateless", "test_missing_capability"),
    ("server-stateless", "test_streaming_elicitation"),
    ("server-stateless", "test_logging_tool"),
    ("input-required-result-basic-elicitation", "test_input_required_result_elicitation"),
    ("input-required-result-basic-sampling", "test_input_required_result_sampling"),
    ("input-required-result-basic-list-roots", "test_input_required_result_list_roots"),
    ("input-required-result-request-state", "test_input_required_result_request_state"),
    ("input-required-result-multiple-input-requests", "test_input_required_result_multiple_inputs"),
    ("input-required-result-multi-round", "test_input_required_result_multi_round"),
    ("input-required-result-tampered-state", "test_input_required_result_tampered_state"),
    ("input-required-result-capability-check", "test_input_required_result_capabilities"),
];

/// Runs the suite as `conformance.mjs` judges it: its report, or as an error the report with what went wrong.
fn judge(arguments: &[&str], environment: &[(&str, &str)]) -> Result<String, String> {
    let mut command = Command::new("node");
    command.env("PATH", node_path()).envs(environment.iter().copied()).arg(peer("conformance.mjs")).args(arguments);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let report = stdout(&output);
    println!("{}", report.lines().last().unwrap_or("nothing"));
    if output.status.success() { Ok(report) } else { Err(format!("{arguments:?}:\n{report}\n{}", stderr(&output))) }
}

/// Reports the failures of all runs of a test together.
#[track_caller]
fn all_passed(reports: impl IntoIterator<Item = Result<String, String>>) {
    let failed: Vec<String> = reports.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

fn baseline(name: &str, revision: &str) -> String {
    peer(&format!("baseline/{name}.{revision}.yaml")).display().to_string()
}

fn demanded(revision: &str) -> &'static str {
    match revision {
        "2025-11-25" => "json-schema-2020-12,server-session-lifecycle",
        _ => "json-schema-2020-12,http-header-validation",
    }
}

/// The report of the suite at this revision against our server; `more` are options of `conformance.mjs`.
fn against(address: &str, name: &str, revision: &str, more: &[&str]) -> Result<String, String> {
    let relay = Listening::relay(address);
    let results = tempfile::tempdir().unwrap();
    let (url, folder) = (format!("http://127.0.0.1:{}/mcp", relay.port), results.path().join("results"));
    let arguments = ["server", &url, revision, &baseline(name, revision), folder.to_str().unwrap()];
    judge(&[&arguments[..], &["--demand", demanded(revision)], more].concat(), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn our_server_passes_the_conformance_suite() {
    let mut reports = Vec::new();
    for revision in REVISIONS {
        let context = Arc::new(ContextFixture::default());
        let app = TestApp::of(fixture::provider(&context)).await;
        app.app.context.register(context).await.unwrap();
        let server = HttpFront::with(&app, |settings| settings.tokens[0].secret = TOKEN.into()).await;
        let address = server.address.to_string();
        reports.push(tokio::task::spawn_blocking(move || against(&address, "A", revision, &[])).await.unwrap());
        assert!(app.outcomes().len() >= 9, "the fixture's tools were really called");
    }
    all_passed(reports);
}

/// A server that offers all that the suite asks for, over HTTP and over stdio.
#[derive(Clone, Copy)]
struct Fixture {
    sdk: &'static str,
    program: fn() -> PathBuf,
    script: &'static str,
    direct: &'static OnceLock<PathBuf>,
}

static DIRECT_PYTHON: OnceLock<PathBuf> = OnceLock::new();
static DIRECT_TYPESCRIPT: OnceLock<PathBuf> = OnceLock::new();

const PYTHON: Fixture = Fixture {
    sdk: "python",
    program: || python_program("python"),
    script: "fixture_server.py",
    direct: &DIRECT_PYTHON,
};
const TYPESCRIPT: Fixture = Fixture {
    sdk: "typescript",
    program: || node_program("node"),
    script: "fixture_server.mjs",
    direct: &DIRECT_TYPESCRIPT,
};

impl Fixture {
    fn over_http(self) -> Listening {
        Listening::start(Command::new((self.program)()).arg(peer(self.script)).arg("--http"))
    }

    /// Runs the suite against this fixture itself, once for all tests, and returns the folder with the results of each
    /// revision: everything that is required has passed.
    fn direct_results(self) -> &'static Path {
        self.direct.get_or_init(|| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("direct").join(self.sdk);
            let fixture = self.over_http();
            let url = format!("http://127.0.0.1:{}/mcp", fixture.port);
            for revision in REVISIONS {
                judge(&["direct", &url, revision, folder.join(revision).to_str().unwrap()], &[]).unwrap();
            }
            folder
        })
    }
}

/// Transport of the fixture.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Http,
    Stdio,
}

/// Every pair of generations: the suite at one revision, the upstream at another. Each has a fixture of its own, as the direct
/// run had, since some of the scenarios change it.
fn nothing_is_lost(fixture: Fixture, way: Way) {
    let direct = fixture.direct_results();
    let mut reports = Vec::new();
    for upstream in REVISIONS {
        for revision in REVISIONS {
            let home = Home::new();
            let listening = (way == Way::Http).then(|| fixture.over_http());
            let entry = match &listening {
                Some(listening) => format!("url = \"http://127.0.0.1:{}/mcp\"", listening.port),
                None => format!("command = {:?}\nargs = [{:?}]", (fixture.program)(), peer(fixture.script)),
            };
            let config = format!(
                "[mcp_servers.fixture]\n{entry}\nnames = \"plain\"\nallow_tools = [\"*\"]\n\
                 may_ask = [\"elicitation\", \"sampling\", \"roots\"]\nprotocol = \"{upstream}\"\n"
            );
            let server = Server::start(&home, &config);
            let direct = direct.join(revision);
            let more = ["--direct", direct.to_str().unwrap()];
            // An old server by stdio is several processes, which some scenarios meet.
            let by = if way == Way::Stdio && *upstream == REVISIONS[0] { "-stdio" } else { "" };
            let outcome = against(&server.address, &format!("{}{by}.{upstream}", fixture.sdk), revision, &more);
            check_rows(&home, outcome.as_ref().unwrap_or_else(|failed| failed));
            reports.push(outcome);
        }
    }
    all_passed(reports);
}

/// Checks that the audit log contains calls of all tools of the fixture that the passed scenarios need.
#[track_caller]
fn check_rows(home: &Home, report: &str) {
    let rows = home.run(&["executions", "list", "--json", "--limit", "1000"]);
    let rows: Value = serde_json::from_slice(&rows.stdout).unwrap_or_else(|error| panic!("{error}: {rows:?}"));
    let rows = rows["executions"].as_array().unwrap();
    for (_, tool) in CALLED.iter().filter(|(scenario, _)| report.contains(&format!("passed   {scenario}\n"))) {
        let is_call = |row: &&Value| row["called_as"] == *tool && row["source"] == "mcp:fixture";
        let outcomes: Vec<&Value> = rows.iter().filter(is_call).map(|row| &row["outcome"]).collect();
        assert!(outcomes.iter().any(|outcome| **outcome != "refused"), "{tool} was not called: {outcomes:?}");
    }
}

#[test]
fn the_gateway_preserves_conformance_of_a_python_server_over_http() {
    nothing_is_lost(PYTHON, Way::Http);
}

#[test]
fn the_gateway_preserves_conformance_of_a_python_server_over_stdio() {
    nothing_is_lost(PYTHON, Way::Stdio);
}

#[test]
fn the_gateway_preserves_conformance_of_a_typescript_server_over_http() {
    nothing_is_lost(TYPESCRIPT, Way::Http);
}

#[test]
fn the_gateway_preserves_conformance_of_a_typescript_server_over_stdio() {
    nothing_is_lost(TYPESCRIPT, Way::Stdio);
}

#[test]
fn our_client_passes_the_conformance_suite() {
    all_passed(REVISIONS.iter().map(|revision| {
        let results = tempfile::tempdir().unwrap();
        let folder = results.path().join("results");
        let arguments = ["client", revision, &baseline("client", revision), folder.to_str().unwrap()];
        let demand = ["--demand", "json-schema-2020-12-preservation"];
        judge(&[&arguments[..], &demand].concat(), &[("TOOLSTEAD", env!("CARGO_BIN_EXE_toolstead"))])
    }));
}

#[test]
fn the_baselines_name_real_scenarios_and_do_not_grow() {
    let mut command = Command::new("node");
    let output = command.env("PATH", node_path()).arg(peer("check_baseline.mjs")).output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn the_published_conformance_table_matches_the_test_results() {
    let output = Command::new("node").env("PATH", node_path()).arg(peer("page.mjs")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(peer("../../docs/internals/conformance.md")).unwrap();
    assert_eq!(page, stdout(&output), "`make conformance` writes it anew");
}

#[test]
fn the_package_lock_of_the_peers_contains_no_download_urls() {
    let lock = std::fs::read_to_string(peer("package-lock.json")).unwrap();
    assert!(!lock.contains("\"resolved\""));
}
