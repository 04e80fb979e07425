//! The built-in tools in the five tool systems that Toolstead succeeds: aliases in one table, and for each system a list
//! of dialect adapters and a JSON file with the descriptions and schemas for models.

pub(super) mod aliases;
mod caller_text;
mod clai;
mod claude_code;
mod command_output;
mod kodelet;
mod micro_x;
mod tfo;
mod web_page;
mod wording;

use crate::dialects::{CLAI, CLAUDE_CODE, KODELET, MICRO_X, TFO};
use toolstead_domain::{Dialect, DialectAdapter};

/// Dialect adapters by dialect.
static ADAPTERS: &[(Dialect, &[DialectAdapter])] = &[
    (CLAI, clai::ADAPTERS),
    (CLAUDE_CODE, claude_code::ADAPTERS),
    (KODELET, kodelet::ADAPTERS),
    (MICRO_X, micro_x::ADAPTERS),
    (TFO, tfo::ADAPTERS),
];

/// Returns the dialect adapter of this name.
fn adapter_of(dialect: Dialect, name: &str) -> Option<&'static DialectAdapter> {
    let (_, adapters) = ADAPTERS.iter().find(|(one, _)| *one == dialect)?;
    adapters.iter().find(|adapter| adapter.name == name)
}

#[cfg(test)]
mod tests;
