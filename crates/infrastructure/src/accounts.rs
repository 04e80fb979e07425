//! Accounts at services: signing in by OAuth, and tokens that lie sealed (`docs/accounts.md`).
//!
//! [`Accounts`](credentials::Accounts) gives the headers of a request, has a person sign in on a page where there are none,
//! renews what runs out, and gives nothing to any other origin.

mod attempt;
pub mod credentials;
pub mod grant;
pub mod import;
mod issuer;
mod loopback;
pub mod oauth_client;
mod private_file;
mod shared_sign_in;
pub mod sign_in_error;
#[cfg(test)]
mod tests;
pub mod token_error;
#[expect(clippy::disallowed_methods, reason = "files of our own, which no tool reaches")]
pub mod vault;
