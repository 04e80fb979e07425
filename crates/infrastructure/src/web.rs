//! Reaching out to the web: judged requests, and pages as text (`docs/web.md`).
//!
//! [`reach::Reach`] makes each request under the eyes of a judge, and follows a redirect only where the one who asks says
//! so. What comes back is hostile until it is parsed.

pub mod page;
pub mod reach;
pub mod reach_error;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::expect_used, reason = "a test kit is a test: it fails by panicking")]
pub mod testing;
