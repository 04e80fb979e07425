//! Connections to other hosts: permitted hosts and addresses, and the proxy that is the only connection of sandboxed
//! commands to the outside.
//!
//! [`host`] parses names, [`address`] classifies addresses, [`connector`] resolves a name once and connects to the
//! checked addresses. [`proxy`] applies them to a command; code that fetches a URL uses them without a proxy.

pub mod address;
pub mod connector;
pub mod host;
pub mod proxy;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::expect_used, reason = "a test kit is a test: it fails by panicking")]
pub mod testing;
