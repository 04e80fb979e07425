//! The workspace as one call may use it.

use crate::sandbox::workspace::{
    Workspace,
    facts::FileKind,
    found::Found,
    path_error::PathError,
    resolve::{self, ATTEMPTS},
    stop::Stop,
    walk::{self, Visitor, WalkLimits, Walked},
    write::WriteTarget,
};
use std::{
    io,
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

    /// The workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Whether the call may read there.
    pub fn may_read(&self, path: &PathAccess) -> bool {
        self.grant.permits(&Access::ReadPath(path.clone()))
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

    fn find_lexical(&self, lexical: &Path) -> Result<Found, PathError> {
        for _ in 0..ATTEMPTS {
            let handle = self.workspace.open_path(lexical)?;
            let real = match resolve::real_path(&handle) {
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

    /// Walks a folder, the shallow parts first. Links are met and never followed, other file systems are left alone,
    /// and what the grant does not permit to be read is passed over and counted.
    ///
    /// # Errors
    /// [`PathError::NotAFolder`], or the system's when the folder itself cannot be read.
    pub fn walk<V: Visitor>(
        &self,
        folder: &Found,
        limits: WalkLimits,
        above: V::Context,
        visitor: &mut V,
    ) -> Result<Walked, PathError> {
        folder.expect_folder()?;
        walk::walk(self, folder, limits, above, visitor)
    }

    /// Takes hold of the place that a path names, to write there. Other calls that want to write there wait.
    ///
    /// # Errors
    /// [`PathError::NotAFile`], [`PathError::Outside`], [`PathError::Refused`], [`PathError::Busy`].
    pub fn write_target(&self, text: &str) -> Result<WriteTarget<'_>, PathError> {
        let lexical = self.workspace.lexical(text)?;
        for _ in 0..ATTEMPTS {
            if let Some(target) = WriteTarget::take(self, &lexical)? {
                return Ok(target);
            }
        }
        Err(PathError::Changed { path: lexical })
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
        let mut names = Names::default();
        let limits = WalkLimits { entries: NAMES_LOOKED_AT, depth: 1 };
        // The message is as good without the names.
        let _ = self.walk(&nearest, limits, (), &mut names);
        let mut similar = Vec::new();
        while similar.len() < SIMILAR_NAMES
            && let Some(name) = nearest_name(&missing, names.0.iter().map(String::as_str)).map(str::to_owned)
        {
            names.0.retain(|other| *other != name);
            similar.push(name);
        }
        let is_parent = path.parent() == Some(&folder);
        PathError::NotFound { path, nearest_folder: (!is_parent).then_some(folder), similar }
    }
}

#[derive(Default)]
struct Names(Vec<String>);

impl Visitor for Names {
    type Context = ();

    fn meet(&mut self, entry: &walk::Entry<'_>, (): &()) -> walk::Visit {
        self.0.push(entry.name().to_string_lossy().into_owned());
        walk::Visit::Continue
    }
}
