//! Detection of dead processes that used the database.
//!
//! Each process locks a file of its own while it may write, `instances/{id}.lock` beside the database. The kernel
//! releases the lock when the process ends for any reason, so a free lock means a dead process. Unlike a process id it
//! is never reused, and unlike a heartbeat never late.

use super::{
    backlog::{self, BacklogLocation},
    fault::Fault,
    recorder::AuditLogConnection,
};
use sqlx::SqliteConnection;
use std::{
    collections::BTreeSet,
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// One opening of the database by this process. Its lock is released when the value is dropped.
#[derive(Debug)]
pub(super) struct InstanceLock {
    id: Uuid,
    path: PathBuf,
    /// File that holds the lock.
    _lock: File,
}

impl InstanceLock {
    /// Creates and locks a file in this folder.
    pub(super) fn join(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        loop {
            let id = Uuid::new_v4();
            let path = lock_path(folder, id);
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            // Between its creation and its lock the file looks like that of a dead process. If another process has
            // locked or removed it in between, another id is tried.
            match file.try_lock() {
                Ok(()) if file.metadata()?.nlink() > 0 => return Ok(Self { id, path, _lock: file }),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Returns the id of this process in the rows of its running calls.
    pub(super) fn id(&self) -> Uuid {
        self.id
    }
}

impl Drop for InstanceLock {
    fn drop(&mut self) {
        // A remaining file is removed later by another process.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Writes the backlog of dead processes, marks their running calls as interrupted, and returns the ids of these
/// processes. Their lock files remain until [`remove_lock_files`], while there is still work for them. A process whose
/// records cannot be read or written is left for the next attempt.
pub(super) async fn recover_dead_instances(
    connection: &mut SqliteConnection,
    recorder: &mut AuditLogConnection,
    backlogs: &BacklogLocation,
    folder: &Path,
    own: &InstanceLock,
) -> Result<Vec<Uuid>, Fault> {
    let mut dead = Vec::new();
    let running: BTreeSet<Uuid> = sqlx::query_scalar(
        "SELECT DISTINCT instance FROM tool_executions INDEXED BY tool_executions_running WHERE instance IS NOT NULL",
    )
    .fetch_all(&mut *connection)
    .await?
    .into_iter()
    .collect();
    let with_rows = backlogs.files().map_err(Fault::Files)?.into_iter().map(|(id, _)| id);
    let known = lock_files(folder).chain(running.iter().copied()).chain(with_rows);
    for id in known.collect::<BTreeSet<Uuid>>() {
        if id == own.id {
            continue;
        }
        let path = lock_path(folder, id);
        // Held until the rows are marked, so that only one of several processes marks them.
        let Some(lock) = lock_of_the_dead(&path) else { continue };
        match write_rows(recorder, backlogs, id) {
            Ok(wrote) if wrote || running.contains(&id) => {
                sqlx::query("UPDATE tool_executions SET outcome = 'interrupted', instance = NULL WHERE instance = $1")
                    .bind(id)
                    .execute(&mut *connection)
                    .await?;
            }
            Ok(_) => {}
            Err(fault) => {
                let fault: &(dyn std::error::Error + 'static) = &fault;
                tracing::warn!(error = fault, process = %id, "could not yet store the records of a killed process");
                continue;
            }
        }
        drop(lock);
        dead.push(id);
    }
    Ok(dead)
}

/// Writes the backlog of a dead process and puts its files away. The files are listed here, when the process can no
/// longer create any. Returns `true` if there were records.
fn write_rows(recorder: &mut AuditLogConnection, backlogs: &BacklogLocation, id: Uuid) -> Result<bool, Fault> {
    let mut wrote = false;
    for (_, path) in backlogs.files().map_err(Fault::Files)?.into_iter().filter(|(owner, _)| *owner == id) {
        let read = backlog::records_in(&path).map_err(Fault::Files)?;
        if !read.records.is_empty() {
            let rows = || read.records.iter().map(|(row, _)| row);
            backlog::refused(rows(), recorder.record(rows())?.into_iter());
            wrote = true;
        }
        backlog::put_away(path, &read);
    }
    Ok(wrote)
}

/// Removes the lock files of dead processes after all work for them is done.
pub(super) fn remove_lock_files(folder: &Path, dead: &[Uuid]) {
    for id in dead {
        let path = lock_path(folder, *id);
        // The process may be alive and about to take its lock.
        if let Some(_lock) = lock_of_the_dead(&path) {
            // Another process may have removed the file. A remaining file is harmless.
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Returns `true` if the process lives or its state is unknown.
pub(super) fn lives(folder: &Path, id: Uuid) -> bool {
    lock_of_the_dead(&lock_path(folder, id)).is_none()
}

/// Returns the lock of a dead process, which is `Some(None)` without a lock file; `None` if the process lives.
fn lock_of_the_dead(path: &Path) -> Option<Option<File>> {
    match OpenOptions::new().write(true).open(path) {
        Ok(file) => file.try_lock().is_ok().then_some(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(None),
        // A file without access may belong to a process of another user.
        Err(_) => None,
    }
}

fn lock_files(folder: &Path) -> impl Iterator<Item = Uuid> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".lock")?.parse().ok())
}

fn lock_path(folder: &Path, id: Uuid) -> PathBuf {
    folder.join(format!("{id}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{
        backlog::AuditBacklog,
        connection::readers,
        new_database::{TestDatabase, new_database},
        pending_record::PendingRecord,
    };
    use toolstead_domain::{OutcomeKind, ToolExecution, testing::samples};

    fn append(backlog: &AuditBacklog, execution: ToolExecution, instance: Uuid) {
        backlog.append(PendingRecord::new(&execution, instance)).unwrap();
    }

    #[tokio::test]
    async fn records_of_a_dead_process_are_written_and_unreadable_backlogs_are_left() {
        let TestDatabase { folder, options, mut connection, mut recorder } = new_database().await;
        let instances = folder.path().join("instances");
        let backlogs = BacklogLocation::new(&instances, &options.path);
        let own = InstanceLock::join(&instances).unwrap();
        let [dead, unclear, alive] = [(); 3].map(|()| InstanceLock::join(&instances).unwrap());
        let (dead_id, unclear_id) = (dead.id, unclear.id);
        // In two files: a call that ran and ended, and a running one.
        let backlog = AuditBacklog::new(backlogs.clone(), dead_id, true);
        append(&backlog, samples::running_execution(1), dead_id);
        append(&backlog, samples::running_execution(2), dead_id);
        for number in 100..700 {
            append(&backlog, samples::execution(number), dead_id);
        }
        backlog.failed(backlog.take(), &Fault::Closed);
        assert!(backlog.has_failed());
        backlog.committed(backlog::BacklogBatch::default());
        append(&backlog, samples::execution(1), dead_id);
        // A directory in place of a backlog file cannot be read. The call of that process is running in the database.
        let running = samples::running_execution(3);
        recorder.record([PendingRecord::new(&running, unclear_id)].iter()).unwrap();
        std::fs::create_dir(instances.join(format!("{unclear_id}.0.test.db.rows"))).unwrap();
        // Another database in the same folder, and a living process.
        let other = AuditBacklog::new(BacklogLocation::new(&instances, Path::new("other.db")), dead_id, true);
        append(&other, samples::execution(4), dead_id);
        append(&AuditBacklog::new(backlogs.clone(), alive.id, true), samples::running_execution(5), alive.id);
        assert_eq!(backlogs.files().unwrap().len(), 4);
        drop((dead, unclear));

        let recovered =
            recover_dead_instances(&mut connection, &mut recorder, &backlogs, &instances, &own).await.unwrap();
        assert_eq!(recovered, [dead_id]);
        let left: BTreeSet<Uuid> = backlogs.files().unwrap().into_iter().map(|(id, _)| id).collect();
        assert_eq!(left, BTreeSet::from([unclear_id, alive.id]));
        let pool = readers(&options.path, &options);
        for (number, outcome) in [
            (1, Some(OutcomeKind::Succeeded)),
            (2, Some(OutcomeKind::Interrupted)),
            (3, Some(OutcomeKind::Running)),
            (4, None),
            (5, None),
            (699, Some(OutcomeKind::Succeeded)),
        ] {
            let found: Option<String> = sqlx::query_scalar("SELECT outcome FROM tool_executions WHERE id = $1")
                .bind(samples::call_id(number).0)
                .fetch_optional(&pool)
                .await
                .unwrap();
            assert_eq!(found.as_deref(), outcome.map(OutcomeKind::as_str), "{number}");
        }
    }

    #[test]
    fn a_running_process_keeps_its_lock_and_the_lock_file_is_removed_at_exit() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = [(); 2].map(|()| InstanceLock::join(folder.path()).unwrap());
        assert_eq!(lock_files(folder.path()).collect::<BTreeSet<_>>(), BTreeSet::from([one.id, two.id]));
        assert!(lock_of_the_dead(&one.path).is_none());
        let path = one.path.clone();
        drop(one);
        assert!(matches!(lock_of_the_dead(&path), Some(None)));
        assert_eq!(lock_files(folder.path()).collect::<Vec<_>>(), [two.id]);
    }

    #[test]
    fn an_unheld_lock_marks_a_dead_process_and_only_one_process_acquires_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = lock_path(folder.path(), Uuid::from_u128(7));
        std::fs::write(&path, "").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "").unwrap();
        let lock = lock_of_the_dead(&path).unwrap();
        assert!(lock.is_some());
        // While one process recovers it, it looks alive to another.
        assert!(lock_of_the_dead(&path).is_none());
        assert_eq!(lock_files(folder.path()).collect::<Vec<_>>(), [Uuid::from_u128(7)]);
    }
}
