//! The workspace with the permissions of one call.

use crate::sandbox::{
    process_wide::PROCESS,
    workspace::{
        Workspace,
        facts::FileKind,
        file_handle::FileHandle,
        open_file_limit::OpenFilePermit,
        path_error::PathError,
        resolve::ATTEMPTS,
        stop::StopCondition,
        walk::{self, Visitor, WalkOptions, WalkOrder, WalkSummary},
    },
};
use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::{Access, AccessPath, CallPermissions, tool_input_schema::nearest_name};

/// Maximum number of names in a folder that are compared with a missing one.
const NAMES_LOOKED_AT: usize = 1000;
/// Maximum number of similar names in a message.
const SIMILAR_NAMES: usize = 3;

/// The workspace with the grant and the deadline of one call. All functions block.
#[derive(Debug, Clone)]
pub struct GrantedWorkspace {
    pub(super) workspace: Arc<Workspace>,
    pub(super) grant: CallPermissions,
    stop: StopCondition,
}

impl GrantedWorkspace {
    /// Creates the workspace of a call with this grant and deadline.
    pub fn new(workspace: Arc<Workspace>, grant: CallPermissions, stop: StopCondition) -> Self {
        Self { workspace, grant, stop }
    }

    /// Returns the workspace with this deadline instead of its own.
    #[must_use]
    pub fn with_stop(&self, stop: StopCondition) -> Self {
        Self { stop, ..self.clone() }
    }

    /// Returns the deadline of the call.
    pub fn stop(&self) -> &StopCondition {
        &self.stop
    }

    /// Returns the permissions of the call.
    pub fn grant(&self) -> &CallPermissions {
        &self.grant
    }

    /// Returns the workspace without the permissions and the deadline of the call.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Returns at most `limit` bytes from the beginning of a file at a real path, or `None` if there is no readable
    /// file. No link is followed.
    pub fn beginning_of(&self, real: &Path, limit: u64) -> Option<Vec<u8>> {
        let found = self.find_lexical(real).ok().filter(|found| found.path().real == real)?;
        let mut content = Vec::new();
        found.open_file().ok()?.take(limit).read_to_end(&mut content).ok()?;
        Some(content)
    }

    /// Returns `true` if there is a file of any kind at a path that the call may read.
    pub fn holds(&self, path: &Path) -> bool {
        self.find_lexical(path).is_ok()
    }

    /// Checks that the call may read this path.
    ///
    /// # Errors
    /// [`PathError::Refused`].
    pub fn permit_reading(&self, path: &AccessPath) -> Result<(), PathError> {
        self.permitted(Access::ReadPath(path.clone()))
    }

    /// Checks that the call may write to this path.
    ///
    /// # Errors
    /// [`PathError::Refused`].
    pub fn permit_writing(&self, path: &AccessPath) -> Result<(), PathError> {
        self.permitted(Access::WritePath(path.clone()))
    }

    /// Returns the innermost root that contains a real path.
    pub fn root_of(&self, real: &Path) -> Option<&Path> {
        self.grant.roots().containing(real).map(|(root, _)| root)
    }

    /// Finds the file at a path, and checks the permissions for its real path.
    ///
    /// # Errors
    /// [`PathError::NotFound`] with similar names, [`PathError::Outside`], [`PathError::Refused`] if no rule
    /// permits reading it.
    pub fn find(&self, text: &str) -> Result<FileHandle, PathError> {
        let lexical = self.workspace.lexical(text)?;
        self.find_lexical(&lexical).map_err(|error| match error {
            PathError::NotFound { path, .. } => self.not_found(path),
            other => other,
        })
    }

    /// Finds the file at a lexical path, for example of an entry of a walk. Does not search similar names.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn find_lexical(&self, lexical: &Path) -> Result<FileHandle, PathError> {
        for _ in 0..ATTEMPTS {
            let handle = self.workspace.open_path(lexical)?;
            let real = match self.workspace.real_path_of(lexical, &handle) {
                Ok(real) => real,
                // The file was replaced during the check. The file that has the name now is meant.
                Err(error) if error.kind() == io::ErrorKind::StaleNetworkFileHandle => continue,
                Err(error) => return Err(PathError::io("look at", lexical, error)),
            };
            let path = AccessPath { lexical: lexical.to_path_buf(), real, tree: false };
            self.permitted(Access::ReadPath(path.clone()))?;
            if let Some(found) = FileHandle::of(path, handle)? {
                return Ok(found);
            }
        }
        Err(PathError::not_found(lexical))
    }

    /// Walks a folder. Symbolic links are visited but not followed, other file systems are skipped, and entries that
    /// the grant does not permit to read are skipped and counted. Returns the summary, and the results of each thread.
    /// The visitor gets `above` as the context above the folder.
    ///
    /// # Errors
    /// [`PathError::NotAFolder`], or the error of the system if the folder itself cannot be read.
    pub fn walk<V: Visitor>(
        &self,
        folder: &FileHandle,
        limits: WalkOptions,
        above: V::Context,
        visitor: &V,
    ) -> Result<(WalkSummary, Vec<V::Worker>), PathError> {
        folder.expect_folder()?;
        walk::walk(&self.grant, &self.stop, folder, limits, above, visitor)
    }

    /// Waits until this number of files may be open for changes. A call must request all of its files at once, before
    /// it opens the first one.
    ///
    /// # Errors
    /// [`PathError::Crowded`].
    pub fn acquire_file_permit(&self, places: usize) -> Result<OpenFilePermit, PathError> {
        PROCESS.open_file_limit.take(places, &self.stop).ok_or(PathError::Crowded)
    }

    pub(super) fn permitted(&self, access: Access) -> Result<(), PathError> {
        if self.grant.permits(&access) { Ok(()) } else { Err(PathError::Refused(Box::new(access))) }
    }

    /// Returns the error for a missing path, with similar names if the call may read them.
    fn not_found(&self, path: PathBuf) -> PathError {
        let nearest = path.ancestors().skip(1).find_map(|folder| self.find_lexical(folder).ok());
        let Some(nearest) = nearest.filter(|found| found.facts().kind == FileKind::Folder) else {
            return PathError::not_found(&path);
        };
        let folder = nearest.path().lexical.clone();
        let missing = path.strip_prefix(&folder).ok().and_then(|rest| rest.components().next());
        let missing = missing.map(|name| name.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
        let limits = WalkOptions { entries: NAMES_LOOKED_AT, depth: 1, order: WalkOrder::ShallowFirst };
        // The error is returned without similar names if the walk fails.
        let names =
            self.walk(&nearest, limits, (), &EntryNameCollector).map(|(_, names)| names.concat()).unwrap_or_default();
        let similar = similar_names(&missing, names);
        let is_parent = path.parent() == Some(&folder);
        PathError::NotFound { path, nearest_folder: (!is_parent).then_some(folder), similar }
    }
}

/// Returns the names that are most similar to a missing one, at most three, best first.
pub fn similar_names(missing: &str, mut names: Vec<String>) -> Vec<String> {
    let mut similar = Vec::new();
    while similar.len() < SIMILAR_NAMES
        && let Some(name) = nearest_name(missing, names.iter().map(String::as_str)).map(str::to_owned)
    {
        names.retain(|other| *other != name);
        similar.push(name);
    }
    similar
}

struct EntryNameCollector;

impl Visitor for EntryNameCollector {
    type Context = ();
    type Worker = Vec<String>;

    fn worker(&self) -> Vec<String> {
        Vec::new()
    }

    fn visit_entry(&self, names: &mut Vec<String>, entry: &walk::WalkEntry<'_>, (): &()) -> walk::WalkControl {
        names.push(entry.name().to_string_lossy().into_owned());
        walk::WalkControl::Continue
    }
}
