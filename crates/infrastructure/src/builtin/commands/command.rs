//! A running command: its output is captured, its timeout is watched, and it ends with its owner.

use crate::{
    builtin::{
        commands::{
            capture::{Capture, OutputStream},
            programs::StartedProgram,
        },
        text::plain_text::ControlSequenceFilter,
        tool_kit::blocking::on_blocking_thread,
    },
    egress::proxy::{EgressProxy, ProxyReport},
    sandbox::{
        control_group::OutOfMemoryCause,
        launcher::{Child, Exit, ProcessSignal},
    },
};
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    sync::{mpsc, watch},
    time::{sleep, sleep_until, timeout},
};
use toolstead_domain::{
    DefaultSuggestions, SuggestionFormatter, ToolFailure, ToolResult, error_kind::ErrorKind, suggestion::SUGGESTION,
};

/// Time for a command to end after SIGTERM.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// Time to read the rest of the pipes after the end of an unconfined command and its process group. A confined command
/// has ended once none of its processes is left.
const DRAIN: Duration = Duration::from_millis(500);
/// Size in bytes of the first read, which is enough for most commands, and of later reads.
const FIRST_CHUNK: usize = 4 << 10;
const CHUNK: usize = 64 << 10;
/// Ctrl-D, twice.
const END_OF_INPUT_TWICE: &[u8] = &[4, 4];
/// Maximum number of queued texts for the input.
const WAITING_INPUTS: usize = 64;
/// Silence after which an incomplete line counts as a line: a prompt has no line break.
const SILENCE: Duration = Duration::from_millis(200);

/// Action once a command has printed more than the capture retains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExcessPolicy {
    /// The command is ended.
    Ends,
    /// The oldest output is discarded.
    DropsOldest,
}

/// A running or ended command. Dropping it ends the command at once, if this process runs it.
#[derive(Debug)]
pub(crate) struct CommandHandle {
    pub(crate) capture: Arc<Capture>,
    /// Process id, as seen from outside its own namespace.
    pub(crate) process: u32,
    pub(crate) started: Instant,
    end: watch::Receiver<Option<CommandEnd>>,
    orders: mpsc::UnboundedSender<CommandControl>,
    input: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
}

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandEnd {
    pub(crate) cause: EndCause,
    /// Exit code; `None` if a signal ended the command.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) after: Duration,
    /// `true` if processes that it left behind were ended.
    pub(crate) had_survivors: bool,
    /// Memory limit that was reached, if the kernel ended the command for that.
    pub(crate) out_of_memory: Option<OutOfMemoryCause>,
    /// Notes for the result, one sentence each: changes of protected names, first those that could not be undone;
    /// refused hosts; and, if the command failed, paths that were closed in addition to those that rules name.
    pub(crate) notes: Vec<String>,
    /// Changes by which the user can allow what was refused, one sentence each.
    #[serde(default)]
    pub(crate) suggestions: Vec<String>,
    /// `true` if a change of a protected name could not be undone.
    pub(crate) is_tainted: bool,
}

/// Reason for the end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EndCause {
    /// Ended by itself.
    Itself,
    /// Reached its timeout.
    TimedOut,
    /// Stopped by a caller.
    Stopped,
    /// Printed more than the capture retains.
    TooMuchOutput,
    /// The process that owned the command is gone, and the result is unknown.
    Lost,
}

/// Order to a running command.
#[derive(Debug)]
pub(crate) enum CommandControl {
    Signal(ProcessSignal),
    /// SIGTERM, then SIGKILL after the grace period.
    Stop,
    /// As `Stop`, because the timeout was reached.
    TimeOut,
    Kill,
    /// Closes the input.
    CloseInput,
}

/// Other ends of the channels of a command that another process owns.
#[derive(Debug)]
pub(crate) struct CommandOwnerChannels {
    pub(crate) ended: watch::Sender<Option<CommandEnd>>,
    pub(crate) orders: mpsc::UnboundedReceiver<CommandControl>,
    /// Texts for its input.
    pub(crate) texts: mpsc::Receiver<Vec<u8>>,
}

impl CommandHandle {
    /// Takes ownership of a started program. `input` is written to its standard input, which stays open if
    /// `stays_open`.
    pub(crate) fn of(
        started: StartedProgram,
        capture: Capture,
        deadline: Option<Instant>,
        excess: ExcessPolicy,
        input: Option<Vec<u8>>,
        stays_open: bool,
    ) -> Self {
        let StartedProgram { mut child, proxy, is_terminal, widening_note: closed_wider, .. } = started;
        let capture = Arc::new(capture);
        let (orders, ordered) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(None);
        let since = Instant::now();
        let process = child.id();
        let (writer, texts) = mpsc::channel(WAITING_INPUTS);
        let is_written = child.stdin.is_some();
        if let Some(stdin) = child.stdin.take() {
            if let Some(input) = input.filter(|input| !input.is_empty()) {
                // The first text always fits into the queue.
                let _ = writer.try_send(input);
            }
            tokio::spawn(write_input(stdin, texts, end.clone(), is_terminal));
        }
        let supervisor = Supervisor {
            stdout: OutputPipeReader::of(child.stdout.take(), OutputStream::Stdout),
            stderr: OutputPipeReader::of(child.stderr.take(), OutputStream::Stderr),
            child,
            proxy,
            closed_wider,
            capture: capture.clone(),
            excess,
            started: since,
        };
        tokio::spawn(async move {
            let end = supervisor.run(ordered, deadline).await;
            ended.send_replace(Some(end));
        });
        let writer = (is_written && stays_open).then_some(writer);
        Self { capture, process, started: since, end, orders, input: Mutex::new(writer) }
    }

    /// Creates a handle of a command or of other work that another owner runs, and the ends of its channels for that
    /// owner.
    pub(crate) fn remote(
        capture: Arc<Capture>,
        process: u32,
        started: Instant,
        takes_input: bool,
    ) -> (Self, CommandOwnerChannels) {
        let (orders, ordered) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(None);
        let (writer, texts) = mpsc::channel(WAITING_INPUTS);
        let input = Mutex::new(takes_input.then_some(writer));
        (Self { capture, process, started, end, orders, input }, CommandOwnerChannels { ended, orders: ordered, texts })
    }

    /// Returns `true` if the input is open.
    pub(crate) fn takes_input(&self) -> bool {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns the result; `None` while the command runs.
    pub(crate) fn end(&self) -> Option<CommandEnd> {
        self.end.borrow().clone()
    }

    /// Returns the result once the command has ended and all of its output is captured.
    pub(crate) fn ended(&self) -> impl Future<Output = CommandEnd> + Send + 'static {
        let mut end = self.end.clone();
        async move {
            match end.wait_for(Option::is_some).await {
                Ok(end) => end.clone().unwrap_or_else(CommandEnd::unknown),
                // Only during shutdown of the runtime.
                Err(_) => CommandEnd::unknown(),
            }
        }
    }

    /// Sends SIGTERM, then SIGKILL after the grace period. Does nothing once the command has ended.
    pub(crate) fn stop(&self) {
        let _ = self.orders.send(CommandControl::Stop);
    }

    /// Ends the command as its own timeout would.
    pub(crate) fn time_out(&self) {
        let _ = self.orders.send(CommandControl::TimeOut);
    }

    /// Kills the command.
    pub(crate) fn kill(&self) {
        let _ = self.orders.send(CommandControl::Kill);
    }

    /// Sends a signal to the command.
    pub(crate) fn signal(&self, signal: ProcessSignal) {
        let _ = self.orders.send(CommandControl::Signal(signal));
    }

    /// Writes to the input, and closes it if requested.
    ///
    /// # Errors
    /// A failure for the model when the input is not open, or the command does not read it.
    pub(crate) fn write(&self, text: Option<Vec<u8>>, close: bool) -> Result<(), ToolFailure> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = &*input else {
            if text.is_none() && close {
                return Ok(());
            }
            return Err(ToolFailure::new(ErrorKind::InvalidInput, "the standard input of the task is closed")
                .next("Start the task with `stdin`, which may be empty, to send input later."));
        };
        if let Some(text) = text {
            match writer.try_send(text) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(_)) => {
                    let message = "the task does not read its input, and the input buffer is full";
                    return Err(ToolFailure::new(ErrorKind::ExecutionFailed, message));
                }
                Err(mpsc::error::TrySendError::Closed(_)) => {
                    *input = None;
                    return Err(ToolFailure::new(ErrorKind::ExecutionFailed, "the task has closed its input"));
                }
            }
        }
        if close {
            *input = None;
            let _ = self.orders.send(CommandControl::CloseInput);
        }
        Ok(())
    }

    /// Waits for a line of the output that matches, and returns it as plain text; `None` if the command ends without
    /// one. An incomplete line counts after a short silence. Dropping the future cancels the search.
    ///
    /// # Errors
    /// When the output cannot be read.
    pub(crate) async fn find_line(&self, pattern: &Regex) -> Result<Option<String>, ToolFailure> {
        let mut grows = self.capture.subscribe_total();
        let ended = self.ended();
        tokio::pin!(ended);
        let (mut plain, mut at, mut is_over) = (ControlSequenceFilter::default(), 0, false);
        loop {
            let (start, bytes) = read(&self.capture, at, CHUNK).await?;
            at = start + bytes.len() as u64;
            let mut lines = String::new();
            plain.push(&bytes, &mut lines);
            if let Some(line) = lines.lines().find(|line| pattern.is_match(line)) {
                return Ok(Some(line.to_owned()));
            }
            if !bytes.is_empty() {
                continue;
            }
            if is_over {
                let last = plain.line();
                return Ok(pattern.is_match(last).then(|| last.to_owned()).filter(|line| !line.is_empty()));
            }
            tokio::select! {
                changed = grows.changed() => is_over = changed.is_err(),
                _ = &mut ended => is_over = true,
                () = sleep(SILENCE), if !plain.line().is_empty() => {
                    if pattern.is_match(plain.line()) {
                        return Ok(Some(plain.line().to_owned()));
                    }
                    // The result cannot change before there is more output.
                    tokio::select! {
                        changed = grows.changed() => is_over = changed.is_err(),
                        _ = &mut ended => is_over = true,
                    }
                }
            }
        }
    }
}

/// Reads captured output, on a blocking thread if it is on disk.
pub(crate) async fn read(capture: &Arc<Capture>, from: u64, most: usize) -> Result<(u64, Vec<u8>), ToolFailure> {
    if !capture.is_on_disk(0) {
        return capture.read(from, most).map_err(crate::builtin::commands::capture::output_read_failure);
    }
    let capture = capture.clone();
    on_blocking_thread(move || capture.read(from, most).map_err(crate::builtin::commands::capture::output_read_failure))
        .await
}

impl CommandEnd {
    /// Adds the suggestions to the result's `_meta`, which users see and models do not.
    pub(crate) fn suggest_in(&self, result: &mut ToolResult) {
        if !self.suggestions.is_empty() {
            result.insert_meta(SUGGESTION, self.suggestions.join(" ").into());
        }
    }

    /// Creates the result of work that is not a program.
    pub(crate) fn of_work(cause: EndCause, code: Option<i32>, after: Duration) -> Self {
        Self { cause, code, after, ..Self::unknown() }
    }

    /// Creates the result of a command whose owner is gone.
    pub(crate) fn for_lost_owner() -> Self {
        Self { cause: EndCause::Lost, ..Self::unknown() }
    }

    fn unknown() -> Self {
        Self {
            cause: EndCause::Stopped,
            code: None,
            signal: None,
            after: Duration::ZERO,
            had_survivors: false,
            out_of_memory: None,
            notes: Vec::new(),
            suggestions: Vec::new(),
            is_tainted: false,
        }
    }
}

/// Writes texts until the command has ended or its input is closed. A terminal receives the end of the input as Ctrl-D.
async fn write_input(
    mut stdin: pipe::Sender,
    mut texts: mpsc::Receiver<Vec<u8>>,
    mut end: watch::Receiver<Option<CommandEnd>>,
    is_terminal: bool,
) {
    let writing = async {
        let mut is_within_line = false;
        while let Some(text) = texts.recv().await {
            is_within_line = text.last().is_some_and(|last| *last != b'\n');
            if stdin.write_all(&text).await.is_err() {
                return;
            }
        }
        if is_terminal {
            // Within a line the first Ctrl-D only passes on the typed text.
            let typed: &[u8] = if is_within_line { END_OF_INPUT_TWICE } else { &END_OF_INPUT_TWICE[1..] };
            if stdin.write_all(typed).await.is_ok() {
                // Closing this end would remove the terminal.
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        _ = end.wait_for(Option::is_some) => {}
    }
}

/// The reading end of a pipe, until its other end is closed.
struct OutputPipeReader {
    receiver: Option<pipe::Receiver>,
    stream: OutputStream,
    buffer: Vec<u8>,
    /// `true` if the last read filled the buffer, so that much more may follow.
    is_filled: bool,
}

impl OutputPipeReader {
    fn of(receiver: Option<pipe::Receiver>, stream: OutputStream) -> Self {
        Self { receiver, stream, buffer: Vec::new(), is_filled: true }
    }

    fn is_open(&self) -> bool {
        self.receiver.is_some()
    }

    /// Returns the number of bytes read into the buffer. Never completes once the pipe is closed.
    async fn read(&mut self) -> usize {
        let Some(receiver) = &mut self.receiver else { return std::future::pending().await };
        if self.is_filled {
            self.buffer.resize(if self.buffer.is_empty() { FIRST_CHUNK } else { CHUNK }, 0);
            self.is_filled = false;
        }
        match receiver.read(&mut self.buffer).await {
            Ok(bytes @ 1..) => {
                self.is_filled = bytes == self.buffer.len();
                bytes
            }
            Ok(0) | Err(_) => {
                self.receiver = None;
                0
            }
        }
    }
}

/// The task that owns the child process.
struct Supervisor {
    stdout: OutputPipeReader,
    stderr: OutputPipeReader,
    child: Child,
    proxy: Option<EgressProxy>,
    closed_wider: Option<String>,
    capture: Arc<Capture>,
    excess: ExcessPolicy,
    started: Instant,
}

impl Supervisor {
    async fn run(
        mut self,
        mut orders: mpsc::UnboundedReceiver<CommandControl>,
        deadline: Option<Instant>,
    ) -> CommandEnd {
        let far = || Instant::now() + Duration::from_secs(86_400 * 365);
        let deadline = deadline.unwrap_or_else(far);
        let (mut cause, mut kill_at, mut has_owner, mut may_have_printed) = (EndCause::Itself, None, true, true);
        let exit = loop {
            tokio::select! {
                exit = self.child.exited() => break Some(exit),
                bytes = self.stdout.read() => take(&self.capture, &self.stdout, bytes).await,
                bytes = self.stderr.read() => take(&self.capture, &self.stderr, bytes).await,
                order = orders.recv(), if has_owner => match order {
                    Some(CommandControl::Signal(signal)) => {
                        self.child.signal(signal);
                        if signal == ProcessSignal::Kill {
                            cause = EndCause::Stopped;
                        }
                    }
                    Some(order @ (CommandControl::Stop | CommandControl::TimeOut)) if kill_at.is_none() => {
                        cause = if matches!(order, CommandControl::Stop) { EndCause::Stopped } else { EndCause::TimedOut };
                        self.child.signal(ProcessSignal::Terminate);
                        kill_at = Some(Instant::now() + GRACE);
                    }
                    // The other end of the channel reports these to writers.
                    Some(CommandControl::Stop | CommandControl::TimeOut | CommandControl::CloseInput) => {}
                    Some(CommandControl::Kill) => {
                        cause = EndCause::Stopped;
                        break None;
                    }
                    // The owner is gone; a command that was asked to end keeps its grace period.
                    None if kill_at.is_some() => has_owner = false,
                    None => {
                        cause = EndCause::Stopped;
                        break None;
                    }
                },
                () = sleep_until(deadline.into()), if kill_at.is_none() => {
                    cause = EndCause::TimedOut;
                    self.child.signal(ProcessSignal::Terminate);
                    kill_at = Some(Instant::now() + GRACE);
                }
                () = sleep_until(kill_at.unwrap_or_else(far).into()), if kill_at.is_some() => break None,
            }
            if self.excess == ExcessPolicy::Ends && self.capture.is_full() {
                cause = EndCause::TooMuchOutput;
                break None;
            }
            let may_print = self.stdout.is_open() || self.stderr.is_open();
            if may_have_printed && !may_print {
                self.child.end_leftovers_at_once();
            }
            may_have_printed = may_print;
        };
        if cause == EndCause::Itself && matches!(exit, Some(Exit::TimedOut(_))) {
            cause = EndCause::TimedOut;
        }
        let after = self.started.elapsed();
        let Self { mut stdout, mut stderr, mut child, proxy, closed_wider, capture, excess, .. } = self;
        // Output from before the end is in the pipes. Other processes that hold the pipes are not awaited.
        let mut had_survivors = false;
        if exit.is_some() && cause == EndCause::Itself {
            had_survivors = timeout(DRAIN, drain(&capture, excess, &mut stdout, &mut stderr)).await.is_err();
        }
        if exit.is_none() {
            child.kill().await;
        }
        had_survivors |= cause == EndCause::Itself && child.had_survivors();
        let is_tainted = !child.left().is_empty();
        let mut notes = [child.left(), child.undone()].concat();
        let report = proxy.map(|proxy| proxy.report());
        notes.extend(report.as_ref().and_then(ProxyReport::refusals_text));
        let suggestions = report.iter().flat_map(ProxyReport::suggestions);
        let suggestions = suggestions.filter_map(|suggestion| DefaultSuggestions.format(suggestion)).collect();
        // These paths may be why the command failed, and no rule names them.
        notes.extend(closed_wider.filter(|_| exit != Some(Exit::Code(0))));
        // Ends the process group.
        drop(child);
        if cause != EndCause::TooMuchOutput {
            let _ = timeout(DRAIN, drain(&capture, excess, &mut stdout, &mut stderr)).await;
        }
        let out_of_memory = match exit {
            Some(Exit::OutOfMemory(whose)) => Some(whose),
            _ => None,
        };
        let (code, signal) = match exit {
            Some(Exit::Code(code)) => (Some(code), None),
            Some(Exit::Signal(signal)) => (None, Some(signal)),
            Some(Exit::OutOfMemory(_) | Exit::TimedOut(_)) | None => (None, Some(libc::SIGKILL)),
        };
        CommandEnd { cause, code, signal, after, had_survivors, out_of_memory, notes, suggestions, is_tainted }
    }
}

/// Reads both pipes until they are closed, or until the capture is full if that ends the command.
async fn drain(
    capture: &Arc<Capture>,
    excess: ExcessPolicy,
    stdout: &mut OutputPipeReader,
    stderr: &mut OutputPipeReader,
) {
    while (stdout.is_open() || stderr.is_open()) && !(excess == ExcessPolicy::Ends && capture.is_full()) {
        tokio::select! {
            bytes = stdout.read() => take(capture, stdout, bytes).await,
            bytes = stderr.read() => take(capture, stderr, bytes).await,
        }
    }
}

async fn take(capture: &Arc<Capture>, pipe: &OutputPipeReader, bytes: usize) {
    if !capture.is_on_disk(bytes) {
        return capture.append(pipe.stream, &pipe.buffer[..bytes]);
    }
    let (capture, stream, bytes) = (capture.clone(), pipe.stream, pipe.buffer[..bytes].to_vec());
    // Fails only during shutdown of the runtime.
    let _ = tokio::task::spawn_blocking(move || capture.append(stream, &bytes)).await;
}

/// A flag that is set once.
#[derive(Debug, Default)]
pub(crate) struct OnceFlag(AtomicBool);

impl OnceFlag {
    /// Sets the flag, and returns `true` if it was not set before.
    pub(crate) fn set_once(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
