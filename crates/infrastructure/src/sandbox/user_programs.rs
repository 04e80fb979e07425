//! Unconfined programs of the user: the adapter of [`UserProgramPort`].

use crate::{
    sandbox::{
        launcher::{ChildInput, Exit, LaunchSpec, Launcher},
        unconfined_run::{self, RunOutcome},
    },
    user_program::{UserProgramError, UserProgramPort},
};
use async_trait::async_trait;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use toolstead_domain::SandboxPolicy;

/// Runner of programs of the user, without a sandbox, in one environment and folder.
#[derive(Debug, Clone)]
pub struct UserProgramRunner {
    /// Launcher of the programs.
    pub launcher: Launcher,
    /// Complete environment of the programs.
    pub environment: BTreeMap<String, String>,
    /// Absolute path of the folder in which the programs start.
    pub folder: PathBuf,
}

#[async_trait]
impl UserProgramPort for UserProgramRunner {
    async fn output(&self, program: &str, arguments: &[String], timeout: Duration) -> Result<String, UserProgramError> {
        let spec = LaunchSpec {
            program: program.to_owned(),
            args: arguments.to_vec(),
            working_dir: self.folder.clone(),
            input: ChildInput::Nothing,
            policy: SandboxPolicy::open(self.environment.clone()),
        };
        let ran = unconfined_run::run(&self.launcher, spec, &[], timeout).await;
        match ran.end {
            RunOutcome::Exited(Exit::Code(0)) if ran.stdout.is_cut => Err(UserProgramError::TooMuchOutput),
            RunOutcome::Exited(Exit::Code(0)) => Ok(ran.stdout.text()),
            RunOutcome::Exited(exit) => Err(UserProgramError::Failed(exit.to_string())),
            RunOutcome::TimedOut => Err(UserProgramError::TimedOut(timeout)),
            RunOutcome::NotStarted(reason) => Err(UserProgramError::NotStarted(reason)),
        }
    }
}
