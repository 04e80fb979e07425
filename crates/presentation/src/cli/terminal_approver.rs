//! Asks the person at the terminal.

use super::output::visible;
use async_trait::async_trait;
use std::{
    fmt,
    io::{self, BufRead, IsTerminal, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::oneshot;
use toolstead_domain::ports::approver::{Approval, ApprovalRequest, Approver, Unattended};

/// Nobody sits before a question for longer.
const PATIENCE: Duration = Duration::from_secs(300);
/// As much of each argument is shown.
const SHOWN_ARGUMENT: usize = 200;

/// Puts each question to stderr and reads the answer, a line, from stdin.
pub struct TerminalApprover {
    streams: Arc<Mutex<Streams>>,
}

struct Streams {
    input: Box<dyn BufRead + Send>,
    output: Box<dyn Write + Send>,
}

impl fmt::Debug for TerminalApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalApprover").finish_non_exhaustive()
    }
}

impl TerminalApprover {
    /// Asks on the terminal of this process, if standard input and standard error are one.
    pub fn of_process() -> Arc<dyn Approver> {
        match io::stdin().is_terminal() && io::stderr().is_terminal() {
            true => Arc::new(Self::new(io::BufReader::new(io::stdin()), io::stderr())),
            false => Arc::new(Unattended),
        }
    }

    /// Asks here.
    pub fn new(input: impl BufRead + Send + 'static, output: impl Write + Send + 'static) -> Self {
        let streams = Streams { input: Box::new(input), output: Box::new(output) };
        Self { streams: Arc::new(Mutex::new(streams)) }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> Approval {
        let question = question(&request);
        let streams = self.streams.clone();
        let (sender, answer) = oneshot::channel();
        // A read from a terminal cannot be called off, so it gets a thread that nobody waits for at the end.
        std::thread::spawn(move || {
            // The one who waited may be gone, and with him the question.
            let _ = sender.send(put(&streams, &question));
        });
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(Ok(Some(true)))) => Approval::Granted { by: "the person at the terminal".into() },
            Ok(Ok(Ok(Some(false)))) => Approval::Denied { by: "the person at the terminal".into() },
            Ok(Ok(Ok(None) | Err(_)) | Err(_)) => Approval::Unattended,
            Err(_) => Approval::TimedOut,
        }
    }
}

/// Asks until the answer is one; `None` when the input ends.
fn put(streams: &Mutex<Streams>, question: &str) -> io::Result<Option<bool>> {
    let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
    let Streams { input, output } = &mut *streams;
    output.write_all(question.as_bytes())?;
    loop {
        output.write_all(b"Run it, this once? [y/N] ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(true)),
            "" | "n" | "no" => return Ok(Some(false)),
            _ => output.write_all(b"Please answer `y` or `n`.\n")?,
        }
    }
}

/// The tool, what it would touch, with what, and why somebody is asked. Nothing in it can move the cursor.
fn question(request: &ApprovalRequest<'_>) -> String {
    let mut text = format!("\n`{}` wants to run:\n", request.call.tool.name());
    // On one line each, so that nothing in a path or a command can pass for a line of ours.
    let one_line = |text: String| text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
    for access in request.accesses {
        text.push_str(&format!("  {}\n", one_line(access.to_string())));
    }
    for (name, value) in &request.call.arguments {
        let value = value.to_string();
        let more = value.chars().count().saturating_sub(SHOWN_ARGUMENT);
        let shown: String = value.chars().take(SHOWN_ARGUMENT).collect();
        let more = if more > 0 { format!("… {more} more characters") } else { String::new() };
        text.push_str(&format!("  with {}: {shown}{more}\n", one_line(name.clone())));
    }
    for reference in request.references {
        text.push_str(&format!("  where {}\n", one_line(reference.clone())));
    }
    text.push_str(&format!("  asked because of this: {}\n", one_line(request.decision.reason())));
    visible(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use toolstead_domain::{
        access::{Access, PathAccess},
        permission::policy::PermissionPolicy,
        principal::Principal,
        testing::samples,
        tool_call::ToolCall,
        workspace_roots::WorkspaceRoots,
    };

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    async fn asked(typed: &'static str) -> (Approval, String) {
        let tool = Arc::new(samples::tool("write_file"));
        let roots = WorkspaceRoots { write: vec!["/w".into()], ..WorkspaceRoots::default() };
        let policy = PermissionPolicy { roots, ..PermissionPolicy::default() };
        let accesses = [Access::WritePath(PathAccess::plain("/w/a\u{1b}[2J.txt"))];
        let arguments = json!({"path": "a", "content": "x"}).as_object().unwrap().clone();
        let decision = policy.decide(&tool, &arguments, &accesses);
        let call = ToolCall {
            tool,
            called_as: "Write".into(),
            arguments,
            ..samples::call(1, samples::tool("write_file"), Value::Null)
        };
        let written = Written::default();
        let approver = TerminalApprover::new(typed.as_bytes(), written.clone());
        let request = ApprovalRequest {
            call: &call,
            references: &["`/content` is the stored output `o1`".into()],
            principal: &Principal::local(),
            accesses: &accesses,
            decision: &decision,
        };
        let answer = approver.ask(request).await;
        let shown = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        (answer, shown)
    }

    #[tokio::test]
    async fn the_question_shows_what_would_be_touched_and_why() {
        let (answer, shown) = asked("maybe\nY\n").await;
        assert_eq!(answer, Approval::Granted { by: "the person at the terminal".into() });
        insta::assert_snapshot!(shown, @r#"
        `write_file` wants to run:
          write /w/a\u{1b}[2J.txt
          with path: "a"
          with content: "x"
          where `/content` is the stored output `o1`
          asked because of this: changes of files are asked about by default: to write /w/a\u{1b}[2J.txt
        Run it, this once? [y/N] Please answer `y` or `n`.
        Run it, this once? [y/N]
        "#);
    }

    #[tokio::test]
    async fn only_a_yes_is_a_yes() {
        let denied = Approval::Denied { by: "the person at the terminal".into() };
        for (typed, answer) in
            [("yes\n", None), ("n\n", Some(&denied)), ("\n", Some(&denied)), ("", Some(&Approval::Unattended))]
        {
            let (given, _) = asked(typed).await;
            match answer {
                Some(answer) => assert_eq!(given, *answer, "{typed:?}"),
                None => assert!(matches!(given, Approval::Granted { .. }), "{typed:?}"),
            }
        }
    }
}
