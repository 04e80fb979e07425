//! The formats of configuration files, each read into the same tree.

pub(super) mod json;
pub(super) mod toml;
pub(super) mod yaml;
