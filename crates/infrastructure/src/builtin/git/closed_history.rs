//! Keeps what rules close from being read in a repository's history. Files stand there that are gone from the disk, and
//! the contents of all are in `.git`: hiding the files themselves does not do.

use super::{Input, Operation, Repository};
use crate::{
    builtin::{
        capture::{Stream, lost},
        world::on_blocking_thread,
    },
    sandbox::workspace::Workspace,
};
use std::{collections::BTreeSet, path::Path, str};
use toolstead_domain::{
    access::{Access, PathAccess},
    error_kind::ErrorKind,
    tool_failure::ToolFailure,
    workspace_roots::lexical,
};

/// A list of files that is longer, in bytes, is not looked through.
const MAX_LIST: usize = 4 << 20;
/// As many files can be left out, and as many bytes of their names.
const MAX_LEFT_OUT: usize = 1_000;
const MAX_NAMES: usize = 64 << 10;
/// Of what git says is wrong, so many characters are told.
const LONGEST_FAULT: usize = 400;

/// Where a path in a commit may lie on the disk: below the top of the repository, which is the folder or one around it.
pub(super) fn places<'a>(
    folder: &'a PathAccess,
    path: &'a str,
    workspace: &'a Workspace,
) -> impl Iterator<Item = PathAccess> {
    let tops = tops(&folder.real, |path| workspace.contains(path));
    tops.map(|top| {
        // `./a` and `../a` are relative to the folder.
        let is_relative = path.starts_with("./") || path.starts_with("../");
        let start = if is_relative { &folder.real } else { top };
        PathAccess::plain(lexical(start, Path::new(path))).whole_tree()
    })
}

fn tops(folder: &Path, is_within: impl Fn(&Path) -> bool) -> impl Iterator<Item = &Path> {
    folder.ancestors().take_while(move |top| is_within(top))
}

/// The words for git with which it shows nothing that may not be read, and how many files they leave out.
///
/// # Errors
/// Where that cannot be made sure.
pub(super) async fn within_rules(
    input: &Input,
    repository: &Repository<'_>,
) -> Result<(Vec<String>, usize), ToolFailure> {
    let as_given = || input.words_with(&[], str::to_owned, file(input));
    let grant = &repository.run.context().grant;
    let Some((root, _)) = grant.roots().containing(&repository.folder) else { return Ok((as_given(), 0)) };
    if !grant.reading_below(&PathAccess::plain(root)).is_limited() {
        return Ok((as_given(), 0));
    }
    if !has_repository(repository).await? {
        return Ok((as_given(), 0));
    }
    if let Some((commit, path)) = input.content()? {
        // Of what is no file after all it shows no differences.
        let object = format!("{}:{path}", as_commit(commit));
        return Ok((["cat-file", "-p", &object].map(str::to_owned).into(), 0));
    }
    match input.operation {
        Operation::Log | Operation::Status => Ok((as_given(), 0)),
        Operation::Blame => Ok((input.words_with(&[], as_commits, file(input)), 0)),
        Operation::Diff | Operation::Show => {
            let left_out = left_out(input, repository).await?;
            let count = left_out.len();
            let paths = file(input).or(Some(":(top)".into())).into_iter().chain(left_out);
            Ok((input.words_with(&["--no-renames", "--no-relative"], as_commits, paths), count))
        }
    }
}

/// Whether the folder is in a repository.
///
/// # Errors
/// Unless its history is kept at its very top: a `.git` that leads elsewhere would show what lies below another folder
/// under paths of this one.
async fn has_repository(repository: &Repository<'_>) -> Result<bool, ToolFailure> {
    let query = ["rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--show-toplevel", "--git-common-dir"];
    let (asked, done) = repository.git(query.map(str::to_owned).into()).await?;
    let fault = asked.capture.ends(Stream::Stderr).text(LONGEST_FAULT).0;
    match done.exit_code {
        Some(0) => {}
        Some(128) if fault.starts_with("fatal: not a git repository") => return Ok(false),
        _ => return Err(closed(&format!("git cannot tell the top of the repository: {}", fault.trim_end()))),
    }
    let told = asked.capture.ends(Stream::Stdout);
    let told = told.whole().and_then(|told| str::from_utf8(told).ok()).unwrap_or_default();
    match told.lines().collect::<Vec<_>>()[..] {
        ["true", top, kept] if Path::new(kept) == Path::new(top).join(".git") => Ok(true),
        _ => Err(closed(
            "the history of this folder is not kept in a folder `.git` at its top, so its paths cannot be judged",
        )),
    }
}

/// The file or folder as git takes it, with nothing in its name that means something.
fn file(input: &Input) -> Option<String> {
    let file = input.file.as_ref()?;
    Some(if input.operation == Operation::Blame { file.clone() } else { format!(":(literal){file}") })
}

/// The files that the call would show and may not be read, as paths for git that leave them out.
async fn left_out(input: &Input, repository: &Repository<'_>) -> Result<Vec<String>, ToolFailure> {
    let mut options = vec!["--name-only", "-z", "--no-renames", "--no-relative"];
    if input.operation == Operation::Show {
        options.push("--format=");
    }
    let (listed, done) = repository.git(input.words_with(&options, as_commits, file(input))).await?;
    if done.exit_code != Some(0) || listed.capture.fault().is_some() {
        // It may have shown much before that.
        let fault = listed.capture.ends(Stream::Stderr).text(LONGEST_FAULT).0;
        return Err(closed(&format!("git did not list all of those that it would show: {}", fault.trim_end())));
    }
    let capture = listed.capture.clone();
    let list = on_blocking_thread(move || {
        let (start, list) = capture.read(0, MAX_LIST + 1).map_err(lost)?;
        let is_whole = start == 0 && list.len() <= MAX_LIST && capture.told_apart_from() == 0;
        // A warning is no name.
        Ok(is_whole.then(|| capture.of_stream(Stream::Stdout, 0, &list)))
    });
    let list = list.await?.ok_or_else(|| closed("too many files are shown to be judged"))?;
    let grant = &repository.run.context().grant;
    let is_within = |path: &Path| grant.roots().containing(path).is_some();
    let may_be_read = |below: &str| {
        tops(&repository.folder, is_within)
            .all(|top| grant.permits(&Access::ReadPath(PathAccess::plain(top.join(below)))))
    };
    let (mut paths, mut bytes) = (BTreeSet::new(), 0);
    for name in list.split(|byte| *byte == 0) {
        let name = str::from_utf8(name).map_err(|_| closed("a file is shown whose name is no text"))?;
        // Some versions of git end the line of a commit, which is empty here, before its first name.
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
    ToolFailure::new(ErrorKind::PermissionDenied, format!("rules close some files to reading, and {reason}"))
        .next("Ask for less: one commit, one `file`.")
}

/// The name of a commit, or two with dots between them, so that nothing but commits is meant: the name of a file's
/// content would show it without its path.
fn as_commits(text: &str) -> String {
    let dots = ["...", ".."].into_iter().find(|dots| text.contains(dots));
    match dots.and_then(|dots| Some((dots, text.split_once(dots)?))) {
        Some((dots, (from, to))) => format!("{}{dots}{}", as_commit(from), as_commit(to)),
        None => as_commit(text),
    }
}

fn as_commit(text: &str) -> String {
    // Nothing is `HEAD`.
    if text.is_empty() { String::new() } else { format!("{text}^{{commit}}") }
}
