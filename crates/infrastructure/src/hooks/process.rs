//! One run of a hook's program.

use crate::sandbox::launcher::{Child, Exit, LaunchSpec, Launcher};
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

/// Bytes that are kept of each of its outputs. The rest is read and forgotten, so that nothing waits for a reader.
const MAX_KEPT: usize = 1 << 20;
/// How long what it wrote may take to arrive once it has ended. Children that it left behind may hold the pipes open for
/// ever.
const DRAIN: Duration = Duration::from_millis(200);

/// What came of a run.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) end: End,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    pub(super) took: Duration,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Exited(Exit),
    /// It was late, and is gone with its process group.
    Late,
    /// It never ran; the reason.
    NotStarted(String),
}

/// What it wrote on one of its outputs.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) bytes: Vec<u8>,
    pub(super) is_cut: bool,
}

impl Captured {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Runs a program that reads `input`. Dropping the future kills it and its process group.
pub(super) async fn run(launcher: &Launcher, spec: LaunchSpec, input: &[u8], at_most: Duration) -> Ran {
    let began = Instant::now();
    let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
    let end = match launcher.launch(spec).await {
        Ok(mut child) => match timeout(at_most, finished(&mut child, input, &mut stdout, &mut stderr)).await {
            Ok(exit) => End::Exited(exit),
            Err(_) => End::Late,
        },
        Err(error) => End::NotStarted(told(&error)),
    };
    Ran { end, stdout, stderr, took: began.elapsed() }
}

async fn finished(child: &mut Child, input: &[u8], stdout: &mut Captured, stderr: &mut Captured) -> Exit {
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feeding = async {
        if let Some(mut stdin) = stdin {
            // A program need not read its input.
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

async fn capture(from: Option<impl AsyncRead + Unpin>, to: &mut Captured) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let kept = read.min(MAX_KEPT - to.bytes.len());
        to.bytes.extend_from_slice(&buffer[..kept]);
        to.is_cut |= kept < read;
    }
}

fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
