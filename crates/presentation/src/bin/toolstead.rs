//! The command line of Toolstead.

use clap::Parser;
use std::process::ExitCode;
use toolstead_infrastructure::helper::enter_if_helper;
use toolstead_presentation::{cli::Cli, config::environment::Environment, runtime, telemetry};

fn main() -> ExitCode {
    enter_if_helper();
    let cli = Cli::parse();
    telemetry::start(cli.verbosity(), &Environment::of_process());
    runtime::run(cli.run())
}
