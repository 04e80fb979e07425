use super::*;
use rustix::fs::{XattrFlags, setxattr};

const SYSTEMD: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
const CONTAINER: &str = "50 40 0:26 /docker/ab /sys/fs/my\\040groups ro - cgroup2 cgroup rw\n";

#[track_caller]
fn check(own: &str, mounts: &str, delegated: &[&str], expected: &[(&str, bool)]) {
    let places = ParentGroup::among(own, mounts, |path| delegated.iter().any(|one| Path::new(one) == path)).unwrap();
    let places: Vec<_> =
        places.iter().map(|place| (place.path.to_str().unwrap(), place.can_enable_controllers)).collect();
    assert_eq!(places, expected, "{own}");
}

#[test]
fn parent_groups_are_the_delegated_surrounding_group_and_the_own_group() {
    let service = "/sys/fs/cgroup/system.slice/a.service";
    check(
        "0::/system.slice/a.service/main\n",
        SYSTEMD,
        &[service],
        &[(service, true), (&format!("{service}/main"), false)],
    );
    check("0::/system.slice/a.service\n", SYSTEMD, &[], &[(service, false)]);
    check("0::/system.slice/a.service\n", SYSTEMD, &[service], &[(service, true)]);
    let unified = "/sys/fs/cgroup/unified";
    check("4:memory:/some/where\n0::/\n", HYBRID, &[unified], &[(unified, true)]);
    check("0::/a\n", HYBRID, &[unified], &[(unified, true), ("/sys/fs/cgroup/unified/a", false)]);
    check("0::/docker/ab\n", CONTAINER, &[], &[("/sys/fs/my groups", false)]);
    check(
        "0::/docker/ab/c\n",
        CONTAINER,
        &["/sys/fs/my groups"],
        &[("/sys/fs/my groups", true), ("/sys/fs/my groups/c", false)],
    );
}

#[test]
fn a_missing_parent_group_is_reported_with_its_reason() {
    for (own, mounts, expected) in [
        ("4:memory:/a\n", HYBRID, "not in a cgroup of version 2"),
        ("0::/\n", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "no file system"),
        ("0::/docker/abc\n", CONTAINER, "not visible here"),
        ("0::/../b\n", SYSTEMD, "not visible here"),
    ] {
        let error = ParentGroup::among(own, mounts, |_| true).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

/// Creates a group as files in a folder, which shows the text that was written to them.
fn group(offered: &str, enabled: &str) -> (tempfile::TempDir, OwnedFd) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(OFFERED), offered).unwrap();
    fs::write(folder.path().join(ENABLED), enabled).unwrap();
    let opened = super::super::opened(rustix::fs::CWD, folder.path()).unwrap();
    (folder, opened)
}

#[test]
fn available_controllers_are_enabled_and_missing_controllers_are_reported() {
    for (offered, enabled, written, outcome) in [
        ("cpu io memory pids\n", "memory pids\n", "memory pids\n", None),
        // In a file, one write covers the other.
        ("cpu memory pids\n", "", "+pidsry", None),
        ("cpu memory pids\n", "pids\n", "+memory", None),
        ("hugetlb pids\n", "", "+pids", Some("there is no `memory`")),
        ("hugetlb\n", "", "", Some("there is no `memory`")),
    ] {
        let (folder, opened) = group(offered, enabled);
        assert_eq!(enable(&opened).as_deref(), outcome, "{offered}");
        assert_eq!(fs::read_to_string(folder.path().join(ENABLED)).unwrap(), written, "{offered}");
    }
    let (folder, opened) = group("memory pids\n", "");
    fs::remove_file(folder.path().join(ENABLED)).unwrap();
    assert!(enable(&opened).unwrap().contains("cannot be read"));
}

#[test]
fn controllers_of_a_group_that_systemd_manages_are_not_changed() {
    let (folder, opened) = group("memory pids\n", "");
    let place = ParentGroup { path: folder.path().into(), can_enable_controllers: false };
    assert!(place.enable_controllers(&opened).unwrap().contains("has not delegated"));
    assert_eq!(fs::read_to_string(folder.path().join(ENABLED)).unwrap(), "");
}

#[test]
fn a_group_is_delegated_by_the_mark_that_systemd_sets() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    assert!(!is_delegated(folder.path()));
    for (value, expected) in [("0", false), ("10", false), ("", false), ("1", true)] {
        setxattr(folder.path(), "user.delegate", value.as_bytes(), XattrFlags::empty()).unwrap();
        assert_eq!(is_delegated(folder.path()), expected, "{value}");
    }
}
