//! Approval of a tool whose definition is not approved.

use toolstead_domain::{Cause, Decision, Finding, Tool, Verdict};

/// Adds the approval that a changed or new definition requires to the decision, whatever rules allow. Costs nothing for
/// a tool without such a change.
pub(super) fn apply_to(tool: &Tool, decision: Decision, asks_nobody: bool) -> Decision {
    let Some(pending) = tool.pending.as_ref().filter(|_| decision.verdict != Verdict::Deny) else { return decision };
    let verdict = if asks_nobody { Verdict::Deny } else { Verdict::Ask };
    let finding = Finding::new(verdict, None, Cause::Definition(pending.reason.clone()));
    let mut trace = decision.trace;
    trace.insert(0, finding.clone());
    Decision { verdict, decisive: finding, trace }
}
