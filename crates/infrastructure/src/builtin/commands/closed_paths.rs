//! The paths of the workspace that rules close to a command, looked up before it starts.
//!
//! Rules are patterns and the kernel knows paths, so a walk finds the paths that match. Files that appear later, and
//! other names of a file by hard links, are not covered.

mod bounds;

use crate::{
    builtin::tool_kit::blocking::on_blocking_thread,
    sandbox::workspace::{
        Workspace,
        facts::FileKind,
        granted_workspace::GrantedWorkspace,
        stop::StopCondition,
        walk::{UnreadableReason, Visitor, WalkControl, WalkEnd, WalkEntry, WalkFolder, WalkOptions, WalkOrder},
    },
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolstead_domain::{
    Access, AccessKind, AccessPath, CallContext, CallPermissions, ToolFailure, Verdict, error_kind::ErrorKind,
};

/// Maximum number of entries visited, in all roots together.
const MAX_ENTRIES: usize = 400_000;
/// Paths at any depth are closed. A path that is too long for the system cannot be examined.
const ANY_DEPTH: usize = usize::MAX;
/// Maximum duration of the walk.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Real paths that a command must not reach.
#[derive(Debug, Default)]
pub(crate) struct ClosedPaths {
    /// Paths that must not be read.
    pub(crate) hidden: Vec<PathBuf>,
    /// Paths that must not be changed.
    pub(crate) read_only: Vec<PathBuf>,
    /// Paths that must not be changed without approval, in the order of the walk.
    needs_approval: Vec<PathBuf>,
    /// Folders that cannot be examined, although a rule may close something in them.
    unknown: Vec<PathBuf>,
    /// Paths that are read-only in addition to those that rules name, and why: a sentence for the result.
    pub(crate) widening_note: Option<String>,
}

impl ClosedPaths {
    /// Returns the paths that the rules close to this call.
    ///
    /// # Errors
    /// If a path could not be examined: then nothing may be started.
    pub(crate) async fn of(context: &CallContext<'_>, workspace: &Arc<Workspace>) -> Result<Self, ToolFailure> {
        let grant = context.grant;
        // Toolstead's own data is hidden whatever the rules are and wherever it is, because folders outside of the
        // roots are visible, too.
        let mut closed = Self { hidden: grant.roots().forbidden.clone(), ..Self::default() };
        if grant.has_rules_against_paths() {
            let stop = StopCondition::at(context.deadline);
            let _abandon = stop.when_dropped();
            let (workspace, grant) = (workspace.clone(), grant.of_running_command());
            let walk =
                move || find_closed_paths(&GrantedWorkspace::new(workspace, grant, stop.within(MAX_TIME)), closed);
            closed = on_blocking_thread(walk).await?;
        }
        Ok(closed)
    }

    fn mark_read_only(&mut self, path: &Path, objection: Verdict) {
        match objection {
            Verdict::Allow => {}
            Verdict::Ask => self.needs_approval.push(path.to_path_buf()),
            Verdict::Deny => self.read_only.push(path.to_path_buf()),
        }
    }

    fn add(&mut self, other: Self) {
        self.hidden.extend(other.hidden);
        self.read_only.extend(other.read_only);
        self.needs_approval.extend(other.needs_approval);
        self.unknown.extend(other.unknown);
    }
}

/// Returns the failure for a folder in which a rule may close unknown paths, so that nothing may be started.
fn unknown_paths_failure(message: &str, folder: &Path, grant: &CallPermissions) -> ToolFailure {
    let path = AccessPath::plain(folder);
    let rule = [AccessKind::Read, AccessKind::Write].into_iter().find_map(|kind| grant.rule_below(&path, kind));
    let rule = rule.map_or("rules".into(), |rule| rule.to_string());
    let message = format!("{message}, so {rule} cannot be enforced for commands in `{}`", folder.display());
    ToolFailure::new(ErrorKind::BudgetExhausted, message)
        .next("Name fewer or narrower paths in deny and ask rules, or smaller roots.")
}

/// Walks all roots for paths that the rules close.
fn find_closed_paths(files: &GrantedWorkspace, mut closed: ClosedPaths) -> Result<ClosedPaths, ToolFailure> {
    let (grant, mut left) = (files.grant(), MAX_ENTRIES);
    let roots = grant.roots();
    for root in roots.write.iter().chain(&roots.read_only) {
        let path = AccessPath { lexical: root.clone(), real: root.clone(), tree: false };
        let reading = Access::ReadPath(path.clone());
        if !grant.permits(&reading) {
            closed.hidden.push(root.clone());
            continue;
        }
        let objection = objection(grant, &path, FileKind::Folder);
        closed.mark_read_only(root, objection);
        let limits = WalkOptions { entries: left, depth: ANY_DEPTH, order: WalkOrder::AnyOrder };
        let folder = files.find_lexical(root)?;
        let (walked, workers) = files.walk(&folder, limits, objection, &ClosedPathsFolderVisitor { grant })?;
        left = left.saturating_sub(walked.entries);
        workers.into_iter().for_each(|worker| closed.add(worker));
        let shown = root.display();
        match walked.ended {
            Some(WalkEnd::Entries) => {
                let message = format!("`{shown}` has more than {MAX_ENTRIES} entries");
                return Err(unknown_paths_failure(&message, root, grant));
            }
            Some(WalkEnd::Time) => {
                return Err(unknown_paths_failure(&format!("searching `{shown}` took too long"), root, grant));
            }
            Some(WalkEnd::Visitor) | None => {}
        }
        if let Some(folder) = closed.unknown.first() {
            return Err(unknown_paths_failure(&format!("`{}` cannot be searched", folder.display()), folder, grant));
        }
    }
    bounds::within_bounds(closed, grant)
}

/// Returns the objection of the rules to writing a path that the call may read: a rule that denies it, or one that
/// requires approval, since approval is no longer possible. A folder is sealed if a rule closes everything in it,
/// including files that do not exist yet.
fn objection(grant: &CallPermissions, path: &AccessPath, kind: FileKind) -> Verdict {
    let is_folder = kind == FileKind::Folder;
    let path = if is_folder { path.clone().whole_tree() } else { path.clone() };
    let real = path.real.clone();
    match grant.objection_to_change(path) {
        // Approved paths in a folder must stay reachable there.
        Verdict::Ask if is_folder && grant.approves_writing_in(&real) => Verdict::Allow,
        verdict => verdict,
    }
}

struct ClosedPathsFolderVisitor<'a> {
    grant: &'a CallPermissions,
}

impl Visitor for ClosedPathsFolderVisitor<'_> {
    /// Objection that seals a folder with its contents.
    type Context = Verdict;
    type Worker = ClosedPaths;

    fn worker(&self) -> ClosedPaths {
        ClosedPaths::default()
    }

    fn enter(&self, folder: &WalkFolder<'_>, above: &Verdict) -> Verdict {
        objection(self.grant, folder.path(), FileKind::Folder).max(*above)
    }

    fn visit_denied(&self, closed: &mut ClosedPaths, path: &AccessPath) {
        closed.hidden.push(path.real.clone());
    }

    fn visit_unreadable(&self, closed: &mut ClosedPaths, folder: &AccessPath, why: UnreadableReason) {
        let may_close = |kind| self.grant.rule_below(folder, kind).is_some();
        let real = || folder.real.clone();
        match why {
            // The path no longer exists, or the process that starts the command cannot read it either, so the command
            // cannot.
            UnreadableReason::Gone | UnreadableReason::Foreign => {}
            // The folder is closed as a whole.
            UnreadableReason::Unlisted if may_close(AccessKind::Read) => closed.hidden.push(real()),
            UnreadableReason::Unlisted if may_close(AccessKind::Write) => closed.read_only.push(real()),
            UnreadableReason::Unknown if may_close(AccessKind::Read) || may_close(AccessKind::Write) => {
                closed.unknown.push(real());
            }
            UnreadableReason::Unlisted | UnreadableReason::Unknown => {}
        }
    }

    fn visit_entry(&self, closed: &mut ClosedPaths, entry: &WalkEntry<'_>, above: &Verdict) -> WalkControl {
        // A read-only root is sealed anyway, and all writes in it are denied.
        let is_writable = self.grant.roots().write.iter().any(|root| entry.path().real.starts_with(root));
        let objection = objection(self.grant, entry.path(), entry.kind());
        // The sealed folder covers the entry, but not the target of a link.
        let is_held = objection <= *above && entry.kind() != FileKind::Link;
        if is_writable && !is_held {
            closed.mark_read_only(&entry.path().real, objection);
        }
        WalkControl::Continue
    }
}

#[cfg(test)]
mod tests;
