#![expect(unsafe_code, reason = "a filter of system calls is put in place between fork and exec")]
//! The real binary where no namespace can be made, as in a container with the usual filter.

use crate::binaries::{Home, stderr, stdout};
use rustix::{
    fs::{Gid, Uid, chown},
    process::{Pid, Signal, geteuid, kill_process_group},
};
use std::{
    fs, io,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

const NOBODY: u32 = 65_534;

/// Refuses to make namespaces: unshare with EPERM, and clone3, whose flags a filter cannot read, with ENOSYS.
fn refuse_namespaces() -> io::Result<()> {
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let jump = |call: libc::c_long, jt| libc::sock_filter {
        code: JUMP_IF_EQUAL,
        jt,
        jf: 0,
        k: u32::try_from(call).unwrap_or(0),
    };
    let refusal = |error: i32| libc::SECCOMP_RET_ERRNO | error.unsigned_abs();
    let mut steps = [
        statement(LOAD, 0),
        jump(libc::SYS_unshare, 2),
        jump(libc::SYS_clone3, 2),
        statement(RETURN, libc::SECCOMP_RET_ALLOW),
        statement(RETURN, refusal(libc::EPERM)),
        statement(RETURN, refusal(libc::ENOSYS)),
    ];
    let program = libc::sock_fprog { len: 6, filter: steps.as_mut_ptr() };
    // SAFETY: the program and its steps live through the calls, which take no other memory.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives everything to the user `nobody`, if this process runs as root.
fn give(path: &Path) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
    }
    chown(path, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY))).unwrap();
}

/// The binary as an ordinary user's without namespaces.
fn command(home: &Home, arguments: &[&str]) -> Command {
    let top = home.work().parent().unwrap().to_owned();
    // The folder of the build may be closed to others. Copied by another process, so that none that is forked meanwhile
    // holds it open for writing; beside an earlier copy, which a process that is just ending may still run.
    let program = top.join("toolstead");
    let copied =
        Command::new("cp").arg("--remove-destination").arg(env!("CARGO_BIN_EXE_toolstead")).arg(&program).status();
    assert!(copied.unwrap().success());
    fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = home.command(&program, arguments);
    if geteuid().is_root() {
        give(&top);
        command.uid(NOBODY).gid(NOBODY);
    }
    // SAFETY: the closure makes system calls alone.
    unsafe { command.pre_exec(refuse_namespaces) };
    command.stdin(Stdio::null());
    command
}

fn run(home: &Home, arguments: &[&str]) -> Output {
    command(home, arguments).output().unwrap()
}

/// Waits until a process with this command line is there, or is not.
fn until_sleeps(mark: &str, is_there: bool) {
    let wanted = format!("sleep\0{mark}\0");
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
        if lines.any(|line| line == wanted) == is_there {
            return;
        }
        assert!(Instant::now() < end, "`sleep {mark}` is there: {}", !is_there);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn without_namespaces_commands_end_when_the_whole_process_group_is_signalled() {
    let home = Home::new();
    fs::create_dir(home.work().join("src")).unwrap();
    let config = home.config("[sandbox]\nminimum_tier = 2");
    let mark = format!("300.{:07}9", std::process::id());
    let sleep = format!(r#"{{"command":"sleep {mark} & sleep {mark}"}}"#);
    let arguments = ["call", "bash", &sleep, "--config", config.to_str().unwrap(), "--allow", "Bash"];
    for signal in [Signal::INT, Signal::HUP, Signal::KILL] {
        let mut child = command(&home, &arguments).process_group(0).stdout(Stdio::null()).spawn().unwrap();
        until_sleeps(&mark, true);
        kill_process_group(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
        until_sleeps(&mark, false);
    }
}

#[test]
fn without_namespaces_commands_run_only_if_the_user_permits_sandbox_tier_2() {
    for (setting, tier, code) in [
        ("", "bad   sandbox          tier 3, nothing is run confined: make a user namespace", 1),
        (
            "[sandbox]\nminimum_tier = 2",
            "note  sandbox          tier 2, confined by Landlock without namespaces, because make a user namespace",
            0,
        ),
    ] {
        let home = Home::new();
        fs::create_dir(home.work().join("src")).unwrap();
        let config = home.config(setting);
        let config = config.to_str().unwrap();
        let doctor = run(&home, &["doctor", "--config", config]);
        let said = stdout(&doctor);
        assert!(said.contains(tier), "{said}{}", stderr(&doctor));
        assert_eq!(doctor.status.success(), code == 0, "{said}");
        let command = r#"{"command":"echo made > src/file && cat src/file"}"#;
        let called = run(&home, &["call", "bash", command, "--config", config, "--allow", "Bash"]);
        let (said, complaint) = (stdout(&called), stderr(&called));
        assert_eq!(said.contains("made"), code == 0, "{said}{complaint}");
        if code == 0 {
            assert!(complaint.contains("tier 2") && complaint.contains("modes, dates and attributes"), "{complaint}");
        } else {
            let both = format!("{said}{complaint}");
            assert!(both.contains("could not be confined") && both.contains("namespace"), "{both}");
        }
    }
}
