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
    runtime::run(cli.run())
}
