//! The connection that a call takes: the catalogue connection or one of the pool, once the server can be reached.

pub(super) mod catalogue_connection_lock;
pub(super) mod circuit;
pub(super) mod connection_selection;
pub(super) mod pause;
pub(super) mod pool;
pub(super) mod repeating;
pub(super) mod supervisor;
pub(super) mod usage;
