//! A browser of the machine, confined like any other program, and controlled over its DevTools pipe
//! (`docs/guide/browser.md`).
//!
//! [`browsers::Browsers`] holds one for each session that uses a browser.

#![cfg_attr(not(feature = "builtin"), expect(dead_code, reason = "tools use it"))]

pub(crate) mod accessibility;
pub(crate) mod actions;
mod announcement;
pub(crate) mod attributes;
pub mod browsers;
pub(crate) mod devtools;
pub(crate) mod keyboard;
pub(crate) mod process;
mod program;
pub(crate) mod references;
mod removed_lines;
pub(crate) mod session;
pub(crate) mod shared_folder;
pub(crate) mod snapshot;
pub(crate) mod state;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod wrapper;

#[cfg(test)]
pub(crate) mod tests;
