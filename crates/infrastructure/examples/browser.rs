//! Says which browser would be started: `cargo run -p toolstead-infrastructure --example browser -- [PROGRAM]`.
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{env, path::PathBuf};
use toolstead_infrastructure::browser::browsers::{BrowserSettings, Browsers};

fn main() {
    let program = env::args().nth(1).map(PathBuf::from);
    match Browsers::new(BrowserSettings { program, ..BrowserSettings::default() }).found() {
        Ok(file) => println!("{} is started by `browser_navigate`", file.display()),
        Err(reason) => println!("{reason}"),
    }
}
