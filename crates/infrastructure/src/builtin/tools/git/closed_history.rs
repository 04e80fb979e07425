//! Applies the read rules to a repository's history. It contains files that are deleted from the disk, and the content
//! of all files is in `.git`: hiding the files themselves is not enough.

use super::{Input, Operation, Repository};
use crate::{
    builtin::{
        commands::capture::{OutputStream, output_read_failure},
        tool_kit::blocking::on_blocking_thread,
    },
    sandbox::workspace::Workspace,
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    str,
};
use toolstead_domain::{Access, AccessPath, ToolFailure, error_kind::ErrorKind, workspace_roots::lexical};

/// Maximum size of a list of files, in bytes.
const MAX_LIST: usize = 4 << 20;
/// Maximum number of files that can be left out.
const MAX_LEFT_OUT: usize = 1_000;
/// Maximum total size of the paths of files that are left out, in bytes.
const MAX_NAMES: usize = 64 << 10;
/// Maximum number of characters that are quoted from git's error messages.
const LONGEST_FAULT: usize = 400;

/// Returns the places on disk where a path in a commit may be: below the top of the repository, which is the folder or
/// one of its ancestors.
pub(super) fn places<'a>(
    folder: &'a AccessPath,
    path: &'a str,
    workspace: &'a Workspace,
) -> impl Iterator<Item = AccessPath> {
    let tops = tops(&folder.real, |path| workspace.contains(path));
    tops.map(|top| {
        // `./a` and `../a` are relative to the folder.
        let is_relative = path.starts_with("./") || path.starts_with("../");
        let start = if is_relative { &folder.real } else { top };
        AccessPath::plain(lexical(start, Path::new(path))).whole_tree()
    })
}

fn tops(folder: &Path, is_within: impl Fn(&Path) -> bool) -> impl Iterator<Item = &Path> {
    folder.ancestors().take_while(move |top| is_within(top))
}

/// Returns the arguments with which git shows nothing that must not be read, and the number of files that they leave
/// out.
///
/// # Errors
/// Fails if that cannot be guaranteed.
pub(super) async fn restrict_arguments(
    input: &Input,
    repository: &Repository<'_>,
) -> Result<(Vec<String>, usize), ToolFailure> {
    let as_given = || input.words_with(&[], str::to_owned, file(input));
    let grant = &repository.run.context().grant;
    // All roots count: the history may be that of files in another root.
    if !grant.roots().all().any(|root| grant.reading_below(&AccessPath::plain(root)).is_limited()) {
        return Ok((as_given(), 0));
    }
    let Some(kept) = RepositoryWorkingTrees::of(repository).await? else { return Ok((as_given(), 0)) };
    if let Some((commit, path)) = input.content()? {
        let is_relative = path.starts_with("./") || path.starts_with("../");
        kept.check(&if is_relative { format!("{}{path}", kept.prefix) } else { path.to_owned() }, repository)?;
        // Unlike `show`, `cat-file` shows no differences if the object is not a file.
        let object = format!("{}:{path}", as_commit(commit));
        return Ok((["cat-file", "-p", &object].map(str::to_owned).into(), 0));
    }
    match input.operation {
        Operation::Log | Operation::Status => Ok((as_given(), 0)),
        Operation::Blame => {
            kept.check(&format!("{}{}", kept.prefix, input.file.as_deref().unwrap_or_default()), repository)?;
            Ok((input.words_with(&[], as_commits, file(input)), 0))
        }
        Operation::Diff | Operation::Show => {
            let left_out = left_out(input, &kept, repository).await?;
            let count = left_out.len();
            let paths = file(input).or(Some(":(top)".into())).into_iter().chain(left_out);
            Ok((input.words_with(&["--no-renames", "--no-relative"], as_commits, paths), count))
        }
    }
}

/// Working trees whose files are in the history of a folder's repository.
struct RepositoryWorkingTrees {
    /// Path of the folder in its working tree; empty, or ends with a slash.
    prefix: String,
    /// Tops of other working trees whose files are in the same history. Files in these that rules deny reading are not
    /// shown under paths of this working tree either.
    other_tops: Vec<PathBuf>,
}

impl RepositoryWorkingTrees {
    /// Examines the repository that contains the folder, if there is one.
    ///
    /// # Errors
    /// Fails if the owner of the history is unknown: a `.git` that leads elsewhere would show the files below another
    /// folder under paths of this one.
    async fn of(repository: &Repository<'_>) -> Result<Option<Self>, ToolFailure> {
        let query = [
            "rev-parse",
            "--path-format=absolute",
            "--is-inside-work-tree",
            "--show-toplevel",
            "--git-common-dir",
            "--git-dir",
            "--show-prefix",
        ];
        let (asked, done) = repository.git(query.map(str::to_owned).into()).await?;
        let fault = asked.capture.ends(OutputStream::Stderr).text(LONGEST_FAULT).0;
        match done.exit_code {
            Some(0) => {}
            Some(128) if fault.starts_with("fatal: not a git repository") => return Ok(None),
            _ => return Err(closed(&format!("git cannot determine the top of the repository: {}", fault.trim_end()))),
        }
        let output = asked.capture.ends(OutputStream::Stdout);
        let output = output.complete_bytes().and_then(|output| str::from_utf8(output).ok()).unwrap_or_default();
        let ["true", top, common, own, prefix] = output.lines().collect::<Vec<_>>()[..] else {
            return Err(closed("git did not report where the history of this folder is stored"));
        };
        let (kept, is_linked) = (Path::new(common), common != own);
        let mut elsewhere = match kept.parent() {
            Some(main) if main == Path::new(top) && kept.ends_with(".git") => Vec::new(),
            Some(main) if is_linked && kept.ends_with(".git") => vec![main.to_path_buf()],
            _ if !is_linked && is_of_submodule(kept) => Vec::new(),
            _ => {
                return Err(closed(&format!(
                    "the history of this folder is stored in `{common}`, which is neither a folder `.git` at its top, \
                     nor that of the repository of this linked working tree or submodule, so its paths cannot be \
                     checked"
                )));
            }
        };
        if repository.run.context().grant.roots().containing(kept).is_none() {
            return Err(closed(&format!(
                "the history of this folder is stored outside of the workspace's roots, in `{common}`, so its paths \
                 cannot be checked"
            )));
        }
        let folder = repository.run.environment().access(common).await?;
        for objects in ["objects", "objects/pack"] {
            let path = repository.run.environment().access(&format!("{common}/{objects}")).await?;
            if !path.real.starts_with(&folder.real) {
                return Err(closed(&format!(
                    "`{common}/{objects}` is a link to another folder, so the files that its contents belong to are unknown"
                )));
            }
        }
        elsewhere.extend(lenders(repository).await?);
        Ok(Some(Self { prefix: prefix.to_owned(), other_tops: elsewhere }))
    }

    /// Refuses a path, relative to the top, that must not be read in another working tree.
    fn check(&self, below: &str, repository: &Repository<'_>) -> Result<(), ToolFailure> {
        let may_be_read = |top: &PathBuf| {
            let path = AccessPath::plain(lexical(top, Path::new(below))).whole_tree();
            repository.run.context().grant.permits(&Access::ReadPath(path))
        };
        match self.other_tops.iter().find(|top| !may_be_read(top)) {
            None => Ok(()),
            Some(top) => {
                Err(closed(&format!("`{below}` may not be read in `{}`, whose history this is", top.display())))
            }
        }
    }
}

/// Returns `true` if a folder contains the history of a submodule, whose files are in the submodule alone.
fn is_of_submodule(kept: &Path) -> bool {
    let names: Vec<_> = kept.iter().collect();
    names.windows(3).any(|names| names[0] == ".git" && names[1] == "modules")
}

/// Returns the tops of the repositories from which this one borrows objects (`objects/info/alternates`).
///
/// # Errors
/// Fails if one of them is not a readable repository in the workspace's roots.
async fn lenders(repository: &Repository<'_>) -> Result<Vec<PathBuf>, ToolFailure> {
    // git reports all the repositories that it uses, including those from which a lender borrows.
    let (asked, done) = repository.git(["count-objects", "-v"].map(str::to_owned).into()).await?;
    let output = asked.capture.ends(OutputStream::Stdout);
    let output =
        output.complete_bytes().filter(|_| done.exit_code == Some(0)).and_then(|output| str::from_utf8(output).ok());
    let output =
        output.ok_or_else(|| closed("git did not report the repositories that this one borrows objects from"))?;
    let mut tops = Vec::new();
    for objects in output.lines().filter_map(|line| line.strip_prefix("alternate: ")) {
        let path = repository.run.environment().access(objects).await?;
        let grant = &repository.run.context().grant;
        let top = path
            .real
            .parent()
            .filter(|kept| path.real.ends_with(".git/objects") && grant.roots().containing(kept).is_some());
        match top.and_then(Path::parent) {
            Some(top) if grant.permits(&Access::ReadPath(path.clone())) => tops.push(top.to_path_buf()),
            _ => {
                return Err(closed(&format!(
                    "this repository borrows objects from `{}` (`.git/objects/info/alternates`), which is not a \
                     readable repository in the workspace's roots, so the files that they belong to are unknown",
                    objects.escape_debug()
                )));
            }
        }
    }
    Ok(tops)
}

/// Returns the file or folder as a path for git in which no character has a special meaning.
fn file(input: &Input) -> Option<String> {
    let file = input.file.as_ref()?;
    Some(if input.operation == Operation::Blame { file.clone() } else { format!(":(literal){file}") })
}

/// Returns the files that the call would show but must not be read, as paths that exclude them in git.
async fn left_out(
    input: &Input,
    kept: &RepositoryWorkingTrees,
    repository: &Repository<'_>,
) -> Result<Vec<String>, ToolFailure> {
    let mut options = vec!["--name-only", "-z", "--no-renames", "--no-relative"];
    if input.operation == Operation::Show {
        options.push("--format=");
    }
    let (listed, done) = repository.git(input.words_with(&options, as_commits, file(input))).await?;
    if done.exit_code != Some(0) || listed.capture.fault().is_some() {
        // It may have shown many files before the error.
        let fault = listed.capture.ends(OutputStream::Stderr).text(LONGEST_FAULT).0;
        return Err(closed(&format!("git did not list all files that it would show: {}", fault.trim_end())));
    }
    let capture = listed.capture.clone();
    let list = on_blocking_thread(move || {
        let (start, list) = capture.read(0, MAX_LIST + 1).map_err(output_read_failure)?;
        let is_whole = start == 0 && list.len() <= MAX_LIST && capture.stream_known_from() == 0;
        // Warnings are not file names.
        Ok(is_whole.then(|| capture.of_stream(OutputStream::Stdout, 0, &list)))
    });
    let list = list.await?.ok_or_else(|| closed("too many files are shown to check all of them"))?;
    let grant = &repository.run.context().grant;
    let is_within = |path: &Path| grant.roots().containing(path).is_some();
    let may_be_read = |below: &str| {
        tops(&repository.folder, is_within)
            .chain(kept.other_tops.iter().map(PathBuf::as_path))
            .all(|top| grant.permits(&Access::ReadPath(AccessPath::plain(top.join(below)))))
    };
    let (mut paths, mut bytes) = (BTreeSet::new(), 0);
    for name in list.split(|byte| *byte == 0) {
        let name = str::from_utf8(name).map_err(|_| closed("a file is shown whose name is not in UTF-8"))?;
        // Some versions of git end the line of a commit, which is empty here, before the first name.
        let readings = [Some(name), name.strip_prefix('\n')].into_iter().flatten();
        for below in readings.filter(|below| !below.is_empty() && !may_be_read(below)) {
            let path = format!(":(top,literal,exclude){below}");
            let length = path.len();
            bytes += if paths.insert(path) { length } else { 0 };
            if paths.len() > MAX_LEFT_OUT || bytes > MAX_NAMES {
                return Err(closed("too many of the files may not be read"));
            }
        }
    }
    Ok(paths.into_iter().collect())
}

fn closed(reason: &str) -> ToolFailure {
    ToolFailure::new(ErrorKind::PermissionDenied, format!("rules deny reading some files, and {reason}"))
        .next("Request less: one commit, one `file`.")
}

/// Returns the name of a commit, or two with dots between them, in a form that matches commits only. The name of a blob
/// would show the content of a file without its path.
fn as_commits(text: &str) -> String {
    let dots = ["...", ".."].into_iter().find(|dots| text.contains(dots));
    match dots.and_then(|dots| Some((dots, text.split_once(dots)?))) {
        Some((dots, (from, to))) => format!("{}{dots}{}", as_commit(from), as_commit(to)),
        None => as_commit(text),
    }
}

fn as_commit(text: &str) -> String {
    // An empty name means `HEAD`.
    if text.is_empty() { String::new() } else { format!("{text}^{{commit}}") }
}
