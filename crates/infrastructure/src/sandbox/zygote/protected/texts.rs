//! The files of a repository whose texts decide what git does.

use super::{
    super::git_config::{self, Judgement},
    account::Account,
    folder::{Folder, Text, Work, shown},
};
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

/// Where the repository of a working tree is, seen from what it keeps of it.
const OWN_REPOSITORY: &[u8] = b"../..";
const NAMES: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];

/// Which repository it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The root's own.
    Main,
    /// That of a submodule, so many folders below the root.
    Module { depth: usize },
    /// What a repository keeps of one of its working trees.
    Worktree,
}

/// The texts that were there, and that the run could change.
#[derive(Debug, Default)]
pub(super) struct Texts(BTreeMap<&'static str, Text>);

impl Texts {
    pub(super) fn of(git: &Folder, work: &mut Work) -> io::Result<Self> {
        let mut texts = BTreeMap::new();
        for name in NAMES.into_iter().filter(|name| !git.is_closed(name)) {
            texts.extend(git.text(name, work)?.map(|text| (name, text)));
        }
        Ok(Self(texts))
    }

    pub(super) fn put_right(&self, git: &Folder, kind: Kind, work: &mut Work, account: &mut Account<'_>) {
        for name in NAMES.into_iter().filter(|name| !git.is_closed(name)) {
            let file = TextFile { name, path: git.path.join(name), git, kind };
            let before = self.0.get(name);
            if account.is_alone() {
                file.put_right(before, work, account);
            } else {
                file.put_right(before.and_then(|text| file.own(text, account)).as_ref(), work, account);
            }
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
    /// What was there without what was another run's.
    fn own(&self, before: &Text, account: &Account<'_>) -> Option<Text> {
        let bytes = match self.name {
            "config" | "config.worktree" => {
                match git_config::without(&before.bytes, &|one| {
                    one.is_refused(self.depth()) && account.was_refused(&self.path, &one.bytes())
                }) {
                    Judgement::Without { text, .. } => text,
                    Judgement::Fine | Judgement::Unreadable => before.bytes.clone(),
                }
            }
            _ if !account.was_refused(&self.path, &before.bytes) => before.bytes.clone(),
            "commondir" if self.kind == Kind::Worktree => [OWN_REPOSITORY, b"\n"].concat(),
            _ => return None,
        };
        Some(Text { bytes, rights: before.rights })
    }

    fn put_right(&self, before: Option<&Text>, work: &mut Work, account: &mut Account<'_>) {
        let now = self.git.text(self.name, work);
        match &now {
            Ok(None) if before.is_none() || matches!(self.name, "config.worktree" | "gitdir") => {}
            Ok(now) if now.as_ref().map(|text| &text.bytes) == before.map(|text| &text.bytes) => {}
            Ok(Some(text)) => match self.judge(text, before, account.places) {
                Judgement::Fine => {}
                Judgement::Without { text: rest, out } => {
                    let is_replaced = self.git.replace(self.name, &rest, text.rights).is_ok();
                    if is_replaced {
                        account.told.undone(format!(
                            "{} can make git run a program or lead it elsewhere, so it was taken out of `{}` again; set \
                             it outside of commands",
                            git_config::keys(&out),
                            shown(&self.path)
                        ));
                    } else {
                        self.give_way(before, account);
                    }
                    out.iter().for_each(|setting| account.refuse(&self.path, &setting.bytes()));
                }
                Judgement::Unreadable => {
                    self.give_way(before, account);
                    account.refuse(&self.path, &text.bytes);
                }
            },
            Ok(None) => self.write_again(before, account),
            Err(_) => self.give_way(before, account),
        }
    }

    /// What cannot be judged, or must not be there, gives way to what was there.
    fn give_way(&self, before: Option<&Text>, account: &mut Account<'_>) {
        self.git.set_aside(self.name, &mut account.told);
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

    fn judge(&self, text: &Text, before: Option<&Text>, places: &[PathBuf]) -> Judgement {
        let end = text.bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
        let line = &text.bytes[..end];
        match (self.name, self.kind) {
            ("config" | "config.worktree", _) => {
                git_config::judge(&text.bytes, before.map(|text| text.bytes.as_slice()), self.depth())
            }
            ("commondir", Kind::Worktree) if line == OWN_REPOSITORY => Judgement::Fine,
            ("gitdir", Kind::Worktree) if leads_into(line, &self.git.path, places) => Judgement::Fine,
            // It means nothing there.
            ("gitdir", Kind::Main | Kind::Module { .. }) => Judgement::Fine,
            _ => Judgement::Unreadable,
        }
    }

    fn depth(&self) -> Option<usize> {
        if let Kind::Module { depth } = self.kind { Some(depth) } else { None }
    }
}

/// Whether a path, which may be a relative one, leads into one of the places.
fn leads_into(path: &[u8], from: &Path, places: &[PathBuf]) -> bool {
    let mut reached = PathBuf::new();
    for part in from.join(OsStr::from_bytes(path)).components() {
        match part {
            Component::ParentDir => drop(reached.pop()),
            Component::CurDir => {}
            part => reached.push(part),
        }
    }
    let is_plain = !path.iter().any(u8::is_ascii_control);
    is_plain && places.iter().any(|place| reached.starts_with(place))
}
