//! Accounts at services: signing in by OAuth, and tokens that lie sealed (`docs/accounts.md`).

pub mod oauth_client;
