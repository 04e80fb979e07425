//! Offers, and calls of a program in a run. The program and its socket are real; the tools that it calls are scripted.

use super::serving::{CONNECTIONS, LISTS_AT_ONCE, MAX_REQUEST_BYTES, MOST_UNANSWERED};
use super::*;
use crate::builtin::tests::Bench;
use async_trait::async_trait;
use serde_json::json;
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};
use toolstead_domain::{CallPreview, NestedCall, ToolResult, View, testing::samples};

/// Tools: most return their arguments, one never returns, one waits for an approver that does not answer, and one
/// returns a large result.
#[derive(Default, Clone)]
struct Scripted {
    shared: Arc<Shared>,
    chosen: ToolSelection,
}

#[derive(Default)]
struct Shared {
    made: Mutex<Vec<NestedCall>>,
    /// Number of waiting calls.
    waiting: AtomicUsize,
}

/// A call that waits until it is cancelled.
struct Waiting<'a>(&'a Shared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Calls for Scripted {
    fn list(&self) -> Vec<Arc<Tool>> {
        let names = ["bash", "echo", "glob", "grep", "late", "mcp__git__log", "mcp__git__status", "much", "wait"];
        let tools = names.map(|name| {
            let mut tool = samples::tool(name);
            tool.takes_command_lines = name == "bash";
            tool
        });
        tools.into_iter().filter(|tool| self.chosen.includes(tool)).map(Arc::new).collect()
    }

    fn search(&self, _: &str) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn through<'a>(&'a self, _: Arc<View>) -> Box<dyn Calls + 'a> {
        unreachable!("an offer is a window")
    }

    fn window<'a>(&'a self, _: &str, selection: ToolSelection) -> Box<dyn Calls + 'a> {
        Box::new(Self { chosen: selection, ..self.clone() })
    }

    async fn preview(&self, _: NestedCall) -> Result<CallPreview, ToolFailure> {
        unreachable!("a program calls")
    }

    async fn call(&self, call: NestedCall) -> Result<ToolResult, ToolFailure> {
        if !self.list().iter().any(|tool| tool.name().as_str() == call.tool) {
            return Err(ToolFailure::new(ErrorKind::NotFound, format!("no tool `{}`", call.tool)));
        }
        self.shared.made.lock().unwrap().push(call.clone());
        match call.tool.as_str() {
            "wait" => {
                self.shared.waiting.fetch_add(1, Ordering::SeqCst);
                let _waiting = Waiting(&self.shared);
                std::future::pending().await
            }
            "late" => Err(ToolFailure::new(ErrorKind::ApprovalTimeout, "Nobody answered in time.")),
            "much" => Ok(ToolResult::text("x".repeat(65 << 20))),
            "grep" => Ok(ToolResult::text("a\nb").with_structured_content(json!({"lines": ["a", "b"]}))),
            _ => Ok(ToolResult::text(call.arguments["text"].as_str().unwrap_or_default())),
        }
    }
}

impl Scripted {
    fn made(&self) -> Vec<NestedCall> {
        assert_eq!(self.shared.waiting.load(Ordering::SeqCst), 0, "every call has ended with its run");
        self.shared.made.lock().unwrap().clone()
    }
}

/// Runs a command that these tools are offered to; returns its result, and the calls that it made.
fn ran(patterns: &[&str], command: &str) -> (Result<ToolResult, ToolFailure>, Vec<NestedCall>) {
    let (bench, scripted) = (Bench::new(), Scripted::default());
    let result = bench.call_among(&scripted, "bash", json!({"command": command, "tools": patterns}));
    (result, scripted.made())
}

fn text(result: Result<ToolResult, ToolFailure>) -> String {
    result.map_or_else(|failure| failure.into_result().joined_text(), |result| result.joined_text())
}

#[test]
fn a_command_calls_offered_tools_and_receives_untruncated_results() {
    let (result, made) = ran(
        &["echo", "grep"],
        "tool grep '{}' | grep -o '\"lines\":.*'; tool echo --text one; echo '{\"text\": \"two\"}' | tool echo -; \
         for i in 1 2 3; do tool echo --text n$i; done; tool --list | cut -f1; exec 1>&2; tool --help | head -1",
    );
    let said = text(result);
    assert!(said.contains("\"lines\":[\"a\",\"b\"]}\none\ntwo\nn1\nn2\nn3\necho\ngrep\nCalls the tools"), "{said}");
    assert_eq!(made.len(), 6);
    assert!(made.iter().all(|call| *call == call.clone().answering_whole()));
}

#[test]
fn tool_program_errors_go_to_standard_error_with_their_exit_codes() {
    for (command, code, part) in [
        ("tool glob 2>&1", 4, "tool: no tool `glob`"),
        ("tool glob --text a 2>&1", 4, "not offered"),
        ("tool echo '[]' 2>&1", 2, "neither a JSON object"),
        ("tool echo '{' 2>&1", 2, "not JSON"),
        ("tool 2>&1", 2, "the tool name is missing"),
        ("tool much 2>&1", 1, "more than"),
        ("tool echo --text a > /dev/full", 70, "could not be written"),
        ("tool much | head -c 3", 0, "more than"),
    ] {
        let (result, _) = ran(&["echo", "much"], &format!("{command}; echo code $?"));
        let said = text(result);
        assert!(said.contains(&format!("code {code}")) && said.contains(part), "{command}: {said}");
    }
}

#[test]
fn tool_patterns_match_names_and_command_tools_require_their_full_name() {
    let bench = Bench::new();
    let scripted = Scripted::default();
    for (patterns, expected) in [
        (&["grep"][..], Ok("grep")),
        (&["g*", "grep"], Ok("glob grep")),
        (&["mcp__git__*"], Ok("mcp__git__log mcp__git__status")),
        (&["*"], Ok("echo glob grep late mcp__git__log mcp__git__status much wait")),
        (&["bash", "e*"], Ok("bash echo")),
        (&["bas*"], Err("give their full names")),
        (&["gerp"], Err("Did you mean `grep`?")),
        (&["mcp_git_log"], Err("Did you mean `mcp__git__log`?")),
        (&["grep", "zzzzzzzz*"], Err("matches no tool")),
        (&["a b"], Err("is not a tool name")),
        (&[""], Err("is not a tool name")),
    ] {
        let patterns: Vec<String> = patterns.iter().map(|one| (*one).to_owned()).collect();
        let found = bench.run_among(&scripted, "bash", async |run| {
            let offered = ToolPatterns::of(&patterns)?.unwrap().open(run)?;
            Ok(offered.tools().iter().map(|tool| tool.name().to_string()).collect::<Vec<_>>().join(" "))
        });
        match (found.map_err(|failure: ToolFailure| failure.text()), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{patterns:?}"),
            (Err(said), Err(part)) => assert!(said.contains(part), "{patterns:?}: {said}"),
            (found, _) => panic!("{patterns:?}: {found:?}"),
        }
    }
    assert!(ToolPatterns::of(&[]).unwrap().is_none());
    assert!(ToolPatterns::of(&vec!["a".to_owned(); MAX_PATTERNS + 1]).is_err());
    let offer = ToolPatterns::of(&["grep".into(), "a*".into(), "grep".into()]).unwrap().unwrap();
    let accesses: Vec<Access> = offer.accesses().collect();
    assert_eq!(accesses, ["a*", "grep"].map(|name| Access::OfferTools(name.into())));
}

/// Python code that uses the socket directly.
const SPEAK: &str = "import socket,sys,os,json,time,threading,signal
def connect():
 s=socket.socket(socket.AF_UNIX); s.settimeout(120); s.connect(os.environ['TOOLSTEAD_TOOLS']); return s
def ask(text, s=None):
 s=s or connect(); s.sendall(text if isinstance(text,bytes) else text.encode()); return s.makefile('rb').readline()
def kind(line): return json.loads(line).get('error',{}).get('kind','fine') if line else 'closed'
";

/// Runs a hostile program; checks its output, and the calls that it made.
#[track_caller]
fn hostile(program: &str, expected: &str) -> Vec<NestedCall> {
    let (result, made) =
        ran(&["echo", "wait"], &format!("/usr/bin/python3 -c \"$(cat <<'E'\n{SPEAK}{program}\nE\n)\""));
    let said = text(result);
    assert!(said.contains(expected), "{program}\n{said}");
    made
}

#[test]
fn malformed_frames_are_rejected_and_the_next_request_is_served() {
    hostile(
        "s=connect()
for frame in ['nonsense','[]','{}','{\"call\":7}','{\"call\":\"echo\",\"more\":1}','\"call\"','{\"list\":true,\"call\":\"echo\"}','['*100000, '\\x00', '{\"result\":{}}']:
 print(kind(ask(frame+'\\n', s)), end=' ')
print(kind(ask('{\"call\":\"glob\"}\\n', s)), kind(ask(b'\\xff\\xfe\\n', s)), kind(ask('{\"call\":\"echo\"}\\n', s)))",
        &format!("{}not_found invalid_input fine", "invalid_input ".repeat(10)),
    );
}

#[test]
fn oversized_request_lines_are_rejected_and_other_connections_are_served() {
    let program = format!(
        "def send(s):
 try:
  for _ in range({} >> 16): s.sendall(b'x'*65536)
  s.sendall(b'x'*65536*2)
 except OSError: pass
big=[connect() for _ in range(8)]
for s in big: threading.Thread(target=send,args=(s,),daemon=True).start()
print(kind(ask('{{\"call\":\"echo\"}}\\n')), [kind(s.makefile('rb').readline()) for s in big])",
        MAX_REQUEST_BYTES
    );
    hostile(&program, &format!("fine [{}]", ["'too_large'"; 8].join(", ")));
}

#[test]
fn connections_above_the_limit_are_refused_and_existing_ones_are_served() {
    // It may open 1024 files, so that they come one after the other; those that are open are left open.
    let made = hostile(
        &format!(
            "held=[connect() for _ in range({})]
n=0
for _ in range(10000):
 s=socket.socket(socket.AF_UNIX); s.setblocking(False)
 try: s.connect(os.environ['TOOLSTEAD_TOOLS'])
 except OSError: n+=1
 s.close()
print('refused' if n else 'taken')
for s in held[1:]: s.close()
print(kind(ask('{{\"call\":\"echo\"}}\\n', held[0])))",
            CONNECTIONS
        ),
        "refused\nfine",
    );
    assert_eq!(made.len(), 1);
}

#[test]
fn disconnected_and_slow_clients_do_not_block_other_calls() {
    hostile(
        "s=connect(); s.sendall(b'{\"call\":\"wait\"}\\n'); s.close()
slow=[connect() for _ in range(4)]
for s in slow: s.sendall(b'{\"list\":true}\\n'*2000)
print(kind(ask('{\"call\":\"echo\"}\\n')))",
        "fine",
    );
}

#[test]
fn a_run_makes_no_calls_after_too_many_unanswered_approval_requests() {
    let (result, made) =
        ran(&["echo", "late"], "for i in $(seq 20); do tool late; done 2>&1 | uniq -c; tool echo 2>&1; echo code $?");
    let said = text(result);
    assert!(said.contains("8 approval requests of this run") && said.contains("code 3"), "{said}");
    assert_eq!(made.len(), MOST_UNANSWERED);
}

#[tokio::test]
async fn list_requests_above_the_limit_wait_until_an_earlier_list_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let scripted = Scripted::default();
    let offered = OfferedTools { tools: scripted.list(), calls: Box::new(scripted) };
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    let serving = OfferedToolServer::on(listener, &offered).unwrap();
    let mut lists = Vec::new();
    for _ in 0..LISTS_AT_ONCE {
        lists.push(serving.answer(br#"{"list":true}"#.to_vec()).await);
    }
    let mut next = Box::pin(serving.answer(br#"{"list":"echo"}"#.to_vec()));
    assert!(futures::poll!(&mut next).is_pending());
    lists.pop();
    let (answer, _place) = next.await;
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let echo = samples::tool("echo");
    let expected = json!([{"name": "echo", "description": echo.description(), "inputSchema": echo.input_schema()}]);
    assert_eq!(answer["tools"], expected);
}

#[test]
fn a_process_that_outlives_the_command_does_not_keep_its_tool_call_open() {
    // The fork holds a connection and an open call; both are over when the command has ended.
    let made = hostile(
        "s=connect(); s.sendall(b'{\"call\":\"wait\"}\\n')
if os.fork()==0:
 os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); a,b=socket.socketpair()
 socket.send_fds(a,[b'x'],[s.fileno()]); s.close(); t=socket.socket(fileno=socket.recv_fds(b,1,1)[1][0])
 while True: signal.pause()
print('ended')",
        "ended",
    );
    assert_eq!(made.len(), 1);
}

#[test]
fn a_command_that_becomes_a_task_loses_tool_access_when_its_call_ends() {
    let (bench, scripted) = (Bench::new(), Scripted::default());
    let command = "tool echo --text first; read; tool echo --text second; echo code $?";
    let input = json!({"command": command, "tools": ["echo"], "ready_when": "first", "stdin": ""});
    let result = bench.call_among(&scripted, "bash", input).unwrap();
    let task = result.structured_content().unwrap()["task_id"].clone();
    bench.call("task_input", json!({"task_id": task, "text": "\n"})).unwrap();
    bench.call("task_wait", json!({"task_ids": [task]})).unwrap();
    let said = bench.text("task_output", json!({"task_id": task}));
    assert!(said.contains("has ended, and with it the access to tools") && said.contains("code 4"), "{said}");
    assert_eq!(scripted.made().len(), 1);
}

#[test]
fn a_run_without_offered_tools_has_no_tool_program_or_socket() {
    let bench = Bench::new();
    bench.put(
        "build.sh",
        "command -v tool; echo ${TOOLSTEAD_TOOLS-none}; ls -A /run; test -S /run/toolstead/tools; echo $?",
    );
    let said = bench.text("bash", json!({"command": "sh build.sh"}));
    assert!(said.starts_with("none\n1\n"), "{said}");
    // Also where another command of the session has it at this moment.
    let both = ran(&["echo"], "command -v tool && env -i /bin/sh -c 'command -v tool || echo hidden'");
    assert!(text(both.0).starts_with("/run/toolstead/bin/tool\nhidden\n"));
}
