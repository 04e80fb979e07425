//! Unconfined programs of the user: the adapter of [`UserProgramPort`].

use crate::{
    sandbox::{
        launcher::{Exit, Input, LaunchSpec, Launcher},
        one_run::{self, End},
    },
    user_program::{UserProgramError, UserProgramPort},
};
use async_trait::async_trait;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use toolstead_domain::SandboxPolicy;

/// Runs programs of the user in one environment and folder.
#[derive(Debug, Clone)]
pub struct UserPrograms {
    /// Launcher of the programs.
    pub launcher: Launcher,
    /// Complete environment of the programs.
    pub environment: BTreeMap<String, String>,
    /// Absolute path of the folder in which they start.
    pub folder: PathBuf,
}

#[async_trait]
impl UserProgramPort for UserPrograms {
    async fn output(&self, program: &str, arguments: &[String], timeout: Duration) -> Result<String, UserProgramError> {
        let spec = LaunchSpec {
            program: program.to_owned(),
            args: arguments.to_vec(),
            working_dir: self.folder.clone(),
            input: Input::Nothing,
            policy: SandboxPolicy::open(self.environment.clone()),
        };
        let ran = one_run::run(&self.launcher, spec, &[], timeout).await;
        match ran.end {
            End::Exited(Exit::Code(0)) if ran.stdout.is_cut => Err(UserProgramError::TooMuchOutput),
            End::Exited(Exit::Code(0)) => Ok(ran.stdout.text()),
            End::Exited(exit) => Err(UserProgramError::Failed(exit.to_string())),
            End::TimedOut => Err(UserProgramError::TimedOut(timeout)),
            End::NotStarted(reason) => Err(UserProgramError::NotStarted(reason)),
        }
    }
}
