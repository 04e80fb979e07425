//! Accounts at services: sign-in by OAuth, and encrypted storage of tokens (`docs/guide/accounts.md`).
//!
//! [`OAuthAccounts`](credentials::OAuthAccounts) returns the headers of a request. It asks the user to sign in on a
//! page if there are no tokens, renews tokens before they expire, and never sends them to another origin.

pub(crate) mod attempt;
pub(crate) mod bearer;
pub mod credentials;
pub mod grant;
pub mod import;
pub(crate) mod issuer;
pub(crate) mod loopback;
pub mod oauth_client;
pub(crate) mod private_file;
mod shared_sign_in;
pub mod sign_in_error;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test looks at what was kept")]
mod tests;
pub mod token_error;
#[expect(clippy::disallowed_methods, reason = "files of our own, which no tool reaches")]
pub mod vault;
