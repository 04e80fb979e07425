//! Systems whose rules are imported, one file each.

mod clai;
mod claude_code;
mod kodelet;
mod tool_blocks;

use super::translation::ForeignFormat;

/// All formats, in the order in which they are tried.
pub(super) const FORMATS: &[ForeignFormat] = &[claude_code::FORMAT, tool_blocks::FORMAT, kodelet::FORMAT, clai::FORMAT];
