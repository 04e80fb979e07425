//! HTTP to other hosts: the only HTTP client of the project, and server-sent events (`docs/extending/modules.md`).
//!
//! A [`client::HttpClient`] creates the [`client::EndpointClient`] of a URL, which sends requests and returns a
//! [`response::Response`]. Its body is read at once, in pieces, or as an [`event_stream::EventStream`].
//! [`egress`](crate::egress) resolves names and checks addresses.

pub mod client;
mod connection;
pub mod event_stream;
pub mod http_error;
mod origin;
pub mod pause;
pub mod proxy;
pub mod response;
pub mod sse;
mod tls;
