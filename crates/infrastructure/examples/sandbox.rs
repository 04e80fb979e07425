//! The sandbox alone: runs a program confined in a folder, and prints what it said.
//!
//! `cargo run -p toolstead-infrastructure --no-default-features --features sandbox --example sandbox`
#![expect(clippy::print_stdout, reason = "it shows what the program said")]
#![expect(clippy::disallowed_methods, reason = "the folders are the example's own")]

use std::{error::Error, fs, path::Path, time::Duration};
use tokio::io::AsyncReadExt;
use toolstead_domain::SandboxPolicy;
use toolstead_infrastructure::{
    helper::{end_helpers, enter_if_helper},
    sandbox::launcher::{ChildInput, Exit, LaunchSpec, Launcher},
};

fn main() -> Result<(), Box<dyn Error>> {
    // Must be first, before any thread: this program, started again, confines other programs.
    enter_if_helper();
    let ran = run();
    end_helpers();
    ran
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn Error>> {
    let parent = tempfile::tempdir()?;
    let (inside, outside) = (parent.path().join("inside"), parent.path().join("outside"));
    fs::create_dir(&inside)?;
    fs::create_dir(&outside)?;
    let script = format!("pwd; echo written > here; cat here; ls {}", outside.display());
    let mut child = Launcher::start()?.launch(shell(&script, &fs::canonicalize(&inside)?)).await?;
    let mut said = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout.read_to_string(&mut said).await?;
    }
    let exit = child.exited().await;
    print!("{said}");
    match exit {
        // `ls` saw no folder beside its own.
        Exit::Code(2) if inside.join("here").exists() => Ok(()),
        exit => Err(format!("the program did not end as it should: {exit}").into()),
    }
}

/// A shell that reads the system, writes into one folder, has no network, and ten seconds.
fn shell(script: &str, folder: &Path) -> LaunchSpec {
    let mut policy = SandboxPolicy::sealed(folder);
    policy.limits.timeout = Some(Duration::from_secs(10));
    LaunchSpec {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        working_dir: folder.into(),
        input: ChildInput::Nothing,
        policy,
    }
}
