//! Which paths of the workspace rules close to a command, looked up before it starts.
//!
//! A rule is a pattern and the kernel knows paths: what the patterns fit is found by a walk. What appears later, and what
//! has a second name by a hard link, is not held by it.

use crate::{
    builtin::run::Run,
    sandbox::workspace::{
        granted::GrantedWorkspace,
        walk::{Entry, Visit, Visitor, WalkEnd, WalkLimits, WalkOrder},
    },
};
use std::{path::PathBuf, time::Duration};
use toolstead_domain::{
    access::{Access, PathAccess},
    error_kind::ErrorKind,
    permission::{decision::Verdict, grant::Grant},
    tool_failure::ToolFailure,
};

/// As many entries of all roots together are looked at.
const MAX_ENTRIES: usize = 400_000;
/// As many folders within each other.
const MAX_DEPTH: usize = 200;
/// As many paths are closed: each is a mount.
const MAX_CLOSED: usize = 2_000;
/// It takes no longer than this.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Real paths below the roots that a command must not reach.
#[derive(Debug, Default)]
pub(super) struct ClosedPaths {
    /// Not to be read.
    pub(super) hidden: Vec<PathBuf>,
    /// Not to be changed.
    pub(super) sealed: Vec<PathBuf>,
}

impl ClosedPaths {
    /// What the rules close to this call.
    ///
    /// # Errors
    /// When not every path could be looked at: then nothing may be started.
    pub(super) async fn of(run: &Run<'_>) -> Result<Self, ToolFailure> {
        let grant = &run.context().grant;
        let roots = grant.roots();
        // Toolstead's own data, whatever the rules say.
        let inside = roots.forbidden.iter().filter(|path| roots.containing(path).is_some());
        let mut closed = Self { hidden: inside.cloned().collect(), sealed: Vec::new() };
        if grant.has_rules_against_paths() {
            closed.add(run.on_files(|files| found(&files.with_stop(files.stop().within(MAX_TIME)))).await?);
        }
        if closed.hidden.len() + closed.sealed.len() > MAX_CLOSED {
            let message = format!("more than {MAX_CLOSED} paths of the workspace are closed by rules");
            return Err(not_told(message));
        }
        Ok(closed)
    }

    fn add(&mut self, other: Self) {
        self.hidden.extend(other.hidden);
        self.sealed.extend(other.sealed);
    }
}

fn not_told(message: String) -> ToolFailure {
    ToolFailure::new(ErrorKind::BudgetExhausted, format!("{message}, so no command can be kept from them"))
        .next("Name fewer or narrower paths in deny and ask rules, or smaller roots.")
}

/// Walks all roots.
fn found(files: &GrantedWorkspace) -> Result<ClosedPaths, ToolFailure> {
    let (grant, mut closed, mut left) = (files.grant(), ClosedPaths::default(), MAX_ENTRIES);
    let roots = grant.roots();
    for root in roots.write.iter().chain(&roots.read_only) {
        let path = PathAccess { lexical: root.clone(), real: root.clone(), tree: false };
        let reading = Access::ReadPath(path.clone());
        if !grant.permits(&reading) {
            closed.hidden.push(root.clone());
            continue;
        }
        if is_sealed(grant, &path) {
            closed.sealed.push(root.clone());
        }
        let limits = WalkLimits { entries: left, depth: MAX_DEPTH, order: WalkOrder::AnyOrder };
        let folder = files.find_lexical(root)?;
        let (walked, workers) = files.walk(&folder, limits, (), &Closed { grant })?;
        left = left.saturating_sub(walked.entries);
        workers.into_iter().for_each(|worker| closed.add(worker));
        let shown = root.display();
        match walked.ended {
            Some(WalkEnd::Entries) => {
                let message =
                    format!("`{shown}` holds more than {MAX_ENTRIES} entries, and rules may close some of them");
                return Err(not_told(message));
            }
            Some(WalkEnd::Time) => {
                let message = format!("looking for what rules close in `{shown}` took too long");
                return Err(not_told(message));
            }
            Some(WalkEnd::Visitor) | None => {}
        }
        if walked.unreadable > 0 {
            let message =
                format!("{} folders in `{shown}` cannot be looked into for what rules close", walked.unreadable);
            return Err(not_told(message));
        }
    }
    Ok(closed)
}

/// Whether a rule keeps the call from writing what it may read; approving cannot be made up for later.
fn is_sealed(grant: &Grant, path: &PathAccess) -> bool {
    grant.objection(&Access::WritePath(path.clone())) == Verdict::Deny
}

struct Closed<'a> {
    grant: &'a Grant,
}

impl Visitor for Closed<'_> {
    type Context = ();
    type Worker = ClosedPaths;

    fn worker(&self) -> ClosedPaths {
        ClosedPaths::default()
    }

    fn pass_over(&self, closed: &mut ClosedPaths, path: &PathAccess) {
        closed.hidden.push(path.real.clone());
    }

    fn meet(&self, closed: &mut ClosedPaths, entry: &Entry<'_>, (): &()) -> Visit {
        // In a root that is read-only it is sealed anyhow, and everything of it is denied.
        let is_writable = self.grant.roots().write.iter().any(|root| entry.path().real.starts_with(root));
        if is_writable && is_sealed(self.grant, entry.path()) {
            closed.sealed.push(entry.path().real.clone());
        }
        Visit::Continue
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make links behind the tools' back")]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[track_caller]
    fn check(rules: &[&str], command: &str, these: &[&str], those: &[&str]) {
        let bench = Bench::with_deny(rules);
        for name in ["a/secret/key", "a/secret/deep/key", "a/open.txt", "open.txt", ".env", "held.lock"] {
            bench.put(name, format!("contents of {name}\n"));
        }
        std::os::unix::fs::symlink(".env", bench.path("link")).unwrap();
        let result = bench.call("bash", json!({"command": command})).unwrap_or_else(|failure| failure.into_result());
        let text = format!("{} {:?}", result.joined_text(), result.structured_content());
        for part in these {
            assert!(text.contains(part), "{command} does not tell `{part}`: {text}");
        }
        for part in those {
            assert!(!text.contains(part), "{command} tells `{part}`: {text}");
        }
    }

    #[test]
    fn what_deny_rules_name_cannot_be_read_by_a_command() {
        let everything = "cat .env link open.txt a/open.txt a/secret/key a/secret/deep/key";
        check(&["Read(.env)"], everything, &["of open.txt", "of a/secret/key"], &["of .env"]);
        check(&["Read(a/secret/**)"], everything, &["of .env", "of a/open.txt"], &["of a/secret/"]);
        check(&["Read(a/secret/**)"], "grep -rh contents .", &["of .env"], &["of a/secret/"]);
        check(
            &["Read(a/secret/key)"],
            "mv a b; mv a/secret b; cat */key */*/key",
            &["of a/secret/deep/key"],
            &["of a/secret/key"],
        );
        check(&["Read(a/secret/key)"], "ln a/secret/key x; cp a/secret/key x; cat x", &[], &["of a/secret/key"]);
        check(&["Read"], everything, &[], &["contents of"]);
    }

    #[test]
    fn what_deny_rules_on_changes_name_can_be_read_and_not_changed() {
        // With programs whose files the rules do not see: what they see is denied before it runs.
        let change =
            "truncate -s 0 held.lock; unlink held.lock; tee held.lock <<< x; cat held.lock; tee open.txt <<< ok";
        check(&["Edit(*.lock)"], change, &["of held.lock", "ok\n"], &[]);
        check(
            &["Write(a/**)"],
            "tee a/new <<< x; find a -delete; cat a/open.txt; test -e a/new && echo made; tee new <<< x",
            &["of a/open.txt", "x\n"],
            &["made"],
        );
        check(&["Edit"], "tee open.txt <<< x; cat open.txt", &["of open.txt"], &[]);
    }
}
