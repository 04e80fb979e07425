//! Credentials for upstream MCP servers: sign-in by OAuth, client credentials, token exchange and ID-JAG
//! (`docs/guide/upstream-servers.md`).
//!
//! [`UpstreamServerCredentials`](upstream_accounts::UpstreamServerCredentials) returns the headers of requests to one
//! server. The protocol is that of the `rmcp` crate, whose requests all pass through `authorization_server_client`.
//! Grants are in the vault of [`accounts`](crate::accounts) under the principal, the issuer and the resource URI.

mod authorization_server;
mod authorization_server_client;
mod client_credentials;
mod id_jag;
mod registration;
pub mod settings;
pub mod sign_in;
pub mod stored_grants;
#[cfg(test)]
mod tests;
mod token_exchange;
pub mod upstream_accounts;
pub mod upstream_auth_error;
