//! Tests of the client against servers whose messages are written out in each test.

mod alone;
mod authorized;
mod calling;
mod context;
mod elsewhere;
mod http;
mod http_server;
mod line_server;
mod lines;
mod pooling;
mod sse;

use super::*;
