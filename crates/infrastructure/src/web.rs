//! Requests to the web with permission checks, and pages as text (`docs/guide/web.md`).
//!
//! [`address`] parses untrusted addresses, [`web_client::WebClient`] checks the host of each request with a judge and
//! follows redirects only as far as the caller allows, [`charset`] decodes responses, and [`page`] converts pages to
//! Markdown. All input is hostile until it is parsed.

pub mod address;
pub mod charset;
pub mod page;
mod pool;
pub mod robots;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::expect_used, reason = "a test kit is a test: it fails by panicking")]
pub mod testing;
pub mod web_client;
pub mod web_error;
