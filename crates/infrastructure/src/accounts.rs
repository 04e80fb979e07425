//! Accounts at services: signing in by OAuth, and tokens that lie sealed (`docs/accounts.md`).

pub mod oauth_client;
#[expect(clippy::disallowed_methods, reason = "files of our own, which no tool reaches")]
pub mod vault;
