//! HTTP to other hosts: the one client of this program, and events of servers (`docs/http.md`).
//!
//! A [`client::HttpClient`] gives the way to a URL, an [`client::Endpoint`]; that takes requests and gives a
//! [`response::Response`], whose body is read at once, in pieces, or as an [`event_stream::EventStream`]. Names are
//! resolved and addresses judged by [`egress`](crate::egress).

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
