//! A folder that git takes for a repository: what in it makes git run programs is as it was, or gone.

use super::{
    super::{git_config, mount, request::Aftermath, view::View},
    folder::{Folder, State, Text, Work, shown},
    inner::{self, Found, Part},
};
use rustix::fs::FileType;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

/// Files whose texts decide what git does.
const TEXTS: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];

/// So many new hooks are put aside one by one; of more the whole folder is.
const SINGLE_HOOKS: usize = 64;
/// So many things are put right one by one; of more all submodules or working trees are put aside.
const SINGLE_THINGS: usize = 500;

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
    texts: BTreeMap<&'static str, Text>,
    hooks: BTreeMap<OsString, State>,
}

/// Where working trees may stand.
pub(super) type Places = [PathBuf];

impl Repository {
    /// Notes what stands there. Its hooks are closed; its settings stay open, because `git config` is ordinary work.
    pub(super) fn guard(view: &View<'_>, folder: Folder) -> io::Result<Self> {
        for name in ["hooks", "commondir"] {
            if folder.kind(name)?.is_some() {
                view.seal(folder.handle_of(name)?)?;
            }
        }
        let mut work = Work::new();
        let own = Before { texts: texts(&folder, &mut work)?, ..Before::default() };
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
                view.seal(self.folder.handle_of(part.name())?)
            }
            looked => looked,
        }
    }

    /// Puts right what a run did to it.
    pub(super) fn put_right(&self, places: &Places, told: &mut Aftermath) -> io::Result<()> {
        put_all_right(&self.folder.try_clone()?.opened(), &self.own, &self.inner, places, told);
        Ok(())
    }
}

/// Puts right what a run did to a repository that was not there before.
pub(super) fn put_new_right(folder: Folder, places: &Places, told: &mut Aftermath) {
    put_all_right(&folder.opened(), &Before::default(), &BTreeMap::new(), places, told);
}

fn put_all_right(
    folder: &Folder,
    own: &Before,
    inner: &BTreeMap<PathBuf, Before>,
    places: &Places,
    told: &mut Aftermath,
) {
    own.put_hooks_right(folder, &mut Work::new(), told);
    own.put_texts_right(folder, Kind::Main, places, &mut Work::new(), told);
    let mut work = Work::new();
    // Their repositories stand in the folder that holds this one, if it has the usual name.
    let root = folder.path.parent().filter(|_| folder.path.ends_with(".git")).unwrap_or(&folder.path).to_owned();
    let none = Before::default();
    for part in Part::ALL {
        let looked = inner::each(folder, part, &mut work, &mut |found, work| {
            let (folder, kind) = match found {
                Found::Repository(folder) => {
                    let depth = folder.path.strip_prefix(&root).map_or(0, |path| path.components().count());
                    (folder, Kind::Module { depth })
                }
                Found::Worktree(folder) => (folder, Kind::Worktree),
                Found::Other(folder, name) => {
                    folder.set_aside(name, told);
                    return Ok(());
                }
            };
            let before = inner.get(&folder.path).unwrap_or(&none);
            before.put_hooks_right(folder, work, told);
            before.put_texts_right(folder, kind, places, work, told);
            let is_too_much = work.is_spent() || told.things > SINGLE_THINGS;
            if is_too_much { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
        });
        if looked.is_err() {
            folder.set_aside(part.name(), told);
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
        Ok(Self { texts: texts(folder, work)?, hooks })
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

    fn put_texts_right(&self, git: &Folder, kind: Kind, places: &Places, work: &mut Work, told: &mut Aftermath) {
        for name in TEXTS.into_iter().filter(|name| !git.is_closed(name)) {
            self.put_text_right(name, git, kind, places, work, told);
        }
    }

    fn put_text_right(
        &self,
        name: &'static str,
        git: &Folder,
        kind: Kind,
        places: &Places,
        work: &mut Work,
        told: &mut Aftermath,
    ) {
        let before = self.texts.get(name);
        let now = git.text(name, work);
        let path = git.path.join(name);
        match &now {
            Ok(None) if before.is_none() || matches!(name, "config.worktree" | "gitdir") => return,
            Ok(now) if now.as_ref().map(|text| &text.bytes) == before.map(|text| &text.bytes) => return,
            Ok(Some(text)) => match judge(name, text, before, git, kind, places) {
                git_config::Judgement::Fine => return,
                git_config::Judgement::Without { text: cleaned, keys } => {
                    if git.replace(name, &cleaned, text.rights).is_ok() {
                        return told.undone(format!(
                            "{keys} can make git run a program or lead it elsewhere, so it was taken out of `{}` again; \
                             set it outside of commands",
                            shown(&path)
                        ));
                    }
                }
                git_config::Judgement::Unreadable => {}
            },
            Ok(None) | Err(_) => {}
        }
        // What cannot be judged gives way to what was there.
        if !matches!(now, Ok(None)) {
            git.set_aside(name, told);
        }
        let Some(before) = before else { return };
        match git.replace(name, &before.bytes, before.rights) {
            Ok(()) => told.undone(format!("`{}` is as it was before this command", shown(&path))),
            Err(error) => told.left(format!("`{}` was changed and could not be written again: {error}", shown(&path))),
        }
    }
}

fn judge(
    name: &str,
    text: &Text,
    before: Option<&Text>,
    git: &Folder,
    kind: Kind,
    places: &Places,
) -> git_config::Judgement {
    use git_config::Judgement::{Fine, Unreadable};
    let end = text.bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let line = &text.bytes[..end];
    match (name, kind) {
        ("config" | "config.worktree", _) => {
            let depth = if let Kind::Module { depth } = kind { Some(depth) } else { None };
            git_config::judge(&text.bytes, before.map(|text| text.bytes.as_slice()), depth)
        }
        ("commondir", Kind::Worktree) if line == b"../.." => Fine,
        ("gitdir", Kind::Worktree) if leads_into(line, &git.path, places) => Fine,
        // It means nothing there.
        ("gitdir", Kind::Main | Kind::Module { .. }) => Fine,
        _ => Unreadable,
    }
}

/// Whether a path, which may be a relative one, leads into one of the places.
fn leads_into(path: &[u8], from: &Path, places: &Places) -> bool {
    use std::{os::unix::ffi::OsStrExt, path::Component};
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

fn texts(folder: &Folder, work: &mut Work) -> io::Result<BTreeMap<&'static str, Text>> {
    let mut texts = BTreeMap::new();
    for name in TEXTS.into_iter().filter(|name| !folder.is_closed(name)) {
        texts.extend(folder.text(name, work)?.map(|text| (name, text)));
    }
    Ok(texts)
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
