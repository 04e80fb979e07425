//! Reaching out to the web: judged requests, and pages as text (`docs/web.md`).
//!
//! [`address`] reads addresses as strangers write them, [`reach::Reach`] makes each request under the eyes of a judge and
//! follows a redirect only where the one who asks says so, [`charset`] makes text of what comes back, and [`page`] makes
//! Markdown of pages. All of it is hostile until it is parsed.

pub mod address;
pub mod charset;
pub mod page;
mod pool;
pub mod reach;
pub mod reach_error;
pub mod robots;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::expect_used, reason = "a test kit is a test: it fails by panicking")]
pub mod testing;
