//! The instruction files of the user and of the workspace.

use super::{
    instruction_reader::{InstructionFileFinder, InstructionReader, trusting},
    shown_name::shown_name,
};
use crate::config::{
    Config,
    trust::instruction_folders::{INSTRUCTION_FILES, InstructionFolders, TrustedFolders, UserInstructionFolder},
};
use serde_json::Map;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use toolstead_domain::{
    CallPermissions, Category, DeliveredInstructions, PermissionPolicy, Tool, ToolName, ToolSource, WorkspaceRoots,
};
use toolstead_infrastructure::sandbox::workspace::{
    OpenWorkspaceError, UserPathAliases, Workspace,
    facts::FileKind,
    granted_workspace::GrantedWorkspace,
    stop::StopCondition,
    walk::{Visitor, WalkControl, WalkEntry, WalkOptions, WalkOrder},
};

/// Maximum time to read all files.
const READING: Duration = Duration::from_secs(5);
/// Maximum number of entries that are examined for instruction files.
const MOST_ENTRIES: usize = 20_000;
/// Maximum depth of folders that are examined for instruction files.
const MOST_DEPTH: usize = 8;
/// Folders that are not examined for instruction files.
const NOT_EXAMINED: [&str; 3] = [".git", "node_modules", "target"];
/// Maximum number of folders whose instructions are searched for one answer of a model.
const MOST_FOLDERS: usize = 256;
/// Tool whose permissions decide what may be read.
const READING_TOOL: &str = "read_file";

/// The instruction files of a configuration, opened through the guard of the workspace.
#[derive(Debug)]
pub struct InstructionFileLoader {
    folders: InstructionFolders,
    workspace: Arc<Workspace>,
    policy: Arc<PermissionPolicy>,
    tool: Arc<Tool>,
}

/// An instruction file, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedInstructionFile {
    /// Path as it is shown.
    pub file: String,
    /// Real path.
    pub path: PathBuf,
    /// State of the file.
    pub state: InstructionFileStatus,
}

/// State of an instruction file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstructionFileStatus {
    /// The system prompt contains it.
    InSystemPrompt,
    /// Agents receive it once a call touches a file in its folder or below.
    OnTouch,
    /// It is not read because this folder is not trusted.
    Untrusted(PathBuf),
    /// It is not read, for this reason.
    Refused(String),
}

impl InstructionFileLoader {
    /// Opens the folders of this configuration. Blocks.
    ///
    /// # Errors
    /// [`OpenWorkspaceError`] if a root cannot be opened.
    pub fn open(config: &Config) -> Result<Self, OpenWorkspaceError> {
        Ok(Self::new(config, opened(&config.roots, config.folders.home.clone())?))
    }

    /// Creates the files of this configuration in an opened workspace with the same roots.
    pub fn new(config: &Config, workspace: Arc<Workspace>) -> Self {
        let (folders, policy) = (config.instruction_folders(), Arc::new(config.policy()));
        Self { folders, workspace, policy, tool: reading_tool() }
    }

    /// Returns the reason why agents read no instruction files; `None` if they may read them.
    pub fn disabled(&self) -> Option<&'static str> {
        self.folders.disabled()
    }

    /// Returns the opened workspace, with the permissions of a tool that reads.
    pub(super) fn granted(&self) -> GrantedWorkspace {
        self.granted_in(self.workspace.clone(), self.policy.clone())
    }

    /// Returns `true` if folders of the workspace may have instructions of their own.
    pub(super) fn has_trusted_folders(&self) -> bool {
        self.disabled().is_none() && self.folders.trusted().meet(self.policy.workspace())
    }

    /// Reads the instructions for the system prompt: those of the user, then those of the workspace. Blocks.
    pub(super) fn of_system_prompt(&self) -> InstructionReader {
        let mut reader = InstructionReader::default();
        if self.disabled().is_some() {
            return reader;
        }
        let trusted = self.folders.trusted();
        for own in self.folders.own() {
            let read_before = reader.sections.len() + reader.notes.len();
            self.with_own(&own, &trusted, |source| reader.read_folder(source, &own.path, own.names, |_| false));
            if reader.sections.len() + reader.notes.len() > read_before {
                break;
            }
        }
        if let Some(start) = self.workspace.start() {
            self.with_workspace(&trusted, |source| reader.read_folder(source, start, &INSTRUCTION_FILES, |_| false));
        }
        reader
    }

    /// Reads the instructions of the folders that contain these paths, the outermost first, without those of the system
    /// prompt and those that were delivered before. Blocks.
    pub(super) fn for_paths(&self, paths: &[PathBuf], delivered: &DeliveredInstructions) -> InstructionReader {
        let mut folders = BTreeSet::new();
        let roots = self.policy.workspace();
        for path in paths {
            let Some((root, _)) = roots.containing(path) else { continue };
            folders.extend(path.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_path_buf));
        }
        if let Some(start) = self.workspace.start() {
            folders.remove(start);
        }
        let mut reader = InstructionReader::default();
        if self.disabled().is_some() {
            return reader;
        }
        let trusted = self.folders.trusted();
        self.with_workspace(&trusted, |source| {
            let is_new = |folder: &PathBuf| match source.find_in(folder, &INSTRUCTION_FILES) {
                (Some(found), _) => !delivered.files.contains(&(source.shown)(&found.path().real)),
                (None, refused) => !refused.is_empty(),
            };
            let new: Vec<PathBuf> = folders.into_iter().take(MOST_FOLDERS).filter(is_new).collect();
            if new.is_empty() {
                return;
            }
            let InstructionReader { read, bytes, .. } = self.of_system_prompt();
            reader = InstructionReader { read, bytes: bytes + delivered.bytes, ..InstructionReader::default() };
            for folder in &new {
                reader.read_folder(source, folder, &INSTRUCTION_FILES, |file| delivered.files.contains(file));
            }
        });
        // A file may include one that was delivered before.
        reader.sections.retain(|section| !delivered.files.contains(&section.file));
        reader
    }

    /// Lists the instruction files of the user and of the workspace without reading them. Blocks.
    pub fn list(&self) -> Vec<ListedInstructionFile> {
        let trusted = self.folders.trusted();
        let mut listed = Vec::new();
        for own in self.folders.own() {
            let before = listed.len();
            self.with_own(&own, &trusted, |source| {
                list_folder(source, &own.path, own.names, &InstructionFileStatus::InSystemPrompt, &mut listed);
            });
            if listed.len() > before {
                break;
            }
        }
        let Some(start) = self.workspace.start() else { return listed };
        self.with_workspace(&trusted, |source| {
            list_folder(source, start, &INSTRUCTION_FILES, &InstructionFileStatus::InSystemPrompt, &mut listed);
            let roots = self.policy.workspace().all();
            let folders: BTreeSet<PathBuf> = roots.flat_map(|root| folders_with_files(source, root)).collect();
            for folder in folders.iter().filter(|folder| folder.as_path() != start) {
                list_folder(source, folder, &INSTRUCTION_FILES, &InstructionFileStatus::OnTouch, &mut listed);
            }
        });
        listed
    }

    fn granted_in(&self, workspace: Arc<Workspace>, policy: Arc<PermissionPolicy>) -> GrantedWorkspace {
        let grant = CallPermissions::new(policy, self.tool.clone(), Vec::new());
        let now = Instant::now();
        GrantedWorkspace::new(workspace, grant, StopCondition::at(now.checked_add(READING).unwrap_or(now)))
    }

    fn with_workspace(&self, trusted: &TrustedFolders, work: impl FnOnce(&InstructionFileFinder<'_>)) {
        work(&InstructionFileFinder {
            granted: self.granted(),
            is_trusted: &|path| trusted.contain(path),
            shown: &|path| shown_name(&self.workspace.shown(path)),
            home: self.folders.home(),
        });
    }

    /// Calls `work` with a folder of the user as the only root. Does nothing if the folder does not exist.
    fn with_own(
        &self,
        own: &UserInstructionFolder,
        trusted: &TrustedFolders,
        work: impl FnOnce(&InstructionFileFinder<'_>),
    ) {
        let roots = WorkspaceRoots { read_only: vec![own.path.clone()], ..WorkspaceRoots::default() };
        let Ok(workspace) = opened(&roots, None) else { return };
        let policy = PermissionPolicy { roots, ..PermissionPolicy::default() };
        let home = self.folders.home();
        let shown = |path: &Path| match home.and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) => format!("~/{}", shown_name(&below.to_string_lossy())),
            None => shown_name(&path.to_string_lossy()),
        };
        work(&InstructionFileFinder {
            granted: self.granted_in(workspace, Arc::new(policy)),
            is_trusted: &|path| !own.needs_trust || trusted.contain(path),
            shown: &shown,
            home,
        });
    }
}

impl ListedInstructionFile {
    /// Returns the file and its state on one line.
    pub fn describe(&self) -> String {
        let state = match &self.state {
            InstructionFileStatus::InSystemPrompt => "in the system prompt".to_owned(),
            InstructionFileStatus::OnTouch => "sent once a call touches a file in its folder or below".to_owned(),
            InstructionFileStatus::Untrusted(folder) => {
                format!("not read: its folder is not trusted; to trust it, run `{}`", trusting(folder))
            }
            InstructionFileStatus::Refused(reason) => format!("not read: {reason}"),
        };
        format!("{}: {state}", self.file)
    }
}

/// Adds the instruction file of a folder to the list, and those before it that may not be read.
fn list_folder(
    source: &InstructionFileFinder<'_>,
    folder: &Path,
    names: &[&str],
    state: &InstructionFileStatus,
    listed: &mut Vec<ListedInstructionFile>,
) {
    let (found, refused) = source.find_in(folder, names);
    listed.extend(refused.into_iter().map(|(path, reason)| ListedInstructionFile {
        file: (source.shown)(&path),
        path,
        state: InstructionFileStatus::Refused(reason),
    }));
    listed.extend(found.map(|found| {
        let path = found.path().real.clone();
        let state = match (source.is_trusted)(&path) {
            true => state.clone(),
            false => InstructionFileStatus::Untrusted(folder.to_path_buf()),
        };
        ListedInstructionFile { file: (source.shown)(&path), path, state }
    }));
}

/// Returns the folders at and below a root that contain instruction files, as far as the limits permit.
fn folders_with_files(source: &InstructionFileFinder<'_>, root: &Path) -> Vec<PathBuf> {
    let limits = WalkOptions { entries: MOST_ENTRIES, depth: MOST_DEPTH, order: WalkOrder::ShallowFirst };
    let Ok(found) = source.granted.find_lexical(root) else { return Vec::new() };
    let walked = source.granted.walk(&found, limits, (), &InstructionFolderVisitor);
    walked.map(|(_, folders)| folders.concat()).unwrap_or_default()
}

struct InstructionFolderVisitor;

impl Visitor for InstructionFolderVisitor {
    type Context = ();
    type Worker = Vec<PathBuf>;

    fn worker(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn visit_entry(&self, folders: &mut Vec<PathBuf>, entry: &WalkEntry<'_>, (): &()) -> WalkControl {
        if entry.kind() == FileKind::Folder {
            return if NOT_EXAMINED.iter().any(|name| entry.name() == *name) {
                WalkControl::Skip
            } else {
                WalkControl::Continue
            };
        }
        if INSTRUCTION_FILES.iter().any(|name| entry.name() == *name) {
            folders.extend(entry.path().real.parent().map(Path::to_path_buf));
        }
        WalkControl::Continue
    }
}

/// Opens the roots for reading only.
fn opened(roots: &WorkspaceRoots, home: Option<PathBuf>) -> Result<Arc<Workspace>, OpenWorkspaceError> {
    if roots.start().is_none() {
        return Ok(Arc::new(Workspace::closed()));
    }
    let roots = WorkspaceRoots { read_only: roots.all().map(Path::to_path_buf).collect(), ..WorkspaceRoots::default() };
    Workspace::open(&roots, UserPathAliases { home, aliases: Vec::new() }).map(Arc::new)
}

/// Returns the definition of the tool whose permissions decide what may be read.
#[expect(clippy::expect_used, reason = "the name is a constant")]
fn reading_tool() -> Arc<Tool> {
    let name = ToolName::parse(READING_TOOL).expect("the name of a built-in tool is valid");
    Arc::new(Tool::new(name, Map::new(), Category::File, ToolSource::BuiltIn))
}
