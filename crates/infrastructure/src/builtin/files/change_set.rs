//! Changes of one or several files that are all made, or none of them.

mod drafts;
pub(crate) mod recording;

use crate::{
    builtin::files::{
        change_set::{
            drafts::{ApplyFailure, FileChangeTransaction},
            recording::ChangeRecorder,
        },
        etag::digest_of,
    },
    sandbox::workspace::{
        draft::FileChangeDraft,
        granted_workspace::GrantedWorkspace,
        open_file_limit::OpenFilePermit,
        path_error::PathError,
        rights::LostRights,
        write::{WriteOptions, WriteResult, WriteTarget},
    },
};
use std::{borrow::Cow, cmp::Reverse, collections::BTreeMap, io, path::PathBuf};
use toolstead_domain::{
    AccessPath, ContentDigest, FileChange, FileState, StoredBlob, ToolFailure, error_kind::ErrorKind,
};

/// Maximum number of files in a [`ChangeSet`].
pub(crate) const MAX_FILES: usize = 100;
/// Maximum number of attempts to lock files whose folders are being moved.
const ATTEMPTS: usize = 8;

/// Changes of one or several files that are all made, or none of them.
///
/// The files are locked from [`take`](Self::take) on, so that their contents are unchanged when the changes are made.
#[derive(Debug)]
pub(crate) struct ChangeSet<'a> {
    files: &'a GrantedWorkspace,
    names: Vec<NamedPath>,
    locked: Vec<LockedFile<'a>>,
    /// Permit to hold the files open. It is the last field, so that it is dropped after all locks are released.
    seats: OpenFilePermit,
}

/// One path that the caller named, with the index (`place`) of its file among the locked files.
#[derive(Debug)]
struct NamedPath {
    shown: String,
    path: AccessPath,
    place: usize,
}

/// One locked file with its planned change. Several paths may name it.
#[derive(Debug)]
struct LockedFile<'a> {
    target: WriteTarget<'a>,
    shown: String,
    plan: Option<FileOperation>,
}

#[derive(Debug)]
enum FileOperation {
    Put(Vec<u8>, WriteOptions),
    /// Delete the file, and at most `folders` folders above it that are empty then.
    Delete {
        folders: usize,
    },
}

impl FileOperation {
    /// Returns the permission bits that the operation sets; `None` if it leaves them as they are.
    fn mode(&self) -> Option<u32> {
        match self {
            Self::Put(_, options) => options.mode,
            Self::Delete { .. } => None,
        }
    }
}

/// One file after its change; in a dry run, as it would be after it.
#[derive(Debug)]
pub(crate) struct ChangedFile {
    /// Path as it is shown to users.
    pub(crate) shown: String,
    /// State before; `None`: no file.
    pub(crate) before: Option<FileState>,
    /// State after; `None`: no file.
    pub(crate) after: Option<FileState>,
    /// Details of the write; `None` if it was deleted.
    pub(crate) written: Option<WriteResult>,
    /// Old content, if the call may read it.
    pub(crate) old: Option<Vec<u8>>,
    /// New content; `None` if the file was deleted.
    pub(crate) new: Option<Vec<u8>>,
    /// Reason why a power failure may still revert the change; `None` if it is safely on disk.
    pub(crate) unsafe_because: Option<String>,
}

impl<'a> ChangeSet<'a> {
    /// Locks the files in the order of their real paths, so that two sets never wait for each other. A file that is
    /// named twice, by any path or link, is locked once: both indices lead to it.
    ///
    /// # Errors
    /// If a path leads out of the workspace, or not to a file, or the call may not write there; or if another call
    /// holds one of the files until the deadline.
    pub(crate) fn take(files: &'a GrantedWorkspace, paths: &[&str]) -> Result<Self, ToolFailure> {
        for _ in 0..ATTEMPTS {
            if let Some(set) = Self::try_take(files, paths)? {
                return Ok(set);
            }
        }
        Err(ToolFailure::new(ErrorKind::StaleFile, "the folders of these files are being moved around")
            .next("Try again."))
    }

    /// Tries once to lock the files; `None` if a link led elsewhere by the time its file was locked.
    fn try_take(files: &'a GrantedWorkspace, paths: &[&str]) -> Result<Option<Self>, ToolFailure> {
        let accesses = paths.iter().map(|path| files.workspace().access(path)).collect::<Result<Vec<_>, _>>()?;
        let mut order: BTreeMap<PathBuf, &str> = BTreeMap::new();
        for (access, path) in accesses.iter().zip(paths) {
            order.entry(access.real.clone()).or_insert(path);
        }
        if order.len() > MAX_FILES {
            let message = format!("{} files are to be changed, and at most {MAX_FILES} are at once", order.len());
            return Err(ToolFailure::new(ErrorKind::TooLarge, message).next("Make several calls of it."));
        }
        // Paths below a path follow directly after it.
        let below = order.keys().zip(order.keys().skip(1)).find(|(above, below)| below.starts_with(above));
        if let Some((above, below)) = below {
            let (above, below) = (order[above], order[below]);
            let message = format!("`{below}` is below `{above}`, which cannot be a file and a folder at once");
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message)
                .next("Nothing was changed; name files only, or make two calls of it."));
        }
        let seats = files.acquire_file_permit(order.len())?;
        let mut held: BTreeMap<PathBuf, WriteTarget<'a>> = BTreeMap::new();
        for (real, path) in order {
            let target = files.write_target(path)?;
            if target.path().real != real {
                return Ok(None);
            }
            held.insert(real, target);
        }
        let mut set = Self { files, names: Vec::new(), locked: Vec::new(), seats };
        let mut known: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for path in accesses {
            files.permit_writing(&path)?;
            let shown = files.workspace().shown(&path.lexical);
            if let Some(target) = held.remove(&path.real) {
                known.insert(path.real.clone(), set.locked.len());
                set.locked.push(LockedFile { target, shown: shown.clone(), plan: None });
            }
            let Some(&place) = known.get(&path.real) else { return Ok(None) };
            set.names.push(NamedPath { shown, path, place });
        }
        Ok(Some(set))
    }

    /// Returns the path as it is shown to users.
    pub(crate) fn shown(&self, index: usize) -> &str {
        &self.names[index].shown
    }

    /// Returns the path in both forms: as the caller named it, and as the real path.
    pub(crate) fn path(&self, index: usize) -> &AccessPath {
        &self.names[index].path
    }

    /// Returns the index of a path's file among the files of the set, in the order in which they were first named.
    pub(crate) fn file(&self, index: usize) -> usize {
        self.names[index].place
    }

    /// Returns the content as it will be: what an earlier step of this set planned, else what is on disk; `None`: no
    /// file. At most `limit` bytes are read.
    ///
    /// # Errors
    /// If the call may not read there, or the file is larger.
    pub(crate) fn content(&self, index: usize, limit: u64) -> Result<Option<Cow<'_, [u8]>>, ToolFailure> {
        let name = &self.names[index];
        let place = &self.locked[name.place];
        match &place.plan {
            Some(FileOperation::Put(content, _)) => Ok(Some(Cow::Borrowed(content))),
            Some(FileOperation::Delete { .. }) => Ok(None),
            None => {
                if place.target.exists() {
                    self.files.permit_reading(&name.path)?;
                }
                Ok(place.target.read(limit)?.map(Cow::Owned))
            }
        }
    }

    /// Returns the size of the file on disk, in bytes; `None`: no file.
    pub(crate) fn size(&self, index: usize) -> Option<u64> {
        self.locked[self.names[index].place].target.facts().map(|facts| facts.bytes)
    }

    /// Returns the permission bits as they will be: those that an earlier step of this set planned, else those on disk;
    /// `None` if neither exist.
    pub(crate) fn mode(&self, index: usize) -> Option<u32> {
        let place = &self.locked[self.names[index].place];
        let on_disk = || place.target.facts().map(|facts| facts.mode & 0o777);
        place.plan.as_ref().and_then(FileOperation::mode).or_else(on_disk)
    }

    /// Returns the digest of the content on disk, even if the call may not read it; `None`: no file.
    ///
    /// # Errors
    /// If the file is larger than `limit`.
    pub(crate) fn digest(&self, index: usize, limit: u64) -> Result<Option<ContentDigest>, ToolFailure> {
        let target = &self.locked[self.names[index].place].target;
        Ok(target.replaced(limit).map_err(cannot_be_undone)?.map(|content| digest_of(&content)))
    }

    /// Returns `true` if the session of this call knows another content of the file than this one, which is on disk.
    pub(crate) fn is_stale(
        &self,
        index: usize,
        digest: ContentDigest,
        recording: &ChangeRecorder,
    ) -> Result<bool, ToolFailure> {
        let real = &self.locked[self.names[index].place].target.path().real;
        Ok(recording.known_version(real)?.is_some_and(|known| known != digest))
    }

    /// Returns `true` if the session of this call has read or written the file.
    pub(crate) fn is_known(&self, index: usize, recording: &ChangeRecorder) -> Result<bool, ToolFailure> {
        Ok(recording.known_version(&self.locked[self.names[index].place].target.path().real)?.is_some())
    }

    /// Returns `true` if a change of the file is planned, so that its content is not the one on disk.
    pub(crate) fn is_planned(&self, index: usize) -> bool {
        self.locked[self.names[index].place].plan.is_some()
    }

    /// Plans the new content of a file.
    pub(crate) fn put(&mut self, index: usize, content: Vec<u8>, options: WriteOptions) {
        let place = &mut self.locked[self.names[index].place];
        // A file that this set has deleted or created may be overwritten.
        let overwrite = options.overwrite || place.plan.is_some();
        // Permission bits of an earlier step apply until a later one sets others.
        let mode = options.mode.or(place.plan.as_ref().and_then(FileOperation::mode));
        place.plan = Some(FileOperation::Put(content, WriteOptions { overwrite, mode, ..options }));
    }

    /// Plans to delete the file.
    pub(crate) fn delete(&mut self, index: usize) {
        self.delete_with_folders(index, 0);
    }

    /// Plans to delete the file, and at most `folders` folders above it that are empty then. For a file that only this
    /// set creates, it removes the plan instead.
    pub(crate) fn delete_with_folders(&mut self, index: usize, folders: usize) {
        let place = &mut self.locked[self.names[index].place];
        let was_new = matches!(place.plan, Some(FileOperation::Put(..))) && !place.target.exists();
        place.plan = if was_new { None } else { Some(FileOperation::Delete { folders }) };
    }

    /// Records the changes in the journal, then makes all of them, or reverts those already made and returns the
    /// failure. With `dry_run` it changes nothing, and returns the same result. The result lists the files in the order
    /// in which they were named, without those for which nothing was planned.
    ///
    /// # Errors
    /// The first failure. Nothing is changed then, unless the message states otherwise.
    pub(crate) fn commit(self, recording: &ChangeRecorder, dry_run: bool) -> Result<Vec<ChangedFile>, ToolFailure> {
        let _seats = self.seats;
        let (mut steps, mut unmade) = (Vec::new(), Vec::new());
        for LockedFile { target, shown, plan } in self.locked {
            match plan {
                Some(plan) => steps.push(PlannedChange::of(self.files, target, shown, plan, recording.limit())?),
                // A file that the set created and deleted again.
                None if !target.exists() => unmade.push((target.path().real.clone(), None)),
                None => {}
            }
        }
        let total = |bytes: fn(&PlannedChange<'_>) -> usize| steps.iter().map(|step| bytes(step) as u64).sum::<u64>();
        for (bytes, what) in [
            (total(|step| step.old.as_ref().map_or(0, Vec::len)), "have"),
            (total(|step| step.new.as_ref().map_or(0, Vec::len)), "would have"),
        ] {
            if bytes > recording.limit() {
                let message =
                    format!("the files {what} {bytes} bytes, and at most {} are changed at once", recording.limit());
                return Err(ToolFailure::new(ErrorKind::TooLarge, message).next("Make several calls of it."));
            }
        }
        if !dry_run {
            if !steps.iter().any(PlannedChange::is_change) {
                let left = steps.iter().map(|step| (step.target.path().real.clone(), step.before));
                recording.record_unchanged(left.chain(unmade))?;
            }
            perform(&mut steps, recording)?;
        }
        Ok(steps.into_iter().map(PlannedChange::changed).collect())
    }
}

impl ChangedFile {
    /// Returns `true` if the file has changed.
    pub(crate) fn is_change(&self) -> bool {
        self.before != self.after
    }
}

/// One planned change of a file.
#[derive(Debug)]
struct PlannedChange<'a> {
    target: WriteTarget<'a>,
    shown: String,
    options: WriteOptions,
    before: Option<FileState>,
    after: Option<FileState>,
    old: Option<Vec<u8>>,
    /// `None`: delete the file.
    new: Option<Vec<u8>>,
    written: Option<WriteResult>,
    unsafe_because: Option<String>,
    may_read: bool,
    /// Maximum number of folders above it to delete.
    removed_folders: usize,
}

impl<'a> PlannedChange<'a> {
    fn of(
        files: &GrantedWorkspace,
        target: WriteTarget<'a>,
        shown: String,
        plan: FileOperation,
        limit: u64,
    ) -> Result<Self, ToolFailure> {
        let mut removed_folders = 0;
        let (new, options) = match plan {
            FileOperation::Put(content, options) => {
                target.check(options)?;
                (Some(content), options)
            }
            FileOperation::Delete { folders } => {
                target.check_removal()?;
                removed_folders = folders;
                (None, WriteOptions { create_folders: false, overwrite: true, mode: None })
            }
        };
        let old = target.replaced(limit).map_err(cannot_be_undone)?;
        let mode = target.facts().map(|facts| facts.mode & 0o777);
        let before = old.as_ref().zip(mode).map(|(old, mode)| FileState { digest: digest_of(old), mode });
        let after =
            new.as_ref().map(|new| FileState { digest: digest_of(new), mode: options.mode.or(mode).unwrap_or(0o644) });
        let written = new.as_ref().map(|new| WriteResult {
            created: !target.exists(),
            bytes: new.len() as u64,
            other_links: target.facts().map_or(0, |facts| facts.links.saturating_sub(1)),
            rights: LostRights::default(),
        });
        let may_read = files.permit_reading(target.path()).is_ok();
        let unsafe_because = None;
        Ok(Self { target, shown, options, before, after, old, new, written, unsafe_because, may_read, removed_folders })
    }

    /// Returns `true` if the step changes something.
    fn is_change(&self) -> bool {
        self.before != self.after
    }

    fn prepare(&self) -> Result<FileChangeDraft<'_>, PathError> {
        match &self.new {
            Some(new) => self.target.prepare(new, self.options),
            None => self.target.prepare_removal(),
        }
    }

    fn changed(self) -> ChangedFile {
        ChangedFile {
            shown: self.shown,
            before: self.before,
            after: self.after,
            written: self.written,
            old: self.old.filter(|_| self.may_read),
            new: self.new,
            unsafe_because: self.unsafe_because,
        }
    }
}

/// Converts an error of reading the old content into a failure. A file that is too large for the journal is not changed
/// at all, because an agent's mistaken overwrite must be reversible.
fn cannot_be_undone(error: PathError) -> ToolFailure {
    match error {
        PathError::TooLarge { .. } => ToolFailure::from(error).next(
            "A change of so large a file could not be undone, so none is made. Write to another path, or let the user \
             move the file away or raise `files.result_bytes`.",
        ),
        other => other.into(),
    }
}

/// Result of a planned change that was made.
struct StepWriteResult {
    step: usize,
    after: Option<FileState>,
    written: WriteResult,
    unsynced: Option<io::Error>,
}

/// Makes the planned changes, stores the results in the steps, sends an event for each change, and updates the
/// session's read-state.
fn perform(steps: &mut [PlannedChange<'_>], recording: &ChangeRecorder) -> Result<(), ToolFailure> {
    for StepWriteResult { step, after, written, unsynced } in apply_steps(steps, recording)? {
        let step = &mut steps[step];
        step.after = after;
        step.written = step.written.map(|_| written);
        step.unsafe_because = unsynced.map(|error| error.to_string());
        let (old, new) = (step.old.as_deref().unwrap_or_default(), step.new.as_deref().unwrap_or_default());
        recording.publish_change(&step.target.path().real, step.before, step.after, (old, new));
    }
    steps.iter().for_each(|step| recording.mark_written(&step.target.path().real, step.after));
    Ok(())
}

/// Prepares, records and makes the changes of all steps that change something, and returns their results. After a
/// failure it reverts those already made.
fn apply_steps(steps: &[PlannedChange<'_>], recording: &ChangeRecorder) -> Result<Vec<StepWriteResult>, ToolFailure> {
    let steps: Vec<_> = steps.iter().enumerate().filter(|(_, step)| step.is_change()).collect();
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let mut drafts = FileChangeTransaction::new();
    let mut changes = Vec::new();
    for (_, step) in &steps {
        let draft = step.prepare()?;
        // The mode of a new file is known once the file exists.
        let mode = draft.mode();
        let after = step.after.map(|state| FileState { mode: mode.unwrap_or(state.mode), ..state });
        let (path, before, made_folders) = (step.target.path().real.clone(), step.before, draft.made_folders());
        changes.push(FileChange { path, before, after, made_folders });
        drafts.push(draft);
    }
    let states: Vec<Option<FileState>> = changes.iter().map(|change| change.after).collect();
    recording.record(changes.clone(), contents(steps.iter().map(|(_, step)| *step)))?;
    let written = drafts.put_in_place().map_err(|ApplyFailure { failure, is_as_before }| {
        if is_as_before {
            recording.record_not_applied(changes);
        }
        failure
    })?;
    // From here on the change is made whatever happens, and the journal and the result agree with that.
    let unsynced = drafts.keep();
    // The deepest first, because one may contain another.
    let mut emptied: Vec<&PlannedChange<'_>> = steps.iter().map(|(_, step)| *step).collect();
    emptied.sort_by_key(|step| Reverse(step.target.path().real.components().count()));
    emptied.iter().for_each(|step| step.target.remove_folders(step.removed_folders));
    let done = steps.iter().zip(states).zip(written).zip(unsynced);
    Ok(done
        .map(|((((step, _), after), written), unsynced)| StepWriteResult { step: *step, after, written, unsynced })
        .collect())
}

/// Returns the old and the new contents of the steps for the journal, each content once.
fn contents<'s>(steps: impl Iterator<Item = &'s PlannedChange<'s>>) -> Vec<StoredBlob> {
    let mut kept: BTreeMap<ContentDigest, &Vec<u8>> = BTreeMap::new();
    for step in steps {
        for (state, bytes) in [(&step.before, &step.old), (&step.after, &step.new)] {
            if let (Some(state), Some(bytes)) = (state, bytes) {
                kept.insert(state.digest, bytes);
            }
        }
    }
    kept.into_iter().map(|(digest, bytes)| StoredBlob { digest, bytes: bytes.clone() }).collect()
}

#[cfg(test)]
mod tests;
