//! `WebFetch(domain:example.com)`: hosts.

use super::{Parsed, RuleKind};
use crate::{
    access::Access,
    permission::{
        host_pattern::host_matches,
        path_pattern::PatternBase,
        rule::{Effect, RuleSubject},
    },
    workspace_roots::WorkspaceRoots,
};
use std::sync::Arc;

/// The pattern of a host, in lower case.
#[derive(Debug)]
struct Domain(String);

pub(super) fn parse(text: &str, _: Effect, _: &PatternBase) -> Parsed {
    match text.strip_prefix("domain:").map(str::trim) {
        Some(host) if !host.is_empty() && !host.contains(['/', ' ', ':']) => Ok(domain(host)),
        _ => Err("write `WebFetch(domain:example.com)` or `WebFetch(domain:*.example.com)`".into()),
    }
}

pub(super) fn behind_a_tool(text: &str, _: Effect) -> Option<Parsed> {
    let host = text.strip_prefix("domain:").filter(|host| !host.is_empty())?;
    Some(Ok(domain(host.trim())))
}

fn domain(host: &str) -> Arc<dyn RuleKind> {
    Arc::new(Domain(host.to_ascii_lowercase()))
}

impl RuleKind for Domain {
    fn subject(&self) -> RuleSubject {
        RuleSubject::Host
    }

    fn covers(&self, access: &Access, roots: &WorkspaceRoots) -> bool {
        self.catches(access, roots)
    }

    fn catches(&self, access: &Access, _: &WorkspaceRoots) -> bool {
        matches!(access, Access::ReachHost(reached) if host_matches(&self.0, reached))
    }
}
