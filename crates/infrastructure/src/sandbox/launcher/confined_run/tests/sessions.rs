//! Runs that share a network, `/tmp` and a home.

use super::*;

#[test]
fn runs_of_a_session_share_a_network_and_temporary_files() {
    as_both("sessions::runs_of_a_session_share_a_network_and_temporary_files", async || {
        let world = World::new();
        let spec = |session: Option<&str>, script: &str| {
            let mut spec = world.spec(script);
            spec.policy.session = session.map(Arc::from);
            spec
        };
        let serve = "/usr/bin/python3 -c \"
import socket
s = socket.socket(); s.bind(('127.0.0.1', 4000)); s.listen(); print('up', flush=True)
while True: s.accept()[0].sendall(b'hello')
\"";
        let reach = "echo kept >> /tmp/note; cat /tmp/note; exec 3<>/dev/tcp/127.0.0.1/4000 && head -c5 <&3";
        let mut server = world.launcher.launch(spec(Some("a"), serve)).await.unwrap();
        let mut up = [0; 2];
        server.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        assert_eq!(world.run(spec(Some("a"), reach)).await.stdout, "kept\nhello");
        for other in [Some("b"), None] {
            let done = world.run(spec(other, reach)).await;
            assert_eq!(done.stdout, "kept\n", "{}", done.stderr);
            assert_ne!(done.exit, Exit::Code(0));
        }
        drop(server);
        assert_eq!(world.run(spec(Some("a"), "cat /tmp/note")).await.stdout, "kept\n");
        world.launcher.release_session("a".into());
        assert_eq!(world.run(spec(Some("a"), "cat /tmp/note 2>/dev/null || echo fresh")).await.stdout, "fresh\n");
    });
}

#[test]
fn a_session_has_one_network_from_its_first_run_on() {
    as_both("sessions::a_session_has_one_network_from_its_first_run_on", async || {
        let world = World::new();
        let mut known = std::collections::BTreeSet::new();
        for number in 0..10 {
            let mut spec = world.spec("readlink /proc/self/ns/net");
            spec.policy.session = Some(format!("network {number}").into());
            let first = world.run(spec.clone()).await;
            assert!(first.stdout.starts_with("net:["), "{}", first.stderr);
            assert_eq!(world.run(spec).await.stdout, first.stdout);
            assert!(known.insert(first.stdout));
        }
    });
}

/// The zygote has a network ready for the first of them, and none for the others.
#[test]
fn runs_without_a_session_have_a_loopback_of_their_own_each() {
    as_both("sessions::runs_without_a_session_have_a_loopback_of_their_own_each", async || {
        let world = World::new();
        assert_eq!(world.bash("true").await.exit, Exit::Code(0));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let serve = "exec /usr/bin/python3 -c \"
import socket, time
s = socket.socket(); s.bind(('127.0.0.1', 4000)); s.listen()
socket.create_connection(('127.0.0.1', 4000)); s.accept(); print('up', flush=True); time.sleep(999)
\"";
        let mut living = Vec::new();
        for _ in 0..3 {
            let mut child = world.launcher.launch(world.spec(serve)).await.unwrap();
            let mut up = [0; 2];
            child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
            living.push(child);
        }
    });
}

/// Runs in a separate process, because the runs of all tests of a process share one zygote.
#[test]
fn a_session_with_a_live_run_is_not_evicted_by_new_sessions() {
    alone("sessions::a_session_with_a_live_run_is_not_evicted_by_new_sessions", async || {
        let world = World::new();
        let spec = |session: &str, script: &str| {
            let mut spec = world.spec(script);
            spec.policy.session = Some(session.into());
            spec
        };
        let mut running =
            world.launcher.launch(spec("busy", "echo kept > /tmp/note; echo up; sleep 999")).await.unwrap();
        let mut up = [0; 2];
        running.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        for number in 0..300 {
            assert_eq!(world.run(spec(&number.to_string(), "echo x > /tmp/note")).await.exit, Exit::Code(0));
        }
        let read = "cat /tmp/note 2>/dev/null || echo fresh";
        for (session, expected) in [("busy", "kept\n"), ("299", "x\n"), ("0", "fresh\n")] {
            assert_eq!(world.run(spec(session, read)).await.stdout, expected, "{session}");
        }
    });
}

/// While a run is prepared, another run of its session replaces the folder above the visible one.
#[test]
fn hidden_files_stay_hidden_while_the_folders_above_them_are_moved() {
    as_both("sessions::hidden_files_stay_hidden_while_the_folders_above_them_are_moved", async || {
        let world = World::new();
        fs::write(world.work().join(".env"), "secret").unwrap();
        fs::write(world.work().join("open"), "open").unwrap();
        let place = world.folder.path().display().to_string();
        let (mut mover, mut reader) = (world.spec(""), world.spec(""));
        for spec in [&mut mover, &mut reader] {
            spec.policy.session = Some("racing".into());
            spec.policy.write_roots.clear();
            spec.working_dir = "/".into();
        }
        mover.program = "/usr/bin/python3".into();
        let exchange = "
import ctypes, os, sys
libc, (a, b) = ctypes.CDLL(None), sys.argv[1:]
for folder in (a, b): os.makedirs(folder + '/work')
print('up', flush=True)
while True: libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
";
        mover.args = vec!["-c".into(), exchange.into(), place.clone(), format!("{place}-other")];
        reader.args = vec!["-c".into(), "cat /var/tmp/.tmp*/work/open /var/tmp/.tmp*/work/.env; true".into()];
        reader.policy.read_roots = vec![world.work()];
        reader.policy.hidden = vec![world.work().join(".env")];
        let mut mover = world.launcher.launch(mover).await.unwrap();
        let mut up = [0; 2];
        mover.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        let mut seen = 0;
        for _ in 0..40 {
            // Some runs fail because their folder was moved. None sees the hidden file.
            let Ok(child) = world.launcher.launch(reader.clone()).await else { continue };
            let done = ended(child).await;
            assert!(!done.stdout.contains("secret"), "{}", done.stderr);
            seen += usize::from(done.stdout.contains("open"));
        }
        assert!(seen > 0);
    });
}

#[test]
fn folders_around_visible_paths_cannot_be_moved() {
    as_both("sessions::folders_around_visible_paths_cannot_be_moved", async || {
        let world = World::new();
        let tool = world.folder.path().join("home/.tool/bin");
        let inner = world.work().join("vendor/lib");
        for folder in [&tool, &inner] {
            fs::create_dir_all(folder).unwrap();
        }
        let mut spec = world.spec(
            "mv ~/.tool ~/moved; mv ${PWD%/work} ${PWD%/work}-moved; mv vendor moved; \
             touch ~/.tool/own ../own vendor/own && echo x > ~/.gitconfig; echo x > vendor/lib/x; ls -d ~/.tool/bin $PWD; ls",
        );
        spec.policy.read_roots = vec![tool.clone(), inner.clone()];
        let home = world.folder.path().join("home").display().to_string();
        spec.policy.environment.insert("HOME".into(), home);
        spec.policy.session = Some("moving".into());
        for _ in 0..2 {
            let done = world.run(spec.clone()).await;
            let expected = format!("{}\n{}\nvendor\n", tool.display(), world.work().display());
            assert_eq!(done.stdout, expected, "{}", done.stderr);
            assert!(world.work().join("vendor/own").exists() && !inner.join("x").exists());
        }
    });
}

/// Only root can see the descriptors of an init.
#[test]
fn a_run_does_not_hold_the_networks_of_other_sessions() {
    alone("sessions::a_run_does_not_hold_the_networks_of_other_sessions", async || {
        if rustix::process::geteuid().as_raw() != 0 {
            return;
        }
        let world = World::new();
        let spec = |session: &str, script: &str| {
            let mut spec = world.spec(script);
            spec.policy.session = Some(session.into());
            spec
        };
        for session in ["a", "b", "c"] {
            assert_eq!(world.run(spec(session, "true")).await.exit, Exit::Code(0));
        }
        let mut child = world.launcher.launch(spec("b", "echo up; sleep 999")).await.unwrap();
        let mut up = [0; 2];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        let held = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
        let held: Vec<PathBuf> = held.filter_map(|one| fs::read_link(one.path()).ok()).collect();
        let networks = held.iter().filter(|one| one.to_string_lossy().starts_with("net:[")).count();
        assert!(networks == 0 && held.iter().any(|one| one.to_string_lossy().contains("socket")), "{held:?}");
    });
}

#[test]
fn a_command_that_replaces_folders_of_its_home_does_not_break_the_next_one() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join(".config/git")).unwrap();
    fs::write(home.path().join(".config/git/config"), "[user]\n\tname = Somebody\n").unwrap();
    let test = "sessions::a_command_that_replaces_folders_of_its_home_does_not_break_the_next_one";
    alone_with_home(test, Some(home.path()), async || {
        let world = World::new();
        for (script, expected) in [
            ("git config user.name; rm -r ~/.config; ln -s /nowhere ~/.config", "Somebody\n"),
            ("echo runs; rm ~/.config; echo text > ~/.config", "runs\n"),
            ("echo runs; rm ~/.config; mkdir ~/.config; echo text > ~/.config/git", "runs\n"),
            ("echo runs; rm ~/.config/git; mkdir ~/.config/git; cat /dev/zero > ~/full 2>&-; true", "runs\n"),
            ("echo runs; cat ~/.config/git/config; rm ~/full", "runs\n"),
            ("git config user.name", "Somebody\n"),
        ] {
            let mut spec = world.spec(script);
            spec.policy.session = Some("replacing".into());
            let done = world.run(spec).await;
            assert_eq!((done.stdout.as_str(), done.exit), (expected, Exit::Code(0)), "{}", done.stderr);
        }
    });
}
