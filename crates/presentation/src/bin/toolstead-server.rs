//! The server of Toolstead.

use clap::Parser;
use std::process::ExitCode;
use toolstead_infrastructure::helper::enter_if_helper;
use toolstead_presentation::{cli::serve::Serve, config::environment::Environment, runtime, telemetry};

fn main() -> ExitCode {
    enter_if_helper();
    let serve = Serve::parse();
    telemetry::start(serve.verbosity(), &Environment::of_process());
    runtime::run(serve.run())
}
