//! Applies a patch to the files that it names.

use crate::{
    builtin::{
        files::{
            change_set::{ChangeSet, ChangedFile, recording::ChangeRecorder},
            etag::{digest_of, etag},
            file_limits::FileLimits,
            written_file::{changed_elsewhere, missing, notes, stale},
        },
        text::{
            snippet::surroundings,
            text_edit::DecodedFile,
            text_encoding::{TextDetection, detect},
            wording::counted,
        },
        tools::apply_patch::{
            FilePatchOutcome, FilePatchReport, hunk_problem,
            matching::{HunkFinder, HunkPlacement, LineTolerance},
            parser::{FilePatch, Hunk, PatchAction},
            patched_text::apply_hunks,
            text_lines::{TextLine, lines_by_feeds, lines_of},
        },
    },
    sandbox::workspace::{granted_workspace::GrantedWorkspace, path_error::PathError, write::WriteOptions},
};
use std::collections::{BTreeMap, BTreeSet};
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Maximum number of problems that are described.
const DESCRIBED: usize = 10;
/// Number of unchanged lines shown before and after a changed place.
const RADIUS: usize = 2;

/// Workspace and limits that apply to a patch.
#[derive(Debug, Clone, Copy)]
pub(super) struct PatchApplier<'a> {
    pub(super) files: &'a GrantedWorkspace,
    pub(super) limits: &'a FileLimits,
}

/// Result of patching one file.
#[derive(Debug)]
pub(super) struct FilePatchResult {
    pub(super) path: String,
    action: FilePatchOutcome,
    moved_from: Option<String>,
    etag: Option<String>,
    added: usize,
    removed: usize,
    /// Content before the change as text, for the diff; empty if there is none, as for a binary file.
    pub(super) before: String,
    /// Content after the change, in the same form.
    pub(super) after: String,
    /// Range of each hunk in the new text: index of its first line (from 0) and of the line after its last.
    pub(super) lines: Vec<(usize, usize)>,
    /// Differences between patch and file that were ignored to place the hunks.
    looseness: BTreeSet<LineTolerance>,
    /// Index of the file in the change set.
    place: usize,
    changed_elsewhere: bool,
    /// Sentences about unexpected effects.
    notes: Vec<String>,
}

/// A part of the patch that cannot be applied, and the reason.
struct PatchProblem {
    kind: ErrorKind,
    text: String,
}

impl PatchApplier<'_> {
    /// Applies the whole patch or nothing. Returns the result for each file, and `true` if any file changed.
    ///
    /// # Errors
    /// Reports everything that does not fit, at once. The kind is `no_match` or `ambiguous_match` for hunks.
    pub(super) fn apply(
        self,
        patch: &[FilePatch],
        recording: &ChangeRecorder,
        dry_run: bool,
    ) -> Result<(Vec<FilePatchResult>, bool), ToolFailure> {
        let paths: Vec<&str> = patch.iter().flat_map(FilePatch::paths).collect();
        let mut set = ChangeSet::take(self.files, &paths)?;
        let (mut patched, mut wrong) = (Vec::new(), Vec::new());
        let mut index = 0;
        for file in patch {
            let planned = self.plan(&mut set, file, index, recording)?;
            if self.files.stop().is_due() {
                return Err(PathError::OutOfTime { path: set.path(index).lexical.clone() }.into());
            }
            match planned {
                Ok(file) => patched.push(file),
                Err(more) => wrong.extend(more),
            }
            index += file.paths().count();
        }
        if !wrong.is_empty() {
            return Err(problems_failure(&wrong));
        }
        let planned = (0..paths.len()).filter(|index| set.is_planned(*index)).map(|index| set.file(index));
        let planned: BTreeSet<usize> = planned.collect();
        let changed: BTreeMap<usize, ChangedFile> = planned.into_iter().zip(set.commit(recording, dry_run)?).collect();
        for file in &mut patched {
            file.apply_outcome(changed.get(&file.place));
        }
        Ok((patched, changed.values().any(ChangedFile::is_change)))
    }

    /// Plans the change of one file. `index` is the index of its path in the set; its new path has the next one. The
    /// inner error lists what does not fit the file.
    fn plan(
        self,
        set: &mut ChangeSet<'_>,
        file: &FilePatch,
        index: usize,
        recording: &ChangeRecorder,
    ) -> Result<Result<FilePatchResult, Vec<PatchProblem>>, ToolFailure> {
        let wrong =
            |kind, text: String| Ok(Err(vec![PatchProblem { kind, text: format!("line {}: {text}", file.line) }]));
        let (path, place) = (set.shown(index).to_owned(), set.file(index));
        let limit = match &file.action {
            PatchAction::Update { hunks, .. } | PatchAction::Delete { was: Some(hunks) } if !hunks.is_empty() => {
                self.limits.text_bytes
            }
            _ => self.limits.result_bytes,
        };
        let content = match set.content(index, limit) {
            Ok(content) => content.map(|content| content.into_owned()),
            Err(failure) => return wrong(failure.kind, failure.text()),
        };
        let is_stale = match &content {
            Some(content) if !set.is_planned(index) => set.is_stale(index, digest_of(content), recording)?,
            _ => false,
        };
        match (&file.action, content) {
            (PatchAction::Add(new), Some(old)) if old == new.as_bytes() && file.executable.is_none() => {
                let unchanged = FilePatchResult::new(path, place, FilePatchOutcome::Unchanged, Some(&old));
                set.put(index, old, WriteOptions { create_folders: false, overwrite: true, mode: None });
                Ok(Ok(unchanged))
            }
            (PatchAction::Add(_), Some(_)) => wrong(
                ErrorKind::InvalidInput,
                format!("`{path}` exists already. Use `*** Update File`, or delete it in the same patch first."),
            ),
            (PatchAction::Add(new), None) => {
                let added = FilePatchResult::new(path, place, FilePatchOutcome::Added, Some(new.as_bytes()));
                let mode = file.executable.and_then(|executable| executable.then_some(0o755));
                set.put(index, new.clone().into_bytes(), WriteOptions { mode, ..WRITE_NEW });
                let notes = mode.map(|_| "It is executable.".to_owned()).into_iter().collect();
                Ok(Ok(FilePatchResult { added: new.lines().count(), after: new.clone(), notes, ..added }))
            }
            (PatchAction::Delete { .. } | PatchAction::Update { .. }, None) => {
                let failure = missing(self.files, &file.path);
                wrong(failure.kind, failure.text())
            }
            (PatchAction::Delete { was: None }, Some(_)) if is_stale => {
                let text = format!("`{path}` has changed since it was read. Read it again before you delete it.");
                wrong(ErrorKind::StaleFile, text)
            }
            (PatchAction::Delete { was }, Some(old)) => {
                if let Some(hunks) = was {
                    match self.rest(&path, place, &old, hunks, file.line) {
                        Ok(0) => {}
                        Ok(rest) => {
                            let rest = counted(rest, "line");
                            let text = format!(
                                "`{path}` cannot be deleted: it has {rest} that the diff does not remove. Read it again."
                            );
                            return wrong(ErrorKind::NoMatch, text);
                        }
                        Err(wrong) => return Ok(Err(if is_stale { stale_hunks(wrong, &path) } else { wrong })),
                    }
                }
                set.delete(index);
                let before = text_of(&old).unwrap_or_default();
                let removed = before.lines().count();
                Ok(Ok(FilePatchResult {
                    removed,
                    before,
                    ..FilePatchResult::new(path, place, FilePatchOutcome::Deleted, None)
                }))
            }
            (PatchAction::Update { to, hunks }, Some(old)) => {
                let mut updated = match self.update_file(&path, place, &old, hunks, file.line) {
                    Ok(updated) => updated,
                    Err(wrong) => return Ok(Err(if is_stale { stale_hunks(wrong, &path) } else { wrong })),
                };
                if is_stale {
                    updated.file.notes.push(match hunks.is_empty() {
                        true => format!("`{path}` has changed since you read it."),
                        false => changed_elsewhere(&path),
                    });
                }
                updated.file.changed_elsewhere = is_stale;
                if file.executable.is_some() {
                    updated.file.action = FilePatchOutcome::Updated;
                }
                let mode = set.mode(index);
                let new_mode = file.executable.map(|executable| with_execution(mode.unwrap_or(0o644), executable));
                updated.file.notes.extend(file.executable.map(|executable| match executable {
                    true => "It is executable now.".to_owned(),
                    false => "It is not executable any more.".to_owned(),
                }));
                if updated.bytes.len() as u64 > self.limits.result_bytes {
                    let limit = self.limits.result_bytes;
                    return wrong(ErrorKind::TooLarge, format!("`{path}` would have more than {limit} bytes."));
                }
                if to.is_none() {
                    set.put(
                        index,
                        updated.bytes,
                        WriteOptions { create_folders: false, overwrite: true, mode: new_mode },
                    );
                    return Ok(Ok(updated.file));
                }
                let shown = set.shown(index + 1).to_owned();
                if set.path(index).real == set.path(index + 1).real {
                    return wrong(ErrorKind::InvalidInput, format!("`{path}` cannot be moved to itself."));
                }
                // Only its existence matters: no content is read.
                if set.content(index + 1, 0).map_or(true, |there| there.is_some()) {
                    let text = format!("`{path}` cannot be moved to `{shown}`, which exists already.");
                    return wrong(ErrorKind::InvalidInput, text);
                }
                set.put(index + 1, updated.bytes, WriteOptions { mode: new_mode.or(mode), ..WRITE_NEW });
                set.delete(index);
                let (action, place) = (FilePatchOutcome::Moved, set.file(index + 1));
                Ok(Ok(FilePatchResult { path: shown, place, action, moved_from: Some(path), ..updated.file }))
            }
        }
    }

    /// Returns the number of lines that remain after the hunks removed theirs, or the reasons why the hunks do not fit.
    fn rest(
        self,
        path: &str,
        place: usize,
        old: &[u8],
        hunks: &[Hunk],
        line: usize,
    ) -> Result<usize, Vec<PatchProblem>> {
        if hunks.is_empty() {
            return Ok(if old.is_empty() { 0 } else { text_of(old).map_or(1, |text| lines_of(&text).len()) });
        }
        let updated = self.update_file(path, place, old, hunks, line)?;
        Ok(lines_of(&updated.file.after).len())
    }

    /// Returns the file with its hunks applied, or all hunks that do not fit.
    fn update_file(
        self,
        path: &str,
        place: usize,
        bytes: &[u8],
        hunks: &[Hunk],
        line: usize,
    ) -> Result<UpdatedFile, Vec<PatchProblem>> {
        let wrong = |kind, text: String| vec![PatchProblem { kind, text: format!("line {line}: {text}") }];
        if hunks.is_empty() {
            let file = FilePatchResult::new(path.to_owned(), place, FilePatchOutcome::Updated, Some(bytes));
            return Ok(UpdatedFile { bytes: bytes.to_vec(), file });
        }
        let file = DecodedFile::of(bytes, path).map_err(|failure| wrong(failure.kind, failure.text()))?;
        // A file may separate its lines by lone carriage returns. To a patch program it is a single line, to a model it
        // is not.
        let by_feeds = lines_by_feeds(&file.text);
        let is_by_feeds = hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.text().contains('\r'));
        let placed = is_by_feeds.then(|| self.place_hunks(path, hunks, &by_feeds));
        let (lines, placed) = match placed {
            Some(Ok(places)) => (by_feeds, Ok(places)),
            _ => {
                let lines = lines_of(&file.text);
                let placed = self.place_hunks(path, hunks, &lines);
                (lines, placed)
            }
        };
        let places = placed?;
        let new = apply_hunks(&lines, hunks, &places);
        // The unchanged text is encoded to the bytes that it had: this was verified when it was decoded.
        let body = file.encoded(&new.text).map_err(|failure| {
            wrong(failure.kind, format!("`{path}` cannot store this content: {}", failure.text()))
        })?;
        let (old, bytes) = (bytes, [&bytes[..file.encoding.mark_bytes()], &body].concat());
        let action = if bytes == old { FilePatchOutcome::Unchanged } else { FilePatchOutcome::Updated };
        let file = FilePatchResult {
            added: new.added,
            removed: new.removed,
            looseness: places.iter().map(|place| place.tolerance).collect(),
            before: file.text.into_owned(),
            after: new.text,
            lines: new.lines,
            notes: new.uses_file_endings.then(|| KEPT_ENDINGS.to_owned()).into_iter().collect(),
            ..FilePatchResult::new(path.to_owned(), place, action, Some(&bytes))
        };
        Ok(UpdatedFile { bytes, file })
    }

    /// Returns the places of all hunks, or all hunks that do not fit.
    fn place_hunks(
        self,
        path: &str,
        hunks: &[Hunk],
        lines: &[TextLine<'_>],
    ) -> Result<Vec<HunkPlacement>, Vec<PatchProblem>> {
        let lookup = HunkFinder::of(lines, self.files.stop());
        let (mut places, mut misfits): (Vec<HunkPlacement>, Vec<PatchProblem>) = (Vec::new(), Vec::new());
        let mut from = 0;
        for hunk in hunks {
            match lookup.place(hunk, from) {
                Ok(place) => {
                    from = place.first + hunk.old_lines().count();
                    places.push(place);
                }
                Err(misfit) => {
                    // Each description searches the whole file, and a long list of them is of no use.
                    let text = match misfits.len() < DESCRIBED {
                        true => hunk_problem::described(&misfit, hunk, lines, &lookup),
                        false => String::new(),
                    };
                    let text = format!("line {}: the hunk does not fit `{path}`: {text}", hunk.line);
                    misfits.push(PatchProblem { kind: hunk_problem::kind(&misfit), text });
                }
            }
        }
        if misfits.is_empty() { Ok(places) } else { Err(misfits) }
    }
}

/// Note for a patch whose line endings differ from those of the file.
const KEPT_ENDINGS: &str = "The line endings of the patch differ from those of the file, which were used.";

const WRITE_NEW: WriteOptions = WriteOptions { create_folders: true, overwrite: false, mode: None };

/// New content of a file, and the result to report.
struct UpdatedFile {
    bytes: Vec<u8>,
    file: FilePatchResult,
}

/// Returns the permission bits with execute permission for everyone who may read, or for no one.
fn with_execution(mode: u32, executable: bool) -> u32 {
    if executable { mode | (mode & 0o444) >> 2 } else { mode & !0o111 }
}

/// Gives the reason for hunks that do not fit: the file changed since it was read.
fn stale_hunks(wrong: Vec<PatchProblem>, path: &str) -> Vec<PatchProblem> {
    let with_advice = |PatchProblem { kind, text }| {
        let failure = stale(ToolFailure::new(kind, text), path);
        PatchProblem { kind: failure.kind, text: failure.message }
    };
    wrong.into_iter().map(with_advice).collect()
}

/// Decodes content for a diff; `None` if it is binary.
fn text_of(content: &[u8]) -> Option<String> {
    match detect(content, true) {
        TextDetection::Text(encoding) => Some(encoding.decode(&content[encoding.mark_bytes()..]).0.into_owned()),
        TextDetection::Binary(_) => None,
    }
}

fn problems_failure(wrong: &[PatchProblem]) -> ToolFailure {
    let kinds: BTreeSet<ErrorKind> = wrong.iter().map(|wrong| wrong.kind).collect();
    let kind = match kinds.first() {
        Some(kind) if kinds.len() == 1 => *kind,
        _ => ErrorKind::NoMatch,
    };
    let mut message = "the patch does not fit, and nothing was changed. In the patch:\n".to_owned();
    for wrong in wrong.iter().take(DESCRIBED) {
        message.push_str(&format!("{}\n", wrong.text.trim_end()));
    }
    if wrong.len() > DESCRIBED {
        message.push_str(&format!("… and {}\n", counted(wrong.len() - DESCRIBED, "more place")));
    }
    let next = match kinds.contains(&ErrorKind::StaleFile) {
        true => "Read the files that changed again, correct these places, and give the whole patch again.",
        false => "Correct these places, and give the whole patch again.",
    };
    ToolFailure::new(kind, message).next(next)
}

impl FilePatchResult {
    fn new(path: String, place: usize, action: FilePatchOutcome, content: Option<&[u8]>) -> Self {
        Self {
            path,
            place,
            changed_elsewhere: false,
            notes: Vec::new(),
            action,
            moved_from: None,
            etag: content.map(|content| etag(&digest_of(content))),
            added: 0,
            removed: 0,
            before: String::new(),
            after: String::new(),
            lines: Vec::new(),
            looseness: BTreeSet::new(),
        }
    }

    /// Updates this result with the outcome of the whole patch, which may name the file several times.
    fn apply_outcome(&mut self, changed: Option<&ChangedFile>) {
        match changed {
            Some(changed) => {
                self.etag = changed.after.map(|state| etag(&state.digest));
                if changed.before != changed.after {
                    self.notes.extend(notes(changed));
                }
            }
            // The patch created the file and deleted it again, so that it does not exist.
            None if self.action != FilePatchOutcome::Unchanged => self.etag = None,
            None => {}
        }
    }

    /// Returns `true` if the changed lines describe the whole change.
    pub(super) fn is_text_alone(&self) -> bool {
        matches!(self.action, FilePatchOutcome::Added | FilePatchOutcome::Updated) && self.notes.is_empty()
    }

    /// Describes the change on one line.
    pub(super) fn summary(&self) -> String {
        let (path, counts) = (&self.path, format!("(+{} -{})", self.added, self.removed));
        let mut text = match (self.action, &self.moved_from) {
            (FilePatchOutcome::Added, _) => format!("added `{path}` {counts}"),
            (FilePatchOutcome::Deleted, _) => format!("deleted `{path}` {counts}"),
            (FilePatchOutcome::Unchanged, _) => format!("`{path}` has this content already"),
            (FilePatchOutcome::Moved, Some(from)) => format!("moved `{from}` to `{path}` {counts}"),
            (FilePatchOutcome::Updated | FilePatchOutcome::Moved, _) => format!("updated `{path}` {counts}"),
        };
        let overlooked: Vec<&str> = self.looseness.iter().filter_map(|looseness| looseness.words()).collect();
        if !overlooked.is_empty() {
            text.push_str(&format!("; {} had to be ignored to find the place", overlooked.join(" and ")));
        }
        for (index, note) in self.notes.iter().enumerate() {
            text.push_str(if index == 0 { ". " } else { " " });
            text.push_str(note);
        }
        text
    }

    /// Returns the current text of at most `at_most` changed places.
    pub(super) fn places(&self, at_most: usize) -> String {
        let lines: Vec<&str> = lines_of(&self.after).iter().map(|line| line.text).collect();
        let mut text = String::new();
        for (first, end) in self.lines.iter().take(at_most) {
            text.push_str(&format!("\n`{}`:\n{}", self.path, surroundings(&lines, *first..*end, RADIUS)));
        }
        text
    }

    pub(super) fn into_output(self) -> FilePatchReport {
        FilePatchReport {
            path: self.path,
            action: self.action,
            moved_from: self.moved_from,
            etag: self.etag,
            added_lines: self.added,
            removed_lines: self.removed,
            changed_elsewhere: self.changed_elsewhere,
        }
    }
}
