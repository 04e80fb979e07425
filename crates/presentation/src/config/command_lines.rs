//! What a command line would run, for trying rules on it.

use std::path::Path;
use toolstead_domain::access::CommandAccess;
use toolstead_infrastructure::shell_analysis::analyse;

/// The commands of a line, as the shell tools find them.
///
/// The one place where the configuration meets their analysis.
pub(super) fn commands_of(line: &str) -> Vec<CommandAccess> {
    analyse(line, Path::new("/")).commands
}
