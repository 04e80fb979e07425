//! The accesses of a command line in a workspace: its commands, and the files that it opens.

use crate::{
    builtin::tool_kit::blocking::on_blocking_thread,
    sandbox::{
        is_device, is_shown_to_all,
        search_path::{PRIVATE, ShellPathAndHome, finds_in_system},
        workspace::Workspace,
    },
    shell_analysis::{Analysis, FileAccessOrigin, analyse},
};
use std::{
    collections::{HashMap, HashSet},
    path::{Component, Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::{Access, AccessPath, BuiltInAllowRule, CommandAccess, ToolFailure};

/// Returns what a call that runs this text in that folder (absolute, without links) would touch. Resolves links;
/// blocks. `search_path` is the `PATH` of the shell that runs it. Without it the text is not run by a shell, and no
/// built-in rule applies.
///
/// Redirections are accesses of their own, unless they reach only what every run may reach. Those, and the files that
/// `rm`, `cp` and similar programs name, belong to the command that names them.
pub(crate) fn accesses(
    workspace: &Workspace,
    text: &str,
    folder: &Path,
    search_path: Option<&ShellPathAndHome>,
) -> Vec<Access> {
    let Analysis { mut commands, file_accesses } = analyse(text, folder);
    let mut found = HashMap::new();
    for command in &mut commands {
        let is_certain = |rule: &BuiltInAllowRule| match (rule, search_path) {
            (_, None) => false,
            (BuiltInAllowRule::Status | BuiltInAllowRule::Print, Some(_)) => true,
            (BuiltInAllowRule::PipeFilter, Some(path)) => command.words.first().is_some_and(|program| {
                *found.entry(program.clone()).or_insert_with(|| finds_in_system(workspace, program, path))
            }),
        };
        command.built_in_rule = command.built_in_rule.filter(is_certain);
    }
    let whole: Arc<str> = text.into();
    let mut opened = Vec::new();
    let mut files = vec![CommandFileAccesses::default(); commands.len()];
    let (mut nowhere, mut of_no_command) = (Vec::new(), CommandFileAccesses::default());
    for file_access in file_accesses {
        match judged_path(workspace, &file_access.path) {
            Some(path) => {
                let private = names_of_private(workspace, &path);
                let is_free = !private.is_empty() || is_of_the_system(workspace, &path, file_access.writes);
                let access = |path: AccessPath| {
                    let path = if file_access.tree { path.whole_tree() } else { path };
                    if file_access.writes { Access::WritePath(path) } else { Access::ReadPath(path) }
                };
                let named = [access(path)].into_iter().chain(private.into_iter().map(access));
                match file_access.origin {
                    FileAccessOrigin::Redirection { .. } if !is_free => opened.extend(named),
                    FileAccessOrigin::Redirection { command } | FileAccessOrigin::Operand { command } => {
                        let last = files.len().saturating_sub(1);
                        let files = files.get_mut(command.min(last)).unwrap_or(&mut of_no_command);
                        if is_free { files.free.extend(named) } else { files.operands.extend(named) }
                    }
                }
            }
            None => nowhere.push(CommandAccess {
                text: file_access.path.to_string_lossy().into(),
                ..CommandAccess::opaque(whole.clone(), "the target of this path is unknown")
            }),
        }
    }
    if of_no_command != CommandFileAccesses::default() {
        // The line opens files and runs nothing.
        let nothing = CommandAccess::program::<&str>([]);
        commands.push(CommandAccess { whole: whole.clone(), text: whole.clone(), ..nothing });
        files.push(of_no_command);
    }
    let once = |files: Vec<Access>| {
        let mut known = HashSet::new();
        files.into_iter().filter(|file| known.insert(file.clone())).collect()
    };
    for (command, CommandFileAccesses { operands, free }) in commands.iter_mut().zip(files) {
        (command.operands, command.free) = (once(operands), once(free));
    }
    let mut known = HashSet::new();
    let accesses = commands.into_iter().chain(nowhere).map(Access::RunCommand).chain(opened);
    accesses.filter(|access| known.insert(access.clone())).collect()
}

/// The files of one command.
#[derive(Debug, Default, Clone, PartialEq)]
struct CommandFileAccesses {
    operands: Vec<Access>,
    free: Vec<Access>,
}

/// Returns all names of a path in the private `/tmp` of commands, so that a rule on one of them applies to each. Empty
/// for other paths, and for a folder in `/tmp` that contains a root.
fn names_of_private(workspace: &Workspace, path: &AccessPath) -> Vec<AccessPath> {
    let is_private = path.forms().all(|form| {
        let first = PRIVATE.iter().find_map(|folder| form.strip_prefix(folder).ok()?.iter().next());
        first.is_some_and(|first| !PRIVATE.iter().any(|folder| workspace.meets(&Path::new(folder).join(first))))
    });
    let rest = PRIVATE.iter().find_map(|folder| path.lexical.strip_prefix(folder).ok()).filter(|_| is_private);
    rest.map(|rest| PRIVATE.iter().map(|folder| AccessPath::plain(Path::new(folder).join(rest))).collect())
        .unwrap_or_default()
}

/// Returns `true` if every run may access this file of the system, and it leads to no root.
fn is_of_the_system(workspace: &Workspace, path: &AccessPath, writes: bool) -> bool {
    let is_free = if writes { is_device } else { is_shown_to_all };
    is_free(&path.lexical) && !path.forms().any(|form| workspace.meets(form))
}

/// Returns what a call that runs this text in a folder, as it is named, would touch, the folder last; without blocking.
/// The `search_path` is that of [`accesses`].
///
/// # Errors
/// `invalid_input` when the folder's name is not a path.
pub(crate) async fn accesses_in(
    workspace: Arc<Workspace>,
    text: String,
    folder: String,
    search_path: Option<ShellPathAndHome>,
) -> Result<Vec<Access>, ToolFailure> {
    on_blocking_thread(move || {
        let folder = workspace.access(&folder)?;
        let mut accesses = accesses(&workspace, &text, &folder.real, search_path.as_ref());
        accesses.push(Access::ReadPath(folder));
        Ok(accesses)
    })
    .await
}

/// Returns both forms of a path that the shell opens; `None` if it cannot be resolved. The workspace resolves `..` in
/// the text and the system does not, so no link may precede `..`.
fn judged_path(workspace: &Workspace, path: &Path) -> Option<AccessPath> {
    let mut walked = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                let before = workspace.access(walked.to_str()?).ok()?;
                if before.real != before.lexical {
                    return None;
                }
                walked.pop();
            }
            part => walked.push(part),
        }
    }
    workspace.access(walked.to_str()?).ok()
}

#[cfg(test)]
mod tests;
