//! A configuration file as a checked tree: the formats, the schema of all keys, values with their origins, and the
//! problems that are reported.

pub(super) mod check;
pub(super) mod examples;
pub(super) mod expansion;
pub(super) mod format;
pub(super) mod node;
pub mod origin;
pub(super) mod ownership;
pub mod problem;
pub mod schema;
pub(super) mod source_file;
pub mod value;
