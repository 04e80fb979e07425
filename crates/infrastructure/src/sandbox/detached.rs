//! What detached tasks leave in the data folder: a record each, and a socket for as long as they run. No tool reaches
//! that folder, and no confined program sees it.
//!
//! ```text
//! tasks/{principal and workspace}/task_3        the record: a secret line, then what its reader makes of it
//! tasks/{principal and workspace}/task_3.sock   where whoever knows the secret reaches it while it runs
//! ```
//!
//! A record is written before its socket goes, so one without an end and without anybody at the socket is of a task
//! whose process died.

use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::AsRawFd,
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
};
use toolstead_domain::principal::Principal;
use uuid::Uuid;

/// Records that are kept of tasks that have ended, and the bytes of them all. The oldest go first.
const KEPT_RECORDS: usize = 64;
const KEPT_BYTES: u64 = 256 << 20;

/// The detached tasks of a principal in a workspace.
#[derive(Debug, Clone)]
pub struct DetachedTasks {
    folder: PathBuf,
}

/// A task that is about to be kept.
#[derive(Debug)]
pub struct Begun {
    /// Its number, which no task here had before.
    pub number: u64,
    /// What whoever comes to its socket has to say first.
    pub secret: String,
    /// Where they come.
    pub listener: UnixListener,
}

impl DetachedTasks {
    /// Those in this data folder. Nothing is made yet.
    pub fn of(data: &Path, principal: &Principal, workspace: &Path) -> Self {
        let whose = [principal.id().as_bytes(), b"\0", workspace.as_os_str().as_bytes()].concat();
        let name: String = Sha256::digest(whose).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { folder: data.join("tasks").join(name) }
    }

    /// Takes the next number, and listens. Blocks for a moment.
    ///
    /// # Errors
    /// The system's, and `PermissionDenied` where the folder is not this user's alone.
    pub fn begin(&self) -> io::Result<Begun> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let numbers = self.numbers()?;
        self.make_room(&numbers);
        let mut number = numbers.last().map_or(1, |last| last + 1);
        let mut record = loop {
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path(number)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                record => break record?,
            }
        };
        let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        record.write_all(format!("{secret}\n").as_bytes())?;
        let folder = File::open(&self.folder)?;
        let listener = UnixListener::bind(short(&folder, number))?;
        Ok(Begun { number, secret, listener })
    }

    /// The tasks of which there is a record, oldest first. Blocks for a moment.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn numbers(&self) -> io::Result<Vec<u64>> {
        match fs::symlink_metadata(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Ok(facts) if facts.is_dir() && facts.uid() == geteuid().as_raw() && facts.mode() & 0o077 == 0 => {}
            Ok(_) => {
                let message = format!("`{}` is not a folder of this user alone", self.folder.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
            Err(error) => return Err(error),
        }
        let names = fs::read_dir(&self.folder)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut numbers: Vec<u64> = names.filter_map(|name| name.strip_prefix("task_")?.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The record, to be read from its beginning.
    ///
    /// # Errors
    /// The system's.
    pub fn record(&self, number: u64) -> io::Result<File> {
        File::open(self.path(number))
    }

    /// Writes on at the end of the record.
    ///
    /// # Errors
    /// The system's.
    pub fn append(&self, number: u64) -> io::Result<File> {
        OpenOptions::new().append(true).open(self.path(number))
    }

    /// The way to a task that runs.
    ///
    /// # Errors
    /// The system's, also when it does not run any more.
    pub fn connect(&self, number: u64) -> io::Result<UnixStream> {
        UnixStream::connect(short(&File::open(&self.folder)?, number))
    }

    /// Nobody comes to its socket from here on.
    pub fn close(&self, number: u64) {
        // It may be gone already.
        let _ = fs::remove_file(self.socket(number));
    }

    /// Removes the oldest records of tasks that do not run. The newest stays: its number is not given again.
    fn make_room(&self, numbers: &[u64]) {
        let (mut records, mut bytes) = (0, 0);
        for number in numbers.iter().rev() {
            let size = fs::symlink_metadata(self.path(*number)).map_or(0, |facts| facts.len());
            (records, bytes) = (records + 1, bytes + size);
            if records > 1 && (records > KEPT_RECORDS || bytes > KEPT_BYTES) && !self.socket(*number).exists() {
                let _ = fs::remove_file(self.path(*number));
            }
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("task_{number}"))
    }

    fn socket(&self, number: u64) -> PathBuf {
        self.folder.join(format!("task_{number}.sock"))
    }
}

/// The socket's path by way of a descriptor: the path of a socket is bounded to some hundred bytes, that of a data
/// folder is not.
fn short(folder: &File, number: u64) -> PathBuf {
    format!("/proc/self/fd/{}/task_{number}.sock", folder.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn tasks(folder: &Path, workspace: &str) -> DetachedTasks {
        DetachedTasks::of(folder, &Principal::local(), Path::new(workspace))
    }

    #[test]
    fn numbers_go_on_and_are_of_one_workspace() {
        let folder = tempfile::tempdir().unwrap();
        // Longer than the path of a socket may be.
        let data = folder.path().join("d".repeat(150));
        let (here, there) = (tasks(&data, "/a"), tasks(&data, "/b"));
        assert!(here.numbers().unwrap().is_empty());
        let (first, second) = (here.begin().unwrap(), here.begin().unwrap());
        assert_eq!((first.number, second.number, here.numbers().unwrap()), (1, 2, vec![1, 2]));
        assert_ne!(first.secret, second.secret);
        assert_eq!(there.begin().unwrap().number, 1);
        assert!(here.connect(1).is_ok());
        here.close(1);
        assert!(here.connect(1).is_err());
        // One that died left its socket.
        drop(second);
        assert!(here.connect(2).is_err());
    }

    #[test]
    fn the_oldest_records_go_and_no_number_comes_again() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path(), "/a");
        let running = tasks.begin().unwrap();
        for number in 2..=(KEPT_RECORDS as u64 + 10) {
            assert_eq!(tasks.begin().unwrap().number, number);
            tasks.close(number);
        }
        let numbers = tasks.numbers().unwrap();
        assert_eq!((numbers[0], numbers.len()), (running.number, KEPT_RECORDS + 2));
        tasks.append(*numbers.last().unwrap()).unwrap().set_len(KEPT_BYTES + 1).unwrap();
        assert_eq!(tasks.begin().unwrap().number, KEPT_RECORDS as u64 + 11);
        assert_eq!(tasks.numbers().unwrap().len(), 3);
    }

    #[test]
    fn a_folder_that_others_may_enter_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path(), "/a");
        tasks.begin().unwrap();
        fs::set_permissions(&tasks.folder, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(tasks.begin().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(tasks.numbers().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
