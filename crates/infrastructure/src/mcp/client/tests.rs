//! The client against servers whose every word stands in the test.

mod alone;
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
