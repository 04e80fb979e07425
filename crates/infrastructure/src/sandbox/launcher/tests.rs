use super::*;
use crate::child_environment;
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, Write},
    process::{Command, Stdio},
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use toolstead_domain::{Confinement, NetworkPolicy, SandboxLimits, SandboxPolicy};

fn policy(environment: BTreeMap<String, String>) -> SandboxPolicy {
    SandboxPolicy {
        confinement: Confinement::Open,
        session: None,
        hidden: Vec::new(),
        sealed: Vec::new(),
        write_roots: vec![],
        read_roots: vec![],
        lasting_home: None,
        network: NetworkPolicy::Host,
        offers_tools: false,
        environment,
        limits: SandboxLimits::default(),
    }
}

fn shell(script: &str) -> LaunchSpec {
    LaunchSpec {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        working_dir: "/".into(),
        input: ChildInput::Pipe,
        policy: policy(child_environment::base(|_| None)),
    }
}

async fn output(spec: LaunchSpec) -> String {
    let mut child = Launcher::start().unwrap().launch(spec).await.unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    text
}

async fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
    line.trim().to_owned()
}

/// Returns `true` if the process has ended. A process that was not reaped counts, because the init of the machine may
/// be slow.
fn is_gone(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])))
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let waiting = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(Duration::from_secs(120), waiting).await.expect(what);
}

#[tokio::test]
async fn a_child_has_pipes_for_stdin_stdout_and_stderr() {
    let launcher = Launcher::start().unwrap();
    let mut child = launcher.launch(shell("cat; echo problem >&2; exit 3")).await.unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hello").await.unwrap();
    drop(stdin);
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
    assert_eq!((out.as_str(), err.as_str(), child.exited().await), ("hello", "problem\n", Exit::Code(3)));
}

#[tokio::test]
async fn a_child_inherits_neither_environment_nor_descriptors_nor_privileges() {
    let inheritable = File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&inheritable, rustix::io::FdFlags::empty()).unwrap();
    let mut spec =
        shell("env | grep -v -e ^PWD= -e ^SHLVL= -e ^_=; echo fds; ls /proc/$$/fd; grep NoNewPrivs /proc/$$/status");
    spec.policy.environment.insert("DECLARED".into(), "yes".into());
    let text = output(spec).await;
    let (environment, rest) = text.split_once("fds\n").unwrap();
    let mut names: Vec<&str> = environment.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["DECLARED", "HOME", "LANG", "PATH", "TMPDIR", "USER"]);
    assert_eq!(rest.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "NoNewPrivs:", "1"]);
}

#[tokio::test]
async fn a_child_leads_a_session_and_a_group_of_its_own() {
    let text = output(shell("cut -d' ' -f1,5,6 /proc/$$/stat")).await;
    let ids: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(ids, [ids[0]; 3]);
}

#[tokio::test]
async fn a_missing_program_is_reported_with_the_searched_paths() {
    let launcher = Launcher::start().unwrap();
    let said = async |program: &str, working_dir: &str| {
        let spec = LaunchSpec { program: program.into(), working_dir: working_dir.into(), ..shell("") };
        launcher.launch(spec).await.unwrap_err().to_string()
    };
    let path = &policy(child_environment::base(|_| None)).environment["PATH"];
    assert_eq!(
        said("no-such", "/").await,
        format!("the program `no-such` was not found; it was looked for in `{path}`")
    );
    assert_eq!(
        said("./no-such", "/").await,
        "the program `./no-such` was not found; it was looked for in `/./no-such`"
    );
    assert_eq!(said("/proc", "/").await, "the program `/proc` was not found; it was looked for in `/proc`");
    assert_eq!(said("sh", "/no-such").await, "the working folder `/no-such` does not exist");
    let empty = LaunchSpec { policy: policy(BTreeMap::new()), ..shell("") };
    assert!(launcher.launch(empty).await.unwrap_err().to_string().ends_with("no folder, because its `PATH` is empty"));
    let script = tempfile::NamedTempFile::new().unwrap();
    fs::write(script.path(), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(script.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = script.path().with_extension("sh");
    fs::copy(script.path(), &copy).unwrap();
    assert!(said(copy.to_str().unwrap(), "/").await.starts_with("could not start `/"));
    fs::remove_file(copy).unwrap();
}

#[tokio::test]
async fn terminate_ends_a_child_that_exits_when_its_input_closes() {
    let launcher = Launcher::start().unwrap();
    let child = launcher.launch(shell("cat")).await.unwrap();
    let pid = child.id().to_string();
    timeout(Duration::from_secs(120), child.terminate(Duration::from_secs(600))).await.unwrap();
    assert!(is_gone(&pid));
}

#[tokio::test]
async fn a_child_that_ignores_termination_is_killed_with_its_grandchildren() {
    let launcher = Launcher::start().unwrap();
    let script = "trap '' TERM HUP; sleep 1000 & echo $!; while :; do sleep 1000; done";
    let mut child = launcher.launch(shell(script)).await.unwrap();
    let (pid, grandchild) = (child.id().to_string(), first_line(&mut child).await);
    timeout(Duration::from_secs(120), child.terminate(Duration::from_millis(100))).await.unwrap();
    until("both are gone", || is_gone(&pid) && is_gone(&grandchild)).await;
}

#[tokio::test]
async fn a_dropped_child_is_killed_with_its_group_and_leaves_no_zombie() {
    let launcher = Launcher::start().unwrap();
    let mut child = launcher.launch(shell("sleep 1000 & echo $!; sleep 1000")).await.unwrap();
    let (pid, grandchild) = (child.id().to_string(), first_line(&mut child).await);
    // The last launcher is dropped as well.
    drop((child, launcher));
    until("the grandchild is gone", || is_gone(&grandchild)).await;
    until("the child is reaped", || !Path::new(&format!("/proc/{pid}")).exists()).await;
}

#[test]
fn a_child_whose_launch_is_dropped_during_the_lookup_is_not_started() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let launcher = Launcher::start().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let marker = folder.path().join("marker");
        // The only thread for lookups is busy until the test releases it.
        let (go_on, held_up) = mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || held_up.recv());
        let launch = launcher.launch(shell(&format!("echo > {}", marker.display())));
        assert!(timeout(Duration::from_millis(1), launch).await.is_err());
        go_on.send(()).unwrap();
        busy.await.unwrap().unwrap();
        // The next child is looked up and started after the first.
        let mut next = launcher.launch(shell("true")).await.unwrap();
        assert_eq!(next.exited().await, Exit::Code(0));
        assert!(!marker.exists());
    });
}

#[test]
fn a_relative_path_is_not_resolved_to_a_program_on_the_path() {
    let found = |program: &str| Launcher::find_outside(program, "/usr/bin:/bin", &WritableRoots::default()).0;
    assert!(found("sh").is_some());
    assert_eq!(found("/bin/sh"), Some(PathBuf::from("/bin/sh")));
    for program in ["./sh", "../bin/sh"] {
        assert_eq!(found(program), None, "{program}");
    }
}

#[tokio::test]
async fn a_child_whose_launch_was_dropped_is_ended() {
    let launcher = Launcher::start().unwrap();
    let marker = tempfile::tempdir().unwrap();
    let file = marker.path().join("pid");
    let spec = shell(&format!("echo $$ > {}; sleep 1000", file.display()));
    let launch = launcher.launch(spec);
    // Polled once, so that the order is sent; then dropped.
    let given_up = timeout(Duration::ZERO, launch).await;
    // The next launch is served after the first.
    drop(launcher.launch(shell("true")).await.unwrap());
    let pid = fs::read_to_string(&file).unwrap_or_default();
    if given_up.is_err() && !pid.is_empty() {
        until("the child is gone", || is_gone(pid.trim())).await;
    }
}

/// The test runs its own program a second time, as a runtime that will be killed.
#[test]
fn a_child_does_not_outlive_a_runtime_that_is_killed() {
    const ROLE: &str = "TOOLSTEAD_TEST_DOOMED_RUNTIME";
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if env::var_os(ROLE).is_some() {
        runtime().block_on(async {
            let child = Launcher::start().unwrap().launch(shell("exec sleep 1000")).await.unwrap();
            writeln!(io::stderr(), "child {}", child.id()).unwrap();
            std::future::pending::<()>().await;
        });
    }
    let this_test = "sandbox::launcher::tests::a_child_does_not_outlive_a_runtime_that_is_killed";
    let mut doomed = Command::new(env::current_exe().unwrap())
        .args(["--exact", this_test, "--nocapture"])
        .env(ROLE, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = io::BufReader::new(doomed.stderr.take().unwrap()).lines();
    let pid = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("child ").map(str::to_owned)).unwrap();
    assert!(!is_gone(&pid));
    doomed.kill().unwrap();
    doomed.wait().unwrap();
    runtime().block_on(until("the child is gone", || is_gone(&pid)));
}
