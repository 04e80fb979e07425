//! The files of a repository whose texts decide what git does.

use super::{
    super::git_config::{self, Judgement, Setting},
    Account, Ground,
    folder::{Folder, State, Text, Work, shown},
    ground::line,
    known::Known,
};
use std::{collections::BTreeMap, io, path::PathBuf};

/// Where the repository of a working tree is, seen from what it keeps of it.
const OWN_REPOSITORY: &[u8] = b"../..";
const NAMES: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];

/// Which repository it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The root's own.
    Main,
    /// That of a submodule.
    Module,
    /// What a repository keeps of one of its working trees.
    Worktree,
}

/// The texts that were there, and that the run could change.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// What is written again where nothing else does.
    before: BTreeMap<&'static str, Text>,
    /// The states in which they were found.
    found: BTreeMap<&'static str, State>,
}

impl Texts {
    pub(super) fn of(
        git: &Folder,
        kind: Kind,
        work: &mut Work,
        ground: &Ground,
        known: &mut Known,
    ) -> io::Result<Self> {
        let mut texts = Self::default();
        for name in NAMES.into_iter().filter(|name| !git.is_closed(name)) {
            let Some(text) = git.text(name, work)? else { continue };
            texts.found.insert(name, text.state);
            let file = TextFile { name, path: git.path.join(name), git, kind };
            texts.before.extend(file.known(text, ground, known).map(|text| (name, text)));
        }
        Ok(texts)
    }

    pub(super) fn put_right(&self, git: &Folder, kind: Kind, work: &mut Work, account: &mut Account<'_>) {
        for name in NAMES.into_iter().filter(|name| !git.is_closed(name)) {
            let file = TextFile { name, path: git.path.join(name), git, kind };
            // Nobody touched it. What another run did to it before is taken back at the end of that one. Of repositories
            // that can be moved as a whole that is not enough, save for what is only told.
            let is_as_found = || git.state_of(name).is_ok_and(|state| state.as_ref() == self.found.get(name));
            if (kind == Kind::Main || name == "gitdir") && !account.known.is_alone() && is_as_found() {
                continue;
            }
            file.put_right(self.before.get(name), work, account);
        }
    }
}

struct TextFile<'a> {
    name: &'static str,
    path: PathBuf,
    git: &'a Folder,
    kind: Kind,
}

impl TextFile<'_> {
    /// Notes what is there; the text without what does not count.
    fn known(&self, mut text: Text, ground: &Ground, known: &mut Known) -> Option<Text> {
        match self.name {
            "config" | "config.worktree" => {
                let Some(settings) = git_config::settings(&text.bytes) else {
                    return known.note(&self.path, &text.bytes).then_some(text);
                };
                for placed in settings.iter().filter(|placed| placed.setting.is_refused(&|_| false)) {
                    known.note(&self.path, &placed.setting.bytes());
                }
                match self.judge_settings(&text.bytes, ground, known) {
                    Judgement::Fine => {}
                    Judgement::Without { text: rest, .. } => text.bytes = rest,
                    Judgement::Unreadable => return None,
                }
            }
            _ if known.note(&self.path, &text.bytes) => {}
            "commondir" if self.kind == Kind::Worktree => text.bytes = [OWN_REPOSITORY, b"\n"].concat(),
            _ => return None,
        }
        Some(text)
    }

    fn put_right(&self, before: Option<&Text>, work: &mut Work, account: &mut Account<'_>) {
        let now = self.git.text(self.name, work);
        match &now {
            Ok(None) if before.is_none() || matches!(self.name, "config.worktree" | "gitdir") => {}
            Ok(now) if now.as_ref().map(|text| &text.bytes) == before.map(|text| &text.bytes) => {}
            // Nothing is run or read there, and a working tree that somebody makes meanwhile is lost without it.
            Ok(Some(text)) if self.name == "gitdir" => {
                if self.kind == Kind::Worktree && !account.ground.is_place(&text.bytes, &self.git.path) {
                    account.told.left(format!(
                        "`{}` names a working tree outside of the roots, and whether this command set it cannot be told: \
                         look at it before you use `git worktree` there",
                        shown(&self.path)
                    ));
                }
            }
            Ok(Some(text)) => match self.judge(text, account) {
                Judgement::Fine => {}
                Judgement::Without { text: rest, out } => {
                    if self.git.replace(self.name, &rest, text.rights).is_ok() {
                        account.told.undone(format!(
                            "{} can make git run a program or lead it elsewhere, so it was taken out of `{}` again; set \
                             it outside of commands",
                            git_config::keys(&out),
                            shown(&self.path)
                        ));
                    } else {
                        self.give_way(before, account);
                    }
                }
                Judgement::Unreadable => self.give_way(before, account),
            },
            Ok(None) => self.write_again(before, account),
            Err(_) => self.give_way(before, account),
        }
    }

    /// What cannot be judged, or must not be there, gives way to what was there.
    fn give_way(&self, before: Option<&Text>, account: &mut Account<'_>) {
        self.git.set_aside(self.name, account.told);
        self.write_again(before, account);
    }

    fn write_again(&self, before: Option<&Text>, account: &mut Account<'_>) {
        let Some(before) = before else { return };
        let path = shown(&self.path);
        match self.git.replace(self.name, &before.bytes, before.rights) {
            Ok(()) => account.told.undone(format!("`{path}` is as it was before this command")),
            Err(error) => account.told.left(format!("`{path}` was changed and could not be written again: {error}")),
        }
    }

    fn judge(&self, text: &Text, account: &Account<'_>) -> Judgement {
        match (self.name, self.kind) {
            ("config" | "config.worktree", _) => self.judge_settings(&text.bytes, account.ground, account.known),
            ("commondir", Kind::Worktree) if line(&text.bytes) == OWN_REPOSITORY => Judgement::Fine,
            _ => Judgement::Unreadable,
        }
    }

    fn judge_settings(&self, text: &[u8], ground: &Ground, known: &Known) -> Judgement {
        let may_stand = |path: &[u8]| self.kind == Kind::Module && ground.is_plain(path, &self.git.path);
        let is_refused = |one: &Setting| one.is_refused(&may_stand) && !known.has(&self.path, &one.bytes());
        git_config::without(text, &is_refused)
    }
}
