//! Cache of the recorded texts of decisions.
//!
//! A tool of a server has the same accesses in every call, so the same rule decides with the same texts. Searching
//! these texts for secrets costs more than the rest of the record.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use toolstead_domain::{Access, Cause, Decision};

/// Maximum number of cached decisions. A further one replaces the oldest.
const KEPT: usize = 64;

/// Cache of recently recorded decisions.
#[derive(Debug, Default)]
pub(super) struct DecisionTextCache(Mutex<VecDeque<(DecisionKey, Arc<RenderedDecision>)>>);

/// Cache key: the texts depend on nothing else.
#[derive(Debug, PartialEq)]
struct DecisionKey {
    accesses: Vec<Access>,
    decision: Decision,
}

/// Recorded texts of a decision.
#[derive(Debug)]
pub(super) struct RenderedDecision {
    /// Accesses of the call.
    pub(super) accesses: Vec<String>,
    pub(super) verdict: &'static str,
    pub(super) reason: String,
    /// Findings, as compact JSON.
    pub(super) trace: String,
}

impl DecisionTextCache {
    /// Returns the texts, from the cache or from `create_texts`. Only texts that do not depend on the arguments of the
    /// call are cached.
    pub(super) fn of(
        &self,
        accesses: &[Access],
        decision: &Decision,
        create_texts: impl FnOnce() -> RenderedDecision,
    ) -> Arc<RenderedDecision> {
        if !is_alike_for_all(accesses, decision) {
            return create_texts().into();
        }
        if let Some(known) = self.find(accesses, decision) {
            return known;
        }
        let texts = Arc::new(create_texts());
        let question = DecisionKey { accesses: accesses.to_vec(), decision: decision.clone() };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == KEPT {
            known.pop_back();
        }
        known.push_front((question, texts.clone()));
        texts
    }

    fn find(&self, accesses: &[Access], decision: &Decision) -> Option<Arc<RenderedDecision>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_asked =
            |(one, _): &&(DecisionKey, Arc<RenderedDecision>)| one.accesses == accesses && one.decision == *decision;
        known.iter().find(is_asked).map(|(_, texts)| texts.clone())
    }
}

/// Returns `true` if the texts do not depend on the arguments or on anything else of one call.
fn is_alike_for_all(accesses: &[Access], decision: &Decision) -> bool {
    let is_of_tool = |access: &Access| matches!(access, Access::CallUpstream { .. } | Access::Undeclared(_));
    accesses.iter().all(is_of_tool)
        && decision.trace.iter().chain([&decision.decisive]).all(|finding| {
            finding.part.as_ref().is_none_or(is_of_tool)
                && !matches!(finding.cause, Cause::Hook { .. } | Cause::Definition(_))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use toolstead_domain::{Finding, ServerName, Verdict};

    fn decision(cause: Cause, part: Option<Access>) -> Decision {
        let decisive = Finding::new(Verdict::Allow, part, cause);
        Decision { verdict: Verdict::Allow, trace: vec![decisive.clone()], decisive }
    }

    fn upstream(tool: &str) -> Access {
        Access::CallUpstream { server: ServerName::parse("s").unwrap(), tool: tool.into() }
    }

    #[test]
    fn decisions_without_call_specific_text_are_rendered_once_and_then_cached() {
        let cache = DecisionTextCache::default();
        let made = Cell::new(0);
        let tell = |accesses: &[Access], decision: &Decision| {
            let texts = cache.of(accesses, decision, || {
                made.set(made.get() + 1);
                let accesses = accesses.iter().map(ToString::to_string).collect();
                RenderedDecision { accesses, verdict: "allow", reason: decision.reason(), trace: "[]".into() }
            });
            assert_eq!((&texts.reason, texts.accesses.len()), (&decision.reason(), accesses.len()));
            made.get()
        };
        let by_default = |tool: &str| decision(Cause::Default("words"), Some(upstream(tool)));
        assert_eq!(tell(&[upstream("a")], &by_default("a")), 1);
        assert_eq!(tell(&[upstream("a")], &by_default("a")), 1, "known");
        assert_eq!(tell(&[upstream("b")], &by_default("b")), 2, "of another tool");
        assert_eq!(tell(&[upstream("a")], &decision(Cause::NotSelected, Some(upstream("a")))), 3, "for another reason");
        let sent = Access::Send("somebody".into());
        let hook = Cause::Hook { by: "h".into(), reason: "r".into() };
        for other in [decision(Cause::Default("words"), Some(sent)), decision(hook, None)] {
            let before = made.get();
            let accesses: Vec<Access> = other.decisive.part.iter().cloned().collect();
            assert_eq!(
                (tell(&accesses, &other), tell(&accesses, &other)),
                (before + 1, before + 2),
                "of this call alone"
            );
        }
        for number in 0..KEPT {
            tell(&[upstream(&number.to_string())], &by_default(&number.to_string()));
        }
        let before = made.get();
        assert_eq!(tell(&[upstream("a")], &by_default("a")), before + 1, "the oldest gave way");
    }
}
