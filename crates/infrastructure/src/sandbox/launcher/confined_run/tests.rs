mod groups;
mod offered_tools;
mod protected_names;
mod ready_init;
mod sessions;
mod without_namespaces;

use super::super::{Child, ChildInput, LaunchSpec};
use super::*;
use crate::{
    child_environment,
    sandbox::{file_size_signal, self_test, zygote::request::report},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};
use tokio::{io::AsyncReadExt, time::timeout};
use toolstead_domain::{Confinement, FileDescriptorExhaustion, NetworkPolicy, SandboxPolicy};

/// A workspace, with files beside it that a run must not reach.
struct World {
    folder: tempfile::TempDir,
    launcher: Launcher,
}

struct Ended {
    stdout: String,
    stderr: String,
    exit: Exit,
    undone: Vec<String>,
    left: Vec<String>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/secret"), "secret").unwrap();
        Self { folder, launcher: Launcher::start().unwrap() }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn spec(&self, script: &str) -> LaunchSpec {
        LaunchSpec {
            program: "bash".into(),
            args: vec!["-c".into(), script.into()],
            working_dir: self.work(),
            input: ChildInput::Nothing,
            policy: SandboxPolicy::sealed(self.work()),
        }
    }

    async fn run(&self, spec: LaunchSpec) -> Ended {
        ended(self.launcher.launch(spec).await.unwrap()).await
    }

    async fn bash(&self, script: &str) -> Ended {
        self.run(self.spec(script)).await
    }
}

async fn ended(mut child: Child) -> Ended {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reading = async { tokio::join!(out.read_to_string(&mut stdout), err.read_to_string(&mut stderr)) };
    let exit = timeout(Duration::from_secs(60), async {
        let (_, exit) = tokio::join!(reading, child.exited());
        exit
    });
    let exit = exit.await.expect("it ends");
    Ended { stdout, stderr, exit, undone: child.undone().to_vec(), left: child.left().to_vec() }
}

#[tokio::test]
async fn a_run_edits_its_root_and_new_files_belong_to_the_owner_of_the_root() {
    let world = World::new();
    fs::write(world.work().join("old"), "old").unwrap();
    let done = world.bash("id -u; pwd; echo more >> old; echo new > new; mkdir -p a/b; echo oops >&2; exit 3").await;
    assert_eq!(done.exit, Exit::Code(3), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.stderr, "oops\n");
    assert!(!done.stdout.starts_with("0\n"), "{}", done.stdout);
    assert_eq!(fs::read_to_string(world.work().join("old")).unwrap(), "oldmore\n");
    let own = fs::metadata(world.work()).unwrap();
    for name in ["new", "a/b"] {
        let made = fs::metadata(world.work().join(name)).unwrap();
        assert_eq!((made.uid(), made.gid()), (own.uid(), own.gid()), "{name}");
    }
}

#[tokio::test]
async fn a_run_gets_the_git_settings_of_the_user_that_its_launcher_is_for() {
    let world = World::new();
    let home = world.folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join(".gitconfig"), "[user]\nname = Ada\n").unwrap();
    for (user, expected) in [(Some(home.as_path()), "[user]\nname = Ada\n"), (None, ""), (Some(Path::new("/")), "")] {
        let launcher = world.launcher.clone().for_user(user);
        let done = ended(launcher.launch(world.spec("cat ~/.gitconfig 2>/dev/null || true")).await.unwrap()).await;
        assert_eq!(done.stdout, expected, "{user:?} {}", done.stderr);
    }
}

#[tokio::test]
async fn a_run_that_exceeds_its_timeout_is_killed_with_all_its_processes() {
    let world = World::new();
    // The processes ignore all signals that can be ignored, in a session of their own. The output ends with the last
    // one.
    let script = "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP; echo here; sleep 600; echo later' & wait";
    for confinement in [Confinement::Sealed, Confinement::Open] {
        let mut spec = world.spec(script);
        spec.policy.confinement = confinement;
        if confinement == Confinement::Open {
            // An unconfined program is ended by its process group.
            spec.args = vec!["-c".into(), script.replace("setsid ", "")];
            spec.policy.network = NetworkPolicy::Host;
        }
        let time = Duration::from_millis(200);
        spec.policy.limits.timeout = Some(time);
        let done = world.run(spec).await;
        assert_eq!((done.exit, done.stdout.as_str()), (Exit::TimedOut(time), "here\n"), "{confinement:?}");
    }
}

#[tokio::test]
async fn a_run_that_ends_within_its_timeout_reports_its_own_exit_status() {
    let world = World::new();
    for (script, exit) in [("exit 3", Exit::Code(3)), ("kill -KILL $$", Exit::Signal(libc::SIGKILL))] {
        let mut spec = world.spec(script);
        spec.policy.limits.timeout = Some(Duration::from_secs(3600));
        assert_eq!(world.run(spec).await.exit, exit, "{script}");
    }
}

#[tokio::test]
async fn a_sealed_run_reads_system_files_and_writes_only_below_its_root() {
    let world = World::new();
    let outside = world.folder.path().join("outside");
    let done = world
        .bash(&format!(
            "ls /usr/bin > listed && test -s listed; echo root $?; ls {0}; cat {0}/secret; echo x > {0}/new; echo x > /usr/new; \
             ls /sys/class/net 2> /dev/null; cut -d: -f1 /proc/net/dev | tail -n +3",
            outside.display()
        ))
        .await;
    let said: Vec<&str> = done.stdout.split_whitespace().collect();
    assert_eq!(said, ["root", "0", "lo"], "{}", done.stderr);
    assert!(!outside.join("new").exists());
}

/// While the root of a run replaces the machine's root, the old one is mounted on top of it, and `..` leads there.
#[tokio::test]
async fn a_link_as_the_working_folder_does_not_lead_out_of_the_root_of_the_run() {
    let world = World::new();
    let depth = world.work().components().count() + 2;
    std::os::unix::fs::symlink("../".repeat(depth), world.work().join("up")).unwrap();
    for _ in 0..200 {
        let mut spec = world.spec("[ . -ef / ]");
        spec.working_dir = world.work().join("up");
        let done = world.run(spec).await;
        assert_eq!(done.exit, Exit::Code(0), "{}", done.stderr);
    }
}

#[tokio::test]
async fn file_names_that_are_not_utf8_are_handled_like_other_names() {
    let world = World::new();
    let odd = |name: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(name));
    let (work, hidden) = (world.work().join(odd(b"w\xff")), odd(b"a\xfe.env"));
    fs::create_dir(&work).unwrap();
    fs::write(work.join(&hidden), "secret").unwrap();
    fs::write(work.join("sealed"), "old").unwrap();
    let mut spec = world.spec("cat a*.env; echo new > sealed; echo made > made");
    (spec.working_dir, spec.policy.write_roots) = (work.clone(), vec![work.clone()]);
    (spec.policy.hidden, spec.policy.sealed) = (vec![work.join(&hidden)], vec![work.join("sealed")]);
    let done = world.run(spec).await;
    assert_eq!((done.exit, done.stdout.as_str()), (Exit::Code(0), ""), "{}", done.stderr);
    assert_eq!(fs::read(work.join("made")).unwrap(), b"made\n");
    assert_eq!(fs::read(work.join("sealed")).unwrap(), b"old");
}

const ROLE: &str = "TOOLSTEAD_TEST_AS_NOBODY";

/// Runs the body as this user and, if that is root, a second time as `nobody` in a separate process.
fn as_both(test: &str, body: impl AsyncFnOnce()) {
    as_both_of(module_path!(), test, body);
}

/// Runs the body of a test in another module as both users.
fn as_both_of(module: &str, test: &str, body: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(body());
    if rustix::process::geteuid().as_raw() != 0 {
        return;
    }
    again(module, test, |command| {
        command.uid(65534).gid(65534);
    });
}

/// Returns the parent of a process, if the process exists.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Runs a test of this program in a separate process.
fn again(module: &str, test: &str, prepare: impl FnOnce(&mut Command)) {
    let path = format!("{}::{test}", module.split_once("::").unwrap().1);
    // Other users may have no access to the build folder.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("tests");
    // Copied by another process, so that no process forked meanwhile has it open for writing.
    assert!(Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap().success());
    let mut command = Command::new(program);
    command.args(["--exact", &path, "--nocapture"]).env_clear().env(ROLE, "1").current_dir("/");
    prepare(&mut command);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "in its own process: {said}{complaint}");
}

#[test]
fn standard_streams_can_be_opened_by_their_device_paths() {
    as_both("standard_streams_can_be_opened_by_their_device_paths", async || {
        let world = World::new();
        const SCRIPT: &str =
            "set -eo pipefail; echo a > /dev/stdout; echo b | tee /dev/stderr > /dev/null; head -c 0 /dev/stdin";
        let terminal = ChildInput::Terminal { rows: 9, columns: 9 };
        for (input, expected) in [(ChildInput::Pipe, "a\n"), (ChildInput::Nothing, "a\n"), (terminal, "a\r\nb\r\n")] {
            let mut spec = world.spec(SCRIPT);
            spec.input = input;
            let mut child = world.launcher.launch(spec).await.unwrap();
            let held = child.stdin.take().filter(|_| input != ChildInput::Pipe);
            let (mut printed, mut complaint) = (Vec::new(), String::new());
            // Reading a terminal whose program has ended returns an error.
            let _ = child.stdout.take().unwrap().read_to_end(&mut printed).await;
            child.stderr.take().unwrap().read_to_string(&mut complaint).await.unwrap();
            let exit = child.exited().await;
            assert_eq!((exit, String::from_utf8(printed).unwrap().as_str()), (Exit::Code(0), expected), "{input:?}");
            assert_eq!(complaint, if input == terminal { "" } else { "b\n" });
            drop(held);
        }
    });
}

#[test]
fn nothing_outside_can_be_reached() {
    as_both("nothing_outside_can_be_reached", async || {
        let world = World::new();
        let outside = world.folder.path().join("outside");
        for name in ["moved", "cut"] {
            fs::write(outside.join(name), "x").unwrap();
        }
        fs::create_dir_all(world.work().join(".git/hooks")).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let _by_path = UnixListener::bind(outside.join("socket")).unwrap();
        let name = format!("toolstead-test-{}", std::process::id());
        let address = <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name);
        let _abstract = UnixListener::bind_addr(&address.unwrap()).unwrap();
        let echo = udp.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut byte = [0];
            while let Ok((_, from)) = echo.recv_from(&mut byte) {
                let _ = echo.send_to(&byte, from);
            }
        });
        let mut spec = world.spec("");
        spec.program = "/usr/bin/python3".into();
        spec.args = vec!["-c".into(), include_str!("probe.py").into()];
        spec.args.extend([outside.display().to_string(), world.work().display().to_string()]);
        spec.args.extend([tcp.local_addr().unwrap().port().to_string(), udp.local_addr().unwrap().port().to_string()]);
        spec.args.extend([std::process::id().to_string(), name]);
        let checks = |done: &Ended, kind: &str| -> Vec<String> {
            let lines = done.stdout.lines().filter_map(|line| line.split_once('\t'));
            lines.filter(|(_, found)| *found == kind).map(|(name, _)| name.to_owned()).collect()
        };
        let closed = world.run(spec.clone()).await;
        assert_eq!(checks(&closed, "O"), [""; 0], "{}", closed.stderr);
        assert_eq!(checks(&closed, "-").len(), 63, "{}{}", closed.stdout, closed.stderr);
        // Checks that do not change the machine, run without any confinement, to verify that they detect the
        // difference.
        let telling = [
            "write outside",
            "read outside",
            "read outside by a link",
            "rename from outside",
            "truncate outside",
            "chmod outside",
            "learn whether something is outside",
            "plant a hook",
            "replace the repository",
            "TCP to the host",
            "UDP to the host",
            "unix socket by path",
            "abstract unix socket",
            "signal a host process",
            "netlink socket",
            "user namespace by unshare",
            "user namespace by clone3",
            "set-uid file",
            "set-gid file",
            "set-uid file by its descriptor",
            "set-uid file by opening",
            "set-uid file by openat2",
            "set-uid file by creat",
            "set-uid file by mknod",
            "limit process 1",
            "bind process 1 to a processor",
            "schedule process 1",
            "slow process 1 down",
            "keep process 1 from the disk",
        ];
        spec.policy.confinement = Confinement::Open;
        spec.args.extend(telling.map(str::to_owned));
        let mut open = checks(&world.run(spec).await, "O");
        open.sort_unstable();
        let mut expected = telling;
        expected.sort_unstable();
        assert_eq!(open, expected);
    });
}

#[test]
fn nothing_survives_a_run() {
    as_both("nothing_survives_a_run", async || {
        let world = World::new();
        for (number, kind) in [
            "(setsid bash -c 'trap \"\" TERM HUP INT QUIT; (exec -a TOKEN sleep 999) & exec -a TOKEN sleep 999' &)",
            "setsid setsid bash -c 'exec -a TOKEN sleep 999' &",
            "bash -c 'trap \"\" TERM HUP; while :; do (exec -a TOKEN sleep 999); done' &",
            "(/usr/bin/python3 -c 'import os\nos.setsid()\nwhile True:\n  if os.fork(): os._exit(0)' TOKEN &)",
            "bash -c '(exec -a TOKEN sleep 999) & kill -STOP $$' TOKEN &",
        ]
        .iter()
        .enumerate()
        {
            for round in 0..20 {
                let token = format!("toolstead-{}-{number}-{round}", std::process::id());
                let script =
                    format!("trap '' TERM; {kind}\necho ready; exec -a TOKEN sleep 999").replace("TOKEN", &token);
                let mut child = world.launcher.launch(world.spec(&script)).await.unwrap();
                let mut ready = [0; 5];
                child.stdout.as_mut().unwrap().read_exact(&mut ready).await.unwrap();
                if round % 2 == 0 {
                    timeout(Duration::from_secs(5), child.terminate(Duration::from_millis(20))).await.unwrap();
                    assert_eq!(living(&token), [""; 0], "{kind}");
                } else {
                    drop(child);
                    let gone = async {
                        while !living(&token).is_empty() {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    };
                    timeout(Duration::from_secs(5), gone)
                        .await
                        .unwrap_or_else(|_| panic!("{kind}: {:?}", living(&token)));
                }
            }
        }
    });
}

/// Returns the command lines that contain the text.
fn living(token: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|one| fs::read_to_string(one.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(token)).collect()
}

#[test]
fn protected_names_stay_unchanged_and_ordinary_git_work_succeeds() {
    as_both("protected_names_stay_unchanged_and_ordinary_git_work_succeeds", async || {
        // Preparation, command, expected message about undone changes, and files afterwards (with `!` for those that
        // must not exist).
        for (before, script, undone, after) in [
            (
                "",
                "git init -q && git config user.name a && git remote add o git@example.com:a/b",
                "",
                ".git/config .git/HEAD",
            ),
            (
                "repository",
                "git config user.email a@b && git config user.name a && touch f && git add f && git commit -qm x",
                "",
                ".git/refs/heads",
            ),
            (
                "repository",
                "git config core.fsmonitor ./x; git config user.name kept",
                "core.fsmonitor",
                "!.git/config.lock",
            ),
            ("repository", "echo x > .git/hooks/pre-commit || true", "", "!.git/hooks/pre-commit"),
            ("repository", "mv .git .git2 || rm -rf .git/hooks || true", "", ".git/HEAD !.git2"),
            ("repository", "rm -f .git/config; ln -s /etc/passwd .git/config", "config", ".git/config"),
            (
                "",
                "git init -q; echo x > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
                "post-commit",
                "!.git/hooks/post-commit",
            ),
            ("", "mkdir -p .claude && echo '{}' > .claude/settings.json", ".claude", "!.claude .claude.refused"),
            (".mcp.json", "echo x > .mcp.json; mv .mcp.json x; rm -f .mcp.json; true", "", ".mcp.json !x"),
            ("", "echo 'gitdir: elsewhere' > .git", ".git", "!.git .git.refused"),
        ] {
            let world = World::new();
            match before {
                "" => {}
                "repository" => {
                    let init = Command::new("git").args(["init", "-q"]).current_dir(world.work()).output().unwrap();
                    assert!(init.status.success());
                }
                name => fs::write(world.work().join(name), "old").unwrap(),
            }
            let done = world.bash(script).await;
            assert_eq!(done.exit, Exit::Code(0), "{script}: {}", done.stderr);
            let said = done.undone.join("\n");
            assert!(if undone.is_empty() { said.is_empty() } else { said.contains(undone) }, "{script}: {said}");
            for name in after.split_whitespace() {
                let (name, is_there) = name.strip_prefix('!').map_or((name, true), |name| (name, false));
                let found = fs::symlink_metadata(world.work().join(name)).is_ok();
                assert_eq!(found, is_there, "{script}: {name}: {}", done.stderr);
            }
            if let Ok(config) = fs::read_to_string(world.work().join(".git/config")) {
                assert!(!config.contains("fsmonitor") && !config.contains("root:"), "{script}: {config}");
                assert_eq!(script.contains("kept"), config.contains("kept"));
            }
            if before == ".mcp.json" {
                assert_eq!(fs::read_to_string(world.work().join(before)).unwrap(), "old");
            }
            let left = fs::read_dir(world.work()).unwrap().flatten().map(|entry| entry.file_name());
            assert!(before != "repository" || left.count() <= 2, "nothing else is left: {script}");
        }
    });
}

#[test]
fn a_link_under_a_protected_name_fails_the_run_and_touches_nothing() {
    as_both("a_link_under_a_protected_name_fails_the_run_and_touches_nothing", async || {
        for name in [".git", ".claude", "toolstead.toml", ".git/hooks", ".git/config"] {
            let world = World::new();
            let outside = world.folder.path().join("outside");
            let link = world.work().join(name);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(outside.join("planted"), &link).unwrap();
            let error = world.launcher.launch(world.spec("true")).await.unwrap_err().to_string();
            assert!(error.contains("protect") && error.contains("symbolic link"), "{name}: {error}");
            assert!(!outside.join("planted").exists());
            assert_eq!(fs::read_link(&link).unwrap(), outside.join("planted"));
        }
    });
}

#[test]
fn a_run_receives_a_terminal_of_the_requested_size() {
    as_both("a_run_receives_a_terminal_of_the_requested_size", async || {
        let world = World::new();
        let mut spec =
            world.spec("stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; read line; echo got $line; exit 4");
        spec.input = ChildInput::Terminal { rows: 30, columns: 100 };
        let mut child = world.launcher.launch(spec).await.unwrap();
        let mut stdin = child.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, b"hello\n").await.unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut screen = Vec::new();
        // The end of a terminal is reported as an error.
        let _ = timeout(Duration::from_secs(10), stdout.read_to_end(&mut screen)).await.unwrap();
        let screen = String::from_utf8(screen).unwrap();
        assert!(screen.contains("30 100") && screen.contains("all") && screen.contains("got hello"), "{screen}");
        assert_eq!(child.exited().await, Exit::Code(4));
    });
}

#[test]
fn hidden_paths_exist_in_a_run_but_cannot_be_read_or_changed() {
    as_both("hidden_paths_exist_in_a_run_but_cannot_be_read_or_changed", async || {
        let world = World::new();
        fs::write(world.work().join(".env"), "KEY=secret").unwrap();
        fs::create_dir(world.work().join("keys")).unwrap();
        fs::write(world.work().join("keys/a"), "secret").unwrap();
        let mut spec = world.spec(
            "ls -d .env keys; cat .env keys/a; ls keys; chmod 777 keys .env; cat .env; mv .env x; rm -rf keys; true",
        );
        spec.policy.hidden = vec![world.work().join(".env"), world.work().join("keys"), world.work().join("missing")];
        let done = world.run(spec).await;
        assert_eq!(done.stdout, ".env\nkeys\n", "{}", done.stderr);
        assert_eq!(fs::read_to_string(world.work().join("keys/a")).unwrap(), "secret");
        assert_eq!(fs::read_to_string(world.work().join(".env")).unwrap(), "KEY=secret");
    });
}

#[test]
fn a_hidden_path_that_the_user_cannot_access_does_not_prevent_a_run() {
    as_both("a_hidden_path_that_the_user_cannot_access_does_not_prevent_a_run", async || {
        let world = World::new();
        let closed = world.folder.path().join("outside");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let mut spec = world.spec("echo runs");
        spec.policy.hidden = vec![closed.join("secret")];
        assert_eq!(world.run(spec).await.stdout, "runs\n");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    });
}

#[test]
fn a_sealed_root_keeps_its_hidden_paths_hidden() {
    as_both("a_sealed_root_keeps_its_hidden_paths_hidden", async || {
        let world = World::new();
        fs::create_dir(world.work().join("a")).unwrap();
        fs::write(world.work().join("a/key"), "secret").unwrap();
        fs::write(world.work().join("open"), "open").unwrap();
        let mut spec = world.spec("cat open a/key; echo x > open; echo x > a/new; true");
        spec.policy.sealed = vec![world.work(), world.work().join("a")];
        // The contents of a hidden folder are hidden with it.
        spec.policy.hidden = vec![world.work().join("a"), world.work().join("a/key")];
        let done = world.run(spec).await;
        assert_eq!(done.stdout, "open", "{}", done.stderr);
        assert_eq!(fs::read_to_string(world.work().join("open")).unwrap(), "open");
        assert!(!world.work().join("a/new").exists());
    });
}

#[test]
fn hidden_paths_in_a_nested_root_stay_hidden_if_the_outer_root_is_sealed() {
    as_both("hidden_paths_in_a_nested_root_stay_hidden_if_the_outer_root_is_sealed", async || {
        let world = World::new();
        let inner = world.work().join("infra/prod");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join(".env"), "secret").unwrap();
        fs::write(inner.join("open"), "open").unwrap();
        for closed in [vec!["infra"], vec![""], vec!["", "infra"], vec!["infra", "infra/prod"]] {
            let mut spec = world.spec("cat infra/prod/open infra/prod/.env; echo x > infra/prod/new; true");
            spec.policy.write_roots.push(inner.clone());
            spec.policy.sealed = closed.iter().map(|name| world.work().join(name)).collect();
            spec.policy.hidden = vec![inner.join(".env")];
            let done = world.run(spec).await;
            assert_eq!(done.stdout, "open", "{closed:?}: {}", done.stderr);
            assert!(!inner.join("new").exists());
        }
    });
}

#[tokio::test]
async fn a_link_in_a_folder_that_runs_can_write_to_exposes_no_other_file() {
    let world = World::new();
    let (theirs, outside) = (world.work().join("bin"), world.folder.path().join("outside"));
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::symlink(outside.join("secret"), theirs.join("tool")).unwrap();
    let launcher = world.launcher.clone();
    for (launcher, expected) in [(launcher.clone(), "secret"), (launcher.with_other_roots(&[world.work()]), "")] {
        let mut spec = world.spec(&format!("cat {}; true", outside.join("secret").display()));
        spec.policy.environment.insert("PATH".into(), format!("{}:/usr/bin:/bin", theirs.display()));
        spec.policy.write_roots.clear();
        spec.working_dir = "/".into();
        assert_eq!(ended(launcher.launch(spec).await.unwrap()).await.stdout, expected);
    }
    // A run that writes there cannot make more files visible to itself.
    let mut spec = world.spec(&format!("cat {}; true", outside.join("secret").display()));
    spec.policy.environment.insert("PATH".into(), format!("{}:/usr/bin:/bin", theirs.display()));
    assert_eq!(world.run(spec).await.stdout, "");
}

#[test]
fn a_restricted_path_that_disappears_before_the_launch_is_reported_as_moved() {
    as_both("a_restricted_path_that_disappears_before_the_launch_is_reported_as_moved", async || {
        let world = World::new();
        let lock = world.work().join("x.lock");
        for is_hidden in [true, false] {
            fs::write(&lock, "").unwrap();
            let mut spec = world.spec("true");
            let closed = if is_hidden { &mut spec.policy.hidden } else { &mut spec.policy.sealed };
            closed.push(lock.clone());
            let prepared = world
                .launcher
                .prepare(spec, super::super::ProgramPlacePolicy::Anywhere, ConfinementLayers::All)
                .unwrap();
            fs::remove_file(&lock).unwrap();
            let started = super::super::start(prepared, world.launcher.clone(), &Default::default()).unwrap();
            let super::super::StartedProcess::Confined(reports, launcher, layers) = started.process else {
                panic!("it is confined")
            };
            let error = ConfinedRun::begin(reports, launcher, layers).await.unwrap_err();
            assert!(matches!(&error, LaunchError::Moved(reason) if reason.contains("x.lock")), "{error}");
        }
    });
}

#[test]
fn a_disk_mounted_during_a_run_is_visible_only_to_later_runs() {
    alone("a_disk_mounted_during_a_run_is_visible_only_to_later_runs", async || {
        if rustix::process::geteuid().as_raw() != 0 {
            // Only root may mount.
            return;
        }
        // SAFETY: plain system calls. This thread leaves the machine's mounts, and with it all that it starts.
        unsafe {
            assert_eq!(libc::unshare(libc::CLONE_NEWNS), 0);
            for kind in [libc::MS_PRIVATE, libc::MS_SHARED] {
                let (none, top) = (std::ptr::null(), c"/".as_ptr());
                assert_eq!(libc::mount(none, top, none, kind | libc::MS_REC, none.cast()), 0);
            }
        }
        let world = World::new();
        let disk = world.work().join("disk");
        fs::create_dir(&disk).unwrap();
        let mut spec = world.spec("echo up; read line; ls disk; echo end");
        spec.input = ChildInput::Pipe;
        let mut child = world.launcher.launch(spec).await.unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        assert!(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&disk).status().unwrap().success());
        fs::write(disk.join("device"), "").unwrap();
        tokio::io::AsyncWriteExt::write_all(child.stdin.as_mut().unwrap(), b"go\n").await.unwrap();
        let done = ended(child).await;
        assert_eq!(done.stdout, "end\n", "{}", done.stderr);
        // The next run sees it, with the same restrictions.
        assert_eq!(world.bash("ls disk").await.stdout, "device\n");
        assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    });
}

#[test]
fn the_runtime_raises_its_descriptor_limit_but_not_that_of_unconfined_children() {
    alone("the_runtime_raises_its_descriptor_limit_but_not_that_of_unconfined_children", async || {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let most = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(300), maximum: most }).unwrap();
        let world = World::new();
        let mut open = world.spec("ulimit -n");
        open.policy.confinement = Confinement::Open;
        assert_eq!(world.run(open.clone()).await.stdout, "300\n");
        assert_eq!(world.bash("true").await.exit, Exit::Code(0));
        assert_eq!(getrlimit(Resource::Nofile), Rlimit { current: most, maximum: most });
        assert_eq!(world.run(open).await.stdout, "300\n");
    });
}

#[test]
fn the_confinement_holds_with_a_restrictive_umask() {
    alone("the_confinement_holds_with_a_restrictive_umask", async || {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let tier = self_test::tier(&Launcher::start().unwrap()).await;
        assert_eq!(tier, self_test::SandboxTier::First { notes: Vec::new() });
        assert_eq!(World::new().bash("umask; touch ~/x; stat -c %a ~/x").await.stdout, "0077\n600\n");
    });
}

#[tokio::test]
async fn rejects_roots_in_proc_sys_dev_and_run() {
    let world = World::new();
    std::os::unix::fs::symlink("/dev", world.work().join("link")).unwrap();
    let link = world.work().join("link/shm");
    for root in ["/proc", "/sys/kernel", "/dev/shm", "/run", "/var/run", link.to_str().unwrap()] {
        if !fs::exists(root).unwrap() {
            continue;
        }
        for is_writable in [true, false] {
            let mut spec = world.spec("true");
            let roots = if is_writable { &mut spec.policy.write_roots } else { &mut spec.policy.read_roots };
            roots.push(root.into());
            let error = world.launcher.launch(spec).await.unwrap_err().to_string();
            assert!(error.contains(&format!("show `{root}`")) && error.contains("outside of `/proc`"), "{error}");
        }
    }
}

/// Makes the call fail for this thread and its children, as on a machine that does not support it.
fn without(call: libc::c_long, error: i32) {
    let refusal = seccompiler::SeccompAction::Errno(error.unsigned_abs());
    let rules = [(call, Vec::new())].into();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = seccompiler::SeccompFilter::new(rules, seccompiler::SeccompAction::Allow, refusal, arch).unwrap();
    let filter: seccompiler::BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&filter).unwrap();
}

#[test]
fn only_open_runs_start_on_a_machine_without_confinement() {
    alone("only_open_runs_start_on_a_machine_without_confinement", async || {
        without(libc::SYS_unshare, libc::EPERM);
        let world = World::new();
        for confinement in [Confinement::Sealed, Confinement::Guarded] {
            let mut spec = world.spec("true");
            spec.policy.confinement = confinement;
            let error = world.launcher.launch(spec).await.unwrap_err();
            let LaunchError::Unconfinable { missing, remedy } = &error else { panic!("{error}") };
            assert!(missing.contains("namespace: Operation not permitted") && !remedy.is_empty(), "{error}");
        }
        let mut spec = world.spec("echo open");
        spec.policy.confinement = Confinement::Open;
        assert_eq!(world.run(spec).await.stdout, "open\n");
    });
}

#[test]
fn a_kernel_without_landlock_suffices_unless_landlock_is_required() {
    alone("a_kernel_without_landlock_suffices_unless_landlock_is_required", async || {
        without(libc::SYS_landlock_create_ruleset, libc::ENOSYS);
        let world = World::new();
        assert_eq!(world.bash("echo runs").await.stdout, "runs\n");
        let strict = world.launcher.clone().requiring_landlock(true);
        let error = strict.launch(world.spec("true")).await.unwrap_err().to_string();
        assert!(error.contains("no Landlock") && error.contains("`sandbox.require`"), "{error}");
    });
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_ready_in_time_fails_and_is_ended() {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    let error =
        ConfinedRun::begin(ours, Launcher::start().unwrap(), ConfinementLayers::All).await.unwrap_err().to_string();
    assert!(error.contains("not ready after 60 seconds"), "{error}");
    // The run was requested to end.
    assert_eq!(rustix::io::read(&theirs, &mut [0; 1]), Ok(0));
}

#[test]
fn the_limits_of_processes_files_and_memory_hold() {
    as_both("the_limits_of_processes_files_and_memory_hold", async || {
        let world = World::new();
        let mut spec = world.spec(
            "head -c 2000000 /dev/zero > big; stat -c %s big; \
             for i in $(seq 60); do sleep 5 & done 2>&1 | grep -c -m1 'Resource temporarily unavailable'; \
             /usr/bin/python3 -c 'b = bytearray(300 << 20)' 2>&1 | grep -c MemoryError; ulimit -c; \
             df --output=itotal /tmp | tail -1",
        );
        spec.policy.limits.file_bytes = 1_000_000;
        spec.policy.limits.processes = 40;
        spec.policy.limits.memory_bytes = 200 << 20;
        let done = world.run(spec).await;
        assert_eq!(done.stdout, "1000000\n1\n1\n0\n131072\n", "{}", done.stderr);
    });
}

#[test]
fn a_run_with_a_limited_network_connects_through_the_proxy() {
    as_both("a_run_with_a_limited_network_connects_through_the_proxy", async || {
        let world = World::new();
        let mut spec = world.spec(
            "echo $HTTP_PROXY $no_proxy; p=${http_proxy##*:}; exec 3<>/dev/tcp/127.0.0.1/$p; echo hi >&3; head -1 <&3",
        );
        spec.policy.network = NetworkPolicy::Hosts(vec!["example.com".into()]);
        let mut child = world.launcher.launch(spec).await.unwrap();
        let proxy = child.proxy.take().unwrap();
        proxy.set_nonblocking(true).unwrap();
        let proxy = tokio::net::TcpListener::from_std(proxy).unwrap();
        let serving = async {
            let (mut stream, _) = proxy.accept().await.unwrap();
            let mut word = [0; 3];
            stream.read_exact(&mut word).await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"from outside\n").await.unwrap();
            word
        };
        let (word, done) = tokio::join!(serving, ended(child));
        assert_eq!(&word, b"hi\n");
        assert!(
            done.stdout.starts_with("http://127.0.0.1:") && done.stdout.ends_with("from outside\n"),
            "{}",
            done.stdout
        );
    });
}

#[tokio::test]
async fn a_missing_root_is_named_in_the_launch_error() {
    let world = World::new();
    let mut spec = world.spec("true");
    spec.policy.write_roots.push("/no/such/folder".into());
    let error = world.launcher.launch(spec).await.unwrap_err().to_string();
    assert!(error.contains("show `/no/such/folder`"), "{error}");
}

/// Runs the body in a separate process.
fn alone(test: &str, body: impl AsyncFnOnce()) {
    alone_with_home(test, None, body);
}

/// Runs the body in a separate process with another home of the runtime.
fn alone_with_home(test: &str, home: Option<&Path>, body: impl AsyncFnOnce()) {
    const ALONE: &str = "TOOLSTEAD_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let path = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &path, "--nocapture"]).env(ALONE, "1");
        command.envs(home.map(|home| ("HOME", home)));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body());
}

#[test]
fn a_program_inherits_no_ignored_or_blocked_signals_from_the_runtime() {
    alone("a_program_inherits_no_ignored_or_blocked_signals_from_the_runtime", async || {
        // SAFETY: no handler is passed.
        #[expect(unsafe_code, reason = "the zygote inherits what is ignored")]
        unsafe {
            libc::signal(libc::SIGUSR1, libc::SIG_IGN);
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
        }
        let done = World::new().bash("exec grep -E '^Sig(Ign|Blk)' /proc/self/status").await;
        let sets = done.stdout.lines().map(|line| u64::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap());
        // Two signals are reserved by the C library and cannot be changed.
        let sets: Vec<u64> = sets.map(|set| set & !(0b11 << 31)).collect();
        assert_eq!(sets, [0, 0], "{}{}", done.stdout, done.stderr);
    });
}

#[tokio::test]
async fn a_program_does_not_inherit_the_ignored_file_size_signal() {
    let world = World::new();
    file_size_signal::ignore();
    for confinement in [Confinement::Sealed, Confinement::Open] {
        let mut spec = world.spec("exec grep -E '^SigIgn' /proc/self/status");
        spec.policy.confinement = confinement;
        let done = world.run(spec).await;
        let ignored = u64::from_str_radix(done.stdout.trim().rsplit('\t').next().unwrap(), 16).unwrap();
        assert_eq!(ignored & 1 << (libc::SIGXFSZ - 1), 0, "{confinement:?}: {}{}", done.stdout, done.stderr);
    }
}

#[test]
fn a_launch_without_free_descriptors_reports_the_reason_and_a_later_launch_runs() {
    alone("a_launch_without_free_descriptors_reports_the_reason_and_a_later_launch_runs", async || {
        let world = World::new();
        assert_eq!(world.bash("true").await.exit, Exit::Code(0));
        let usual = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(128), ..usual }).unwrap();
        let open: Vec<_> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
        let error = world.launcher.launch(world.spec("true")).await.unwrap_err();
        let limit = match error {
            LaunchError::OutOfDescriptors(limit) => Some(limit),
            ref other => FileDescriptorExhaustion::in_chain(other),
        };
        assert_eq!(limit, Some(FileDescriptorExhaustion::Process), "{error:?}");
        drop(open);
        assert_eq!(world.bash("true").await.exit, Exit::Code(0));
    });
}

/// All launchers of a process share one zygote.
#[test]
fn confined_runs_end_and_cannot_start_after_the_zygote_is_killed() {
    alone("confined_runs_end_and_cannot_start_after_the_zygote_is_killed", async || {
        let world = World::new();
        let mut child = world.launcher.launch(world.spec("sleep 999")).await.unwrap();
        let own = format!("PPid:\t{}\n", std::process::id());
        let mine = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(|process| {
            fs::read_to_string(process.join("status")).is_ok_and(|status| status.contains(&own))
                && fs::read_to_string(process.join("cmdline")).is_ok_and(|line| line.starts_with("toolstead-zygote"))
        });
        let zygotes: Vec<i32> = mine.filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect();
        assert_eq!(zygotes.len(), 1);
        rustix::process::kill_process(rustix::process::Pid::from_raw(zygotes[0]).unwrap(), Signal::KILL).unwrap();
        assert_eq!(timeout(Duration::from_secs(5), child.exited()).await.unwrap(), Exit::Signal(9));
        let error = world.launcher.launch(world.spec("true")).await.unwrap_err().to_string();
        assert!(error.contains("has ended; restart Toolstead"), "{error}");
    });
}

/// For an ordinary user, the toolchains would have to be outside of root's home. Runs in a separate process whose home
/// contains cargo, because the user of the test may have another home.
#[test]
fn toolchains_on_the_path_work_in_a_private_home() {
    const AT_HOME: &str = "TOOLSTEAD_TEST_AT_HOME";
    if std::env::var_os(AT_HOME).is_none() {
        let path =
            format!("{}::toolchains_on_the_path_work_in_a_private_home", module_path!().split_once("::").unwrap().1);
        let folders = std::env::var("PATH").unwrap();
        let home = folders.split(':').find_map(|folder| folder.strip_suffix("/.cargo/bin")).map(ToOwned::to_owned);
        let home = home.or_else(|| std::env::var("HOME").ok()).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", &path]).env(AT_HOME, "1").env("HOME", home).output().unwrap();
        return assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(toolchains_work());
}

async fn toolchains_work() {
    let world = World::new();
    fs::create_dir(world.work().join("src")).unwrap();
    fs::write(world.work().join("src/main.rs"), "fn main() { println!(\"built\"); }").unwrap();
    fs::write(world.work().join("Cargo.toml"), "[package]\nname = \"a\"\nedition = \"2021\"\n[workspace]\n").unwrap();
    let mut spec =
        world.spec("cargo run -q && ls $HOME/.cargo && touch $HOME/own && git config --global user.name x && whoami");
    spec.policy.environment = child_environment::base(|name| std::env::var(name).ok());
    let done = world.run(spec).await;
    assert_eq!(done.exit, Exit::Code(0), "{}", done.stderr);
    assert!(done.stdout.starts_with("built\n") && done.stdout.contains("bin\n"), "{}", done.stdout);
    assert!(!done.stdout.contains("credentials"), "{}", done.stdout);
}

/// Creates a run whose reports this test writes, and the queue of its launcher's orders.
fn untold() -> (OwnedFd, OwnedFd, Launcher, std::sync::mpsc::Receiver<LaunchThreadCommand>) {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let (orders, ordered) = std::sync::mpsc::channel();
    (ours, theirs, Launcher { orders, ..Launcher::start().unwrap() }, ordered)
}

#[tokio::test]
async fn a_run_begins_once_birth_and_start_are_reported_in_either_order() {
    let born = RunEvent::Born { pid: 7 };
    let ended = RunEvent::Ended {
        code: 3,
        by_signal: false,
        had_survivors: false,
        out_of_memory: None,
        aftermath: ProtectedChanges::default(),
    };
    for reports in
        [[&born, &RunEvent::Started, &ended], [&RunEvent::Started, &born, &ended], [&RunEvent::Started, &ended, &born]]
    {
        let (ours, theirs, launcher, ordered) = untold();
        for one in reports {
            let process = fs::File::open("/dev/null").unwrap();
            let descriptors = if matches!(one, RunEvent::Born { .. }) { vec![process.as_fd()] } else { Vec::new() };
            report(&theirs, one, &descriptors).unwrap();
        }
        let (mut run, _) = ConfinedRun::begin(ours, launcher, ConfinementLayers::All).await.unwrap();
        assert_eq!(run.id, 7, "{reports:?}");
        assert_eq!(run.exited().await, Exit::Code(3), "{reports:?}");
        drop(run);
        assert!(matches!(ordered.try_recv(), Ok(LaunchThreadCommand::End(_))), "{reports:?}");
    }
    // A run is lost if the report with its process is missing.
    let (ours, theirs, launcher, _ordered) = untold();
    report(&theirs, &RunEvent::Started, &[]).unwrap();
    drop(theirs);
    let (mut run, _) = ConfinedRun::begin(ours, launcher, ConfinementLayers::All).await.unwrap();
    assert_eq!(run.exited().await, Exit::Signal(9));
    assert!(run.aftermath.left[0].contains("did not finish"), "{:?}", run.aftermath.left);
}

#[tokio::test]
async fn the_end_of_a_run_is_received_even_if_a_signal_request_was_not_read() {
    let (ours, theirs, launcher, _ordered) = untold();
    report(&theirs, &RunEvent::Born { pid: 7 }, &[]).unwrap();
    report(&theirs, &RunEvent::Started, &[]).unwrap();
    let (mut run, _) = ConfinedRun::begin(ours, launcher, ConfinementLayers::All).await.unwrap();
    run.signal(Signal::TERM);
    let aftermath = ProtectedChanges::default();
    let ended = RunEvent::Ended { code: 3, by_signal: false, had_survivors: false, out_of_memory: None, aftermath };
    report(&theirs, &ended, &[]).unwrap();
    drop(theirs);
    assert_eq!((run.exited().await, run.aftermath.left.len()), (Exit::Code(3), 0));
}

#[tokio::test]
async fn a_run_that_is_dropped_before_its_birth_report_is_read_is_ended() {
    use futures::FutureExt;
    let (ours, theirs, launcher, ordered) = untold();
    let mut beginning = Box::pin(ConfinedRun::begin(ours, launcher, ConfinementLayers::All));
    assert!((&mut beginning).now_or_never().is_none());
    let process = fs::File::open("/dev/null").unwrap();
    report(&theirs, &RunEvent::Started, &[]).unwrap();
    report(&theirs, &RunEvent::Born { pid: 7 }, &[process.as_fd()]).unwrap();
    drop(beginning);
    assert!(matches!(ordered.try_recv(), Ok(LaunchThreadCommand::End(_))));
}
