use super::super::{Child, Input, LaunchSpec};
use super::*;
use crate::sandbox::child_environment;
use std::{
    fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};
use tokio::{io::AsyncReadExt, time::timeout};
use toolstead_domain::sandbox_policy::{Confinement, NetworkPolicy, SandboxLimits, SandboxPolicy};

/// A workspace, and beside it what a run must not reach.
struct World {
    folder: tempfile::TempDir,
    launcher: Launcher,
}

struct Ended {
    stdout: String,
    stderr: String,
    exit: Exit,
    undone: Vec<String>,
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
            input: Input::Nothing,
            policy: SandboxPolicy {
                confinement: Confinement::Sealed,
                session: None,
                hidden: Vec::new(),
                write_roots: vec![self.work()],
                read_roots: Vec::new(),
                network: NetworkPolicy::None,
                environment: child_environment::base(|_| None),
                limits: SandboxLimits::default(),
            },
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
    Ended { stdout, stderr, exit, undone: child.undone().to_vec() }
}

#[tokio::test]
async fn a_run_edits_its_root_and_its_files_are_the_owners() {
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
