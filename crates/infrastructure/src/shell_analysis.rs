//! From a bash command line to the accesses that permission rules judge: every simple command in it, and every file
//! that it redirects to (`sandbox.md` 2.1, 3.8, 4.4; `docs/shell-analysis.md`).
//!
//! The analysis is pure. What it cannot prove it calls opaque: no allow rule with a pattern covers that, and every deny
//! rule on commands catches it.

mod assignments;
pub(super) mod builtins;
mod command;
mod folders;
mod inputs;
mod interpreters;
mod limits;
mod operands;
mod programs;
mod redirections;
mod risks;
mod sed;
mod simple_command;
mod subcommands;
mod syntax;
mod walk;
mod word;
mod wrappers;

use self::{folders::Folders, limits::Limits, walk::Walk};
use crate::{
    builtin::{blocking::on_blocking_thread, world::World},
    sandbox::{is_device, is_shown_to_all, workspace::Workspace},
};
use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::{
    access::{Access, Clarity, CommandAccess, PathAccess},
    tool_failure::ToolFailure,
};

/// The longest text that is looked at, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// What a command line would do, as far as it can be told before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command, and what cannot be told, as opaque commands. Never empty together with `touches`.
    pub commands: Vec<CommandAccess>,
    /// The files that it opens or names itself.
    pub touches: Vec<Touch>,
}

/// A file that a command line reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// Absolute. `.` and `..` are kept, because the system and not the text decides where they lead.
    pub path: PathBuf,
    /// It is created, changed or deleted, not only read.
    pub writes: bool,
    /// With everything below.
    pub tree: bool,
    /// What names it.
    pub origin: TouchOrigin,
}

/// What names a file in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchOrigin {
    /// A redirection: the shell itself opens it.
    Redirection {
        /// The place of the command that it stands at, or of one that comes next.
        command: usize,
    },
    /// An operand of `mkdir`, `touch`, `rm`, `rmdir`, `mv` or `cp`: a command that is judged as well changes it, or runs
    /// one that does.
    Operand {
        /// The place of that command among all.
        command: usize,
    },
}

impl Analysis {
    fn opaque(text: &str, reason: &str) -> Self {
        Self { commands: vec![CommandAccess::opaque(text, reason)], touches: Vec::new() }
    }

    /// Whether some of it cannot be told.
    pub fn is_opaque(&self) -> bool {
        self.commands.iter().any(|command| matches!(command.clarity, Clarity::Opaque(_)))
    }
}

/// Whether this option of that interpreter (`node`, `python3`) takes the next word; `None` where that is not known.
pub fn takes_next_word(interpreter: &str, option: &str) -> Option<bool> {
    interpreters::takes_next_word(interpreter, option)
}

/// What this text would do if bash ran it in that folder, an absolute path without links.
pub fn analyse(text: &str, folder: &Path) -> Analysis {
    analyse_inner(text, Folders::start(folder), Limits::default())
}

/// What these bytes would do. Bytes that are no text are opaque.
pub fn analyse_bytes(text: &[u8], folder: &Path) -> Analysis {
    match std::str::from_utf8(text) {
        Ok(text) => analyse(text, folder),
        Err(_) => Analysis::opaque(&String::from_utf8_lossy(text), "it is not UTF-8 text"),
    }
}

fn analyse_inner(text: &str, folders: Folders, limits: Limits) -> Analysis {
    if text.len() > MAX_TEXT {
        limits.spend();
        return Analysis::opaque(shown(text), "it is longer than 64 KiB");
    }
    if limits.exhausted() {
        limits.spend();
        return Analysis::opaque(text, "too many shells start each other");
    }
    if !limits.take_bytes(text.len()) {
        return Analysis::opaque(shown(text), "the texts within it are too long together");
    }
    if let Some(reason) = unreadable(text) {
        return Analysis::opaque(text, reason);
    }
    let Some(tree) = syntax::parse(text, &limits) else {
        return Analysis::opaque(text, "it takes too long to read");
    };
    let analysis = Walk::new(text, folders, limits).run(tree.root_node());
    if analysis.commands.is_empty() && analysis.touches.is_empty() {
        return Analysis::opaque(text, "there is no command in it");
    }
    analysis
}

/// Characters that bash and a reader take for different things.
fn unreadable(text: &str) -> Option<&'static str> {
    text.chars().find_map(|character| match character {
        '\n' | '\t' => None,
        '\r' => Some("it holds a carriage return"),
        '\0' => Some("it holds a NUL character"),
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
            Some("it holds invisible characters")
        }
        _ if character.is_control() => Some("it holds control characters"),
        _ if !character.is_ascii() && character.is_whitespace() => {
            Some("it holds blanks that the shell does not split at")
        }
        _ => None,
    })
}

/// The beginning of a text, for messages.
fn shown(text: &str) -> &str {
    const SHOWN: usize = 60;
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

/// What a call that runs this text in that folder (absolute, without links) would touch. Looks at links; blocks.
///
/// Redirections are accesses of their own, unless they reach nothing but what every run may reach. Those, and the files
/// that `rm`, `cp` and their like name, belong to the command that names them.
pub fn accesses(workspace: &Workspace, text: &str, folder: &Path) -> Vec<Access> {
    let Analysis { mut commands, touches } = analyse(text, folder);
    let whole: Arc<str> = text.into();
    let mut opened = Vec::new();
    let mut files = vec![Files::default(); commands.len()];
    let (mut nowhere, mut of_no_command) = (Vec::new(), Files::default());
    for touch in touches {
        match judged_path(workspace, &touch.path) {
            Some(path) => {
                let private = names_of_private(workspace, &path);
                let is_free = !private.is_empty() || is_of_the_system(workspace, &path, touch.writes);
                let access = |path: PathAccess| {
                    let path = if touch.tree { path.whole_tree() } else { path };
                    if touch.writes { Access::WritePath(path) } else { Access::ReadPath(path) }
                };
                let named = [access(path)].into_iter().chain(private.into_iter().map(access));
                match touch.origin {
                    TouchOrigin::Redirection { .. } if !is_free => opened.extend(named),
                    TouchOrigin::Redirection { command } | TouchOrigin::Operand { command } => {
                        let last = files.len().saturating_sub(1);
                        let files = files.get_mut(command.min(last)).unwrap_or(&mut of_no_command);
                        if is_free { files.free.extend(named) } else { files.operands.extend(named) }
                    }
                }
            }
            None => nowhere.push(CommandAccess {
                text: touch.path.to_string_lossy().into(),
                ..CommandAccess::opaque(whole.clone(), "where this path leads cannot be told")
            }),
        }
    }
    if of_no_command != Files::default() {
        // It opens files and runs nothing.
        let nothing = CommandAccess::program::<&str>([]);
        commands.push(CommandAccess { whole: whole.clone(), text: whole.clone(), ..nothing });
        files.push(of_no_command);
    }
    let once = |files: Vec<Access>| {
        let mut known = HashSet::new();
        files.into_iter().filter(|file| known.insert(file.clone())).collect()
    };
    for (command, Files { operands, free }) in commands.iter_mut().zip(files) {
        (command.operands, command.free) = (once(operands), once(free));
    }
    let mut known = HashSet::new();
    let accesses = commands.into_iter().chain(nowhere).map(Access::RunCommand).chain(opened);
    accesses.filter(|access| known.insert(access.clone())).collect()
}

/// The files of one command.
#[derive(Debug, Default, Clone, PartialEq)]
struct Files {
    operands: Vec<Access>,
    free: Vec<Access>,
}

/// The names of the folder for temporary files that commands have to themselves.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// All names of what is in the `/tmp` that commands have to themselves, so that a rule on one of them holds for each; none
/// where it is not there, or in a folder of it that leads to a root.
fn names_of_private(workspace: &Workspace, path: &PathAccess) -> Vec<PathAccess> {
    let is_private = path.forms().all(|form| {
        let first = PRIVATE.iter().find_map(|folder| form.strip_prefix(folder).ok()?.iter().next());
        first.is_some_and(|first| !PRIVATE.iter().any(|folder| workspace.meets(&Path::new(folder).join(first))))
    });
    let rest = PRIVATE.iter().find_map(|folder| path.lexical.strip_prefix(folder).ok()).filter(|_| is_private);
    rest.map(|rest| PRIVATE.iter().map(|folder| PathAccess::plain(Path::new(folder).join(rest))).collect())
        .unwrap_or_default()
}

/// Whether every run may do this with a file of the system, and it leads to none of a root.
fn is_of_the_system(workspace: &Workspace, path: &PathAccess, writes: bool) -> bool {
    let is_free = if writes { is_device } else { is_shown_to_all };
    is_free(&path.lexical) && !path.forms().any(|form| workspace.meets(form))
}

/// As [`accesses`], without blocking.
///
/// # Errors
/// When the work failed inside.
pub async fn accesses_of(world: &World, text: String, folder: PathBuf) -> Result<Vec<Access>, ToolFailure> {
    let workspace = world.workspace.clone();
    on_blocking_thread(move || Ok(accesses(&workspace, &text, &folder))).await
}

/// Both forms of a path as the shell opens it. The workspace works `..` out on the text and the system does not, so in
/// front of `..` there must be no link.
fn judged_path(workspace: &Workspace, path: &Path) -> Option<PathAccess> {
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
