//! The command line of Toolstead.

use mimalloc::MiMalloc;
use std::process::ExitCode;
use toolstead_infrastructure::helper::enter_if_helper;
use toolstead_presentation::{
    cli::{Cli, exit::parsed},
    config::environment::Environment,
    runtime, telemetry,
};

/// The system's allocator takes a lock when a thread frees what another one allocated, as happens to most of a call.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    enter_if_helper();
    let cli: Cli = parsed();
    telemetry::start(cli.verbosity(), &Environment::of_process());
    runtime::run(cli.run(), give_back)
}

/// Returns to the system what is free.
#[expect(unsafe_code, reason = "the allocator is written in C, and its crate does not offer this")]
fn give_back() {
    unsafe extern "C" {
        fn mi_collect(force: bool);
    }
    // SAFETY: it takes no pointer, and may be called by any thread at any time.
    unsafe { mi_collect(true) }
}
