//! The start and end of `/bin/true`: bare, in our sandbox, and in bubblewrap's.

use crate::Outcome;
use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{Confinement, NetworkPolicy, SandboxLimits, SandboxPolicy};
use toolstead_infrastructure::sandbox::launcher::{ChildInput, Exit, LaunchSpec, Launcher};

const ROUNDS: usize = 101;
/// Not counted: the first run starts the zygote, and pages are read from the disk.
const WARM_UP: usize = 5;
const PROGRAM: &str = "/bin/true";
/// As Codex confines its commands.
const BUBBLEWRAP: &[&str] = &[
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/tmp",
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
];

/// Rounds of each in turn; the medians and their ratios.
pub(crate) async fn run() -> Outcome<()> {
    let root = tempfile::tempdir()?;
    let root = root.path().canonicalize()?;
    let launcher = Launcher::start()?;
    let session: Arc<str> = "bench".into();
    let has_bubblewrap = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok();
    let (mut bare, mut alone, mut shared, mut theirs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        let times = [
            timed(Command::new(PROGRAM))?,
            sealed(&launcher, &root, None).await?,
            sealed(&launcher, &root, Some(session.clone())).await?,
        ];
        let reference = if has_bubblewrap { Some(timed(bubblewrap())?) } else { None };
        if round >= WARM_UP {
            bare.push(times[0]);
            alone.push(times[1]);
            shared.push(times[2]);
            theirs.extend(reference);
        }
    }
    launcher.release_session(session);
    let (bare, alone, shared) = (median(bare), median(alone), median(shared));
    print("spawn, sealed", alone, bare, "5.00", "a bare spawn of /bin/true");
    print("spawn, sealed, in a session", shared, bare, "5.00", "the same");
    if has_bubblewrap {
        let theirs = median(theirs);
        print("spawn, sealed", alone, theirs, "0.60", "bubblewrap");
        print("spawn, sealed, in a session", shared, theirs, "0.60", "bubblewrap");
        print("  bubblewrap", theirs, bare, "", "a bare spawn, for comparison");
    } else {
        println!("  bwrap is not on the PATH and was not measured");
    }
    Ok(())
}

/// From the start to the end of a program that prints nothing.
fn timed(mut command: Command) -> Outcome<Duration> {
    let begun = Instant::now();
    let done = command.stdin(Stdio::null()).output()?;
    let time = begun.elapsed();
    match done.status.success() {
        true => Ok(time),
        false => Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&done.stderr)).into()),
    }
}

fn bubblewrap() -> Command {
    let mut command = Command::new("bwrap");
    command.args(BUBBLEWRAP).arg(PROGRAM);
    command
}

/// The same through the launcher, under the policy that built-in tools start commands with.
async fn sealed(launcher: &Launcher, root: &Path, session: Option<Arc<str>>) -> Outcome<Duration> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
    let spec = LaunchSpec {
        program: PROGRAM.into(),
        args: Vec::new(),
        working_dir: root.to_path_buf(),
        input: ChildInput::Nothing,
        policy: SandboxPolicy {
            confinement: Confinement::Sealed,
            session,
            hidden: Vec::new(),
            sealed: Vec::new(),
            write_roots: vec![root.to_path_buf()],
            read_roots: Vec::new(),
            lasting_home: None,
            network: NetworkPolicy::None,
            offers_tools: false,
            environment: BTreeMap::from([("PATH".to_owned(), path), ("LANG".to_owned(), "C.UTF-8".to_owned())]),
            limits: SandboxLimits::default(),
        },
    };
    let begun = Instant::now();
    let mut child = launcher.launch(spec).await?;
    let exit = child.exited().await;
    let time = begun.elapsed();
    match exit {
        Exit::Code(0) => Ok(time),
        other => Err(format!("{PROGRAM} ended with {other:?} in the sandbox").into()),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn print(row: &str, subject: Duration, reference: Duration, budget: &str, note: &str) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{row:<34} {:>10.2}ms {:>10.2}ms {:>8.2} {budget:>8}  {note}",
        millis(subject),
        millis(reference),
        subject.as_secs_f64() / reference.as_secs_f64()
    );
}
