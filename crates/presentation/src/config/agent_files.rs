//! Agents, skills and commands in Markdown files, read from the folders of Toolstead and of other systems.
//!
//! A file takes effect once the user has trusted its content at its path, if it belongs to a project or is in a folder
//! that tools can write. No file grants permissions: the tools it names only select among the available ones. Changed
//! files are read again at the next use.

mod embedded_commands;
mod front_matter;
mod planning;
mod reading;
mod recipe;
mod search;
mod search_folders;
mod tool_names;

pub use search_folders::AgentFileKind;

use crate::config::{
    layers::folders::StandardFolders,
    tree::{origin::Origin, problem::Problem, source_file::SourceFile},
    trust::{self, TrustList},
};
use async_trait::async_trait;
use reading::ParsedAgentFile;
use search::{AgentFileSearchResult, FileStamp, search};
use search_folders::{SearchFolder, search_folders};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::watch;
use toolstead_domain::{
    AgentCatalogue, AgentDefinition, CommandPromptTemplate, RootPermission, Skill, WorkspaceRoots,
    permission::decision::in_shell,
};

/// Maximum size of a file in bytes.
const MOST_BYTES: usize = 256 << 10;
/// Maximum total size in bytes, counted separately for project files and for the user's own files, so that a project
/// cannot use up the user's share.
const MOST_BYTES_OF_ALL: usize = 16 << 20;

/// Agents, skills and commands defined in files, which are read on demand.
#[derive(Debug)]
pub struct DefinitionFileCatalogue {
    search_folders: Vec<SearchFolder>,
    folders: StandardFolders,
    roots: WorkspaceRoots,
    known: Mutex<Option<CachedListing>>,
    changes: watch::Sender<u64>,
}

/// Cached listing, and the state of the files from which it was read.
#[derive(Debug)]
struct CachedListing {
    found: AgentFileSearchResult,
    trust: Option<FileStamp>,
    listing: Arc<AgentFileListing>,
}

/// Everything that the files define.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentFileListing {
    /// Agents, sorted by name.
    pub agents: Vec<AgentFileListingEntry<AgentDefinition>>,
    /// Skills, sorted by name.
    pub skills: Vec<AgentFileListingEntry<Skill>>,
    /// Commands, sorted by name.
    pub commands: Vec<AgentFileListingEntry<CommandPromptTemplate>>,
    /// Files that take effect once the user trusts them.
    pub waiting: Vec<UntrustedAgentFile>,
    /// Files hidden by another file of the same name.
    pub hidden: Vec<ShadowedFile>,
    /// Errors in single files. The other files still take effect.
    pub problems: Vec<Problem>,
    /// Parts of files that have no effect.
    pub notes: Vec<Problem>,
}

/// An agent, skill or command that may be used.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFileListingEntry<T> {
    /// The agent, skill or command.
    pub item: Arc<T>,
    /// Path of its file.
    pub path: Arc<Path>,
    /// Owner of the file: `project` or `user`.
    pub owner: &'static str,
}

/// A file whose current content the user has not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedAgentFile {
    /// Kind of the file.
    pub kind: AgentFileKind,
    /// Name derived from the path.
    pub name: String,
    /// Path of the file.
    pub path: Arc<Path>,
    /// Folder in which the file was found.
    pub place: PathBuf,
    text: String,
}

/// A file whose name is also defined by a file of higher precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowedFile {
    /// Kind of the file.
    pub kind: AgentFileKind,
    /// Name that both files define.
    pub name: String,
    /// Path of the file.
    pub path: Arc<Path>,
    /// Path of the file that takes precedence.
    pub by: Arc<Path>,
}

impl DefinitionFileCatalogue {
    /// Creates the catalogue for the folders of this configuration. If `is_alone` is set, because `--config` names the
    /// only file, it has no folders.
    pub(super) fn of(folders: &StandardFolders, roots: &WorkspaceRoots, is_alone: bool) -> Self {
        Self {
            search_folders: if is_alone { Vec::new() } else { search_folders(folders) },
            folders: folders.clone(),
            roots: roots.clone(),
            known: Mutex::new(None),
            changes: watch::Sender::new(0),
        }
    }

    /// Returns the current listing. Reads the files again if any of them, or the trust list, has changed. A listing
    /// that differs from the one before is announced to subscribers.
    pub fn listing(&self) -> Arc<AgentFileListing> {
        let found = search(&self.search_folders);
        let trust = self.folders.data.as_deref().and_then(|data| FileStamp::of(&trust::list(data)));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known
            && known.found == found
            && known.trust == trust
        {
            return known.listing.clone();
        }
        let listing = Arc::new(self.read(&found));
        let before = known.replace(CachedListing { found, trust, listing: listing.clone() });
        if before.is_some_and(|before| before.listing != listing) {
            self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        }
        listing
    }

    /// Returns the files that wait for trust at or below this path.
    pub fn waiting_under(&self, path: &Path) -> Vec<UntrustedAgentFile> {
        self.listing().waiting.iter().filter(|file| file.path.starts_with(path)).cloned().collect()
    }

    /// Returns the files at or below this path that take effect because the user trusted them.
    pub fn trusted_under(&self, path: &Path) -> Vec<Arc<Path>> {
        let trusted = TrustList::load(&self.folders).0;
        let listing = self.listing();
        let agents = listing.agents.iter().map(|listed| &listed.path);
        let skills = listing.skills.iter().map(|listed| &listed.path);
        let hidden = listing.hidden.iter().map(|hidden| &hidden.path);
        let all = agents.chain(skills).chain(listing.commands.iter().map(|listed| &listed.path)).chain(hidden);
        all.filter(|file| file.starts_with(path) && trusted.knows(file)).cloned().collect()
    }

    /// Trusts these files with the content that was read.
    ///
    /// # Errors
    /// A [`Problem`] if the list of trusted files cannot be written.
    pub fn trust(&self, files: &[UntrustedAgentFile]) -> Result<(), Problem> {
        trust::set_all(&self.folders, files.iter().map(|file| (&*file.path, Some(file.text.as_str()))))
    }

    /// Revokes the trust in these files.
    ///
    /// # Errors
    /// The errors of [`trust`](Self::trust).
    pub fn forget(&self, files: &[Arc<Path>]) -> Result<(), Problem> {
        trust::set_all(&self.folders, files.iter().map(|file| (&**file, None)))
    }

    /// Returns the remarks to report: the waiting files of each folder, and all problems.
    pub(super) fn notes(&self) -> Vec<Problem> {
        let listing = self.listing();
        let mut waiting: BTreeMap<&Path, Vec<&UntrustedAgentFile>> = BTreeMap::new();
        for file in &listing.waiting {
            waiting.entry(&file.place).or_default().push(file);
        }
        let waiting_notes = waiting.into_iter().map(|(place, files)| {
            let names: Vec<String> = files.iter().take(5).map(|file| format!("`{}`", file.name)).collect();
            let more = files.len() - names.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let (word, verb) = match files.as_slice() {
                [one] => (one.kind.word().to_owned(), "waits"),
                [first, ..] => (format!("{}s", first.kind.word()), "wait"),
                [] => (String::new(), ""),
            };
            let trust = in_shell(&place.display().to_string());
            let message = format!("the {word} {}{more} {verb} for `toolstead config trust {trust}`", names.join(", "));
            Problem::new(Origin::file(place), message)
        });
        waiting_notes.chain(listing.problems.iter().cloned()).collect()
    }

    fn read(&self, found: &AgentFileSearchResult) -> AgentFileListing {
        let (trusted, _) = TrustList::load(&self.folders);
        let mut listing = AgentFileListing { problems: found.problems.clone(), ..AgentFileListing::default() };
        let (mut of_projects, mut own) = (0_usize, 0_usize);
        for one in &found.files {
            let Some(place) = self.search_folders.get(one.place) else { continue };
            let wrong = |message: String| Problem::new(Origin::file(one.path.as_path()), message);
            let file = match SourceFile::read(place.owner, &one.path) {
                Ok(Some(file)) => file,
                Ok(None) => continue,
                Err(problem) => {
                    listing.problems.push(problem);
                    continue;
                }
            };
            if file.leads_to.is_some() {
                listing.problems.push(wrong("is a link or below one, and links in a project are not trusted".into()));
                continue;
            }
            let bytes = if place.owner.is_of_project() { &mut of_projects } else { &mut own };
            if file.text.len() > MOST_BYTES || *bytes + file.text.len() > MOST_BYTES_OF_ALL {
                let message = format!(
                    "does not count: a file has at most {MOST_BYTES} bytes, and all together have at most {MOST_BYTES_OF_ALL}"
                );
                listing.problems.push(wrong(message));
                continue;
            }
            *bytes += file.text.len();
            if self.needs_trust(&file, &trusted) && !trusted.trusts(&file.path, &file.text) {
                listing.waiting.push(UntrustedAgentFile {
                    kind: place.kind,
                    name: one.name.clone(),
                    path: file.path,
                    place: place.folder.clone(),
                    text: file.text,
                });
                continue;
            }
            match reading::read(one, place, &file.path, &file.text, &mut listing.notes) {
                Ok(mut written) => {
                    // Tools may not read a skill's folder if its path is forbidden.
                    if let ParsedAgentFile::Skill(skill) = &mut written
                        && self.roots.is_forbidden(&file.path)
                    {
                        skill.folder = None;
                    }
                    listing.add(written, file.path, place);
                }
                Err(problem) => listing.problems.push(problem),
            }
        }
        listing.agents.sort_by(|one, other| one.item.name.cmp(&other.item.name));
        listing.skills.sort_by(|one, other| one.item.name.cmp(&other.item.name));
        listing.commands.sort_by(|one, other| one.item.name.cmp(&other.item.name));
        listing
    }

    /// Returns `true` if a file needs the user's trust: another author, or a tool, may have written it.
    fn needs_trust(&self, file: &SourceFile, trusted: &TrustList) -> bool {
        let is_written_by_tools = || {
            let root = self.roots.containing(&file.path);
            root.is_some_and(|(_, kind)| kind == RootPermission::Write) && !self.roots.is_forbidden(&file.path)
        };
        file.kind.is_of_project() || trusted.was_missing(&file.path) || is_written_by_tools()
    }
}

impl AgentFileListing {
    fn add(&mut self, written: ParsedAgentFile, path: Arc<Path>, place: &SearchFolder) {
        let owner = reading::owner(place);
        let hidden = match written {
            ParsedAgentFile::Agent(item) => put(&mut self.agents, item, path, owner, |item| &item.name),
            ParsedAgentFile::Skill(item) => put(&mut self.skills, item, path, owner, |item| &item.name),
            ParsedAgentFile::Command(item) => put(&mut self.commands, item, path, owner, |item| &item.name),
        };
        self.hidden.extend(hidden.map(|(name, path, by)| ShadowedFile { kind: place.kind, name, path, by }));
    }

    /// Returns the waiting file of this kind and name.
    pub fn waiting(&self, kind: AgentFileKind, name: &str) -> Option<&UntrustedAgentFile> {
        self.waiting.iter().find(|file| file.kind == kind && file.name == name)
    }
}

/// Adds `item`, unless its name is already listed. In that case returns the name, the path of `item`, and the path of
/// the item listed first.
fn put<T>(
    all: &mut Vec<AgentFileListingEntry<T>>,
    item: T,
    path: Arc<Path>,
    owner: &'static str,
    name: impl Fn(&T) -> &Arc<str>,
) -> Option<(String, Arc<Path>, Arc<Path>)> {
    if let Some(known) = all.iter().find(|known| name(&known.item) == name(&item)) {
        return Some((name(&item).to_string(), path, known.path.clone()));
    }
    all.push(AgentFileListingEntry { item: Arc::new(item), path, owner });
    None
}

#[async_trait]
impl AgentCatalogue for DefinitionFileCatalogue {
    fn agents(&self) -> Vec<Arc<AgentDefinition>> {
        self.listing().agents.iter().map(|listed| listed.item.clone()).collect()
    }

    fn skills(&self) -> Vec<Arc<Skill>> {
        self.listing().skills.iter().map(|listed| listed.item.clone()).collect()
    }

    fn commands(&self) -> Vec<Arc<CommandPromptTemplate>> {
        self.listing().commands.iter().map(|listed| listed.item.clone()).collect()
    }

    async fn changed(&self) {
        let mut changes = self.changes.subscribe();
        // The sender is owned by `self`, so it cannot be closed here.
        let _ = changes.changed().await;
    }
}

#[cfg(test)]
mod tests;
