//! `Read(src/**)`: paths.

use super::{RuleKindResult, RuleMatcher};
use crate::{
    access::{Access, AccessPath},
    permission::{
        path_pattern::{PathPattern, PatternContext, PatternDepth},
        rule::{Effect, RuleSubject},
    },
    workspace_roots::WorkspaceRoots,
};
use std::sync::Arc;

#[derive(Debug)]
struct PathRule(PathPattern);

pub(super) fn parse(text: &str, effect: Effect, base: &PatternContext) -> RuleKindResult {
    let reach = match effect {
        Effect::Allow => PatternDepth::Anchored,
        Effect::Ask | Effect::Deny => PatternDepth::AnyDepth,
    };
    match PathPattern::parse(text, base, reach) {
        Ok(pattern) => Ok(Arc::new(PathRule(pattern))),
        Err(error) => Err(error.to_string()),
    }
}

impl RuleMatcher for PathRule {
    fn subject(&self) -> RuleSubject {
        RuleSubject::Path
    }

    fn covers(&self, access: &Access, roots: &WorkspaceRoots) -> bool {
        access.path().is_some_and(|path| self.0.covers(path, roots))
    }

    fn catches(&self, access: &Access, roots: &WorkspaceRoots) -> bool {
        access.path().is_some_and(|path| self.0.touches(path, roots))
    }

    fn catches_reading(&self, path: &AccessPath, roots: &WorkspaceRoots) -> bool {
        self.0.touches(path, roots)
    }

    fn may_catch_below(&self, folder: &AccessPath, roots: &WorkspaceRoots) -> bool {
        self.0.may_touch_below(folder, roots)
    }

    fn is_outside(&self, roots: &WorkspaceRoots) -> bool {
        !roots.all().any(|root| self.0.may_reach_into(root))
    }
}
