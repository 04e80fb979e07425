//! Detection of calls that could interfere with each other, for the calls of a batch and of one answer of a model.

use std::path::Path;
use toolstead_domain::{Access, AccessPath, CallPreview, ToolSource};

/// The effects of a call that matter to concurrent calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallEffects {
    /// Reads and writes only these paths.
    Paths { read: Vec<AccessPath>, written: Vec<AccessPath> },
    /// Changes nothing; its reads are unknown.
    ReadsAnything,
    /// Delegates work to an agent. Several delegations at once are meant to run concurrently.
    Delegates,
    /// Could change anything.
    Anything,
}

impl CallEffects {
    /// Returns the effects of this call. The read-only hint of a tool counts only for built-in tools.
    pub(crate) fn of(foreseen: &CallPreview) -> Self {
        let Some(accesses) = &foreseen.accesses else { return Self::Anything };
        let only_reads = foreseen.tool.annotations().read_only_hint == Some(true)
            && matches!(foreseen.tool.source(), ToolSource::BuiltIn);
        // Such a tool is safe to repeat and changes only the paths that it reports. An example is fetching a page.
        let hints = foreseen.tool.annotations();
        let is_harmless = matches!(foreseen.tool.source(), ToolSource::BuiltIn)
            && (hints.destructive_hint, hints.idempotent_hint) == (Some(false), Some(true));
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for access in accesses {
            match access {
                Access::ReachHost(_) if is_harmless && !only_reads => {}
                Access::ReadPath(path) => read.push(path.clone()),
                Access::WritePath(path) => written.push(path.clone()),
                Access::RunAgent(_) if accesses.len() == 1 => return Self::Delegates,
                _ if only_reads => return Self::ReadsAnything,
                _ => return Self::Anything,
            }
        }
        if accesses.is_empty() && !only_reads { Self::Anything } else { Self::Paths { read, written } }
    }

    /// Returns the effects of a call that will not run.
    pub(crate) fn none() -> Self {
        Self::Paths { read: Vec::new(), written: Vec::new() }
    }

    /// Returns `true` if the order of two calls could matter.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Delegates, Self::Delegates) => false,
            (Self::Anything | Self::Delegates, _) | (_, Self::Anything | Self::Delegates) => true,
            (Self::ReadsAnything, Self::ReadsAnything) => false,
            (Self::ReadsAnything, Self::Paths { written, .. }) | (Self::Paths { written, .. }, Self::ReadsAnything) => {
                !written.is_empty()
            }
            (Self::Paths { read, written }, Self::Paths { read: others_read, written: others_written }) => {
                overlap(written, others_read) || overlap(written, others_written) || overlap(read, others_written)
            }
        }
    }
}

fn overlap(some: &[AccessPath], others: &[AccessPath]) -> bool {
    some.iter().any(|one| others.iter().any(|other| one.forms().any(|a| other.forms().any(|b| is_one_tree(a, b)))))
}

/// Returns `true` if one path is the other or is below it: a folder is listed and searched with its contents.
fn is_one_tree(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;
    use toolstead_domain::{Category, ServerName, Tool, ToolAnnotations, testing::samples};

    fn touch(reads_only: bool, source: ToolSource, accesses: Option<Vec<Access>>) -> CallEffects {
        let hints = if reads_only { ToolAnnotations::READ_ONLY } else { ToolAnnotations::WRITING };
        hinted(hints, source, accesses)
    }

    fn hinted(hints: ToolAnnotations, source: ToolSource, accesses: Option<Vec<Access>>) -> CallEffects {
        let definition = json!({"annotations": hints.to_json()}).as_object().unwrap().clone();
        let tool = Tool::new(samples::tool("t").name().clone(), definition, Category::Utility, source);
        CallEffects::of(&CallPreview::new(Arc::new(tool), accesses))
    }

    fn read(path: &str) -> CallEffects {
        touch(true, ToolSource::BuiltIn, Some(vec![Access::ReadPath(AccessPath::plain(path))]))
    }

    fn write(path: &str) -> CallEffects {
        touch(false, ToolSource::BuiltIn, Some(vec![Access::WritePath(AccessPath::plain(path))]))
    }

    /// Fetches a page, and may save it.
    fn fetch(saved: Option<&str>) -> CallEffects {
        let hints =
            ToolAnnotations { destructive_hint: Some(false), idempotent_hint: Some(true), ..ToolAnnotations::WRITING };
        let saved = saved.map(|path| Access::WritePath(AccessPath::plain(path)));
        hinted(hints, ToolSource::BuiltIn, Some([Access::ReachHost("a.org".into())].into_iter().chain(saved).collect()))
    }

    fn agent(name: &str) -> CallEffects {
        touch(false, ToolSource::BuiltIn, Some(vec![Access::RunAgent(name.into())]))
    }

    #[track_caller]
    fn check(one: &CallEffects, other: &CallEffects, expected: bool) {
        assert_eq!(one.conflicts_with(other), expected, "{one:?} and {other:?}");
        assert_eq!(other.conflicts_with(one), expected, "{other:?} and {one:?}");
    }

    #[test]
    fn calls_that_read_or_change_different_paths_do_not_conflict() {
        let embedded = || ToolSource::Embedded(ServerName::program());
        let host = || Some(vec![Access::ReachHost("a.org".into())]);
        let (asks, claims) = (touch(true, ToolSource::BuiltIn, host()), touch(true, embedded(), host()));
        let (clock, unknown) = (touch(true, ToolSource::BuiltIn, Some(vec![])), touch(false, embedded(), Some(vec![])));
        for (one, other, expected) in [
            (read("/w/a"), read("/w/a"), false),
            (read("/w/a"), write("/w/a"), true),
            (write("/w/a"), write("/w/a"), true),
            (write("/w/a"), write("/w/b"), false),
            (write("/w/a"), write("/w/ab"), false),
            (read("/w"), write("/w/a/b"), true),
            (asks.clone(), read("/w/a"), false),
            (asks.clone(), asks.clone(), false),
            (asks.clone(), write("/w/a"), true),
            (claims.clone(), asks, true),
            (claims, read("/w/a"), true),
            (clock.clone(), write("/w/a"), false),
            (agent("one"), agent("one"), false),
            (agent("one"), agent("other"), false),
            (agent("one"), read("/w/a"), true),
            (agent("one"), write("/w/a"), true),
            (unknown.clone(), clock, true),
            (unknown.clone(), unknown, true),
            (touch(true, ToolSource::BuiltIn, None), read("/w/a"), true),
            (fetch(None), fetch(None), false),
            (fetch(None), write("/w/a"), false),
            (fetch(Some("/w/a")), fetch(Some("/w/b")), false),
            (fetch(Some("/w/a")), fetch(Some("/w/a")), true),
            (fetch(Some("/w/a")), read("/w/a"), true),
        ] {
            check(&one, &other, expected);
        }
    }
}
