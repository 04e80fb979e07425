//! Tools that a program may call during the call that runs it.
//!
//! [`ToolPatterns`] is the list in the arguments, which is checked before the program runs. [`OfferedTools`] are the tools
//! that it matched when the run began: the calls of the program use a restricted view of these tools alone. Each is an
//! ordinary call whose parent is the call that runs the program.

mod serving;

use crate::builtin::tool_kit::tool_context::ToolContext;
use serving::OfferedToolServer;
use std::{future::Future, os::unix::net::UnixListener, sync::Arc};
use toolstead_domain::{
    Access, Calls, Category, Tool, ToolFailure, ToolName, ToolSelection, error_kind::ErrorKind,
    tool_selection::wildcard_match,
};

/// Maximum number of patterns of one offer.
pub(crate) const MAX_PATTERNS: usize = 64;
/// Maximum number of characters of a pattern; tool names are not longer.
pub(crate) const MAX_PATTERN_LENGTH: usize = 128;
/// Tag of tools that call other tools.
const ORCHESTRATION: &str = "orchestration";

/// Names of tools, and patterns of names with `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolPatterns {
    patterns: Vec<String>,
}

impl ToolPatterns {
    /// Parses the patterns of an offer; `None` if there are none.
    ///
    /// # Errors
    /// `invalid_input` when there are too many, or one is not a name.
    pub(crate) fn of(patterns: &[String]) -> Result<Option<Self>, ToolFailure> {
        let wrong = |message: String| Err(ToolFailure::new(ErrorKind::InvalidInput, message));
        if patterns.len() > MAX_PATTERNS {
            let message = format!("`tools` has {} entries, and at most {MAX_PATTERNS} are allowed", patterns.len());
            return wrong(format!("{message}: use patterns such as `mcp__git__*`"));
        }
        let is_pattern = |pattern: &str| {
            let may_stand = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '*');
            !pattern.is_empty() && pattern.len() <= MAX_PATTERN_LENGTH && pattern.chars().all(may_stand)
        };
        if let Some(pattern) = patterns.iter().find(|pattern| !is_pattern(pattern)) {
            let pattern: String = pattern.chars().take(MAX_PATTERN_LENGTH).collect();
            let message = format!("`{}` in `tools` is not a tool name", pattern.escape_debug());
            return wrong(format!("{message}: write `grep`, or a pattern such as `mcp__git__*`"));
        }
        let mut patterns = patterns.to_vec();
        patterns.sort_unstable();
        patterns.dedup();
        Ok(Some(Self { patterns }).filter(|offer| !offer.patterns.is_empty()))
    }

    /// Returns the accesses that are checked before the program runs, one for each pattern.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = Access> {
        self.patterns.iter().map(|pattern| Access::OfferTools(pattern.as_str().into()))
    }

    /// Returns the tools that match in this run. Tools that are added later are not included.
    ///
    /// # Errors
    /// `invalid_input` when a pattern matches no tool that the call may use, with the most similar name.
    pub(crate) fn open<'a>(&self, run: &ToolContext<'a>) -> Result<OfferedTools<'a>, ToolFailure> {
        let context = run.context();
        let known = context.calls.list();
        let mut names: Vec<&str> = Vec::new();
        for pattern in &self.patterns {
            let before = names.len();
            names.extend(known.iter().filter(|tool| takes_in(pattern, tool)).map(|tool| tool.name().as_str()));
            if names.len() == before {
                return Err(fits_none(pattern, &known, context.calls));
            }
        }
        let calls = context.calls.window(&format!("run {}", context.id), ToolSelection::canonical(names));
        let tools = calls.list();
        Ok(OfferedTools { tools, calls })
    }
}

/// Tools that are offered to a program, and its calls of them.
pub(crate) struct OfferedTools<'a> {
    tools: Vec<Arc<Tool>>,
    calls: Box<dyn Calls + 'a>,
}

impl OfferedTools<'_> {
    /// Returns the tools, sorted by name.
    pub(crate) fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// Polls `work` to its end, and meanwhile makes the calls that the program sends to the socket
    /// ([`StartedProgram::tools`](super::programs::StartedProgram::tools)). Once `work` ends, the socket is closed and
    /// open calls are cancelled.
    pub(crate) async fn during<T>(
        &self,
        socket: UnixListener,
        work: impl Future<Output = T>,
    ) -> Result<T, ToolFailure> {
        let serving = OfferedToolServer::on(socket, self).map_err(|error| {
            ToolFailure::new(ErrorKind::Io, "the tools cannot be offered to the program").caused_by(error)
        })?;
        tokio::select! {
            biased;
            done = work => Ok(done),
            never = serving.run() => match never {},
        }
    }
}

/// Polls `work` to its end, and offers tools meanwhile, if there are any.
///
/// # Errors
/// As [`OfferedTools::during`].
pub(crate) async fn offering<T>(
    offered: Option<(&OfferedTools<'_>, UnixListener)>,
    work: impl Future<Output = T>,
) -> Result<T, ToolFailure> {
    match offered {
        Some((tools, socket)) => tools.during(socket, work).await,
        None => Ok(work.await),
    }
}

/// Returns `true` if a pattern matches a tool. Tools that run programs or call tools match their exact names alone,
/// because with them a program could do more than the list shows.
fn takes_in(pattern: &str, tool: &Tool) -> bool {
    let mut names = [tool.name(), tool.rule_name()].into_iter().map(ToolName::as_str);
    names
        .any(|name| pattern == name || (pattern.contains('*') && !leads_further(tool) && wildcard_match(pattern, name)))
}

fn leads_further(tool: &Tool) -> bool {
    let is_orchestration = tool.tags.iter().any(|tag| tag == ORCHESTRATION);
    tool.takes_command_lines || tool.category == Category::Shell || is_orchestration
}

fn fits_none(pattern: &str, known: &[Arc<Tool>], calls: &dyn Calls) -> ToolFailure {
    let failure = ToolFailure::new(
        ErrorKind::InvalidInput,
        format!("`{pattern}` in `tools` matches no tool that this call may use"),
    );
    if pattern.contains('*') && known.iter().any(|tool| wildcard_match(pattern, tool.name().as_str())) {
        return failure.next("Patterns match no tools that run programs or call other tools: give their full names.");
    }
    let unknown = calls.unknown(&ToolSelection::canonical([pattern]));
    match unknown.into_iter().find_map(|unknown| unknown.nearest) {
        Some(name) => failure.next(format!("Did you mean `{name}`?")),
        None => failure.next("Use the names in the list of tools."),
    }
}

#[cfg(test)]
mod tests;
