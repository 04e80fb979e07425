//! Accounts at services: signing in by OAuth, and tokens that lie sealed (`docs/accounts.md`).

pub mod import;
pub mod oauth_client;
mod private_file;
#[expect(clippy::disallowed_methods, reason = "files of our own, which no tool reaches")]
pub mod vault;
