//! `WebFetch(domain:example.com)`: hosts.

use super::{RuleKindResult, RuleMatcher};
use crate::{
    access::Access,
    permission::{
        host_pattern::host_matches,
        path_pattern::PatternContext,
        rule::{Effect, RuleSubject},
    },
    workspace_roots::WorkspaceRoots,
};
use std::{net::Ipv4Addr, sync::Arc};

/// Pattern of a host, in lower case.
#[derive(Debug)]
struct DomainRule(String);

pub(super) fn parse(text: &str, _: Effect, _: &PatternContext) -> RuleKindResult {
    let host = text.strip_prefix("domain:").map(str::trim).filter(|host| !host.is_empty());
    domain(host.ok_or("write `WebFetch(domain:example.com)` or `WebFetch(domain:*.example.com)`")?)
}

pub(super) fn behind_a_tool(text: &str, _: Effect) -> Option<RuleKindResult> {
    let host = text.strip_prefix("domain:").map(str::trim).filter(|host| !host.is_empty())?;
    Some(domain(host))
}

/// Parses a pattern. A pattern that no host can match is an error: a deny rule with it would protect nothing.
fn domain(host: &str) -> RuleKindResult {
    // A trailing dot (the DNS root) does not change the name, and calls are checked without it.
    let pattern = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if !pattern.is_ascii() {
        return Err(format!("`{host}` is not ASCII: write the name as it is in the DNS, with `xn--`"));
    }
    if let Some(parent) = pattern.strip_prefix('.') {
        return Err(format!("`{host}` begins with a dot: write `*.{parent}` for the names below `{parent}`"));
    }
    let is_part_of_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    if !pattern.split('.').all(|label| !label.is_empty() && label.chars().all(is_part_of_a_name)) {
        return Err(format!("`{host}` is not a host name or an IPv4 address: write it without scheme, port and path"));
    }
    let last = pattern.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !pattern.contains('*') && pattern.parse::<Ipv4Addr>().is_err() {
        return Err(format!("`{host}` is not an IPv4 address in its usual form: write four decimal numbers"));
    }
    Ok(Arc::new(DomainRule(pattern)))
}

impl RuleMatcher for DomainRule {
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
