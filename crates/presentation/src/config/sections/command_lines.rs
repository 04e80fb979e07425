//! Analysis of command lines, for testing rules against them.

use std::path::Path;
use toolstead_domain::CommandAccess;
use toolstead_infrastructure::shell_analysis::analyse;

/// Returns the commands of a line, as the shell tools determine them.
///
/// This is the only place where the configuration uses the shell analysis.
pub(in crate::config) fn commands_of(line: &str) -> Vec<CommandAccess> {
    analyse(line, Path::new("/")).commands
}
