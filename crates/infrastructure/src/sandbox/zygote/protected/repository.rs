//! A folder that git takes for a repository: what in it makes git run programs is as it was, or gone.

use super::{
    super::{mount, view::View},
    Account, Ground,
    folder::{Folder, Work, shown},
    inner::{self, Found, Part},
    known::Known,
    texts::{Kind, Texts},
};
use rustix::fs::FileType;
use std::{collections::BTreeMap, ffi::OsStr, io, path::PathBuf};

/// So many new hooks are put aside one by one; of more the whole folder is.
const SINGLE_HOOKS: usize = 64;
/// So many things are put right one by one; of more all submodules or working trees are put aside.
const SINGLE_THINGS: usize = 500;

/// Folders of which each file counts: hooks, and addresses in the form that git had before its settings.
const LISTS: [&str; 3] = ["hooks", "remotes", "branches"];

/// The repository of a root, and what stood in it before a run.
#[derive(Debug)]
pub(super) struct Repository {
    pub(super) folder: Folder,
    own: Texts,
    /// Of its submodules and working trees, by their paths.
    inner: BTreeMap<PathBuf, Texts>,
}

impl Repository {
    /// Notes what stands there. Its hooks are closed; its settings stay open, because `git config` is ordinary work.
    pub(super) fn guard(view: &View<'_>, folder: Folder, ground: &Ground, known: &mut Known) -> io::Result<Self> {
        for name in LISTS.into_iter().chain(["commondir"]) {
            if folder.kind(name)?.is_some() {
                view.seal(folder.handle_of(name)?)?;
            }
        }
        let mut work = Work::new();
        let own = Texts::of(&folder, Kind::Main, &mut work, ground, known)?;
        let mut repository = Self { own, inner: BTreeMap::new(), folder };
        for part in Part::ALL {
            repository.guard_part(view, part, &mut work, ground, known)?;
        }
        Ok(repository)
    }

    fn guard_part(
        &mut self,
        view: &View<'_>,
        part: Part,
        work: &mut Work,
        ground: &Ground,
        known: &mut Known,
    ) -> io::Result<()> {
        let inner = &mut self.inner;
        let looked = inner::each(&self.folder, part, work, &mut |found, work| {
            let (folder, kind) = match found {
                Found::Repository(folder) => (folder, Kind::Module),
                Found::Worktree(folder) => (folder, Kind::Worktree),
                Found::Link(folder, name) | Found::Other(folder, name) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        format!("`{}` is a symbolic link, or no folder", shown(&folder.path.join(name))),
                    ));
                }
            };
            note_lists(folder, work, known)?;
            inner.insert(folder.path.clone(), Texts::of(folder, kind, work, ground, known)?);
            Ok(())
        });
        match looked {
            // More than is looked at, or what cannot be looked at, stays as it is.
            Err(error) if matches!(error.kind(), io::ErrorKind::QuotaExceeded | io::ErrorKind::PermissionDenied) => {
                view.seal(self.folder.handle_of(part.name())?).map(drop)
            }
            looked => looked,
        }
    }

    /// Puts right what a run did to it.
    pub(super) fn put_right(&self, account: &mut Account<'_>) -> io::Result<()> {
        put_all_right(&self.folder.try_clone()?.opened(), &self.own, &self.inner, account);
        Ok(())
    }
}

/// Puts right what a run did to a repository that was not there before.
pub(super) fn put_new_right(folder: Folder, account: &mut Account<'_>) {
    put_all_right(&folder.opened(), &Texts::default(), &BTreeMap::new(), account);
}

fn put_all_right(folder: &Folder, own: &Texts, inner: &BTreeMap<PathBuf, Texts>, account: &mut Account<'_>) {
    put_lists_right(folder, &mut Work::new(), account);
    own.put_right(folder, Kind::Main, &mut Work::new(), account);
    let mut work = Work::new();
    let none = Texts::default();
    for part in Part::ALL {
        let looked = inner::each(folder, part, &mut work, &mut |found, work| {
            let (folder, kind) = match found {
                Found::Repository(folder) => (folder, Kind::Module),
                Found::Worktree(folder) => (folder, Kind::Worktree),
                Found::Link(list, name) => {
                    list.remove_link(name, account.told);
                    return Ok(());
                }
                Found::Other(folder, name) => {
                    folder.set_aside(name, account.told);
                    return Ok(());
                }
            };
            put_lists_right(folder, work, account);
            inner.get(&folder.path).unwrap_or(&none).put_right(folder, kind, work, account);
            let is_too_much = work.is_spent() || account.told.things > SINGLE_THINGS;
            if is_too_much { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
        });
        if looked.is_err() {
            folder.set_aside(part.name(), account.told);
        }
    }
}

/// Notes what stands in a repository within another one, which can be moved as a whole.
fn note_lists(git: &Folder, work: &mut Work, known: &mut Known) -> io::Result<()> {
    for list in LISTS {
        if git.kind(list)?.is_none() || git.is_closed(list) {
            continue;
        }
        let folder = git.inner(list)?;
        for name in folder.names(work)?.into_iter().filter(|name| is_hook(name)) {
            if let Some(state) = folder.state_of(&name)? {
                known.note(&folder.path.join(name), &state.mark());
            }
        }
    }
    Ok(())
}

/// Hooks, and the like, that appeared or changed.
fn put_lists_right(git: &Folder, work: &mut Work, account: &mut Account<'_>) {
    for list in LISTS {
        match git.kind(list) {
            Ok(None) => {}
            Ok(Some(_)) if git.is_closed(list) => {}
            Ok(Some(FileType::Directory)) => put_list_right(git, list, work, account),
            _ => git.set_aside(list, account.told),
        }
    }
}

fn put_list_right(git: &Folder, list: &str, work: &mut Work, account: &mut Account<'_>) {
    let listed = git.inner(list).map(Folder::opened).and_then(|folder| Ok((folder.names(work)?, folder)));
    let Ok((names, folder)) = listed else { return git.set_aside(list, account.told) };
    let is_known = |name: &OsStr| match folder.state_of(name) {
        Ok(Some(state)) => account.known.has(&folder.path.join(name), &state.mark()),
        _ => false,
    };
    let new: Vec<_> = names.into_iter().filter(|name| is_hook(name) && !is_known(name)).collect();
    if new.len() > SINGLE_HOOKS {
        return git.set_aside(list, account.told);
    }
    for name in new {
        folder.set_aside(&name, account.told);
    }
}

/// Samples, and what was put aside, are no hooks.
fn is_hook(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !name.ends_with(".sample") && !name.contains(".refused")
}

/// Mounts a folder over itself, so that it cannot be replaced as a whole.
pub(super) fn pin(top: &Folder, name: &str) -> io::Result<Folder> {
    let place = top.handle_of(name)?;
    let tree = mount::copy(&place)?;
    mount::bar(&tree, mount::Bars::WRITABLE)?;
    mount::attach(tree, place)?;
    top.inner(name)
}
