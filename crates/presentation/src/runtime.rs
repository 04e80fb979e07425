//! The tokio runtime of both binaries.

use crate::cli::output::note;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::{process::ExitCode, time::Duration};
use toolstead_infrastructure::helper::end_helpers;

/// How long work on blocking threads has to end; a read from a terminal never does.
const LAST_WORK: Duration = Duration::from_millis(200);

/// Runs a program to its end.
pub fn run(program: impl Future<Output = ExitCode>) -> ExitCode {
    // Keys and tokens are in this memory: another program of the same user shall neither trace nor read it.
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        note(&format!("warning: other programs of this user may read the memory of this one: {error}"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            note(&format!("error: the runtime cannot be started: {error}"));
            return ExitCode::from(70);
        }
    };
    let code = runtime.block_on(program);
    runtime.shutdown_timeout(LAST_WORK);
    // Whoever waits for our end finds nothing of us any more.
    end_helpers();
    code
}
