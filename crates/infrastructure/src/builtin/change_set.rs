//! Changes of one or several files that happen together or not at all.

use crate::{
    builtin::{
        answer::counted,
        etag::digest_of,
        run::Run,
        seen_files::{SeenFiles, Viewer},
        unified_diff::line_counts,
    },
    sandbox::workspace::{
        draft::Draft,
        granted::GrantedWorkspace,
        path_error::PathError,
        write::{WriteOptions, WriteTarget, Written},
    },
};
use std::{borrow::Cow, collections::BTreeMap, path::PathBuf, sync::Arc};
use tokio::runtime::Handle;
use toolstead_domain::{
    access::PathAccess,
    content_digest::ContentDigest,
    error_kind::ErrorKind,
    event::{EventKind, EventOrigin, FileChangeKind},
    ports::{
        change_journal::{ChangeJournal, FileChange, FileState, JournalEntry, KeptContent},
        clock::Timestamp,
        event_sink::EventSink,
    },
    tool_call::CallId,
    tool_failure::ToolFailure,
};
use uuid::Uuid;

/// As many files are changed together: each is held by some handles, and a process has a thousand of them.
pub(super) const MAX_FILES: usize = 100;
/// As often it is tried to take hold of places that move meanwhile.
const ATTEMPTS: usize = 8;

/// Changes of one or several files that happen together or not at all.
///
/// The files are held from [`take`](Self::take) on, so that what was read is still so when the changes are made.
#[derive(Debug)]
pub(super) struct ChangeSet<'a> {
    files: &'a GrantedWorkspace,
    names: Vec<Name>,
    places: Vec<Place<'a>>,
}

/// One path as it was given.
#[derive(Debug)]
struct Name {
    shown: String,
    path: PathAccess,
    place: usize,
}

/// One file, whatever the number of its names.
#[derive(Debug)]
struct Place<'a> {
    target: WriteTarget<'a>,
    shown: String,
    plan: Option<Plan>,
}

#[derive(Debug)]
enum Plan {
    Put(Vec<u8>, WriteOptions),
    Delete,
}

/// Where a change set records itself. It borrows nothing, so that it can go to the blocking thread.
#[derive(Clone)]
pub(super) struct Recording {
    journal: Arc<dyn ChangeJournal>,
    events: Arc<dyn EventSink>,
    seen: Arc<SeenFiles>,
    viewer: Viewer,
    call: CallId,
    tool: String,
    at: Timestamp,
    reverts: Option<CallId>,
    /// Bytes that are kept of all files as they were, and as they will be.
    limit: u64,
    runtime: Handle,
}

/// One file after its change, or as it would be.
#[derive(Debug)]
pub(super) struct Changed {
    /// The path as it is shown to people.
    pub(super) shown: String,
    /// What was there; `None`: no file.
    pub(super) before: Option<FileState>,
    /// What is there; `None`: no file.
    pub(super) after: Option<FileState>,
    /// How it was written; `None` where it was deleted.
    pub(super) written: Option<Written>,
    /// The old content, if the call may read it.
    pub(super) old: Option<Vec<u8>>,
    /// The new content.
    pub(super) new: Option<Vec<u8>>,
}

impl<'a> ChangeSet<'a> {
    /// Takes hold of the places, in the order of their real paths so that two sets never wait for each other. A file
    /// that is named twice, by whatever spelling or link, is held once: both indices lead to it.
    ///
    /// # Errors
    /// Where a path leads out of the workspace, to no file, or the call may not write there; when somebody else holds
    /// one of the files until the time is over.
    pub(super) fn take(files: &'a GrantedWorkspace, paths: &[&str]) -> Result<Self, ToolFailure> {
        for _ in 0..ATTEMPTS {
            if let Some(set) = Self::try_take(files, paths)? {
                return Ok(set);
            }
        }
        Err(ToolFailure::new(ErrorKind::StaleFile, "the folders of these files are being moved around")
            .next("Try again."))
    }

    /// One attempt; `None` when a link led elsewhere by the time its file was held.
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
        // What lies below a path follows directly after it.
        let below = order.keys().zip(order.keys().skip(1)).find(|(above, below)| below.starts_with(above));
        if let Some((above, below)) = below {
            let (above, below) = (order[above], order[below]);
            let message = format!("`{below}` lies below `{above}`, which cannot be a file and a folder at once");
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message)
                .next("Nothing was changed; name files only, or make two calls of it."));
        }
        let mut held: BTreeMap<PathBuf, WriteTarget<'a>> = BTreeMap::new();
        for (real, path) in order {
            let target = files.write_target(path)?;
            if target.path().real != real {
                return Ok(None);
            }
            held.insert(real, target);
        }
        let mut set = Self { files, names: Vec::new(), places: Vec::new() };
        let mut known: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for path in accesses {
            files.permit_writing(&path)?;
            let shown = files.workspace().shown(&path.lexical);
            if let Some(target) = held.remove(&path.real) {
                known.insert(path.real.clone(), set.places.len());
                set.places.push(Place { target, shown: shown.clone(), plan: None });
            }
            let Some(&place) = known.get(&path.real) else { return Ok(None) };
            set.names.push(Name { shown, path, place });
        }
        Ok(Some(set))
    }

    /// How the path is shown to people.
    pub(super) fn shown(&self, index: usize) -> &str {
        &self.names[index].shown
    }

    /// Both forms of the path.
    pub(super) fn path(&self, index: usize) -> &PathAccess {
        &self.names[index].path
    }

    /// The file of a path: its place among the files of the set, in the order in which they were first named.
    pub(super) fn file(&self, index: usize) -> usize {
        self.names[index].place
    }

    /// The content as it will be: what an earlier step of this set planned, else what is on disk; `None`: no file. At
    /// most `limit` bytes are read.
    ///
    /// # Errors
    /// When the call may not read there, or the file is larger.
    pub(super) fn content(&self, index: usize, limit: u64) -> Result<Option<Cow<'_, [u8]>>, ToolFailure> {
        let name = &self.names[index];
        let place = &self.places[name.place];
        match &place.plan {
            Some(Plan::Put(content, _)) => Ok(Some(Cow::Borrowed(content))),
            Some(Plan::Delete) => Ok(None),
            None => {
                if place.target.exists() {
                    self.files.permit_reading(&name.path)?;
                }
                Ok(place.target.read(limit)?.map(Cow::Owned))
            }
        }
    }

    /// The size of the file on disk, in bytes; `None`: no file.
    pub(super) fn size(&self, index: usize) -> Option<u64> {
        self.places[self.names[index].place].target.facts().map(|facts| facts.bytes)
    }

    /// What stands for the content on disk, whatever the call may read; `None`: no file.
    ///
    /// # Errors
    /// When the file is larger than `limit`.
    pub(super) fn digest(&self, index: usize, limit: u64) -> Result<Option<ContentDigest>, ToolFailure> {
        let target = &self.places[self.names[index].place].target;
        Ok(target.replaced(limit)?.map(|content| digest_of(&content)))
    }

    /// Whether the session of this call knows another content of the file than this one, which is on disk.
    pub(super) fn is_stale(&self, index: usize, digest: ContentDigest, recording: &Recording) -> bool {
        let real = &self.places[self.names[index].place].target.path().real;
        recording.seen.known(&recording.viewer, real).is_some_and(|known| known != digest)
    }

    /// Whether something is planned for the file already, so that its content is not the one on disk.
    pub(super) fn is_planned(&self, index: usize) -> bool {
        self.places[self.names[index].place].plan.is_some()
    }

    /// Plans the new content of a file.
    pub(super) fn put(&mut self, index: usize, content: Vec<u8>, options: WriteOptions) {
        let place = &mut self.places[self.names[index].place];
        // What this set deleted, or made itself, does not stand in the way.
        let overwrite = options.overwrite || place.plan.is_some();
        place.plan = Some(Plan::Put(content, WriteOptions { overwrite, ..options }));
    }

    /// Plans that the file is gone.
    pub(super) fn delete(&mut self, index: usize) {
        let place = &mut self.places[self.names[index].place];
        let was_new = matches!(place.plan, Some(Plan::Put(..))) && !place.target.exists();
        place.plan = if was_new { None } else { Some(Plan::Delete) };
    }

    /// Records in the journal what will be, then does all of it; or puts back what was done and says why. With
    /// `dry_run` it does nothing, and answers the same. The answer has the files in the order in which they were named,
    /// without those for which nothing was planned.
    ///
    /// # Errors
    /// The first thing that failed. Nothing is changed then, unless the message says otherwise.
    pub(super) fn commit(self, recording: &Recording, dry_run: bool) -> Result<Vec<Changed>, ToolFailure> {
        let mut steps = Vec::new();
        for Place { target, shown, plan } in self.places {
            if let Some(plan) = plan {
                steps.push(Step::of(self.files, target, shown, plan, recording.limit)?);
            }
        }
        let total = |bytes: fn(&Step<'_>) -> usize| steps.iter().map(|step| bytes(step) as u64).sum::<u64>();
        for (bytes, what) in [
            (total(|step| step.old.as_ref().map_or(0, Vec::len)), "have"),
            (total(|step| step.new.as_ref().map_or(0, Vec::len)), "would have"),
        ] {
            if bytes > recording.limit {
                let message =
                    format!("the files {what} {bytes} bytes, and at most {} are changed at once", recording.limit);
                return Err(ToolFailure::new(ErrorKind::TooLarge, message).next("Make several calls of it."));
            }
        }
        if !dry_run {
            perform(&mut steps, recording)?;
        }
        Ok(steps.into_iter().map(Step::changed).collect())
    }
}

/// One file that is to be changed.
#[derive(Debug)]
struct Step<'a> {
    target: WriteTarget<'a>,
    shown: String,
    options: WriteOptions,
    before: Option<FileState>,
    after: Option<FileState>,
    old: Option<Vec<u8>>,
    /// `None`: it is to be deleted.
    new: Option<Vec<u8>>,
    written: Option<Written>,
    may_read: bool,
}

impl<'a> Step<'a> {
    fn of(
        files: &GrantedWorkspace,
        target: WriteTarget<'a>,
        shown: String,
        plan: Plan,
        limit: u64,
    ) -> Result<Self, ToolFailure> {
        let (new, options) = match plan {
            Plan::Put(content, options) => {
                target.check(options)?;
                (Some(content), options)
            }
            Plan::Delete => {
                target.check_removal()?;
                (None, WriteOptions { create_folders: false, overwrite: true, mode: None })
            }
        };
        let old = target.replaced(limit).map_err(|error| match error {
            PathError::TooLarge { .. } => {
                ToolFailure::from(error).next("A change of so large a file could not be undone, so none is made.")
            }
            other => other.into(),
        })?;
        let mode = target.facts().map(|facts| facts.mode & 0o777);
        let before = old.as_ref().zip(mode).map(|(old, mode)| FileState { digest: digest_of(old), mode });
        let after =
            new.as_ref().map(|new| FileState { digest: digest_of(new), mode: options.mode.or(mode).unwrap_or(0o644) });
        let written = new.as_ref().map(|new| Written {
            created: !target.exists(),
            bytes: new.len() as u64,
            other_links: target.facts().map_or(0, |facts| facts.links.saturating_sub(1)),
            owner_changed: false,
        });
        let may_read = files.permit_reading(target.path()).is_ok();
        Ok(Self { target, shown, options, before, after, old, new, written, may_read })
    }

    /// Whether there is anything to do.
    fn is_change(&self) -> bool {
        self.before != self.after
    }

    fn prepare(&self) -> Result<Draft<'_>, PathError> {
        match &self.new {
            Some(new) => self.target.prepare(new, self.options),
            None => self.target.prepare_removal(),
        }
    }

    fn changed(self) -> Changed {
        Changed {
            shown: self.shown,
            before: self.before,
            after: self.after,
            written: self.written,
            old: self.old.filter(|_| self.may_read),
            new: self.new,
        }
    }
}

/// Does what is to be done, and notes how it went.
fn perform(steps: &mut [Step<'_>], recording: &Recording) -> Result<(), ToolFailure> {
    for (index, after, written) in done(steps, recording)? {
        let step = &mut steps[index];
        step.after = after;
        step.written = step.written.map(|_| written);
        recording.tell(step);
    }
    steps.iter().for_each(|step| recording.seen(step));
    Ok(())
}

/// Prepares all, records all, does all: the index of each step that changed something, and what came of it.
fn done(steps: &[Step<'_>], recording: &Recording) -> Result<Vec<(usize, Option<FileState>, Written)>, ToolFailure> {
    let steps: Vec<_> = steps.iter().enumerate().filter(|(_, step)| step.is_change()).collect();
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let mut drafts = Drafts(Vec::new());
    let mut changes = Vec::new();
    for (_, step) in &steps {
        let draft = step.prepare()?;
        // Which mode a new file gets shows when it is there.
        let mode = draft.mode();
        let after = step.after.map(|state| FileState { mode: mode.unwrap_or(state.mode), ..state });
        changes.push(FileChange { path: step.target.path().real.clone(), before: step.before, after });
        drafts.0.push(draft);
    }
    let states: Vec<Option<FileState>> = changes.iter().map(|change| change.after).collect();
    recording.record(changes.clone(), contents(steps.iter().map(|(_, step)| *step)))?;
    let written = drafts.put_in_place().map_err(|NotPut { failure, is_as_before }| {
        if is_as_before {
            recording.record_that_it_was_not_done(changes);
        }
        failure
    })?;
    drafts.keep()?;
    Ok(steps.iter().zip(states).zip(written).map(|(((index, _), state), written)| (*index, state, written)).collect())
}

/// All contents that the steps speak of, each once.
fn contents<'s>(steps: impl Iterator<Item = &'s Step<'s>>) -> Vec<KeptContent> {
    let mut kept: BTreeMap<ContentDigest, &Vec<u8>> = BTreeMap::new();
    for step in steps {
        for (state, bytes) in [(&step.before, &step.old), (&step.after, &step.new)] {
            if let (Some(state), Some(bytes)) = (state, bytes) {
                kept.insert(state.digest, bytes);
            }
        }
    }
    kept.into_iter().map(|(digest, bytes)| KeptContent { digest, bytes: bytes.clone() }).collect()
}

/// Changes that were not made.
struct NotPut {
    failure: ToolFailure,
    /// Whether all files are as they were before.
    is_as_before: bool,
}

/// Changes that are ready.
struct Drafts<'t>(Vec<Draft<'t>>);

impl Drafts<'_> {
    fn put_in_place(&mut self) -> Result<Vec<Written>, NotPut> {
        let mut written = Vec::new();
        let mut failed = None;
        for draft in &mut self.0 {
            match draft.put_in_place() {
                Ok(done) => written.push(done),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        match failed {
            None => Ok(written),
            Some(error) => Err(self.put_back(written.len(), error)),
        }
    }

    /// Takes the first so many back, the last of them first.
    fn put_back(&mut self, done: usize, cause: PathError) -> NotPut {
        let mut stuck = Vec::new();
        // Those that were not put in place go first: they may stand in folders that earlier ones made.
        self.0.truncate(done);
        while let Some(draft) = self.0.pop() {
            if let Err(error) = draft.put_back() {
                stuck.push(error);
            }
        }
        let is_as_before = stuck.is_empty() && !matches!(cause, PathError::Misplaced { .. });
        let mut failure = ToolFailure::from(cause);
        if done > 0 {
            let were = counted(done, "file");
            let note = match stuck.len() {
                0 => format!(" {were} that had been changed before it got back what they held."),
                _ => {
                    let which: Vec<String> = stuck.iter().map(ToString::to_string).collect();
                    format!(
                        " Of {were} that had been changed before it some could not be put back: {}.",
                        which.join("; ")
                    )
                }
            };
            failure.message = format!("{}.{note}", failure.message);
        }
        NotPut { failure, is_as_before }
    }

    fn keep(&mut self) -> Result<(), PathError> {
        let kept: Vec<Result<(), PathError>> = std::mem::take(&mut self.0).into_iter().map(Draft::keep).collect();
        kept.into_iter().collect()
    }
}

impl Drop for Drafts<'_> {
    fn drop(&mut self) {
        // The last ones first: they may stand in folders that earlier ones made.
        while self.0.pop().is_some() {}
    }
}

impl Recording {
    pub(super) fn of(run: &Run<'_>) -> Self {
        Self {
            journal: run.world.journal.clone(),
            events: run.world.events.clone(),
            seen: run.world.seen.clone(),
            viewer: run.viewer(),
            call: run.context.id,
            tool: run.call.tool.name().to_string(),
            at: run.world.clock.now(),
            reverts: None,
            limit: run.world.limits.result_bytes,
            runtime: Handle::current(),
        }
    }

    /// Bytes that a file may have, before and after.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The call's id, which `undo` takes; none for a dry run, which it knows nothing of.
    pub(super) fn undo_id(&self, dry_run: bool) -> Option<String> {
        (!dry_run).then(|| self.call.to_string())
    }

    /// The same for a change that takes back what that call did.
    #[must_use]
    pub(super) fn reverting(self, call: CallId) -> Self {
        Self { reverts: Some(call), ..self }
    }

    /// Whether what is changed can be taken back.
    pub(super) fn keeps(&self) -> bool {
        self.journal.keeps()
    }

    /// What to say of a call that changed files, so that it can be taken back; `None` if it cannot.
    pub(super) fn how_to_undo(&self) -> Option<String> {
        self.keeps().then(|| format!("To take it back: `undo` with the call {}.", self.call))
    }

    fn record(&self, changes: Vec<FileChange>, contents: Vec<KeptContent>) -> Result<(), ToolFailure> {
        let entry = self.entry(self.call, changes, self.reverts);
        self.runtime.block_on(self.journal.record(entry, contents)).map_err(|error| {
            let message = "nothing was changed, because the change could not be recorded for an undo";
            ToolFailure::new(ErrorKind::Io, message).next("Try again; if it goes on, tell the user.").caused_by(error)
        })
    }

    /// Takes back what was recorded of a change that was not made after all, so that an undo passes over it. Otherwise
    /// it would take somebody else's file for ours where that happens to hold the same.
    fn record_that_it_was_not_done(&self, changes: Vec<FileChange>) {
        let taken_back = |change: FileChange| match self.reverts {
            None => FileChange { after: change.before, ..change },
            // An undo that failed leaves a change that can be undone, as if it had been undone and done again.
            Some(_) => FileChange { before: change.after, after: change.before, ..change },
        };
        let changes = changes.into_iter().map(taken_back).collect();
        let entry = self.entry(CallId(Uuid::now_v7()), changes, Some(self.call));
        if let Err(error) = self.runtime.block_on(self.journal.record(entry, Vec::new())) {
            tracing::warn!(call = %self.call, %error, "the journal speaks of a change that was not made");
        }
    }

    fn entry(&self, call: CallId, changes: Vec<FileChange>, reverts: Option<CallId>) -> JournalEntry {
        JournalEntry {
            call,
            principal: self.viewer.principal.clone(),
            session: self.viewer.session.clone(),
            tool: self.tool.clone(),
            at: self.at,
            changes,
            reverts,
        }
    }

    /// Tells those who watch what happened to a file.
    fn tell(&self, step: &Step<'_>) {
        if !self.events.is_watched() {
            return;
        }
        let change = match (step.before, step.after) {
            (None, _) => FileChangeKind::Created,
            (Some(_), Some(_)) => FileChangeKind::Modified,
            (Some(_), None) => FileChangeKind::Deleted,
        };
        let lines = line_counts(step.old.as_deref().unwrap_or_default(), step.new.as_deref().unwrap_or_default());
        let origin = EventOrigin {
            principal: Some(self.viewer.principal.clone()),
            session: Some(self.viewer.session.as_str().into()),
            call: Some(self.call),
        };
        let kind = EventKind::FileChanged {
            path: step.target.path().real.clone(),
            change,
            lines_added: lines.map(|(added, _)| added),
            lines_removed: lines.map(|(_, removed)| removed),
        };
        self.events.send(origin, kind);
    }

    /// The session knows what it wrote.
    fn seen(&self, step: &Step<'_>) {
        let real = &step.target.path().real;
        match step.after {
            Some(state) => self.seen.saw(&self.viewer, real, state.digest),
            None => self.seen.forget(&self.viewer, real),
        }
    }
}

#[cfg(test)]
mod tests;
