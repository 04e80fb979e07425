//! Backup of a database before its schema is updated.

use super::{database_files::BACKUPS, fault::Fault};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sqlx::SqliteConnection;
use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// Copies the database to `backups/NAME.STEP` beside it, where `STEP` is the number of its last migration, and deletes
/// older backups. A database without a file has no backup.
pub(super) async fn back_up(connection: &mut SqliteConnection, step: usize) -> Result<(), Fault> {
    let file: Option<String> = sqlx::query_scalar("SELECT file FROM pragma_database_list WHERE name = 'main'")
        .fetch_optional(&mut *connection)
        .await?;
    let Some(database) = file.filter(|file| !file.is_empty()).map(PathBuf::from) else { return Ok(()) };
    let folder = database.with_file_name(BACKUPS);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(Fault::Files)?;
    let name = database.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let backup = folder.join(format!("{name}.{step}"));
    let unfinished = folder.join(format!("{name}.{step}.{}", std::process::id()));
    let made = copy(connection, &unfinished).await;
    let made = made.and_then(|()| fs::rename(&unfinished, &backup).map_err(Fault::Files));
    if made.is_err() {
        // The error of the copy is returned; what remains of the copy is useless.
        let _ = fs::remove_file(&unfinished);
        return made;
    }
    tracing::info!(backup = %backup.display(), "the database was backed up before its update");
    if let Err(error) = delete_older(&folder, &format!("{name}."), &backup) {
        tracing::warn!(%error, "older backups of the database could not be deleted");
    }
    Ok(())
}

async fn copy(connection: &mut SqliteConnection, to: &Path) -> Result<(), Fault> {
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Fault::Files(error)),
        _ => {}
    }
    // SQLite accepts an empty file, which is created here for its owner only.
    mknodat(CWD, to, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0).map_err(|error| Fault::Files(error.into()))?;
    sqlx::query("VACUUM INTO $1").bind(to.to_string_lossy().into_owned()).execute(connection).await?;
    Ok(())
}

fn delete_older(folder: &Path, prefix: &str, latest: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A name with a further suffix is the unfinished backup of another process.
        let is_backup = name.strip_prefix(prefix).is_some_and(|step| step.bytes().all(|byte| byte.is_ascii_digit()));
        if is_backup && path != latest {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
