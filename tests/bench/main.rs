//! Measures Toolstead against references in the same run and prints the ratios (`make bench`).
//!
//! The program starts itself again as each reference (`--serve NAME`) and as the load generator (`--load`), so that
//! nothing but Toolstead's release binaries and this one are needed. Rounds of subject and reference alternate, and the
//! median round counts.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is what the program is for")]

mod browsing;
mod cost;
mod decide;
mod echo;
mod files;
mod gateways;
mod load;
mod machine;
mod pages;
mod references;
mod rows;
mod search;
mod side_by_side;
mod spawn;

use std::{error::Error, process::ExitCode};
use toolstead_infrastructure::helper::enter_if_helper;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    enter_if_helper();
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = runtime.map_err(Into::into).and_then(|runtime| {
        runtime.block_on(async {
            if arguments.iter().any(|argument| argument == "--load") {
                return load::generate().await;
            }
            match arguments.iter().position(|argument| argument == "--serve").and_then(|at| arguments.get(at + 1)) {
                Some(reference) => references::serve(reference).await,
                None => rows::run(arguments.iter().skip(1).find(|argument| !argument.starts_with('-'))).await,
            }
        })
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
