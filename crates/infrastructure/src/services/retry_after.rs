//! The time that a service wants to be left alone, read as from every other server.

pub(super) use crate::http::pause::wanted_pause as retry_after;
