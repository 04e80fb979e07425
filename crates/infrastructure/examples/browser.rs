//! Says whether a browser can be started here: `cargo run -p toolstead-infrastructure --example browser -- [PROGRAM]`.
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{env, path::PathBuf, time::Duration};
use toolstead_infrastructure::{
    browser::browsers::{BrowserSettings, Browsers},
    sandbox::writable::WritableRoots,
};

fn main() {
    let settings = BrowserSettings {
        program: env::args().nth(1).map(PathBuf::from),
        idle: Duration::from_secs(60),
        ..BrowserSettings::default()
    };
    match Browsers::new(settings).unavailable(&WritableRoots::default()) {
        None => println!("a browser is there; the tools `browser_navigate` and so on start it"),
        Some(reason) => println!("{reason}"),
    }
}
