//! A folder that git takes for a repository: what in it makes git run programs is as it was, or gone.

use super::{
    super::{mount, request::Aftermath, view::View},
    account::Account,
    folder::{Folder, State, Work, shown},
    inner::{self, Found, Part},
    texts::{Kind, Texts},
};
use rustix::fs::FileType;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
};

/// So many new hooks are put aside one by one; of more the whole folder is.
const SINGLE_HOOKS: usize = 64;
/// So many things are put right one by one; of more all submodules or working trees are put aside.
const SINGLE_THINGS: usize = 500;

/// The repository of a root, and what stood in it before a run.
#[derive(Debug)]
pub(super) struct Repository {
    pub(super) folder: Folder,
    own: Before,
    /// Its submodules and working trees, by their paths.
    inner: BTreeMap<PathBuf, Before>,
}

/// What stood in one repository.
#[derive(Debug, Default)]
struct Before {
    texts: Texts,
    hooks: BTreeMap<OsString, State>,
}

impl Repository {
    /// Notes what stands there. Its hooks are closed; its settings stay open, because `git config` is ordinary work.
    pub(super) fn guard(view: &View<'_>, folder: Folder) -> io::Result<Self> {
        for name in ["hooks", "commondir"] {
            if folder.kind(name)?.is_some() {
                view.seal(folder.handle_of(name)?)?;
            }
        }
        let mut work = Work::new();
        let own = Before { texts: Texts::of(&folder, &mut work)?, ..Before::default() };
        let mut repository = Self { own, inner: BTreeMap::new(), folder };
        for part in Part::ALL {
            repository.guard_part(view, part, &mut work)?;
        }
        Ok(repository)
    }

    fn guard_part(&mut self, view: &View<'_>, part: Part, work: &mut Work) -> io::Result<()> {
        let known = &mut self.inner;
        let looked = inner::each(&self.folder, part, work, &mut |found, work| match found {
            Found::Repository(folder) | Found::Worktree(folder) => {
                known.insert(folder.path.clone(), Before::of(folder, work)?);
                Ok(())
            }
            Found::Other(folder, name) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{}` is a symbolic link, or no folder", shown(&folder.path.join(name))),
            )),
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
    put_all_right(&folder.opened(), &Before::default(), &BTreeMap::new(), account);
}

fn put_all_right(folder: &Folder, own: &Before, inner: &BTreeMap<PathBuf, Before>, account: &mut Account<'_>) {
    own.put_hooks_right(folder, &mut Work::new(), &mut account.told);
    own.texts.put_right(folder, Kind::Main, &mut Work::new(), account);
    let mut work = Work::new();
    // Their repositories stand in the folder that holds this one, if it has the usual name.
    let root = folder.path.parent().filter(|_| folder.path.ends_with(".git")).unwrap_or(&folder.path).to_owned();
    let none = Before::default();
    for part in Part::ALL {
        let path = folder.path.join(part.name());
        // All of it was put aside after another run.
        let is_others = account.was_refused(&path, b"");
        let looked = inner::each(folder, part, &mut work, &mut |found, work| {
            let (folder, kind) = match found {
                Found::Repository(folder) => {
                    let depth = folder.path.strip_prefix(&root).map_or(0, |path| path.components().count());
                    (folder, Kind::Module { depth })
                }
                Found::Worktree(folder) => (folder, Kind::Worktree),
                Found::Other(folder, name) => {
                    folder.set_aside(name, &mut account.told);
                    return Ok(());
                }
            };
            let before = inner.get(&folder.path).filter(|_| !is_others).unwrap_or(&none);
            before.put_hooks_right(folder, work, &mut account.told);
            before.texts.put_right(folder, kind, work, account);
            let is_too_much = work.is_spent() || account.told.things > SINGLE_THINGS;
            if is_too_much { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
        });
        if looked.is_err() {
            folder.set_aside(part.name(), &mut account.told);
            account.refuse(&path, b"");
        }
    }
}

impl Before {
    fn of(folder: &Folder, work: &mut Work) -> io::Result<Self> {
        let mut hooks = BTreeMap::new();
        if folder.kind("hooks")?.is_some() && !folder.is_closed("hooks") {
            let inner = folder.inner("hooks")?;
            for name in inner.names(work)?.into_iter().filter(|name| is_hook(name)) {
                hooks.extend(inner.state_of(&name)?.map(|state| (name, state)));
            }
        }
        Ok(Self { texts: Texts::of(folder, work)?, hooks })
    }

    /// Hooks that appeared or changed.
    fn put_hooks_right(&self, git: &Folder, work: &mut Work, told: &mut Aftermath) {
        match git.kind("hooks") {
            Ok(None) => return,
            Ok(Some(_)) if git.is_closed("hooks") => return,
            Ok(Some(FileType::Directory)) => {}
            _ => return git.set_aside("hooks", told),
        }
        let listed = git.inner("hooks").map(Folder::opened).and_then(|folder| Ok((folder.names(work)?, folder)));
        let Ok((names, folder)) = listed else { return git.set_aside("hooks", told) };
        let is_known = |name: &OsString| {
            self.hooks.get(name).is_some_and(|known| folder.state_of(name).is_ok_and(|found| found == Some(*known)))
        };
        let new: Vec<_> = names.into_iter().filter(|name| is_hook(name) && !is_known(name)).collect();
        if new.len() > SINGLE_HOOKS {
            return git.set_aside("hooks", told);
        }
        for name in new {
            folder.set_aside(&name, told);
        }
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
