//! The workspace as one call may use it.

use crate::sandbox::{
    process_wide::PROCESS,
    workspace::{
        Workspace,
        facts::FileKind,
        found::Found,
        path_error::PathError,
        resolve::ATTEMPTS,
        seats::Seats,
        stop::Stop,
        walk::{self, Visitor, WalkLimits, WalkOrder, Walked},
    },
};
use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::{
    access::{Access, PathAccess},
    permission::grant::Grant,
    tool_input_schema::nearest_name,
};

/// As many names of a folder are looked at for one that is like a missing one.
const NAMES_LOOKED_AT: usize = 1000;
/// As many similar names are told.
const SIMILAR_NAMES: usize = 3;

/// The workspace under the grant and the deadline of one call. Everything here blocks.
#[derive(Debug, Clone)]
pub struct GrantedWorkspace {
    pub(super) workspace: Arc<Workspace>,
    pub(super) grant: Grant,
    stop: Stop,
}

impl GrantedWorkspace {
    /// The workspace for a call with this grant, until then.
    pub fn new(workspace: Arc<Workspace>, grant: Grant, stop: Stop) -> Self {
        Self { workspace, grant, stop }
    }

    /// The same with less time.
    #[must_use]
    pub fn with_stop(&self, stop: Stop) -> Self {
        Self { stop, ..self.clone() }
    }

    /// When to end.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// What the call may touch.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The beginning of a file at a real path, at most `limit` bytes; `None` if there is none that may be read. No link
    /// is followed.
    pub fn beginning_of(&self, real: &Path, limit: u64) -> Option<Vec<u8>> {
        let found = self.find_lexical(real).ok().filter(|found| found.path().real == real)?;
        let mut content = Vec::new();
        found.open_file().ok()?.take(limit).read_to_end(&mut content).ok()?;
        Some(content)
    }

    /// Whether something that may be read is at a path, whatever it is.
    pub fn holds(&self, path: &Path) -> bool {
        self.find_lexical(path).is_ok()
    }

    /// Makes sure that the call may read there.
    ///
    /// # Errors
    /// [`PathError::Refused`].
    pub fn permit_reading(&self, path: &PathAccess) -> Result<(), PathError> {
        self.permitted(Access::ReadPath(path.clone()))
    }

    /// Makes sure that the call may write there.
    ///
    /// # Errors
    /// [`PathError::Refused`].
    pub fn permit_writing(&self, path: &PathAccess) -> Result<(), PathError> {
        self.permitted(Access::WritePath(path.clone()))
    }

    /// The innermost root that holds a real path.
    pub fn root_of(&self, real: &Path) -> Option<&Path> {
        self.grant.roots().containing(real).map(|(root, _)| root)
    }

    /// Finds what the path names, judged by where it really is.
    ///
    /// # Errors
    /// [`PathError::NotFound`] with similar names, [`PathError::Outside`], [`PathError::Refused`] when no rule permits
    /// reading there.
    pub fn find(&self, text: &str) -> Result<Found, PathError> {
        let lexical = self.workspace.lexical(text)?;
        self.find_lexical(&lexical).map_err(|error| match error {
            PathError::NotFound { path, .. } => self.not_found(path),
            other => other,
        })
    }

    /// As [`find`](Self::find), of a lexical path that is known already, as a walk tells it; without similar names.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_lexical(&self, lexical: &Path) -> Result<Found, PathError> {
        for _ in 0..ATTEMPTS {
            let handle = self.workspace.open_path(lexical)?;
            let real = match self.workspace.real_path_of(lexical, &handle) {
                Ok(real) => real,
                // It was replaced while it was looked at: what has the name now is meant.
                Err(error) if error.kind() == io::ErrorKind::StaleNetworkFileHandle => continue,
                Err(error) => return Err(PathError::io("look at", lexical, error)),
            };
            let path = PathAccess { lexical: lexical.to_path_buf(), real, tree: false };
            self.permitted(Access::ReadPath(path.clone()))?;
            if let Some(found) = Found::of(path, handle)? {
                return Ok(found);
            }
        }
        Err(PathError::not_found(lexical))
    }

    /// Walks a folder. Links are met and never followed, other file systems are left alone, and what the grant does not
    /// permit to be read is passed over and counted. Returns what each of the visitor's workers gathered.
    ///
    /// # Errors
    /// [`PathError::NotAFolder`], or the system's when the folder itself cannot be read.
    pub fn walk<V: Visitor>(
        &self,
        folder: &Found,
        limits: WalkLimits,
        above: V::Context,
        visitor: &V,
    ) -> Result<(Walked, Vec<V::Worker>), PathError> {
        folder.expect_folder()?;
        walk::walk(&self.grant, &self.stop, folder, limits, above, visitor)
    }

    /// Waits for leave to take hold of so many places, which is asked for once and before the first of them.
    ///
    /// # Errors
    /// [`PathError::Crowded`].
    pub fn seats(&self, places: usize) -> Result<Seats, PathError> {
        PROCESS.file_seats.take(places, &self.stop).ok_or(PathError::Crowded)
    }

    pub(super) fn permitted(&self, access: Access) -> Result<(), PathError> {
        if self.grant.permits(&access) { Ok(()) } else { Err(PathError::Refused(Box::new(access))) }
    }

    /// Looks around for what was meant, as far as the call may.
    fn not_found(&self, path: PathBuf) -> PathError {
        let nearest = path.ancestors().skip(1).find_map(|folder| self.find_lexical(folder).ok());
        let Some(nearest) = nearest.filter(|found| found.facts().kind == FileKind::Folder) else {
            return PathError::not_found(&path);
        };
        let folder = nearest.path().lexical.clone();
        let missing = path.strip_prefix(&folder).ok().and_then(|rest| rest.components().next());
        let missing = missing.map(|name| name.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
        let limits = WalkLimits { entries: NAMES_LOOKED_AT, depth: 1, order: WalkOrder::ShallowFirst };
        // The message is as good without the names.
        let names = self.walk(&nearest, limits, (), &Names).map(|(_, names)| names.concat()).unwrap_or_default();
        let similar = similar_names(&missing, names);
        let is_parent = path.parent() == Some(&folder);
        PathError::NotFound { path, nearest_folder: (!is_parent).then_some(folder), similar }
    }
}

/// The names that are most like a missing one, best first.
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

struct Names;

impl Visitor for Names {
    type Context = ();
    type Worker = Vec<String>;

    fn worker(&self) -> Vec<String> {
        Vec::new()
    }

    fn meet(&self, names: &mut Vec<String>, entry: &walk::Entry<'_>, (): &()) -> walk::Visit {
        names.push(entry.name().to_string_lossy().into_owned());
        walk::Visit::Continue
    }
}
