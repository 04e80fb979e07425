//! Tests of the client against servers whose messages are written out in each test.

mod caller_credentials;
mod context;
mod http;
mod http_server;
mod line_server;
mod lines;
mod pooled_tools;
mod pooling;
mod provider_calls;
mod sse;
mod standalone_client;

use super::*;
