//! Files of detached tasks in the data folder: a record for each task, and a socket while it runs. Tools cannot access
//! this folder, and confined programs cannot see it.
//!
//! ```text
//! tasks/{principal and workspace}/task_3        the record: a secret line, then what its reader makes of it
//! tasks/{principal and workspace}/task_3.sock   where whoever knows the secret reaches it while it runs
//! ```
//!
//! A record is completed before its socket is removed. Therefore a record without an end whose socket accepts no
//! connection belongs to a task whose process died.

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
use toolstead_domain::Principal;
use uuid::Uuid;

/// Maximum number of records. If there are more, the oldest ones of ended tasks are removed.
const KEPT_RECORDS: usize = 64;
/// Maximum total size of the records, in bytes. If they are larger, the oldest ones of ended tasks are removed.
const KEPT_BYTES: u64 = 256 << 20;

/// Detached tasks of a principal in a workspace.
#[derive(Debug, Clone)]
pub struct DetachedTaskStore {
    folder: PathBuf,
}

/// A new detached task.
#[derive(Debug)]
pub struct DetachedTaskSocket {
    /// Number of the task. Numbers are not reused in this folder.
    pub number: u64,
    /// Secret that a client of the socket has to send first.
    pub secret: String,
    /// Socket on which clients connect.
    pub listener: UnixListener,
}

impl DetachedTaskStore {
    /// Returns the tasks in this data folder. Creates nothing yet.
    pub fn of(data: &Path, principal: &Principal, workspace: &Path) -> Self {
        let whose = [principal.id().as_bytes(), b"\0", workspace.as_os_str().as_bytes()].concat();
        let name: String = Sha256::digest(whose).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { folder: data.join("tasks").join(name) }
    }

    /// Removes the oldest records if there are too many, takes the next number, creates the record, which begins with
    /// the secret, and listens on the socket. Blocks for a moment.
    ///
    /// # Errors
    /// The error of the system, or `PermissionDenied` if other users have access to the folder.
    pub fn begin(&self) -> io::Result<DetachedTaskSocket> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let numbers = self.numbers()?;
        self.remove_old_records(&numbers);
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
        let listener = UnixListener::bind(short_socket_path(&folder, number))?;
        Ok(DetachedTaskSocket { number, secret, listener })
    }

    /// Returns the numbers of all tasks with a record, oldest first. Blocks for a moment.
    ///
    /// # Errors
    /// As for [`begin`](Self::begin).
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

    /// Opens the record for reading from its beginning.
    ///
    /// # Errors
    /// The error of the system.
    pub fn record(&self, number: u64) -> io::Result<File> {
        File::open(self.path(number))
    }

    /// Opens the record for appending.
    ///
    /// # Errors
    /// The error of the system.
    pub fn append(&self, number: u64) -> io::Result<File> {
        OpenOptions::new().append(true).open(self.path(number))
    }

    /// Connects to a running task.
    ///
    /// # Errors
    /// The error of the system, also if the task no longer runs.
    pub fn connect(&self, number: u64) -> io::Result<UnixStream> {
        UnixStream::connect(short_socket_path(&File::open(&self.folder)?, number))
    }

    /// Removes the socket, so that no further client can connect.
    pub fn close(&self, number: u64) {
        // It may have been removed already.
        let _ = fs::remove_file(self.socket(number));
    }

    /// Removes the oldest records of tasks that have ended. The newest record stays, so that its number is not reused.
    fn remove_old_records(&self, numbers: &[u64]) {
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

/// Returns a path of the socket through a descriptor. The path of a socket may have only about 100 bytes, and the path
/// of a data folder can be longer.
fn short_socket_path(folder: &File, number: u64) -> PathBuf {
    format!("/proc/self/fd/{}/task_{number}.sock", folder.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn tasks(folder: &Path, workspace: &str) -> DetachedTaskStore {
        DetachedTaskStore::of(folder, &Principal::local(), Path::new(workspace))
    }

    #[test]
    fn task_numbers_increase_separately_in_each_workspace() {
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
        // A task that died left its socket behind.
        drop(second);
        assert!(here.connect(2).is_err());
    }

    #[test]
    fn the_oldest_task_records_are_removed_and_numbers_are_not_reused() {
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
