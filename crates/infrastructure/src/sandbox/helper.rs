//! Processing of untrusted bytes in a child process: the runtime's own program, started a second time with a marker.
//!
//! A parser of foreign documents may loop, exhaust memory or crash. In a child that has limited itself before, this
//! affects only the child. The child serves one request and ends:
//!
//! ```text
//! parent -> child   (environment) TOOLSTEAD_HELPER=name
//! child  -> parent  one line: it is the helper, and ready
//! parent -> child   one line: the order, as JSON with the bounds of the child; then the bytes; then the end
//! child  -> parent  the answer, to the end
//! ```

use crate::{
    child_environment,
    helper_port::{HelperCall, HelperError, HelperLimits, HelperPort},
    sandbox::{
        file_size_signal,
        launcher::{ChildInput, Exit, LaunchSpec, Launcher},
        process_wide::PROCESS,
        self_test,
    },
};
use async_trait::async_trait;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{
    env,
    fs::File,
    io::{self, BufRead, Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    sync::{OnceLock, atomic::Ordering},
    thread,
    time::Instant,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    sync::Semaphore,
    task::spawn_blocking,
    time::timeout_at,
};
use toolstead_domain::SandboxPolicy;

/// Variable that turns a program into a helper. Its value is the name of the helper.
const MARKER: &str = "TOOLSTEAD_HELPER";
/// First line that a helper prints.
const READY: &str = "toolstead-helper 1 ready";
/// Maximum size of an order, including its line break, in bytes.
const MAX_ORDER_BYTES: u64 = 64 << 10;
/// Maximum size of a helper's stderr output that is stored, in bytes.
const KEPT_STDERR_BYTES: usize = 4 << 10;
/// Maximum processor time of short work, in seconds.
const MAX_SHORT_SECONDS: u64 = 10;
/// Exit code of a helper whose work panicked.
const PANICKED: i32 = 101;

/// Work of a helper. Receives the order as JSON text and the input, and returns the answer.
pub type HelperFn = fn(order: &str, input: &mut dyn Read) -> Vec<u8>;

/// Ends all helpers and confined programs, and returns once they have ended. Call it in the last line of `main`,
/// because no confined program can be started afterwards. Without this call, the kernel ends them a moment after the
/// program.
pub fn end() {
    PROCESS.launchers.zygotes.end();
}

/// Runs the work and ends the process, if this process was started as a helper. Otherwise returns. From then on the
/// process can start helpers, and it ignores `SIGXFSZ`: a write beyond `ulimit -f` fails and does not end the process.
pub fn enter(works: &[(&str, HelperFn)]) {
    PROCESS.has_helper_door.store(true, Ordering::Relaxed);
    PROCESS.launchers.zygotes.enter();
    self_test::enter();
    let Some(name) = env::var_os(MARKER) else { return file_size_signal::ignore() };
    let work = works.iter().find(|(known, _)| name == *known).map(|(_, work)| *work);
    process::exit(match work {
        Some(work) => serve(work).unwrap_or(1),
        None => 2,
    });
}

/// Serves one request as a helper: from the line that reports it ready to the answer on standard output. Returns the
/// exit code.
fn serve(work: HelperFn) -> io::Result<i32> {
    // Output that a parser prints must not become part of the answer.
    let mut answer = File::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?);
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    writeln!(answer, "{READY}")?;
    let mut input = io::stdin().lock();
    let mut order = String::new();
    (&mut input).take(MAX_ORDER_BYTES).read_line(&mut order)?;
    let order: HelperOrder<Box<RawValue>> = serde_json::from_str(&order)?;
    confine(order.bounds)?;
    let Ok(done) = catch_unwind(AssertUnwindSafe(|| work(order.order.get(), &mut input))) else {
        return Ok(PANICKED);
    };
    answer.write_all(&done)?;
    Ok(0)
}

/// Limits the child before it reads a byte of the document. The launcher has already confined it: no files, no network,
/// no privileges.
fn confine(bounds: HelperLimits) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::thread::set_no_new_privs(true)?;
    // The hard time limit is one second later. The first signal ends the process, and the second one cannot be blocked.
    // Both limits count the processor time of all threads, which does not depend on the load of the machine.
    for (resource, soft, hard) in [
        (Resource::As, bounds.memory_bytes, bounds.memory_bytes),
        (Resource::Cpu, bounds.seconds, bounds.seconds + 1),
        (Resource::Core, 0, 0),
        // No further process or thread. The privileges of root bypass this limit.
        (Resource::Nproc, 0, 0),
        // No further descriptor. Open ones stay open.
        (Resource::Nofile, 0, 0),
        (Resource::Fsize, 0, 0),
    ] {
        setrlimit(resource, Rlimit { current: Some(soft), maximum: Some(hard) })?;
    }
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct HelperOrder<T> {
    bounds: HelperLimits,
    order: T,
}

/// Starts helpers, with a limited number of them at a time.
#[derive(Debug)]
pub struct HelperLauncher {
    launcher: OnceLock<Launcher>,
    requires_landlock: bool,
    allows_tier_2: bool,
    /// Permits for short work, such as pages and schemas.
    short: Semaphore,
    /// Permits for long work, such as documents, so that it cannot delay short work.
    long: Semaphore,
}

impl Default for HelperLauncher {
    /// Allows at most two helpers per core for short work at once, and as many for long work.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let seats = || Semaphore::new(2 * cores);
        Self {
            launcher: OnceLock::new(),
            requires_landlock: false,
            allows_tier_2: false,
            short: seats(),
            long: seats(),
        }
    }
}

impl HelperLauncher {
    /// Sets whether starting a helper fails on a kernel without Landlock.
    #[must_use]
    pub fn requiring_landlock(self, is_required: bool) -> Self {
        Self { requires_landlock: is_required, ..self }
    }

    /// Sets whether helpers may run in tier 2, with only Landlock and the system call filter, if not all layers of the
    /// sandbox are available.
    #[must_use]
    pub fn allowing_tier_2(self, is_allowed: bool) -> Self {
        Self { allows_tier_2: is_allowed, ..self }
    }

    async fn answered(&self, call: HelperCall) -> Result<Vec<u8>, HelperError> {
        let mut child = self.launcher()?.launch(spec(call.name)).await.map_err(not_started)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(mut stderr)) = pipes else {
            return Err(not_started("it has no pipes"));
        };
        let mut stdout = BufReader::new(stdout);
        let mut first = Vec::new();
        let mut beginning = (&mut stdout).take(READY.len() as u64 + 1);
        let is_ready = beginning.read_until(b'\n', &mut first).await.is_ok();
        if !is_ready || String::from_utf8_lossy(&first).trim_end() != READY {
            return Err(not_started("the started program did not identify itself as a helper"));
        }
        let mut order =
            serde_json::to_vec(&HelperOrder { bounds: call.bounds, order: call.order }).map_err(not_started)?;
        order.push(b'\n');
        let sending = async {
            let input = call.input.take(call.input_bytes);
            // A helper that has read enough stops reading. Its answer is valid in that case.
            if stdin.write_all(&order).await.is_ok() {
                copied(input, &mut stdin).await?;
            }
            drop(stdin);
            Ok(())
        };
        let answering = async {
            let mut answer = Vec::new();
            let read = stdout.take(call.answer_bytes + 1).read_to_end(&mut answer).await;
            (read, answer)
        };
        let (sent, (read, answer), complaint) = tokio::join!(sending, answering, tail(&mut stderr));
        sent.map_err(HelperError::Input)?;
        if answer.len() as u64 > call.answer_bytes {
            return Err(HelperError::AnswerTooLarge(call.answer_bytes));
        }
        match (child.exited().await, read) {
            (Exit::Code(0), Ok(_)) => Ok(answer),
            (exit, _) => Err(fault(exit, complaint, call.bounds)),
        }
    }

    fn launcher(&self) -> Result<&Launcher, HelperError> {
        if let Some(launcher) = self.launcher.get() {
            return Ok(launcher);
        }
        let started = Launcher::start().map_err(not_started)?.requiring_landlock(self.requires_landlock);
        // A helper is this program itself, and needs no files of the user.
        let started = started.allowing_tier_2(self.allows_tier_2).for_user(None);
        Ok(self.launcher.get_or_init(|| started))
    }
}

#[async_trait]
impl HelperPort for HelperLauncher {
    async fn call(&self, call: HelperCall) -> Result<Vec<u8>, HelperError> {
        if !PROCESS.has_helper_door.load(Ordering::Relaxed) {
            return Err(HelperError::NoDoor);
        }
        let deadline = call.deadline;
        let seats = if call.bounds.seconds > MAX_SHORT_SECONDS { &self.long } else { &self.short };
        let _seat = within(deadline, seats.acquire()).await?.map_err(not_started)?;
        // Starts here, because the wait for a permit does not count.
        let backstop = Instant::now().checked_add(call.bounds.backstop());
        let end = [deadline, backstop].into_iter().flatten().min();
        within(end, self.answered(call)).await?
    }
}

/// Waits for the work, at most until `end`; then fails with [`HelperError::Late`]. `None` sets no limit.
async fn within<T>(end: Option<Instant>, work: impl Future<Output = T>) -> Result<T, HelperError> {
    match end {
        Some(end) => timeout_at(end.into(), work).await.map_err(|_| HelperError::Late),
        None => Ok(work.await),
    }
}

fn not_started(error: impl ToString) -> HelperError {
    HelperError::NotStarted(error.to_string())
}

fn spec(name: &str) -> LaunchSpec {
    let mut environment = child_environment::base(|_| None);
    environment.insert(MARKER.into(), name.into());
    // The limit counts address space, not use. A second arena of the allocator would be reserved and never used.
    environment.insert("MALLOC_ARENA_MAX".into(), "1".into());
    // Nor large reservations: mimalloc reserves 1 GiB at once, and then the stack could not grow any more.
    environment.insert("MIMALLOC_ARENA_RESERVE".into(), "32MiB".into());
    LaunchSpec {
        program: "/proc/self/exe".into(),
        args: Vec::new(),
        working_dir: "/".into(),
        input: ChildInput::Pipe,
        policy: SandboxPolicy::closed(environment),
    }
}

/// Copies the input to its end, or until the helper stops reading.
async fn copied(mut input: impl Read + Send + 'static, stdin: &mut (impl AsyncWriteExt + Unpin)) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read;
        (read, input, buffer) =
            spawn_blocking(move || (input.read(&mut buffer), input, buffer)).await.map_err(io::Error::other)?;
        let read = read?;
        if read == 0 || stdin.write_all(&buffer[..read]).await.is_err() {
            return Ok(());
        }
    }
}

/// Reads to the end, and returns the last bytes.
async fn tail(stderr: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        let surplus = kept.len().saturating_sub(KEPT_STDERR_BYTES);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Returns the error for a helper that ended before its answer was complete.
fn fault(exit: Exit, stderr: String, bounds: HelperLimits) -> HelperError {
    match exit {
        Exit::Signal(signal) if signal == Signal::XCPU.as_raw() => HelperError::OutOfProcessorTime(bounds.seconds),
        // Rust's allocator ends a program in this way. Only the text distinguishes this abort from others.
        Exit::Signal(_) if stderr.contains("memory allocation of") => HelperError::OutOfMemory,
        Exit::OutOfMemory(_) => HelperError::OutOfMemory,
        Exit::TimedOut(_) => HelperError::Late,
        exit => HelperError::Died { exit: exit.to_string(), stderr },
    }
}
