//! Suggestions in the wording of each user interface, one table per interface.
//!
//! An embedding application uses [`DefaultSuggestions`](toolstead_domain::suggestion::DefaultSuggestions) or tables of
//! its own.

mod command_line;
mod http;
mod mcp;
#[cfg(test)]
mod tests;

pub(crate) use self::{command_line::CliSuggestionFormatter, http::HttpSuggestions, mcp::McpSuggestions};

use std::path::Path;
use toolstead_domain::permission::decision::in_shell;

/// Returns the rules as flags of a command line, and as operands.
fn flags_and_operands(rules: &[String]) -> (String, String) {
    let rules: Vec<String> = rules.iter().map(|rule| in_shell(rule)).collect();
    let flags: Vec<String> = rules.iter().map(|rule| format!("--allow {rule}")).collect();
    (flags.join(" "), rules.join(" "))
}

/// Returns the command that trusts a file.
fn trusting(path: &Path) -> String {
    format!("toolstead config trust {}", in_shell(&path.to_string_lossy()))
}

/// Returns the command with which a principal signs in.
fn signing_in(grant: &str, principal: Option<&str>) -> String {
    let principal = principal.map(|principal| format!(" --principal {}", in_shell(principal))).unwrap_or_default();
    match grant.strip_prefix("server:") {
        Some(_) => format!("toolstead auth login {}{principal}", in_shell(grant)),
        None => format!("toolstead auth login google --grant {grant}{principal}"),
    }
}
