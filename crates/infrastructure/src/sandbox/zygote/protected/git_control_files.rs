//! Files of a repository whose texts decide what git does.

use super::{
    super::git_config::{self, GitConfigCheckResult, GitSetting},
    RootUndoPass, WritablePaths,
    folder::{FileDraft, FileSnapshot, FileStamp, FolderHandle, WorkBudget, shown},
    known_entries::KnownEntries,
    writable_paths::line,
};
use std::{collections::BTreeMap, io, path::PathBuf};

/// Path of the repository of a working tree, relative to the metadata of that working tree.
const OWN_REPOSITORY: &[u8] = b"../..";
const NAMES: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];

/// Kind of repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitDirKind {
    /// The repository of the root itself.
    Main,
    /// The repository of a submodule.
    Module,
    /// The metadata that a repository has of one of its working trees.
    Worktree,
}

/// Texts that existed before, and that the run could change.
#[derive(Debug, Default)]
pub(super) struct GitControlSnapshot {
    /// Texts, by file name, that are restored if the present text is missing or cannot be corrected.
    before: BTreeMap<&'static str, FileSnapshot>,
    /// State in which each file was found.
    found: BTreeMap<&'static str, FileStamp>,
    /// Files with content that did not exist for all living runs: it is the user's own, or one of those runs planted
    /// it.
    pub(super) foreign: Vec<&'static str>,
    /// `true` if the run cannot move the folder. A file that the run did not touch was then not moved there by it
    /// either.
    pub(super) is_held: bool,
}

impl GitControlSnapshot {
    pub(super) fn of(
        git: &FolderHandle,
        kind: GitDirKind,
        work: &mut WorkBudget,
        ground: &WritablePaths,
        known: &mut KnownEntries,
    ) -> io::Result<Self> {
        let mut texts = Self { is_held: kind == GitDirKind::Main, ..Self::default() };
        for name in NAMES.into_iter().filter(|name| !git.is_closed(name)) {
            let Some(text) = git.text(name, work)? else { continue };
            texts.found.insert(name, text.state);
            let whole = text.bytes.clone();
            let before = GitControlFile::of(git, name, kind).known(text, ground, known);
            if name != "gitdir" && before.as_ref().is_none_or(|text| text.bytes != whole) {
                texts.foreign.push(name);
            }
            texts.before.extend(before.map(|text| (name, text)));
        }
        Ok(texts)
    }

    pub(super) fn restore(
        &self,
        git: &FolderHandle,
        kind: GitDirKind,
        work: &mut WorkBudget,
        account: &mut RootUndoPass<'_>,
    ) {
        for name in NAMES.into_iter().filter(|name| !git.is_closed(name)) {
            let mut file = GitControlFile::of(git, name, kind);
            // The file is unchanged. Changes that another run made before are undone at the end of that run. For
            // folders that can be moved this is not enough, except for a file that is only reported.
            file.is_as_found = (self.is_held || name == "gitdir")
                && !account.known.is_alone()
                && git.state_of(name).is_ok_and(|state| state.as_ref() == self.found.get(name));
            file.is_foreign = self.foreign.contains(&name);
            file.restore(self.before.get(name), work, account);
        }
    }
}

struct GitControlFile<'a> {
    name: &'static str,
    path: PathBuf,
    git: &'a FolderHandle,
    kind: GitDirKind,
    /// `true` if the file is unchanged and that is conclusive.
    is_as_found: bool,
    /// `true` if the file had content that may be the user's own and was not recorded.
    is_foreign: bool,
}

/// Action that a text requires.
enum GitControlFileAction {
    Fine,
    /// Path of a working tree elsewhere. It is only reported: git runs and reads nothing there, and without the path, a
    /// working tree that another process creates meanwhile would be lost.
    Elsewhere,
    /// Replacement by this text, from which these settings were removed.
    Without(FileSnapshot, Vec<GitSetting>),
    /// Text that cannot be judged, or must not exist. It is set aside, and the previous text is restored.
    GivesWay,
    /// The previous text must be restored.
    Missing,
}

impl<'a> GitControlFile<'a> {
    fn of(git: &'a FolderHandle, name: &'static str, kind: GitDirKind) -> Self {
        Self { name, path: git.path.join(name), git, kind, is_as_found: false, is_foreign: false }
    }

    /// Records the content. Returns the text without parts that do not count as existing before, or `None` if nothing
    /// of it does.
    fn known(&self, mut text: FileSnapshot, ground: &WritablePaths, known: &mut KnownEntries) -> Option<FileSnapshot> {
        match self.name {
            "config" | "config.worktree" => {
                let Some(settings) = git_config::settings(&text.bytes) else {
                    return known.record(&self.path, &text.bytes).then_some(text);
                };
                for placed in settings.iter().filter(|placed| self.is_refused(&placed.setting, ground)) {
                    known.record(&self.path, &placed.setting.bytes());
                }
                match self.judge_settings(&text.bytes, ground, known) {
                    GitConfigCheckResult::Fine => {}
                    GitConfigCheckResult::Without { text: rest, .. } => text.bytes = rest,
                    GitConfigCheckResult::Unreadable => return None,
                }
            }
            _ if known.record(&self.path, &text.bytes) => {}
            "commondir" if self.kind == GitDirKind::Worktree => text.bytes = [OWN_REPOSITORY, b"\n"].concat(),
            _ => return None,
        }
        Some(text)
    }

    fn restore(&self, before: Option<&FileSnapshot>, work: &mut WorkBudget, account: &mut RootUndoPass<'_>) {
        match self.verdict(before, work, account) {
            GitControlFileAction::Fine => return,
            GitControlFileAction::Elsewhere => {
                return account.report.left(format!(
                    "`{}` names a working tree outside of the roots, and it is unknown whether this command set it: \
                     check it before you use `git worktree` there",
                    shown(&self.path)
                ));
            }
            GitControlFileAction::Without(..) | GitControlFileAction::GivesWay | GitControlFileAction::Missing => {}
        }
        // The file is read again under the lock of git, so that a concurrent change is not lost.
        let draft = self.git.draft(self.name, &mut account.patience);
        let is_without_lock = draft.as_ref().is_ok_and(|draft| !draft.is_locked);
        match self.verdict(before, work, account) {
            GitControlFileAction::Fine | GitControlFileAction::Elsewhere => return,
            GitControlFileAction::Without(text, out) => {
                // Fails if the file system has no hard links. The removed settings are reported in any case.
                let kept = if self.is_foreign { self.git.keep(self.name).ok() } else { None };
                match draft.and_then(|draft| draft.finish(&text.bytes, text.rights)) {
                    Ok(()) => account.report.undone(format!(
                        "{} can make git run a program or use another folder: removed from `{}`; change such \
                         settings outside of commands{}",
                        git_config::keys(&out),
                        shown(&self.path),
                        kept.map_or(String::new(), |kept| format!("; the whole file is stored as `{kept}`"))
                    )),
                    Err(error) => self.set_aside_and_restore(before, Err(error), account),
                }
            }
            GitControlFileAction::GivesWay => self.set_aside_and_restore(before, draft, account),
            GitControlFileAction::Missing => self.write_again(before, draft, account),
        }
        if is_without_lock {
            account.report.undone(format!(
                "`{0}.lock` existed the whole time while `{0}` was restored: what another process wrote there \
                 meanwhile may be lost; remove the lock if no git is running",
                shown(&self.path)
            ));
        }
    }

    fn set_aside_and_restore(
        &self,
        before: Option<&FileSnapshot>,
        draft: io::Result<FileDraft<'_>>,
        account: &mut RootUndoPass<'_>,
    ) {
        self.git.set_aside(self.name, account.report);
        self.write_again(before, draft, account);
    }

    fn write_again(
        &self,
        before: Option<&FileSnapshot>,
        draft: io::Result<FileDraft<'_>>,
        account: &mut RootUndoPass<'_>,
    ) {
        let Some(before) = before else { return };
        let path = shown(&self.path);
        match draft.and_then(|draft| draft.finish(&before.bytes, before.rights)) {
            Ok(()) => account.report.undone(format!("`{path}` was restored to its state before this command")),
            Err(error) => account.report.left(format!("`{path}` was changed and could not be restored: {error}")),
        }
    }

    fn verdict(
        &self,
        before: Option<&FileSnapshot>,
        work: &mut WorkBudget,
        account: &RootUndoPass<'_>,
    ) -> GitControlFileAction {
        let mut text = match self.git.text(self.name, work) {
            Ok(None) if before.is_none() || matches!(self.name, "config.worktree" | "gitdir") => {
                return GitControlFileAction::Fine;
            }
            Ok(None) => return GitControlFileAction::Missing,
            Ok(Some(text)) => text,
            Err(_) if self.is_as_found => return GitControlFileAction::Fine,
            Err(_) => return GitControlFileAction::GivesWay,
        };
        let is_own = self.is_as_found || before.is_some_and(|before| before.bytes == text.bytes);
        let judgement = match (self.name, self.kind) {
            // The target of the path changes with the file system, so the text is judged even if it is unchanged.
            ("config" | "config.worktree", _) => self.judge_settings(&text.bytes, account.ground, account.known),
            _ if is_own => GitConfigCheckResult::Fine,
            ("gitdir", GitDirKind::Worktree) if !account.ground.is_place(&text.bytes, &self.git.path) => {
                return GitControlFileAction::Elsewhere;
            }
            ("gitdir", _) => GitConfigCheckResult::Fine,
            ("commondir", GitDirKind::Worktree) if line(&text.bytes) == OWN_REPOSITORY => GitConfigCheckResult::Fine,
            _ => GitConfigCheckResult::Unreadable,
        };
        match judgement {
            GitConfigCheckResult::Fine => GitControlFileAction::Fine,
            GitConfigCheckResult::Unreadable if is_own => GitControlFileAction::Fine,
            GitConfigCheckResult::Unreadable => GitControlFileAction::GivesWay,
            GitConfigCheckResult::Without { text: rest, out } => {
                text.bytes = rest;
                GitControlFileAction::Without(text, out)
            }
        }
    }

    fn judge_settings(&self, text: &[u8], ground: &WritablePaths, known: &KnownEntries) -> GitConfigCheckResult {
        git_config::without(text, &|one| {
            let is_judged = !self.is_as_found || one.is_worktree();
            is_judged && self.is_refused(one, ground) && !known.has(&self.path, &one.bytes())
        })
    }

    fn is_refused(&self, setting: &GitSetting, ground: &WritablePaths) -> bool {
        setting.is_refused(&|path| self.kind == GitDirKind::Module && ground.is_plain(path, &self.git.path))
    }
}
