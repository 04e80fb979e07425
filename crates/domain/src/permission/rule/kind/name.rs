//! `Agent(reviewer)`, `Tools(mcp__git__*)`: names of agents, and of tools that programs may call.

use super::{RuleKindResult, RuleMatcher};
use crate::{
    access::Access,
    permission::{
        path_pattern::PatternContext,
        rule::{Effect, RuleSubject},
    },
    tool_selection::{patterns_meet, wildcard_match},
    workspace_roots::WorkspaceRoots,
};
use std::sync::Arc;

/// Name, with `*` for any characters.
#[derive(Debug)]
struct NameRule(String);

pub(super) fn parse(text: &str, _: Effect, _: &PatternContext) -> RuleKindResult {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '*' | ':' | '/');
    match !text.is_empty() && text.chars().all(allowed) {
        true => Ok(Arc::new(NameRule(text.into()))),
        false => Err(format!("`{text}` is not a name: write `Agent(reviewer)` or `Tools(mcp__git__*)`")),
    }
}

impl RuleMatcher for NameRule {
    fn subject(&self) -> RuleSubject {
        RuleSubject::Name
    }

    fn names(&self) -> Option<&str> {
        Some(&self.0)
    }

    fn covers(&self, access: &Access, _: &WorkspaceRoots) -> bool {
        named(access).is_some_and(|name| wildcard_match(&self.0, name))
    }

    /// Returns `true` if the pattern and the name in the access, which may be a pattern as well, can match the same
    /// name.
    fn catches(&self, access: &Access, _: &WorkspaceRoots) -> bool {
        named(access).is_some_and(|name| patterns_meet(&self.0, name))
    }
}

fn named(access: &Access) -> Option<&str> {
    match access {
        Access::RunAgent(name) | Access::OfferTools(name) => Some(name),
        _ => None,
    }
}
