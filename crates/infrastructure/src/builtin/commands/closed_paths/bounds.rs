//! Limits of the paths that can be closed to one command, and the fallback where rules match more.
//!
//! Every path that a rule matches stays closed: where ask rules make too many paths read-only, their folders become
//! read-only in their place. Otherwise the command is refused.

use super::ClosedPaths;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};
use toolstead_domain::{Access, AccessPath, CallPermissions, ToolFailure, error_kind::ErrorKind};

/// Maximum number of hidden paths. Each is a mount of the same cover: this number takes about 0.2 s.
pub(super) const MAX_HIDDEN: usize = 20_000;
/// Maximum number of read-only paths, together with the folders around all closed paths, which are held in place. Each
/// is a mount of a part of its root, and costs more the more there are: this number takes about 0.5 s, and twice as many
/// take 3 s.
pub(super) const MAX_READ_ONLY: usize = 5_000;
/// Maximum number of read-only folders that a message names.
const NAMED_FOLDERS: usize = 5;

/// Makes the paths that require approval read-only, or folders around them if they are too many to be closed.
///
/// # Errors
/// If that is not possible for all paths that the rules match.
pub(super) fn within_bounds(mut closed: ClosedPaths, grant: &CallPermissions) -> Result<ClosedPaths, ToolFailure> {
    if closed.hidden.len() > MAX_HIDDEN {
        return Err(too_many(MAX_HIDDEN, &closed, grant));
    }
    let fixed: Vec<&Path> = closed.hidden.iter().chain(&closed.read_only).map(PathBuf::as_path).collect();
    let fits = |sealed: &[&Path]| {
        let around: BTreeSet<&Path> = fixed.iter().chain(sealed).flat_map(|path| around(path, grant)).collect();
        closed.read_only.len() + sealed.len() + around.len() <= MAX_READ_ONLY
    };
    let asked: Vec<&Path> = closed.needs_approval.iter().map(PathBuf::as_path).collect();
    if fits(&asked) {
        closed.read_only.append(&mut closed.needs_approval);
        return Ok(closed);
    }
    match folded(&asked, fits, grant) {
        Some(folders) => {
            let folders: Vec<PathBuf> = folders.into_iter().map(Path::to_path_buf).collect();
            closed.widening_note = Some(describe_widening(&folders, &closed.needs_approval, grant));
            closed.read_only.extend(folders);
            Ok(closed)
        }
        None => Err(too_many(MAX_READ_ONLY, &closed, grant)),
    }
}

/// Returns the folders around a path that must stay in place for it.
fn around<'a>(path: &'a Path, grant: &CallPermissions) -> impl Iterator<Item = &'a Path> {
    let depth = depth(path, grant);
    path.ancestors().skip(1).take(depth.saturating_sub(1))
}

/// Returns the depth of a path in its root.
fn depth(path: &Path, grant: &CallPermissions) -> usize {
    let below = grant.roots().containing(path).and_then(|(root, _)| path.strip_prefix(root).ok());
    below.map_or(0, |below| below.components().count())
}

/// Replaces paths that ask rules seal by fewer folders that contain them, as deep as possible; `None` if even those do
/// not fit. Where something in a folder was approved, the paths beside it are sealed.
fn folded<'a>(paths: &[&'a Path], fits: impl Fn(&[&Path]) -> bool, grant: &CallPermissions) -> Option<Vec<&'a Path>> {
    let paths: Vec<(usize, &Path)> = paths.iter().map(|path| (depth(path, grant), *path)).collect();
    let deepest = paths.iter().map(|(depth, _)| *depth).max().unwrap_or_default();
    let at = |level: usize| -> Vec<&Path> {
        let folder = |(depth, path): &(usize, &'a Path)| {
            let mut downwards = (level.min(*depth)..=*depth).filter_map(|at| path.ancestors().nth(depth - at));
            downwards.find(|folder| !grant.approves_writing_in(folder)).unwrap_or(path)
        };
        paths.iter().map(folder).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let (mut fitting, mut levels) = (None, 0..deepest);
    while !levels.is_empty() {
        let middle = levels.start.midpoint(levels.end);
        let folders = at(middle);
        if fits(&folders) {
            (fitting, levels.start) = (Some(folders), middle + 1);
        } else {
            levels.end = middle;
        }
    }
    fitting
}

/// Returns a sentence that names the read-only folders and the rule that causes them.
fn describe_widening(folders: &[PathBuf], asked: &[PathBuf], grant: &CallPermissions) -> String {
    let change = |path: &PathBuf| Access::WritePath(AccessPath::plain(path));
    let rule = foremost(asked.iter().filter_map(|path| rule_named(&change(path), grant)));
    let rule = rule.map_or(String::from("rules"), |(rule, _)| rule);
    let mut named: Vec<String> = folders.iter().map(|path| format!("`{}`", path.display())).collect();
    let more = named.len().saturating_sub(NAMED_FOLDERS);
    named.truncate(NAMED_FOLDERS);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "These were read-only to the command with their content, because {} paths require approval by {rule}, too many \
         to make each of them read-only: {}{more}. To change a file there, name it in a redirection or as an argument \
         of `rm`, `cp` and similar commands, and get approval",
        asked.len(),
        named.join(", ")
    )
}

/// Returns a failure that names the rule that closes most paths, and the folder with most of them.
fn too_many(most: usize, closed: &ClosedPaths, grant: &CallPermissions) -> ToolFailure {
    let read = closed.hidden.iter().map(|path| Access::ReadPath(AccessPath::plain(path)));
    let changed =
        closed.read_only.iter().chain(&closed.needs_approval).map(|path| Access::WritePath(AccessPath::plain(path)));
    let rule = foremost(read.chain(changed).filter_map(|access| rule_named(&access, grant)));
    let rule = rule.map_or(String::new(), |(rule, count)| format!(", {count} of them by {rule}"));
    let message = format!(
        "more than {most} paths of the workspace are closed by rules{rule}, too many to close all of them to a command"
    );
    let all = closed.hidden.iter().chain(&closed.read_only).chain(&closed.needs_approval);
    let folder = foremost(all.filter_map(|path| path.ancestors().nth(depth(path, grant).checked_sub(1)?)));
    let folder = folder
        .map_or(String::new(), |(folder, count)| format!(" Most of them ({count}) are in `{}`.", folder.display()));
    let next = "Let the rule name whole folders (`Read(data/**)` closes a folder as one path) or fewer paths, or \
                remove folders with many of them from the roots. Other tools are not affected.";
    ToolFailure::new(ErrorKind::BudgetExhausted, message).next(format!("{next}{folder}"))
}

fn rule_named(access: &Access, grant: &CallPermissions) -> Option<String> {
    Some(grant.rule_against(access)?.to_string())
}

/// Returns the most frequent item, and its count.
fn foremost<T: Ord>(all: impl Iterator<Item = T>) -> Option<(T, usize)> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, sync::Arc};
    use toolstead_domain::{PermissionPolicy, WorkspaceRoots, testing::samples};

    #[test]
    fn the_deepest_fitting_folders_are_found_with_few_checks() {
        let roots = WorkspaceRoots { write: vec!["/r".into()], ..Default::default() };
        let policy = PermissionPolicy { roots, ..Default::default() };
        let grant = CallPermissions::new(Arc::new(policy), Arc::new(samples::tool("tool")), Vec::new());
        // In each of these folders is a file and the next folder.
        let mut folder = PathBuf::from("/r");
        let paths: Vec<PathBuf> = (0..1000)
            .map(|_| {
                folder.push("d");
                folder.join("file")
            })
            .collect();
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        for most in [0, 1, 2, 3, 500, 999, 1000] {
            let looks = Cell::new(0);
            let fits = |folders: &[&Path]| {
                looks.set(looks.get() + 1);
                folders.len() <= most
            };
            let found = folded(&paths, fits, &grant).map(|folders| folders.len());
            assert_eq!(found, (most > 0).then_some(most));
            assert!(looks.get() <= 10, "{} looks for {most}", looks.get());
        }
    }
}
