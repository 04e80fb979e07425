//! A browser of the machine, confined like any other program, and driven over its DevTools pipe (`docs/browser.md`).

mod accessibility;
mod actions;
pub mod browsers;
mod devtools;
mod program;
mod references;
mod session;
mod shared_folder;
mod snapshot;
mod state;

#[cfg(test)]
mod tests;
