//! Tests of the file locks.
#![expect(clippy::disallowed_methods, reason = "somebody else removes the folder of the lock files")]

use super::*;
use std::{fs, time::Instant};
use tempfile::TempDir;

fn in_folder(folder: &TempDir) -> PathLocks {
    PathLocks::new(vec![folder.path().join("locks")])
}

fn now() -> StopCondition {
    StopCondition::at(Instant::now())
}

fn later() -> StopCondition {
    StopCondition::at(Instant::now() + Duration::from_secs(60))
}

#[test]
fn a_path_lock_is_exclusive_and_waits_no_longer_than_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let locks = in_folder(&folder);
    let held = locks.lock(Path::new("/a"), &now()).unwrap();
    assert!(locks.lock(Path::new("/b"), &now()).is_some());
    assert!(locks.lock(Path::new("/a"), &now()).is_none());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| locks.lock(Path::new("/a"), &later()).is_some());
        drop(held);
        assert!(waiting.join().unwrap());
    });
}

#[test]
fn a_lock_waits_for_another_process_and_retains_the_note_of_an_ended_process() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (in_folder(&folder), in_folder(&folder));
    let path = Path::new("/a");
    let held = theirs.lock(path, &later()).unwrap();
    held.note(Path::new("left"));
    assert!(ours.lock(path, &now()).is_none());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| ours.lock(path, &later()).map(|lock| lock.noted()));
        // As the kernel does when a process ends: it releases the lock, and the file stays.
        flock(&held.file.as_ref().unwrap().file, FlockOperation::Unlock).unwrap();
        assert_eq!(waiting.join().unwrap(), Some(Some(PathBuf::from("left"))));
    });
    drop(held);
    assert_eq!(ours.lock(path, &later()).unwrap().noted(), None);
}

/// Checks that locks are exclusive after another program changed the folder of the lock files.
#[track_caller]
fn check(what: impl Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (in_folder(&folder), in_folder(&folder));
    let before = ours.lock(Path::new("/before"), &later()).unwrap();
    drop(theirs.lock(Path::new("/before, too"), &later()).unwrap());
    what(&folder.path().join("locks"));
    let held = ours.lock(Path::new("/a"), &later()).unwrap();
    assert!(held.file.is_some(), "there is a lock file again");
    assert!(theirs.lock(Path::new("/a"), &now()).is_none());
    drop((before, held));
    assert!(theirs.lock(Path::new("/a"), &later()).unwrap().file.is_some());
}

#[test]
fn a_lock_folder_that_is_removed_or_moved_is_created_again() {
    check(|locks| fs::remove_dir_all(locks).unwrap());
    check(|locks| fs::rename(locks, locks.with_file_name("elsewhere")).unwrap());
    check(|locks| {
        fs::rename(locks, locks.with_file_name("elsewhere")).unwrap();
        fs::create_dir(locks).unwrap();
        fs::set_permissions(locks, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    });
}

#[test]
fn releasing_a_lost_lock_does_not_remove_the_lock_file_of_the_next_holder() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second, third) = (in_folder(&folder), in_folder(&folder), in_folder(&folder));
    let lost = first.lock(Path::new("/a"), &later()).unwrap();
    let file = fs::read_dir(folder.path().join("locks")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(file).unwrap();
    let held = second.lock(Path::new("/a"), &later()).unwrap();
    drop(lost);
    assert!(third.lock(Path::new("/a"), &now()).is_none());
    drop(held);
}

#[test]
fn an_unsafe_lock_folder_is_skipped_for_the_next_candidate() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("open")).unwrap();
    fs::set_permissions(at("open"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("elsewhere", at("link")).unwrap();
    for place in ["open", "link", "missing/locks"] {
        let locks = PathLocks::new(vec![at(place), at("good")]);
        assert!(locks.lock(Path::new("/a"), &now()).unwrap().file.is_some(), "{place}");
        assert_eq!(locks.folder().unwrap().path(), at("good"), "{place}");
        let locks = PathLocks::new(vec![at(place)]);
        assert!(locks.lock(Path::new("/a"), &now()).unwrap().file.is_none(), "{place}");
    }
    let message = PathLocks::new(vec![at("open")]).folder().unwrap_err();
    let expected = format!("`{}` is open to others (mode 0755): `chmod 700` it, or remove it", at("open").display());
    assert_eq!(message, expected);
}
