//! What a command line would run, for trying rules on it.

use toolstead_domain::access::CommandAccess;

/// The commands of a line.
///
/// The one place where the configuration meets the analysis of the shell tools: without it a line is one command, split
/// at blanks.
pub(super) fn commands_of(line: &str) -> Vec<CommandAccess> {
    let command = CommandAccess::program(line.split_whitespace());
    vec![CommandAccess { whole: line.into(), text: line.into(), ..command }]
}
