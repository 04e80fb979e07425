//! Runs without namespaces, as in a container with the usual system call filter: this program is started again with
//! such a filter, and as an ordinary user.

use super::*;
use crate::sandbox::self_test::{SandboxTier, tier};
use rustix::process::{Pid, geteuid, test_kill_process};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::{collections::BTreeMap, env::consts::ARCH};

/// Returns the filters that a container usually has. They cannot check the flags of clone3.
fn filters() -> [BpfProgram; 2] {
    let filter = |rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32| -> BpfProgram {
        let refusal = SeccompAction::Errno(error.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, ARCH.try_into().unwrap());
        filter.unwrap().try_into().unwrap()
    };
    let new = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID, libc::CLONE_NEWNET, libc::CLONE_NEWIPC];
    let with = |flag: i32| {
        let bit = u64::from(flag.unsigned_abs());
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit).unwrap();
        SeccompRule::new(vec![condition]).unwrap()
    };
    let mut refused: BTreeMap<_, _> =
        [libc::SYS_unshare, libc::SYS_setns, libc::SYS_mount, libc::SYS_open_tree, libc::SYS_fsopen]
            .map(|call| (call, Vec::new()))
            .into();
    refused.insert(libc::SYS_clone, new.map(with).to_vec());
    [filter(refused, libc::EPERM), filter([(libc::SYS_clone3, Vec::new())].into(), libc::ENOSYS)]
}

/// Runs the body without namespaces, as `nobody` or as the current user.
fn in_a_container(test: &str, as_nobody: bool, body: impl AsyncFnOnce()) {
    if std::env::var_os(ROLE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        return runtime.block_on(body());
    }
    let filters = filters();
    again(module_path!(), test, |command| {
        if as_nobody && geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        let confine =
            move || filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter)).map_err(io::Error::other);
        // SAFETY: the closure makes system calls alone.
        unsafe { command.pre_exec(confine) };
    });
}

fn world() -> World {
    let world = World::new();
    World { launcher: world.launcher.clone().allowing_tier_2(true), ..world }
}

/// Waits until the condition holds.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(120), waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

fn is_gone(pid: i32) -> bool {
    test_kill_process(Pid::from_raw(pid).unwrap()).is_err()
}

#[test]
fn runs_without_namespaces_use_tier_2_if_allowed_and_are_rejected_otherwise() {
    in_a_container("runs_without_namespaces_use_tier_2_if_allowed_and_are_rejected_otherwise", true, async || {
        let strict = Launcher::start().unwrap();
        let found = tier(&strict).await;
        assert!(
            matches!(&found, SandboxTier::Third { missing, .. } if missing.matches("namespace").count() == 1),
            "{found}"
        );
        assert!(found.to_string().contains("sandbox.minimum_tier = 2"), "{found}");
        let world = World::new();
        let refusal = strict.launch(world.spec("true")).await.unwrap_err();
        assert!(matches!(refusal, LaunchError::Unconfinable { .. }), "{refusal}");
        let lenient = strict.clone().allowing_tier_2(true);
        let found = tier(&lenient).await;
        assert!(matches!(&found, SandboxTier::Second { missing } if missing.contains("namespace")), "{found}");
        let said = found.to_string();
        assert!(said.starts_with("tier 2, confined by Landlock without namespaces, because "), "{said}");
        assert!(said.contains("modes, dates and attributes") && said.contains("/proc"), "{said}");
        // The tier that one launcher accepts does not affect another one.
        assert_eq!(ended(lenient.launch(world.spec("exit 3")).await.unwrap()).await.exit, Exit::Code(3));
        assert!(strict.launch(world.spec("true")).await.is_err());
    });
}

#[test]
fn a_run_with_offered_tools_is_rejected_without_namespaces() {
    in_a_container("a_run_with_offered_tools_is_rejected_without_namespaces", true, async || {
        let world = world();
        fs::create_dir(world.work().join("src")).unwrap();
        let mut spec = world.spec("touch src/begun");
        spec.policy.offers_tools = true;
        let refusal = world.launcher.launch(spec).await.unwrap_err();
        assert!(matches!(refusal, LaunchError::NoTools(_)), "{refusal}");
        assert!(refusal.to_string().contains("without namespaces (tier 2)"), "{refusal}");
        assert!(!world.work().join("src/begun").exists());
    });
}

#[test]
fn root_without_namespaces_gets_tier_3_even_if_tier_2_is_allowed() {
    if !geteuid().is_root() {
        return;
    }
    in_a_container("root_without_namespaces_gets_tier_3_even_if_tier_2_is_allowed", false, async || {
        let found = tier(&Launcher::start().unwrap().allowing_tier_2(true)).await.to_string();
        assert!(found.starts_with("tier 3") && found.contains("run Toolstead as an ordinary user"), "{found}");
    });
}

#[test]
fn a_run_without_namespaces_changes_only_unprotected_contents_of_its_root() {
    in_a_container("a_run_without_namespaces_changes_only_unprotected_contents_of_its_root", true, async || {
        let world = world();
        let work = world.work();
        for folder in ["src", ".git/hooks", ".claude", "other"] {
            fs::create_dir_all(work.join(folder)).unwrap();
        }
        for file in ["file", ".git/HEAD", ".claude/settings.json", ".mcp.json", "src/old"] {
            fs::write(work.join(file), "old").unwrap();
        }
        let outside = world.folder.path().join("outside");
        let outside = outside.display();
        for (script, is_done) in [
            ("echo new > src/new && mkdir src/folder && mv src/old src/folder/moved && rm src/new".to_owned(), true),
            ("mv src/folder other/folder && cat file .git/HEAD .mcp.json".to_owned(), true),
            ("echo more >> file && : > file".to_owned(), true),
            ("echo x > \"$TMPDIR/x\" && echo x > \"$HOME/x\" && git config --global user.name x".to_owned(), true),
            (
                "true < /dev/null > /dev/null && head -c 1 /dev/urandom > /dev/null && cat /proc/self/status"
                    .to_owned(),
                true,
            ),
            ("echo x | cat > /dev/stdout".to_owned(), true),
            ("echo x > new".to_owned(), false),
            ("mkdir new".to_owned(), false),
            ("rm file".to_owned(), false),
            ("mv src source".to_owned(), false),
            ("mv .git git".to_owned(), false),
            ("mv .git/hooks src/hooks".to_owned(), false),
            ("ln .mcp.json src/mcp".to_owned(), false),
            ("echo x > .git/hooks/pre-commit".to_owned(), false),
            ("echo x > .git/config".to_owned(), false),
            ("echo x > .claude/settings.json".to_owned(), false),
            ("echo x > .mcp.json".to_owned(), false),
            ("echo x > /tmp/toolstead-test".to_owned(), false),
            ("ls /tmp".to_owned(), false),
            ("ls /dev/shm".to_owned(), false),
            (format!("cat {outside}/secret"), false),
            (format!("echo x > {outside}/secret"), false),
            (format!("ln -s {outside}/secret src/link && cat src/link"), false),
            (format!("cp -l {outside}/secret src/secret"), false),
            ("cat /proc/$PPID/environ".to_owned(), false),
            ("kill -0 $PPID".to_owned(), false),
            ("renice -n 1 -p $PPID".to_owned(), false),
            ("mkfifo src/pipe && test -p src/pipe && mknod src/device c 1 3".to_owned(), false),
            ("ipcmk -Q".to_owned(), false),
            ("unshare -U true".to_owned(), false),
        ] {
            let done = world.bash(&script).await;
            assert_eq!(done.exit == Exit::Code(0), is_done, "{script}: {:?} {}{}", done.exit, done.stdout, done.stderr);
            assert!(done.left.is_empty(), "{:?}", done.left);
        }
        assert!(work.join("other/folder/moved").exists());
        assert_eq!(fs::read(world.folder.path().join("outside/secret")).unwrap(), b"secret");
    });
}

#[test]
fn temporary_files_are_shared_within_a_session_and_removed_after_the_session() {
    in_a_container("temporary_files_are_shared_within_a_session_and_removed_after_the_session", true, async || {
        let world = world();
        let folder = async |spec: LaunchSpec| PathBuf::from(world.run(spec).await.stdout.trim());
        const SCRIPT: &str = "echo x >> $TMPDIR/x; mkdir -p $TMPDIR/closed/inner; chmod 0 $TMPDIR/closed; echo $TMPDIR";
        let alone = folder(world.spec(SCRIPT)).await;
        assert!(alone.is_absolute() && alone != Path::new("/tmp"), "{}", alone.display());
        until("the folder of a run is gone", || !alone.parent().unwrap().exists()).await;
        let mut spec = world.spec(SCRIPT);
        spec.policy.session = Some("session".into());
        let first = folder(spec.clone()).await;
        spec.args[1] = "cat $TMPDIR/x; echo $TMPDIR".into();
        let said = world.run(spec.clone()).await.stdout;
        assert_eq!(said, format!("x\n{}\n", first.display()));
        spec.policy.session = Some("another".into());
        assert_ne!(folder(spec).await, first);
        world.launcher.release_session("session".into());
        until("the folder of a session is gone", || !first.parent().unwrap().exists()).await;
    });
}

#[test]
fn a_large_temporary_folder_is_removed_even_if_the_zygote_is_killed() {
    in_a_container("a_large_temporary_folder_is_removed_even_if_the_zygote_is_killed", true, async || {
        const FILES: usize = 20_000;
        let world = world();
        let script = format!("cd $TMPDIR && seq {FILES} | xargs touch && pwd");
        let mut child = world.launcher.launch(world.spec(&script)).await.unwrap();
        let zygote = parent_of(i32::try_from(child.id()).unwrap()).unwrap();
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).await.unwrap();
        assert_eq!(child.exited().await, Exit::Code(0));
        let folder = PathBuf::from(said.trim());
        let left = || fs::read_dir(&folder).map_or(0, Iterator::count);
        until("the files are being removed", || left() < FILES).await;
        rustix::process::kill_process(Pid::from_raw(zygote).unwrap(), Signal::KILL).unwrap();
        until("the folder is gone", || !folder.parent().unwrap().exists()).await;
    });
}

/// A separate user, so that no other test changes its number of processes.
const LONELY_USER: u32 = 61_234;

#[test]
fn processes_outside_a_container_do_not_reduce_the_process_limit_of_a_run() {
    const TEST: &str = "processes_outside_a_container_do_not_reduce_the_process_limit_of_a_run";
    if std::env::var_os(ROLE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        return runtime.block_on(async {
            const SCRIPT: &str = "import os, signal\nmade = 0\ntry:\n  while made < 200:\n    if os.fork() == 0: signal.pause()\n    \
                                  made += 1\nexcept BlockingIOError: pass\nprint(made)";
            let world = World::new();
            let mut spec = world.spec("");
            (spec.program, spec.args[1]) = ("python3".into(), SCRIPT.into());
            spec.policy.limits.processes = 20;
            let child = world.launcher.launch_without_test(spec, ConfinementLayers::WithoutNamespaces).await.unwrap();
            let done = ended(child).await;
            let made: u64 = done.stdout.trim().parse().unwrap_or_else(|_| panic!("{:?} {}", done.exit, done.stderr));
            // The processes that hold the run count as well, and some of the runtime may start or end meanwhile.
            assert!((10..30).contains(&made), "{made}");
        });
    }
    if !geteuid().is_root() {
        return;
    }
    let mut others: Vec<_> =
        (0..50).map(|_| Command::new("sleep").arg("1000").uid(LONELY_USER).spawn().unwrap()).collect();
    let tried = std::panic::catch_unwind(|| {
        again(module_path!(), TEST, |command| {
            let user = LONELY_USER.to_string();
            let mut inside = Command::new("unshare");
            inside.args([
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "setpriv",
                "--reuid",
                &user,
                "--regid",
                &user,
            ]);
            inside.arg("--clear-groups").arg(command.get_program()).args(command.get_args());
            inside.env_clear().env(ROLE, "1").current_dir("/");
            *command = inside;
        });
    });
    for other in &mut others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    tried.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn rejects_policies_that_landlock_alone_cannot_enforce() {
    in_a_container("rejects_policies_that_landlock_alone_cannot_enforce", true, async || {
        let hosts = |spec: &mut LaunchSpec, _: &Path| spec.policy.network = NetworkPolicy::Hosts(vec!["a.com".into()]);
        let guarded = |spec: &mut LaunchSpec, _: &Path| {
            (spec.policy.confinement, spec.policy.network) = (Confinement::Guarded, NetworkPolicy::Host);
        };
        let hidden = |spec: &mut LaunchSpec, work: &Path| spec.policy.hidden.push(work.join("src/secret"));
        let sealed = |spec: &mut LaunchSpec, work: &Path| spec.policy.sealed.push(work.join("src/secret"));
        let sealed_anyway = |spec: &mut LaunchSpec, work: &Path| spec.policy.sealed.push(work.join(".mcp.json"));
        let nested = |spec: &mut LaunchSpec, work: &Path| spec.policy.write_roots.push(work.join("src"));
        let read_only = |spec: &mut LaunchSpec, work: &Path| spec.policy.read_roots.push(work.join("src"));
        let linked = |_: &mut LaunchSpec, work: &Path| std::os::unix::fs::symlink("src", work.join(".claude")).unwrap();
        let linked_hooks = |_: &mut LaunchSpec, work: &Path| {
            fs::create_dir(work.join(".git")).unwrap();
            std::os::unix::fs::symlink("../src", work.join(".git/hooks")).unwrap();
        };
        let bare = |_: &mut LaunchSpec, work: &Path| {
            ["HEAD", "objects", "refs"].iter().for_each(|name| fs::create_dir(work.join(name)).unwrap());
        };
        let leads = |_: &mut LaunchSpec, work: &Path| fs::write(work.join(".git"), "gitdir: src/repository\n").unwrap();
        let leads_outside = |_: &mut LaunchSpec, work: &Path| {
            fs::write(work.join(".git"), "gitdir: ../outside/repository\n").unwrap();
        };
        let shares = |_: &mut LaunchSpec, work: &Path| {
            let repository = work.parent().unwrap().join("outside/repository");
            fs::create_dir_all(&repository).unwrap();
            fs::write(repository.join("commondir"), "../../work/src\n").unwrap();
            fs::write(work.join(".git"), format!("gitdir: {}\n", repository.display())).unwrap();
        };
        type Change<'a> = &'a dyn Fn(&mut LaunchSpec, &Path);
        let cases: [(Change<'_>, &str); 14] = [
            (&|_, _| {}, ""),
            (&sealed_anyway, ""),
            (&leads_outside, ""),
            (&hosts, "`sandbox.network` names hosts"),
            (&guarded, "an MCP server can run with the profile `strict`"),
            (&hidden, "must not be read itself, which Landlock cannot enforce"),
            (&sealed, "a rule forbids this program to change it"),
            (&nested, "is in the write root"),
            (&read_only, "is in the write root"),
            (&linked, ".claude`: a part of the path is a symbolic link"),
            (&linked_hooks, ".git/hooks`: a part of the path is a symbolic link"),
            (&bare, "is a git repository itself"),
            (&leads, "points to the repository"),
            (&shares, "points to the repository"),
        ];
        for (place, (change, expected)) in cases.into_iter().enumerate() {
            let world = world();
            let work = world.work();
            fs::create_dir(work.join("src")).unwrap();
            ["src/secret", ".mcp.json"].iter().for_each(|file| fs::write(work.join(file), "").unwrap());
            let mut spec = world.spec("true");
            change(&mut spec, &work);
            match world.launcher.launch(spec).await {
                Ok(child) => {
                    assert!(expected.is_empty() && ended(child).await.exit == Exit::Code(0), "{place}: {expected}")
                }
                Err(error) => {
                    let error = error.to_string();
                    assert!(!expected.is_empty() && error.contains(expected), "{place}: {expected}: {error}");
                }
            }
        }
    });
}

#[test]
fn all_processes_of_a_run_end_even_if_the_keeper_or_init_is_killed() {
    in_a_container("all_processes_of_a_run_end_even_if_the_keeper_or_init_is_killed", true, async || {
        const DAEMON: &str = "setsid bash -c 'setsid sleep 1000 & echo $!' & wait; trap '' TERM HUP INT QUIT; ";
        async fn started(world: &World, rest: &str) -> (Child, i32) {
            let mut child = world.launcher.launch(world.spec(&format!("{DAEMON}{rest}"))).await.unwrap();
            let mut line = String::new();
            let mut stdout = tokio::io::BufReader::new(child.stdout.take().unwrap());
            tokio::io::AsyncBufReadExt::read_line(&mut stdout, &mut line).await.unwrap();
            (child, line.trim().parse().unwrap())
        }
        let world = world();
        let (mut child, daemon) = started(&world, "exit 0").await;
        assert_eq!(child.exited().await, Exit::Code(0));
        assert!(child.had_survivors() && is_gone(daemon));
        let (mut child, daemon) = started(&world, "while :; do (sleep 1000 &); sleep 0.01; done").await;
        child.kill().await;
        assert!(child.left().is_empty() && is_gone(daemon), "{:?}", child.left());
        let (child, daemon) = started(&world, "sleep 1000").await;
        drop(child);
        until("a daemon of a dropped child is gone", || is_gone(daemon)).await;
        for is_of_init in [false, true] {
            let (mut child, daemon) = started(&world, "sleep 1000").await;
            let keeper = i32::try_from(child.id()).unwrap();
            let killed = if is_of_init { child_of(keeper) } else { keeper };
            rustix::process::kill_process(Pid::from_raw(killed).unwrap(), Signal::KILL).unwrap();
            timeout(Duration::from_secs(120), child.exited()).await.unwrap();
            until("a daemon is gone whose keeper was killed", || is_gone(daemon)).await;
            assert_eq!(child.left().len(), usize::from(is_of_init), "{:?}", child.left());
        }
    });
}

/// Returns the child of this process.
fn child_of(parent: i32) -> i32 {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|pid| parent_of(*pid) == Some(parent)).unwrap()
}

#[test]
fn rejects_a_root_that_contains_the_temporary_files_of_all_runs() {
    in_a_container("rejects_a_root_that_contains_the_temporary_files_of_all_runs", true, async || {
        let world = world();
        let with_root = |root: &Path, is_writable: bool| {
            let mut spec = world.spec("true");
            let policy = &mut spec.policy;
            if is_writable { &mut policy.write_roots } else { &mut policy.read_roots }.push(root.to_owned());
            spec
        };
        let temporary = std::env::temp_dir();
        let within = tempfile::tempdir_in(&temporary).unwrap();
        for is_writable in [false, true] {
            let error = world.launcher.launch(with_root(&temporary, is_writable)).await.unwrap_err().to_string();
            let expected = format!("`{}` contains the folder for temporary files of all runs", temporary.display());
            assert!(error.contains(&expected), "{is_writable}: {error}");
            assert_eq!(world.run(with_root(within.path(), is_writable)).await.exit, Exit::Code(0));
        }
    });
}
