//! What is found and told while the work of one run is put right, and what is refused of runs at the same time.
//!
//! A run that begins while another lives finds what that one planted. It must not count as there before: so whatever is
//! taken back is noted in a journal on the stage, which the inits of all runs share, and what was noted since a run
//! began was not there for it.

use super::super::{request::Aftermath, stage};
use rustix::fs::{CWD, Mode, OFlags, openat};
use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    fs::File,
    io::{self, Write},
    os::unix::{ffi::OsStrExt, fs::FileExt},
    path::{Path, PathBuf},
};

/// Notes of one run at most; then it notes that everything is refused.
const NOTES: usize = 1_024;

type Note = [u8; 32];
const EVERYTHING: Note = [0; 32];

/// The journal, as it was when a run began.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    from: u64,
}

/// What one look after a run goes by, and what comes of it.
#[derive(Debug)]
pub(super) struct Account<'a> {
    /// Where working trees may stand.
    pub(super) places: &'a [PathBuf],
    pub(super) told: Aftermath,
    journal: &'a Journal,
    others: HashSet<Note>,
    notes: usize,
}

impl Journal {
    /// To be opened before anything is looked at.
    pub(super) fn open() -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, stage::at("refused"), flags, Mode::from_raw_mode(0o600))?);
        let from = file.metadata()?.len();
        Ok(Self { file, from })
    }

    fn since(&self) -> io::Result<HashSet<Note>> {
        let mut notes = HashSet::new();
        let (mut at, mut note) = (self.from, EVERYTHING);
        let end = self.file.metadata()?.len();
        while at + (note.len() as u64) <= end {
            self.file.read_exact_at(&mut note, at)?;
            at += note.len() as u64;
            notes.insert(note);
        }
        Ok(notes)
    }
}

impl<'a> Account<'a> {
    pub(super) fn begin(places: &'a [PathBuf], journal: &'a Journal) -> Self {
        // What cannot be read could be anything.
        let others = journal.since().unwrap_or_else(|_| HashSet::from([EVERYTHING]));
        Self { places, told: Aftermath::default(), journal, others, notes: 0 }
    }

    /// Whether nothing was refused of others since the run began, which is the usual case.
    pub(super) fn is_alone(&self) -> bool {
        self.others.is_empty()
    }

    /// Whether this was refused of another run since this one began.
    pub(super) fn was_refused(&self, path: &Path, what: &[u8]) -> bool {
        !self.is_alone() && (self.others.contains(&EVERYTHING) || self.others.contains(&note(path, what)))
    }

    /// Notes that this was refused; after it was taken back, so that whoever still found it reads the note.
    pub(super) fn refuse(&mut self, path: &Path, what: &[u8]) {
        self.notes += 1;
        let written = match self.notes {
            ..NOTES => (&self.journal.file).write_all(&note(path, what)),
            NOTES => (&self.journal.file).write_all(&EVERYTHING),
            _ => Ok(()),
        };
        if let Err(error) = written {
            self.told.left(format!(
                "that settings of git were taken back could not be noted ({error}): commands that run at this moment may \
                 set them again; look at `.git/config` before you use git there"
            ));
        }
    }
}

fn note(path: &Path, what: &[u8]) -> Note {
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_bytes());
    hash.update([0]);
    hash.update(what);
    hash.finalize().into()
}
