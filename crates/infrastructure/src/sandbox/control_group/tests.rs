use super::*;
use std::{
    collections::BTreeMap,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

fn folder() -> (tempfile::TempDir, OwnedFd) {
    let folder = tempfile::tempdir().unwrap();
    let opened = opened(CWD, folder.path()).unwrap();
    (folder, opened)
}

const LIMITS: ControlGroupLimits = ControlGroupLimits { memory_bytes: 300 << 20, processes: 40 };

/// Sets the limits of a group that consists of ordinary files with these names.
#[track_caller]
fn set(bounds: &SupportedLimits, names: &[&str]) -> io::Result<BTreeMap<String, String>> {
    let (folder, opened) = folder();
    for name in names {
        fs::write(folder.path().join(name), "").unwrap();
    }
    bounds.set(&opened, LIMITS)?;
    let read = |name: &&str| (name.to_string(), fs::read_to_string(folder.path().join(name)).unwrap());
    Ok(names.iter().map(read).collect())
}

#[test]
fn supported_limits_are_set_and_a_limit_that_cannot_be_set_is_an_error() {
    let bounds = |memory, processes| SupportedLimits { memory, processes, lacks: None };
    let all = ["memory.max", "memory.oom.group", "memory.swap.max", "pids.max"];
    for (bounds, names, expected) in [
        (bounds(true, true), &all[..], &["314572800", "1", "0", "40"][..]),
        (bounds(false, true), &all, &["", "", "", "40"]),
        (bounds(true, false), &all, &["314572800", "1", "0", ""]),
        // A kernel without swap.
        (bounds(true, true), &["memory.max", "memory.oom.group", "pids.max"], &["314572800", "1", "40"]),
    ] {
        let expected = names.iter().zip(expected).map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(set(&bounds, names).unwrap(), expected.collect());
    }
    for missing in ["memory.max", "memory.oom.group", "pids.max"] {
        let names: Vec<_> = all.into_iter().filter(|name| *name != missing).collect();
        let error = set(&bounds(true, true), &names).unwrap_err();
        assert!(error.to_string().contains(missing), "{error}");
    }
}

#[test]
fn an_out_of_memory_kill_is_attributed_to_the_run_or_the_machine() {
    for (events, expected) in [
        ("low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n", None),
        ("low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 1\n", Some(OutOfMemoryCause::OfRun(7))),
        ("low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n", Some(OutOfMemoryCause::OfMachine)),
        ("", None),
    ] {
        assert_eq!(ended_for(events, 7), expected, "{events}");
    }
}

#[test]
fn groups_of_ended_processes_are_removed_and_groups_of_live_processes_stay() {
    let (folder, place) = folder();
    let (living, lock) = create_locked_folder(&place).unwrap();
    let (dead, _) = create_locked_folder(&place).unwrap();
    for name in [format!("{living}/1"), format!("{dead}/1"), format!("{dead}/2"), "other-1".into()] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let there = |name: &str| folder.path().join(name).is_dir();
    // A child that another test forks holds the lock until it executes its program.
    let is_swept = |name: &str| {
        let end = Instant::now() + Duration::from_secs(120);
        while there(name) && Instant::now() < end {
            sweep(&place, folder.path());
            thread::yield_now();
        }
        !there(name)
    };
    assert!(is_swept(&dead));
    assert_eq!((there(&living), there("other-1")), (true, true));
    assert!(there(&format!("{living}/1")));
    drop(lock);
    assert!(is_swept(&living) && there("other-1"));
}

/// Returns the groups of this machine. If there are none, prints the reason.
fn groups() -> Option<ControlGroups> {
    match ControlGroups::found() {
        Ok(groups) => Some(groups),
        Err(reason) => {
            assert!(!reason.is_empty());
            assert_eq!(tried(), Err(reason));
            None
        }
    }
}

fn ended() -> OwnedFd {
    let mut child = Command::new("true").spawn().unwrap();
    let id = rustix::process::Pid::from_child(&child);
    let process = rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()).unwrap();
    child.wait().unwrap();
    process
}

#[test]
fn a_real_control_group_is_killed_as_a_whole_and_removed_after_its_run() {
    let Some(mut groups) = groups() else { return };
    let group = groups.make().unwrap();
    groups.bound(&group, LIMITS).unwrap();
    // A shell in the group, and two processes in sessions of their own.
    let procs = file(group.folder(), "cgroup.procs", OFlags::WRONLY).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", "setsid sleep 999 & setsid sleep 999 & echo; wait"]).stdout(Stdio::piped());
    // SAFETY: the closure makes one system call.
    #[expect(unsafe_code, reason = "a child enters the group before it is a program")]
    unsafe {
        command.pre_exec(move || Ok(rustix::io::write(&procs, b"0").map(drop)?));
    }
    let mut child = command.spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 1]).unwrap();
    assert!(text(group.folder(), "cgroup.procs").unwrap().lines().count() >= 2);
    group.kill();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    groups.belongs_to(ended());
    let path = fs::read_link(format!("/proc/self/fd/{}", groups.folder.as_raw_fd())).unwrap();
    let (reader, writer) = io::pipe().unwrap();
    drop(writer);
    // Waiting for a descriptor that can be read must return at once.
    while !groups.runs.is_empty() {
        groups.wait(&[reader.as_fd()]);
    }
    assert!(!path.join("1").exists());
    drop(groups);
    assert!(!path.exists());
}

#[test]
fn the_description_of_limits_lists_the_limited_resources() {
    let bounds = |memory, processes, lacks: Option<&str>| {
        SupportedLimits { memory, processes, lacks: lacks.map(Into::into) }.to_string()
    };
    assert_eq!(bounds(true, true, None), "memory and processes");
    assert_eq!(bounds(false, true, Some("there is no `memory`")), "processes (there is no `memory`)");
    assert_eq!(bounds(false, false, None), "no resources, but all processes end at once");
}
