//! Applies a patch to the files that it names.

use crate::{
    builtin::{
        files::{
            change_set::{ChangeSet, Changed, recording::Recording},
            etag::{digest_of, etag},
            file_limits::FileLimits,
            written_file::{changed_elsewhere, missing, notes, stale},
        },
        text::{
            snippet::surroundings,
            text_edit::DecodedFile,
            text_encoding::{Detected, detect},
            wording::counted,
        },
        tools::apply_patch::{
            FileAction, OutputFile,
            matching::{Lookup, Looseness, Place},
            misfit,
            parser::{Action, FilePatch, Hunk},
            patched::patched,
            text_lines::{Line, lines_by_feeds, lines_of},
        },
    },
    sandbox::workspace::{granted::GrantedWorkspace, path_error::PathError, write::WriteOptions},
};
use std::collections::{BTreeMap, BTreeSet};
use toolstead_domain::{error_kind::ErrorKind, tool_failure::ToolFailure};

/// As many hunks that do not fit are described.
const DESCRIBED: usize = 10;
/// As many lines stand before and after a place that is shown.
const RADIUS: usize = 2;

/// What patching works with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patching<'a> {
    pub(super) files: &'a GrantedWorkspace,
    pub(super) limits: &'a FileLimits,
}

/// One file after its patch.
#[derive(Debug)]
pub(super) struct PatchedFile {
    pub(super) path: String,
    action: FileAction,
    moved_from: Option<String>,
    etag: Option<String>,
    added: usize,
    removed: usize,
    /// The texts, for a diff; empty where there is none.
    pub(super) before: String,
    pub(super) after: String,
    /// The lines of each hunk as they are now, from 0: the first, and the one behind the last.
    pub(super) lines: Vec<(usize, usize)>,
    /// What had to be overlooked for the hunks to fit.
    looseness: BTreeSet<Looseness>,
    /// Its place in the change set.
    place: usize,
    changed_elsewhere: bool,
    /// What is not as one might expect, in sentences.
    notes: Vec<String>,
}

/// A place in the patch where it does not fit, and why.
struct Wrong {
    kind: ErrorKind,
    text: String,
}

impl Patching<'_> {
    /// Applies all of it, or nothing: what became of each file, and whether any is not as it was.
    ///
    /// # Errors
    /// Everything that does not fit, at once; `no_match` and `ambiguous_match` for hunks.
    pub(super) fn apply(
        self,
        patch: &[FilePatch],
        recording: &Recording,
        dry_run: bool,
    ) -> Result<(Vec<PatchedFile>, bool), ToolFailure> {
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
            return Err(misfits(&wrong));
        }
        let planned = (0..paths.len()).filter(|index| set.is_planned(*index)).map(|index| set.file(index));
        let planned: BTreeSet<usize> = planned.collect();
        let changed: BTreeMap<usize, Changed> = planned.into_iter().zip(set.commit(recording, dry_run)?).collect();
        for file in &mut patched {
            file.is_now(changed.get(&file.place));
        }
        Ok((patched, changed.values().any(Changed::is_change)))
    }

    /// Plans what becomes of one file. Its path has this index in the set, and its new path the next.
    fn plan(
        self,
        set: &mut ChangeSet<'_>,
        file: &FilePatch,
        index: usize,
        recording: &Recording,
    ) -> Result<Result<PatchedFile, Vec<Wrong>>, ToolFailure> {
        let wrong = |kind, text: String| Ok(Err(vec![Wrong { kind, text: format!("line {}: {text}", file.line) }]));
        let (path, place) = (set.shown(index).to_owned(), set.file(index));
        let limit = match &file.action {
            Action::Update { hunks, .. } | Action::Delete { was: Some(hunks) } if !hunks.is_empty() => {
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
            (Action::Add(new), Some(old)) if old == new.as_bytes() && file.executable.is_none() => {
                let unchanged = PatchedFile::new(path, place, FileAction::Unchanged, Some(&old));
                set.put(index, old, WriteOptions { create_folders: false, overwrite: true, mode: None });
                Ok(Ok(unchanged))
            }
            (Action::Add(_), Some(_)) => wrong(
                ErrorKind::InvalidInput,
                format!("`{path}` exists already. Use `*** Update File`, or delete it in the same patch first."),
            ),
            (Action::Add(new), None) => {
                let added = PatchedFile::new(path, place, FileAction::Added, Some(new.as_bytes()));
                let mode = file.executable.and_then(|executable| executable.then_some(0o755));
                set.put(index, new.clone().into_bytes(), WriteOptions { mode, ..WRITE_NEW });
                let notes = mode.map(|_| "It is executable.".to_owned()).into_iter().collect();
                Ok(Ok(PatchedFile { added: new.lines().count(), after: new.clone(), notes, ..added }))
            }
            (Action::Delete { .. } | Action::Update { .. }, None) => {
                let failure = missing(self.files, &file.path);
                wrong(failure.kind, failure.text())
            }
            (Action::Delete { was: None }, Some(_)) if is_stale => {
                let text = format!("`{path}` was changed since it was read. Read it again before it is deleted.");
                wrong(ErrorKind::StaleFile, text)
            }
            (Action::Delete { was }, Some(old)) => {
                if let Some(hunks) = was {
                    match self.rest(&path, place, &old, hunks, file.line) {
                        Ok(0) => {}
                        Ok(rest) => {
                            let rest = counted(rest, "line");
                            let text = format!(
                                "`{path}` is to be deleted, and has {rest} that the diff does not remove. Read it again."
                            );
                            return wrong(ErrorKind::NoMatch, text);
                        }
                        Err(wrong) => return Ok(Err(if is_stale { stale_hunks(wrong, &path) } else { wrong })),
                    }
                }
                set.delete(index);
                let before = text_of(&old).unwrap_or_default();
                let removed = before.lines().count();
                Ok(Ok(PatchedFile { removed, before, ..PatchedFile::new(path, place, FileAction::Deleted, None) }))
            }
            (Action::Update { to, hunks }, Some(old)) => {
                let mut updated = match self.updated(&path, place, &old, hunks, file.line) {
                    Ok(updated) => updated,
                    Err(wrong) => return Ok(Err(if is_stale { stale_hunks(wrong, &path) } else { wrong })),
                };
                if is_stale {
                    updated.file.notes.push(match hunks.is_empty() {
                        true => format!("`{path}` was changed by somebody else since you read it."),
                        false => changed_elsewhere(&path),
                    });
                }
                updated.file.changed_elsewhere = is_stale;
                if file.executable.is_some() {
                    updated.file.action = FileAction::Updated;
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
                // Whether it is there, and not what it holds.
                if set.content(index + 1, 0).map_or(true, |there| there.is_some()) {
                    let text = format!("`{path}` cannot be moved to `{shown}`, which exists already.");
                    return wrong(ErrorKind::InvalidInput, text);
                }
                set.put(index + 1, updated.bytes, WriteOptions { mode: new_mode.or(mode), ..WRITE_NEW });
                set.delete(index);
                let (action, place) = (FileAction::Moved, set.file(index + 1));
                Ok(Ok(PatchedFile { path: shown, place, action, moved_from: Some(path), ..updated.file }))
            }
        }
    }

    /// How many lines are left of the file when the hunks have removed theirs, or why these do not fit.
    fn rest(self, path: &str, place: usize, old: &[u8], hunks: &[Hunk], line: usize) -> Result<usize, Vec<Wrong>> {
        if hunks.is_empty() {
            return Ok(if old.is_empty() { 0 } else { text_of(old).map_or(1, |text| lines_of(&text).len()) });
        }
        let updated = self.updated(path, place, old, hunks, line)?;
        Ok(lines_of(&updated.file.after).len())
    }

    /// The file with its hunks, or all those that do not fit.
    fn updated(
        self,
        path: &str,
        place: usize,
        bytes: &[u8],
        hunks: &[Hunk],
        line: usize,
    ) -> Result<Updated, Vec<Wrong>> {
        let wrong = |kind, text: String| vec![Wrong { kind, text: format!("line {line}: {text}") }];
        if hunks.is_empty() {
            let file = PatchedFile::new(path.to_owned(), place, FileAction::Updated, Some(bytes));
            return Ok(Updated { bytes: bytes.to_vec(), file });
        }
        let file = DecodedFile::of(bytes, path).map_err(|failure| wrong(failure.kind, failure.text()))?;
        // Where lone carriage returns end lines, a program's patch takes the whole for one line, and a model's does not.
        let by_feeds = lines_by_feeds(&file.text);
        let is_by_feeds = hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.text().contains('\r'));
        let placed = is_by_feeds.then(|| self.placed(path, hunks, &by_feeds));
        let (lines, placed) = match placed {
            Some(Ok(places)) => (by_feeds, Ok(places)),
            _ => {
                let lines = lines_of(&file.text);
                let placed = self.placed(path, hunks, &lines);
                (lines, placed)
            }
        };
        let places = placed?;
        let new = patched(&lines, hunks, &places);
        // The text that was there comes out as it went in: that was made sure when it was decoded.
        let body = file
            .encoded(&new.text)
            .map_err(|failure| wrong(failure.kind, format!("`{path}` cannot hold that: {}", failure.text())))?;
        let (old, bytes) = (bytes, [&bytes[..file.encoding.mark_bytes()], &body].concat());
        let action = if bytes == old { FileAction::Unchanged } else { FileAction::Updated };
        let file = PatchedFile {
            added: new.added,
            removed: new.removed,
            looseness: places.iter().map(|place| place.looseness).collect(),
            before: file.text.into_owned(),
            after: new.text,
            lines: new.lines,
            notes: new.kept_endings.then(|| KEPT_ENDINGS.to_owned()).into_iter().collect(),
            ..PatchedFile::new(path.to_owned(), place, action, Some(&bytes))
        };
        Ok(Updated { bytes, file })
    }

    /// Where all of the hunks stand, or all those that do not fit.
    fn placed(self, path: &str, hunks: &[Hunk], lines: &[Line<'_>]) -> Result<Vec<Place>, Vec<Wrong>> {
        let lookup = Lookup::of(lines, self.files.stop());
        let (mut places, mut misfits): (Vec<Place>, Vec<Wrong>) = (Vec::new(), Vec::new());
        let mut from = 0;
        for hunk in hunks {
            match lookup.place(hunk, from) {
                Ok(place) => {
                    from = place.first + hunk.old_lines().count();
                    places.push(place);
                }
                Err(misfit) => {
                    // Nobody reads more of them, and each takes a look at the whole file.
                    let text = match misfits.len() < DESCRIBED {
                        true => misfit::described(&misfit, hunk, lines, &lookup),
                        false => String::new(),
                    };
                    let text = format!("line {}: the hunk does not fit `{path}`: {text}", hunk.line);
                    misfits.push(Wrong { kind: misfit::kind(&misfit), text });
                }
            }
        }
        if misfits.is_empty() { Ok(places) } else { Err(misfits) }
    }
}

/// What to say of a patch that tells other line endings than the file has.
const KEPT_ENDINGS: &str = "The patch tells other line endings than the file has there, whose own were taken.";

const WRITE_NEW: WriteOptions = WriteOptions { create_folders: true, overwrite: false, mode: None };

/// A file after its hunks.
struct Updated {
    bytes: Vec<u8>,
    file: PatchedFile,
}

/// Permission bits with execution by everybody who may read, or by nobody.
fn with_execution(mode: u32, executable: bool) -> u32 {
    if executable { mode | (mode & 0o444) >> 2 } else { mode & !0o111 }
}

/// Hunks that do not fit a file that changed since it was read: that is why.
fn stale_hunks(wrong: Vec<Wrong>, path: &str) -> Vec<Wrong> {
    let told = |Wrong { kind, text }| {
        let failure = stale(ToolFailure::new(kind, text), path);
        Wrong { kind: failure.kind, text: failure.message }
    };
    wrong.into_iter().map(told).collect()
}

/// A content as text, for a diff.
fn text_of(content: &[u8]) -> Option<String> {
    match detect(content, true) {
        Detected::Text(encoding) => Some(encoding.decode(&content[encoding.mark_bytes()..]).0.into_owned()),
        Detected::Binary(_) => None,
    }
}

fn misfits(wrong: &[Wrong]) -> ToolFailure {
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

impl PatchedFile {
    fn new(path: String, place: usize, action: FileAction, content: Option<&[u8]>) -> Self {
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

    /// Takes over what the whole patch made of the file, which it may name several times.
    fn is_now(&mut self, changed: Option<&Changed>) {
        match changed {
            Some(changed) => {
                self.etag = changed.after.map(|state| etag(&state.digest));
                if changed.before != changed.after {
                    self.notes.extend(notes(changed));
                }
            }
            // What the patch made and deleted again is not there.
            None if self.action != FileAction::Unchanged => self.etag = None,
            None => {}
        }
    }

    /// Whether its lines say all that became of it.
    pub(super) fn is_text_alone(&self) -> bool {
        matches!(self.action, FileAction::Added | FileAction::Updated) && self.notes.is_empty()
    }

    /// What became of it, on one line.
    pub(super) fn summary(&self) -> String {
        let (path, counts) = (&self.path, format!("(+{} -{})", self.added, self.removed));
        let mut text = match (self.action, &self.moved_from) {
            (FileAction::Added, _) => format!("added `{path}` {counts}"),
            (FileAction::Deleted, _) => format!("deleted `{path}` {counts}"),
            (FileAction::Unchanged, _) => format!("`{path}` holds that already"),
            (FileAction::Moved, Some(from)) => format!("moved `{from}` to `{path}` {counts}"),
            (FileAction::Updated | FileAction::Moved, _) => format!("updated `{path}` {counts}"),
        };
        let overlooked: Vec<&str> = self.looseness.iter().filter_map(|looseness| looseness.words()).collect();
        if !overlooked.is_empty() {
            text.push_str(&format!("; to find the place, {} had to be overlooked", overlooked.join(" and ")));
        }
        for (index, note) in self.notes.iter().enumerate() {
            text.push_str(if index == 0 { ". " } else { " " });
            text.push_str(note);
        }
        text
    }

    /// At most so many of the changed places as they read now.
    pub(super) fn places(&self, at_most: usize) -> String {
        let lines: Vec<&str> = lines_of(&self.after).iter().map(|line| line.text).collect();
        let mut text = String::new();
        for (first, end) in self.lines.iter().take(at_most) {
            text.push_str(&format!("\n`{}`:\n{}", self.path, surroundings(&lines, *first..*end, RADIUS)));
        }
        text
    }

    pub(super) fn into_output(self) -> OutputFile {
        OutputFile {
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
