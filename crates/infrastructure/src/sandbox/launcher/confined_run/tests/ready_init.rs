//! The init that exists before its run is requested. Each test has its own zygote.

use super::*;
use rustix::{
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::{Pid, kill_process},
};
use std::{thread::yield_now, time::Instant};

/// Runs the body in separate processes, with these preparations.
fn alone(test: &str, prepared: &[fn(&mut Command)], body: impl AsyncFnOnce()) {
    if std::env::var_os(ROLE).is_none() {
        return prepared.iter().for_each(|prepare| again(module_path!(), test, prepare));
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body());
}

/// Returns the value once it is found. Panics after a time that no test needs.
fn in_time<T>(found: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "in time");
        yield_now();
    }
}

fn children_of(parent: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|process| parent_of(*process) == Some(parent)).collect()
}

fn zygote() -> i32 {
    let is_zygote = |process: &i32| {
        fs::read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|line| line.starts_with("toolstead-zygote"))
    };
    children_of(std::process::id().cast_signed()).into_iter().find(is_zygote).unwrap()
}

/// Returns the waiting init, once those of earlier runs have ended.
fn waiting(before: &[i32]) -> i32 {
    let zygote = zygote();
    in_time(|| match children_of(zygote)[..] {
        [child] if !before.contains(&child) => Some(child),
        _ => None,
    })
}

/// Returns `true` if a process has ended, even if it was not reaped.
fn is_over(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_err() || stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

fn kill(process: i32) {
    signal(process, Signal::KILL);
}

fn signal(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}

fn spec(world: &World, script: &str) -> LaunchSpec {
    let mut spec = world.spec(script);
    // With a session, the zygote does not create a network in a child.
    spec.policy.session = Some("one".into());
    spec
}

#[test]
fn each_run_starts_in_a_prepared_init_that_no_other_run_uses() {
    let somebody = |command: &mut Command| {
        command.uid(65534).gid(65534);
    };
    let is_root = rustix::process::geteuid().is_root();
    let all: &[fn(&mut Command)] = &[|_| {}, somebody];
    let test = "each_run_starts_in_a_prepared_init_that_no_other_run_uses";
    alone(test, &all[..1 + usize::from(is_root)], async || {
        let world = World::new();
        let mut before = Vec::new();
        let mut child = world.launcher.launch(spec(&world, "true")).await.unwrap();
        before.push(child.id().cast_signed());
        assert_eq!(child.exited().await, Exit::Code(0));
        for _ in 0..3 {
            let ready = waiting(&before);
            // Sent to all processes, as a service manager does.
            signal(in_time(|| children_of(ready).first().copied()), Signal::HUP);
            let child = world.launcher.launch(spec(&world, "hostname")).await.unwrap();
            assert_eq!(child.id().cast_signed(), ready);
            before.push(ready);
            let done = ended(child).await;
            assert_eq!((done.exit, done.stdout.as_str()), (Exit::Code(0), "sandbox\n"), "{}", done.stderr);
        }
        // If the init has ended, another one is created.
        let killed = waiting(&before);
        kill(killed);
        in_time(|| is_over(killed).then_some(()));
        before.push(killed);
        let child = world.launcher.launch(spec(&world, "exit 3")).await.unwrap();
        before.push(child.id().cast_signed());
        assert_eq!(ended(child).await.exit, Exit::Code(3));
        // An init whose payload has ended is replaced as well, because it could not start a program.
        let spoilt = waiting(&before);
        kill(in_time(|| children_of(spoilt).first().copied()));
        in_time(|| is_over(spoilt).then_some(()));
        before.push(spoilt);
        let child = world.launcher.launch(spec(&world, "exit 4")).await.unwrap();
        before.push(child.id().cast_signed());
        assert_eq!(ended(child).await.exit, Exit::Code(4));
        // The init ends with its zygote.
        let ready = waiting(&before);
        kill(zygote());
        in_time(|| is_over(ready).then_some(()));
    });
}

#[test]
fn a_prepared_init_ends_when_its_session_is_released() {
    alone("a_prepared_init_ends_when_its_session_is_released", &[|_| {}], async || {
        let world = World::new();
        let child = world.launcher.launch(spec(&world, "echo kept > /tmp/note")).await.unwrap();
        let first = child.id().cast_signed();
        assert_eq!(ended(child).await.exit, Exit::Code(0));
        let ready = waiting(&[first]);
        world.launcher.release_session("one".into());
        in_time(|| is_over(ready).then_some(()));
        let read = "cat /tmp/note 2> /dev/null || echo fresh";
        assert_eq!(world.run(spec(&world, read)).await.stdout, "fresh\n");
    });
}

/// Root has a mount namespace of its own for this.
#[test]
fn a_mount_added_after_an_init_was_prepared_is_visible_to_the_next_run() {
    const PLACE: &str = "/usr/share";
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let apart = |command: &mut Command| {
        // SAFETY: the closure makes two system calls.
        #[expect(unsafe_code, reason = "mounts are parted in the child")]
        unsafe {
            command.pre_exec(|| {
                if libc::unshare(libc::CLONE_NEWNS) != 0 {
                    return Err(io::Error::last_os_error());
                }
                mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
                Ok(mount_change("/", MountPropagationFlags::SHARED | MountPropagationFlags::REC)?)
            });
        }
    };
    alone("a_mount_added_after_an_init_was_prepared_is_visible_to_the_next_run", &[apart], async || {
        let world = World::new();
        let kind = format!("stat -f -c %T {PLACE}");
        let first = world.launcher.launch(spec(&world, &kind)).await.unwrap();
        let before = first.id().cast_signed();
        let first = ended(first).await;
        assert!(first.exit == Exit::Code(0) && first.stdout != "tmpfs\n", "{}{}", first.stdout, first.stderr);
        let ready = waiting(&[before]);
        mount("none", PLACE, "tmpfs", MountFlags::empty(), None).unwrap();
        let child = world.launcher.launch(spec(&world, &kind)).await.unwrap();
        assert_ne!(child.id().cast_signed(), ready);
        assert_eq!(ended(child).await.stdout, "tmpfs\n");
    });
}
