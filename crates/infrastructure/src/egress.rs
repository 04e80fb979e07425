//! The way to other hosts: who may be reached, at which address, and the proxy that is the only way out for sandboxed
//! commands.
//!
//! [`host`] reads names, [`address`] judges addresses, [`connector`] resolves once and connects to what was judged.
//! [`proxy`] puts them before a command; whoever fetches a URL uses them without it.

pub mod address;
pub mod connector;
pub mod host;
pub mod proxy;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::expect_used, reason = "a test kit is a test: it fails by panicking")]
pub mod testing;
