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
fn a_file_is_held_once_and_waited_for_no_longer_than_the_deadline() {
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
fn another_process_is_waited_for_and_what_it_left_is_known() {
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
fn a_folder_of_locks_that_is_removed_or_moved_away_is_made_anew() {
    check(|locks| fs::remove_dir_all(locks).unwrap());
    check(|locks| fs::rename(locks, locks.with_file_name("elsewhere")).unwrap());
    check(|locks| {
        fs::rename(locks, locks.with_file_name("elsewhere")).unwrap();
        fs::create_dir(locks).unwrap();
        fs::set_permissions(locks, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    });
}

#[test]
fn whoever_lost_a_lock_file_does_not_remove_that_of_the_next_one() {
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
fn what_is_not_this_users_alone_holds_no_locks_and_the_next_place_is_taken() {
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
