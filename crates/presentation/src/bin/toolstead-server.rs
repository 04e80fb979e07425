//! The server of Toolstead.

use clap::Parser;
use std::process::ExitCode;
use toolstead_presentation::{cli::serve::Serve, config::environment::Environment, runtime, telemetry};

fn main() -> ExitCode {
    let serve = Serve::parse();
    telemetry::start(serve.verbosity(), &Environment::of_process());
    runtime::run(serve.run())
}
