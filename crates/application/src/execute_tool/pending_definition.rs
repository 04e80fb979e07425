//! Approval that a new or changed definition of a tool requires.

use toolstead_domain::{Cause, Decision, Finding, Tool, Verdict};

/// Requires approval of a call if the definition of its tool is not approved, whatever the rules allow; with
/// `asks_nobody`, denies it. Returns a denial, and the decision on any other tool, unchanged.
pub(super) fn apply_to(tool: &Tool, decision: Decision, asks_nobody: bool) -> Decision {
    let Some(pending) = tool.pending.as_ref().filter(|_| decision.verdict != Verdict::Deny) else { return decision };
    let verdict = if asks_nobody { Verdict::Deny } else { Verdict::Ask };
    let finding = Finding::new(verdict, None, Cause::Definition(pending.reason.clone()));
    let mut trace = decision.trace;
    trace.insert(0, finding.clone());
    Decision { verdict, decisive: finding, trace }
}
