//! The socket of a run to which tools are offered, and the processes that can connect to it.

use super::*;
use crate::sandbox::offered_tools::{SOCKET, VARIABLE};
use tokio::net::UnixListener as Listener;

/// Connects to the socket, and prints the response.
const ASK: &str = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(120)\ntry:\n s.connect(sys.argv[1])\n \
                   print(s.recv(99).decode())\nexcept OSError as e:\n print(type(e).__name__)";

fn asking(world: &World, before: &str) -> LaunchSpec {
    let mut spec = world.spec(&format!("{before}; exec /usr/bin/python3 -c \"$ASK\" {SOCKET}"));
    spec.policy.environment.insert("ASK".into(), ASK.into());
    spec
}

fn offering(mut spec: LaunchSpec) -> LaunchSpec {
    spec.policy.offers_tools = true;
    spec
}

/// Sends this word on every connection, without end.
async fn greet(listener: UnixListener, word: &str) {
    listener.set_nonblocking(true).unwrap();
    let listener = Listener::from_std(listener).unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, word.as_bytes()).await.unwrap();
    }
}

#[test]
fn a_run_reaches_only_its_own_tool_socket() {
    as_both_of(module_path!(), "a_run_reaches_only_its_own_tool_socket", async || {
        let world = World::new();
        let session = |mut spec: LaunchSpec, name: &str| {
            spec.policy.session = Some(name.into());
            spec
        };
        let mut first = world.launcher.launch(session(offering(asking(&world, "read")), "one")).await;
        let first = first.as_mut().unwrap();
        let mut second = world.launcher.launch(session(offering(asking(&world, "true")), "one")).await.unwrap();
        let (of_first, of_second) = (first.tools.take().unwrap(), second.tools.take().unwrap());
        let second = async {
            tokio::select! { done = ended(second) => done, () = greet(of_second, "second") => unreachable!() }
        };
        // A run of the same session without tools, and a run of another session with tools.
        let third = async {
            let child =
                world.launcher.launch(session(asking(&world, "ls -A /run; echo ${TOOLSTEAD_TOOLS-none}"), "one"));
            ended(child.await.unwrap()).await
        };
        let fourth = async {
            let after = asking(&world, "until [ -e closed ]; do sleep 0.02; done");
            let mut child = world.launcher.launch(session(offering(after), "two")).await.unwrap();
            drop(child.tools.take());
            fs::write(world.work().join("closed"), "").unwrap();
            ended(child).await
        };
        let all = async { tokio::join!(second, third, fourth) };
        let (second, third, fourth) =
            tokio::select! { done = all => done, () = greet(of_first, "first") => unreachable!() };
        assert_eq!(second.stdout, "second\n", "{}", second.stderr);
        assert_eq!(third.stdout, "none\nFileNotFoundError\n", "{}", third.stderr);
        // A connection is refused at once if no process listens, even while the run lives.
        assert_eq!(fourth.stdout, "ConnectionRefusedError\n", "{}", fourth.stderr);
    });
}

#[test]
fn a_run_can_use_but_not_change_the_files_of_offered_tools() {
    as_both_of(module_path!(), "a_run_can_use_but_not_change_the_files_of_offered_tools", async || {
        let world = World::new();
        let script = format!(
            "command -v tool; echo ${VARIABLE}; stat -c '%a %u' {SOCKET}; id -u; cd /run/toolstead; \
             rm -f tools; mv tools x; ln -s /tmp tools; rm -f bin/tool; : > bin/tool; mv bin x; \
             /usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"other\")' 2> /dev/null; \
             mkdir more; ls -R"
        );
        let mut child = world.launcher.launch(offering(world.spec(&script))).await.unwrap();
        assert!(child.tools.is_some());
        let _listener = child.tools.take();
        let done = ended(child).await;
        let said: Vec<&str> = done.stdout.lines().collect();
        assert_eq!(said[..2], ["/run/toolstead/bin/tool", SOCKET], "{}", done.stderr);
        // Only accessible to the user of the run.
        assert_eq!(said[2], format!("600 {}", said[3]));
        assert_eq!(said[4..], [".:", "bin", "tools", "", "./bin:", "tool"], "{}", done.stderr);
        assert_eq!(done.stderr.matches("Read-only file system").count(), 6, "{}", done.stderr);
    });
}

#[tokio::test]
async fn an_unconfined_run_with_offered_tools_is_rejected() {
    let world = World::new();
    let mut spec = offering(world.spec("touch begun"));
    spec.policy.confinement = Confinement::Open;
    let error = world.launcher.launch(spec).await.unwrap_err();
    assert!(matches!(error, LaunchError::NoTools(_)) && error.to_string().contains("not confined"), "{error}");
    assert!(!world.work().join("begun").exists());
}
