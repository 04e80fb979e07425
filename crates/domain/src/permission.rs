//! Permissions: rules in, one decision out.

pub mod command_pattern;
pub mod decision;
pub mod grant;
pub mod host_pattern;
pub mod offered_rule;
pub mod path_pattern;
pub mod policy;
pub mod read_only_commands;
pub mod rule;
pub mod rule_origin;
