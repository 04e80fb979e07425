//! Location of the backlog files of one database, and their records.

use crate::sqlite::{
    execution_record::{self, DecodedRecord},
    fault::Fault,
    pending_record::PendingRecord,
};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};
use toolstead_domain::CallId;
use uuid::Uuid;

/// Number of bytes that are read at once: records of a quiet process end soon, and zeros follow them.
const READ_BYTES: u64 = 64 << 10;
/// Maximum number of times that the files of a process are read while it renames them.
const MAX_READS: usize = 100;

/// Location of the backlog files of one database: the folder of the lock files, which several databases may share.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct BacklogLocation {
    folder: PathBuf,
    /// Suffix of the files' names.
    ending: String,
}

impl BacklogLocation {
    /// Returns the location of the database's backlog files in this folder.
    pub(in crate::sqlite) fn new(folder: &Path, database: &Path) -> Self {
        let name = database.file_name().map(OsString::from).unwrap_or_default();
        Self { folder: folder.to_owned(), ending: format!(".{}.rows", name.to_string_lossy()) }
    }

    /// Returns the existing backlog files, each after the id of the process that wrote it. Those of one process are in
    /// the order in which it wrote them.
    pub(in crate::sqlite) fn files(&self) -> io::Result<Vec<(Uuid, PathBuf)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let parts = name.to_str().and_then(|name| name.strip_suffix(&self.ending)?.split_once('.'));
            if let Some((instance, number)) = parts
                && let (Ok(instance), Ok(number)) = (instance.parse::<Uuid>(), number.parse::<u64>())
            {
                found.push((instance, number, entry.path()));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(instance, _, path)| (instance, path)).collect())
    }

    /// Returns the pending audit records of the wanted calls from all processes; some of them may be in the database
    /// already. The records of one process are in their order, and none is older than the state in the database when
    /// this function is called.
    pub(in crate::sqlite) fn records(&self, is_wanted: impl Fn(CallId) -> bool) -> Result<Vec<DecodedRecord>, Fault> {
        let texts = self.texts().map_err(Fault::Files)?;
        let read = texts.iter().flat_map(|(path, text)| parse(text, path, &is_wanted).records);
        Ok(read.map(|(_, record)| record).collect())
    }

    /// Reads all files. A process renames a file when its records are in the database, and then appends new ones, so
    /// the files of a process belong together only if their names have not changed meanwhile.
    fn texts(&self) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
        let mut read: BTreeMap<Uuid, Vec<(PathBuf, Vec<u8>)>> = BTreeMap::new();
        let mut listed = self.files_by_process()?;
        for _ in 0..MAX_READS {
            for (process, paths) in &listed {
                let mut texts = Vec::with_capacity(paths.len());
                for path in paths {
                    match File::open(path).and_then(read_text) {
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        text => texts.push((path.clone(), text?)),
                    }
                }
                read.insert(*process, texts);
            }
            let mut files = self.files_by_process()?;
            let mut changed = BTreeMap::new();
            for (process, before) in listed {
                match files.remove(&process) {
                    Some(now) if now == before => {}
                    Some(now) => _ = changed.insert(process, now),
                    // All its records are in the database.
                    None => _ = read.remove(&process),
                }
            }
            listed = changed;
            if listed.is_empty() {
                return Ok(read.into_values().flatten().collect());
            }
        }
        tracing::warn!(processes = listed.len(), "pending audit records changed while they were read");
        Ok(read.into_values().flatten().collect())
    }

    fn files_by_process(&self) -> io::Result<BTreeMap<Uuid, Vec<PathBuf>>> {
        let mut files: BTreeMap<Uuid, Vec<PathBuf>> = BTreeMap::new();
        for (process, path) in self.files()? {
            files.entry(process).or_default().push(path);
        }
        Ok(files)
    }

    /// Returns the path of this file of a process.
    pub(super) fn file(&self, instance: Uuid, number: u64) -> PathBuf {
        self.folder.join(format!("{instance}.{number}{}", self.ending))
    }
}

#[derive(Debug, Default)]
pub(in crate::sqlite) struct BacklogRecords {
    /// Records to write, with their decoded form.
    pub(in crate::sqlite) records: Vec<(PendingRecord, DecodedRecord)>,
    /// `true` if a complete line is not a valid record: the file is damaged, or of a later version.
    pub(in crate::sqlite) is_damaged: bool,
}

/// Reads the records of a backlog file. A missing file has none, because it was committed and deleted.
pub(in crate::sqlite) fn records_in(path: &Path) -> io::Result<BacklogRecords> {
    match File::open(path).and_then(read_text) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BacklogRecords::default()),
        text => Ok(parse(&text?, path, &|_| true)),
    }
}

/// Reads a file up to the zeros after its records. Returns nothing if the file is being cleared, because its records are
/// in the database.
fn read_text(mut file: File) -> io::Result<Vec<u8>> {
    let mut text = read_to_zero(&mut file)?;
    let mut first = [0; 1];
    if file.read_at(&mut first, 0).is_ok_and(|read| read == 0 || first == [0]) {
        text.clear();
    }
    Ok(text)
}

fn read_to_zero(file: &mut File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let start = text.len();
        let read = file.take(READ_BYTES).read_to_end(&mut text)?;
        if let Some(end) = text[start..].iter().position(|byte| *byte == 0) {
            text.truncate(start + end);
            return Ok(text);
        }
        if read == 0 {
            return Ok(text);
        }
    }
}

/// Parses the records of wanted calls. A partial record at the end of the file was never acknowledged and is skipped.
/// An invalid record is logged and marks the contents as damaged.
fn parse(text: &[u8], path: &Path, is_wanted: &dyn Fn(CallId) -> bool) -> BacklogRecords {
    let mut read = BacklogRecords::default();
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    for line in lines.filter(|line| !line.is_empty()) {
        if execution_record::id_of(line).is_some_and(|id| !is_wanted(id)) {
            continue;
        }
        match DecodedRecord::decode(line) {
            Ok(record) if is_wanted(record.execution.id) => {
                read.records.push((PendingRecord::read(line, &record), record));
            }
            Ok(_) => {}
            Err(error) => {
                let (error, file) = (&error as &dyn std::error::Error, path.display());
                tracing::warn!(error, %file, "could not read a pending audit record");
                read.is_damaged = true;
            }
        }
    }
    read
}

/// Deletes the file of a dead process after its records are in the database. A file with unreadable records is renamed
/// instead.
pub(in crate::sqlite) fn put_away(path: PathBuf, read: &BacklogRecords) {
    if read.is_damaged {
        let mut kept = path.clone().into_os_string();
        kept.push(".damaged");
        let _ = fs::rename(&path, kept);
    } else {
        // A remaining file is committed again later, without effect.
        let _ = fs::remove_file(path);
    }
}

/// Logs records that the database rejects. Trying again would fail in the same way, so only the log mentions them.
pub(in crate::sqlite) fn refused<'a>(
    rows: impl Iterator<Item = &'a PendingRecord>,
    written: impl Iterator<Item = Result<(), Fault>>,
) {
    for (row, written) in rows.zip(written) {
        if let Err(fault) = written {
            let fault: &(dyn std::error::Error + 'static) = &fault;
            tracing::error!(call = %row.id(), error = fault, "the database rejected an audit record");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom};

    #[test]
    fn a_file_that_is_cleared_while_it_is_read_has_no_records() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        for (text, expected) in [("x\nrest\n", "\nrest\n"), ("\0\nrest\n", "")] {
            fs::write(&path, text).unwrap();
            let mut file = File::open(&path).unwrap();
            // The first byte was read before it was cleared.
            file.seek(SeekFrom::Start(1)).unwrap();
            assert_eq!(read_text(file).unwrap(), expected.as_bytes());
        }
    }
}
