//! One unconfined run of a user's program with limited time and output, such as a hook or a program that prints a key.

use crate::sandbox::{
    launcher::{Child, Exit, LaunchSpec, Launcher},
    leftover_processes::{MARKER_VARIABLE, RunMarker},
};
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use toolstead_domain::error_chain::with_causes;

/// Maximum size of each output that is stored, in bytes. The rest is read and discarded, so that the program does not
/// wait for a reader.
const MAX_KEPT: usize = 1 << 20;
/// Maximum time for remaining output to arrive once the program has ended. Children that it left behind may keep the
/// pipes open.
const DRAIN: Duration = Duration::from_millis(200);

/// Result of a run.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) end: RunOutcome,
    pub(crate) stdout: CapturedStream,
    #[cfg_attr(not(feature = "hooks"), expect(dead_code, reason = "only hooks report it"))]
    pub(crate) stderr: CapturedStream,
    #[cfg_attr(not(feature = "hooks"), expect(dead_code, reason = "only hooks report it"))]
    pub(crate) duration: Duration,
}

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    Exited(Exit),
    /// Timeout. The program was killed with all processes that it started.
    TimedOut,
    /// Failure to start, with the reason.
    NotStarted(String),
}

/// Content of one output stream.
#[derive(Debug, Default)]
pub(crate) struct CapturedStream {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_cut: bool,
}

impl CapturedStream {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Runs a program with `input` on its standard input, for at most `at_most`. At this timeout, and if the future is
/// dropped, kills the program and the processes that it started.
pub(crate) async fn run(launcher: &Launcher, mut spec: LaunchSpec, input: &[u8], at_most: Duration) -> RunResult {
    let began = Instant::now();
    // Dropped after the child, whose group has ended by then.
    let mut mark = RunMarker::new();
    spec.policy.environment.insert(MARKER_VARIABLE.into(), mark.value().into());
    let (mut stdout, mut stderr) = (CapturedStream::default(), CapturedStream::default());
    let end = match launcher.launch(spec).await {
        Ok(mut child) => match timeout(at_most, wait_for_exit(&mut child, input, &mut stdout, &mut stderr)).await {
            Ok(exit) => {
                mark.disarm();
                RunOutcome::Exited(exit)
            }
            Err(_) => RunOutcome::TimedOut,
        },
        Err(error) => {
            mark.disarm();
            RunOutcome::NotStarted(with_causes(&error))
        }
    };
    RunResult { end, stdout, stderr, duration: began.elapsed() }
}

async fn wait_for_exit(
    child: &mut Child,
    input: &[u8],
    stdout: &mut CapturedStream,
    stderr: &mut CapturedStream,
) -> Exit {
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feeding = async {
        if let Some(mut stdin) = stdin {
            // A program does not have to read its input.
            let _ = stdin.write_all(input).await;
        }
    };
    let capturing = async { tokio::join!(capture(out, stdout), capture(err, stderr)) };
    tokio::pin!(feeding, capturing);
    let (mut fed, mut captured) = (false, false);
    let exit = loop {
        tokio::select! {
            () = &mut feeding, if !fed => fed = true,
            _ = &mut capturing, if !captured => captured = true,
            exit = child.exited() => break exit,
        }
    };
    if !captured {
        let _ = timeout(DRAIN, capturing).await;
    }
    exit
}

async fn capture(from: Option<impl AsyncRead + Unpin>, to: &mut CapturedStream) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let kept = read.min(MAX_KEPT - to.bytes.len());
        to.bytes.extend_from_slice(&buffer[..kept]);
        to.is_cut |= kept < read;
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at processes behind the run's back")]
mod tests {
    use super::*;
    use crate::{child_environment, sandbox::launcher::ChildInput};
    use std::{fs, path::Path};
    use tokio::time::sleep;
    use toolstead_domain::SandboxPolicy;

    /// A program that starts a process in a session of its own, and waits for it.
    fn leaving(folder: &Path) -> LaunchSpec {
        let inner = "echo $$ > pid.new; mv pid.new pid; exec sleep 300";
        LaunchSpec {
            program: "sh".into(),
            args: vec!["-c".into(), format!("setsid --fork sh -c '{inner}'; sleep 300")],
            working_dir: folder.to_path_buf(),
            input: ChildInput::Pipe,
            policy: SandboxPolicy::open(child_environment::base(|_| None)),
        }
    }

    fn left(folder: &Path) -> Option<String> {
        Some(fs::read_to_string(folder.join("pid")).ok()?.trim().to_owned())
    }

    /// Waits until the process has ended. It may be reaped later.
    async fn gone(pid: &str) {
        let end = Instant::now() + Duration::from_secs(120);
        while fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty()) {
            assert!(Instant::now() < end, "the process {pid} is still there");
            sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_cancelled_or_timed_out_program_ends_with_processes_that_left_its_group() {
        let launcher = Launcher::start().unwrap();
        let folder = tempfile::tempdir().unwrap();
        tokio::select! {
            ran = run(&launcher, leaving(folder.path()), b"{}", Duration::from_secs(300)) => panic!("{ran:?}"),
            () = async { while left(folder.path()).is_none() { sleep(Duration::from_millis(5)).await } } => {}
        }
        gone(&left(folder.path()).unwrap()).await;
        for seconds in [1, 8, 64] {
            let folder = tempfile::tempdir().unwrap();
            let ran = run(&launcher, leaving(folder.path()), b"{}", Duration::from_secs(seconds)).await;
            assert_eq!(ran.end, RunOutcome::TimedOut);
            // On a busy machine the program may not have started it yet.
            if let Some(pid) = left(folder.path()) {
                return gone(&pid).await;
            }
        }
        panic!("the program did not start its child");
    }
}
