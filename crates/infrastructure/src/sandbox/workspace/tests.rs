//! Tests of the workspace on a real file system.
#![expect(clippy::disallowed_methods, reason = "tests lay out and look at files behind the workspace's back")]

use super::*;
use crate::sandbox::workspace::{
    facts::FileKind,
    granted_workspace::GrantedWorkspace,
    rights::LostRights,
    stop::StopCondition,
    walk::{UnreadableReason, Visitor, WalkControl, WalkEnd, WalkEntry, WalkOptions, WalkOrder, walk_on},
    write::{WriteOptions, WriteResult, WriteTarget},
};
use rustix::fs::{FileType, RenameFlags, mknodat, renameat_with};
use serde_json::Map;
use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use toolstead_domain::{
    CallPermissions, Category, Effect, PatternContext, PermissionMode as PolicyMode, PermissionPolicy, PermissionRule,
    Tool, ToolFailure, ToolName, ToolSource, WorkspaceRoots, permission::rule::RuleOrigin,
};

/// A folder with a root `w`, a read-only root `ro` (and another one of the kernel), and `out`, which no call may
/// access.
struct Place {
    folder: TempDir,
    granted: GrantedWorkspace,
}

/// A read-only root whose files the kernel generates.
const KERNELS: &str = "/proc/sys/kernel/random";

const WRITE: WriteOptions = WriteOptions { create_folders: true, overwrite: true, mode: None };

impl Place {
    fn new(deny: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["w/sub", "ro", "out", "home"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("w/a.txt"), "inside").unwrap();
        fs::write(at("w/sub/b.txt"), "below").unwrap();
        fs::write(at("ro/r.txt"), "read only").unwrap();
        fs::write(at("out/secret"), "secret").unwrap();
        let roots =
            WorkspaceRoots { write: vec![at("w")], read_only: vec![at("ro"), KERNELS.into()], forbidden: vec![] };
        let names = UserPathAliases { home: Some(at("w")), aliases: vec![(PathBuf::from("/known/as"), at("w"))] };
        let workspace = Arc::new(Workspace::open(&roots, names).unwrap());
        let rule = |text: &&str| {
            Arc::new(
                PermissionRule::parse(Effect::Deny, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap(),
            )
        };
        let policy = PermissionPolicy {
            rules: deny.iter().map(rule).collect(),
            mode: PolicyMode::AcceptEdits,
            roots,
            ..Default::default()
        };
        let tool = Tool::new(ToolName::parse("tool").unwrap(), Map::new(), Category::File, ToolSource::BuiltIn);
        let grant = CallPermissions::new(Arc::new(policy), Arc::new(tool), Vec::new());
        let stop = StopCondition::at(Instant::now() + Duration::from_secs(60));
        Self { granted: GrantedWorkspace::new(workspace, grant, stop), folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn read(&self, path: &str) -> Result<String, String> {
        let content = self.granted.find(path).and_then(|found| found.read(1000));
        content.map(|content| String::from_utf8(content).unwrap()).map_err(|error| message_of(self, error))
    }

    fn write(&self, path: &str, content: &str) -> Result<WriteResult, String> {
        self.granted
            .write_target(path)
            .and_then(|target| write(target, content.as_bytes(), WRITE))
            .map_err(|error| message_of(self, error))
    }

    fn on_disk(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    fn names_in(&self, name: &str) -> Vec<String> {
        let names = fs::read_dir(self.at(name)).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Writes in one step.
fn write(target: WriteTarget<'_>, content: &[u8], options: WriteOptions) -> Result<WriteResult, PathError> {
    let mut draft = target.prepare(content, options)?;
    let written = draft.put_in_place()?;
    draft.keep().unwrap();
    Ok(written)
}

/// Returns the text that a model reads, with the folder of the test as `@`.
fn message_of(place: &Place, error: PathError) -> String {
    ToolFailure::from(error).text().replace(&*place.at("").to_string_lossy(), "@/")
}

#[test]
fn a_path_resolves_to_a_lexical_path_and_a_real_path() {
    let place = Place::new(&[]);
    symlink("sub", place.at("w/relative")).unwrap();
    symlink(place.at("w/sub"), place.at("w/absolute")).unwrap();
    symlink(place.at("ro"), place.at("w/other_root")).unwrap();
    symlink("../out", place.at("w/escape")).unwrap();
    symlink("/etc", place.at("w/etc")).unwrap();
    symlink("absolute/new.txt", place.at("w/dangling")).unwrap();
    let check = |text: &str, lexical: &str, real: &str| {
        let access = place.granted.workspace().access(text).unwrap();
        let short = |path: &Path| path.to_string_lossy().replace(&*place.at("").to_string_lossy(), "@/");
        assert_eq!((short(&access.lexical).as_str(), short(&access.real).as_str()), (lexical, real), "{text}");
    };
    check("a.txt", "@/w/a.txt", "@/w/a.txt");
    check(".", "@/w", "@/w");
    check("./sub/../a.txt", "@/w/a.txt", "@/w/a.txt");
    check("~/a.txt", "@/w/a.txt", "@/w/a.txt");
    check("~other", "@/w/~other", "@/w/~other");
    check("/known/as/sub", "@/w/sub", "@/w/sub");
    check("relative/b.txt", "@/w/relative/b.txt", "@/w/sub/b.txt");
    check("absolute/b.txt", "@/w/absolute/b.txt", "@/w/sub/b.txt");
    check("absolute/new/deep.txt", "@/w/absolute/new/deep.txt", "@/w/sub/new/deep.txt");
    check("other_root/r.txt", "@/w/other_root/r.txt", "@/ro/r.txt");
    check("dangling", "@/w/dangling", "@/w/sub/new.txt");
    check("escape/secret", "@/w/escape/secret", "@/out/secret");
    check("etc/passwd", "@/w/etc/passwd", "/etc/passwd");
    check("../out/secret", "@/out/secret", "@/out/secret");
    check("/etc/passwd", "/etc/passwd", "/etc/passwd");
    check("file:///etc/passwd", "@/w/file:/etc/passwd", "@/w/file:/etc/passwd");
    check("%2e%2e/x", "@/w/%2e%2e/x", "@/w/%2e%2e/x");
    check("a.txt/..", "@/w", "@/w");
}

#[test]
fn rejects_unusable_paths_and_link_loops() {
    let place = Place::new(&[]);
    for bad in ["", "a\0b", &"x".repeat(300), &"x/".repeat(3000)] {
        assert!(matches!(place.granted.workspace().access(bad), Err(PathError::Unusable { .. })), "{bad:?}");
    }
    symlink("loop_b", place.at("w/loop_a")).unwrap();
    symlink("loop_a", place.at("w/loop_b")).unwrap();
    assert!(matches!(place.granted.workspace().access("loop_a"), Err(PathError::Io { .. })));
    assert!(place.read("loop_a").is_err());
}

#[test]
fn nothing_outside_of_the_roots_is_read_or_written() {
    let place = Place::new(&[]);
    symlink("../out/secret", place.at("w/link")).unwrap();
    symlink(place.at("out"), place.at("w/folder")).unwrap();
    symlink("../out/planted", place.at("w/dangling")).unwrap();
    symlink("/proc/self/root", place.at("w/magic")).unwrap();
    let outside = ["link", "folder/secret", "../out/secret", "/etc/passwd", "magic/etc/passwd", "dangling"];
    for path in outside {
        let message = place.read(path).unwrap_err();
        assert!(message.contains("outside of the workspace"), "{path}: {message}");
        let message = place.write(path, "x").unwrap_err();
        assert!(message.contains("outside of the workspace"), "{path}: {message}");
    }
    assert!(place.write("folder/new/deep", "x").is_err());
    assert_eq!(place.names_in("out"), ["secret"]);
    assert_eq!(place.on_disk("out/secret"), "secret");
}

#[test]
fn a_link_that_leads_back_inside_is_followed() {
    let place = Place::new(&[]);
    symlink(place.at("w/sub"), place.at("w/absolute")).unwrap();
    symlink(place.at("w/a.txt"), place.at("w/file_link")).unwrap();
    assert_eq!(place.read("absolute/b.txt").unwrap(), "below");
    assert_eq!(place.read("file_link").unwrap(), "inside");
    assert!(!place.write("file_link", "through").unwrap().created);
    assert_eq!(place.on_disk("w/a.txt"), "through");
    assert!(place.at("w/file_link").is_symlink());
    assert!(place.write("absolute/c.txt", "new").unwrap().created);
    assert_eq!(place.on_disk("w/sub/c.txt"), "new");
}

#[test]
fn rules_apply_to_the_link_target_and_a_read_only_root_is_not_written() {
    let place = Place::new(&["Read(hidden/**)"]);
    fs::create_dir(place.at("w/hidden")).unwrap();
    fs::write(place.at("w/hidden/k"), "k").unwrap();
    symlink("hidden/k", place.at("w/innocent")).unwrap();
    symlink(place.at("ro/r.txt"), place.at("w/borrowed")).unwrap();
    assert!(place.read("innocent").unwrap_err().contains("no rule lets this call read @/w/innocent"));
    assert!(place.write("innocent", "x").unwrap_err().contains("no rule lets this call write"));
    assert_eq!(place.read("borrowed").unwrap(), "read only");
    assert!(place.write("borrowed", "x").is_err());
    assert!(place.write(&place.at("ro/new").to_string_lossy(), "x").is_err());
    assert_eq!(place.names_in("ro"), ["r.txt"]);
}

#[test]
fn only_regular_files_are_read_or_replaced() {
    let place = Place::new(&[]);
    mknodat(CWD, place.at("w/pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = UnixListener::bind(place.at("w/socket")).unwrap();
    for (name, kind) in [("pipe", "a named pipe"), ("socket", "a socket"), ("sub", "a folder"), (".", "a folder")] {
        assert!(place.read(name).unwrap_err().contains(kind), "{name}");
        assert!(place.write(name, "x").unwrap_err().contains(kind), "{name}");
    }
}

#[test]
fn files_of_the_kernel_are_not_read_even_if_a_root_holds_them() {
    let roots = WorkspaceRoots { write: vec![PathBuf::from("/proc")], ..Default::default() };
    let workspace = Arc::new(Workspace::open(&roots, UserPathAliases::default()).unwrap());
    let place = Place::new(&[]);
    let policy = PermissionPolicy { roots, ..Default::default() };
    let tool = Tool::new(ToolName::parse("tool").unwrap(), Map::new(), Category::File, ToolSource::BuiltIn);
    let grant = CallPermissions::new(Arc::new(policy), Arc::new(tool), Vec::new());
    let granted = GrantedWorkspace::new(workspace, grant, place.granted.stop().clone());
    let refused = granted.find("/proc/version").and_then(|found| found.read(1000)).unwrap_err();
    assert!(matches!(refused, PathError::NotAFile { .. }), "{refused}");
    assert!(granted.find("/proc/self/root/etc/passwd").is_err());
}

#[test]
fn a_missing_path_is_reported_with_similar_names_that_the_call_may_read() {
    let place = Place::new(&["Read(a.text)"]);
    fs::write(place.at("w/a.text"), "").unwrap();
    assert_eq!(place.read("a.tx").unwrap_err(), "`@/w/a.tx` does not exist. In the same folder there is `a.txt`.");
    assert_eq!(
        place.read("sup/b.txt").unwrap_err(),
        "`@/w/sup/b.txt` does not exist. The path exists up to `@/w`, which holds `sub`."
    );
    assert!(place.read("entirely_else").unwrap_err().contains("`glob`"));
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let place = Place::new(&[]);
    fs::write(place.at("w/large"), vec![b'x'; 1001]).unwrap();
    assert!(place.read("large").unwrap_err().contains("1001 bytes, and at most 1000"));
}

#[test]
fn replacing_a_file_keeps_its_mode_and_leaves_hard_links_unchanged() {
    let place = Place::new(&[]);
    fs::set_permissions(place.at("w/a.txt"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::hard_link(place.at("w/a.txt"), place.at("out/twin")).unwrap();
    let written = place.write("a.txt", "changed").unwrap();
    assert_eq!(written, WriteResult { created: false, bytes: 7, other_links: 1, rights: LostRights::default() });
    assert_eq!((place.on_disk("w/a.txt").as_str(), place.on_disk("out/twin").as_str()), ("changed", "inside"));
    let mode = fs::metadata(place.at("w/a.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o751, "set-user-id goes away with the content");
    assert_eq!(place.names_in("w"), ["a.txt", "sub"], "no draft is left");
}

#[test]
fn an_ordinary_user_cannot_replace_a_write_protected_file() {
    let place = Place::new(&[]);
    fs::set_permissions(place.at("w/a.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    let written = place.write("a.txt", "changed");
    // Root may write anywhere.
    match rustix::process::geteuid().is_root() {
        true => assert_eq!(place.on_disk("w/a.txt"), "changed"),
        false => assert!(written.unwrap_err().contains("is write-protected")),
    }
}

#[test]
fn replacing_a_file_keeps_its_extended_attributes() {
    let place = Place::new(&[]);
    let set = rustix::fs::setxattr(place.at("w/a.txt"), "user.note", b"kept", rustix::fs::XattrFlags::empty());
    place.write("a.txt", "changed").unwrap();
    if set.is_ok() {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(place.at("w/a.txt"), "user.note", &mut value).unwrap();
        assert_eq!(&value[..length], b"kept");
    }
}

/// Returns a POSIX access list in the format of the kernel (`posix_acl_xattr.h`): the owner, a named user, the group,
/// the mask, all others.
fn access_list(permissions: [u16; 5]) -> Vec<u8> {
    let tags = [(0x01, u32::MAX), (0x02, 12345), (0x04, u32::MAX), (0x10, u32::MAX), (0x20, u32::MAX)];
    let entry = |((tag, id), permission): ((u16, u32), u16)| {
        [&tag.to_le_bytes()[..], &permission.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let entries = tags.into_iter().zip(permissions).flat_map(entry);
    2_u32.to_le_bytes().into_iter().chain(entries).collect()
}

#[test]
fn a_replaced_file_keeps_its_access_list_and_takes_none_from_its_folder() {
    let place = Place::new(&[]);
    let set = |path: &str, kind: &str, list: [u16; 5]| {
        let name = format!("system.posix_acl_{kind}");
        rustix::fs::setxattr(place.at(path), name, &access_list(list), rustix::fs::XattrFlags::empty())
    };
    let list_of = |path: &str| {
        let mut value = [0; 200];
        let length = rustix::fs::getxattr(place.at(path), "system.posix_acl_access", &mut value).ok()?;
        Some(value[..length].to_vec())
    };
    fs::set_permissions(place.at("w/a.txt"), fs::Permissions::from_mode(0o660)).unwrap();
    if set("w", "default", [7, 7, 7, 7, 0]).is_err() {
        // This file system does not support access lists.
        return;
    }
    set("w/sub/b.txt", "access", [6, 4, 0, 6, 0]).unwrap();
    set("w/sub", "default", [7, 7, 7, 7, 7]).unwrap();
    let (plain, listed) = (place.write("a.txt", "changed").unwrap(), place.write("sub/b.txt", "changed").unwrap());
    assert_eq!((plain.rights, listed.rights), (LostRights::default(), LostRights::default()));
    assert_eq!((list_of("w/a.txt"), list_of("w/sub/b.txt")), (None, Some(access_list([6, 4, 0, 6, 0]))));
    let mode = |path: &str| fs::metadata(place.at(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("w/a.txt"), mode("w/sub/b.txt")), (0o660, 0o660));
}

#[test]
fn permissions_of_a_lost_group_are_not_granted_to_the_new_group() {
    if !rustix::process::geteuid().is_root() {
        // Only root can create a file with a group that it is not a member of.
        return;
    }
    let place = Place::new(&[]);
    for (path, mode) in [("", 0o755), ("w", 0o777), ("w/a.txt", 0o666)] {
        fs::set_permissions(place.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let ordinary = 65534;
    let before = fs::metadata(place.at("w/a.txt")).unwrap();
    std::os::unix::fs::chown(place.at("w/a.txt"), Some(ordinary), Some(before.gid() + 1)).unwrap();
    fs::set_permissions(place.at("w/a.txt"), fs::Permissions::from_mode(0o664)).unwrap();
    let written = std::thread::scope(|scope| {
        let as_ordinary_user = || {
            // These calls change only the thread.
            let (user, group) = (rustix::fs::Uid::from_raw(ordinary), rustix::fs::Gid::from_raw(ordinary));
            rustix::thread::set_thread_groups(&[]).unwrap();
            rustix::thread::set_thread_res_gid(group, group, group).unwrap();
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            place.write("a.txt", "changed")
        };
        scope.spawn(as_ordinary_user).join().unwrap().unwrap()
    });
    assert_eq!(written.rights, LostRights { owner_changed: false, group_changed: true });
    let after = fs::metadata(place.at("w/a.txt")).unwrap();
    assert_eq!((after.uid(), after.gid(), after.permissions().mode() & 0o777), (ordinary, ordinary, 0o604));
}

#[test]
fn folders_are_made_only_when_asked_for() {
    let place = Place::new(&[]);
    let refused = place.granted.write_target("new/deep/x").unwrap();
    let refused = write(refused, b"x", WriteOptions { create_folders: false, ..WRITE }).unwrap_err();
    assert!(matches!(refused, PathError::FolderMissing { .. }));
    assert!(place.write("new/deep/x", "x").unwrap().created);
    assert_eq!(place.on_disk("w/new/deep/x"), "x");
    assert!(place.write("a.txt/x", "x").is_err());
    let kept = place.granted.write_target("a.txt").unwrap();
    let kept = write(kept, b"x", WriteOptions { overwrite: false, ..WRITE }).unwrap_err();
    assert!(matches!(kept, PathError::Exists { .. }));
}

#[test]
fn a_file_changed_by_another_process_in_between_is_not_overwritten() {
    let place = Place::new(&[]);
    let target = place.granted.write_target("a.txt").unwrap();
    assert_eq!(target.read(100).unwrap().unwrap(), b"inside");
    fs::write(place.at("w/a.txt"), "theirs, newer").unwrap();
    assert!(matches!(write(target, b"ours", WRITE), Err(PathError::Changed { .. })));
    let target = place.granted.write_target("new.txt").unwrap();
    fs::write(place.at("w/new.txt"), "theirs").unwrap();
    assert!(matches!(write(target, b"ours", WRITE), Err(PathError::Changed { .. })));
    assert_eq!(place.on_disk("w/a.txt"), "theirs, newer");
    assert_eq!(place.names_in("w"), ["a.txt", "new.txt", "sub"], "no draft is left");
}

#[test]
fn a_cancelled_call_writes_nothing() {
    let place = Place::new(&[]);
    let target = place.granted.write_target("a.txt").unwrap();
    drop(place.granted.stop().when_dropped());
    assert!(matches!(write(target, b"late", WRITE), Err(PathError::OutOfTime { .. })));
    assert_eq!(place.on_disk("w/a.txt"), "inside");
    assert_eq!(place.names_in("w"), ["a.txt", "sub"], "no draft is left");
}

struct Met;

impl Visitor for Met {
    type Context = ();
    type Worker = Vec<String>;

    fn worker(&self) -> Vec<String> {
        Vec::new()
    }

    fn visit_entry(&self, met: &mut Vec<String>, entry: &WalkEntry<'_>, (): &()) -> WalkControl {
        let opened = entry.open().is_ok();
        met.push(format!("{}{}", entry.below().display(), if opened { "" } else { " -" }));
        WalkControl::Continue
    }
}

/// Removes entries with these names when it visits them, and stores the reasons why folders were not read.
struct Removing(PathBuf);

impl Visitor for Removing {
    type Context = ();
    type Worker = Vec<(String, UnreadableReason)>;

    fn worker(&self) -> Self::Worker {
        Vec::new()
    }

    fn visit_unreadable(&self, missed: &mut Self::Worker, folder: &AccessPath, why: UnreadableReason) {
        missed.push((folder.real.strip_prefix(&self.0).unwrap().display().to_string(), why));
    }

    fn visit_entry(&self, _: &mut Self::Worker, entry: &WalkEntry<'_>, (): &()) -> WalkControl {
        let path = &entry.path().real;
        match entry.name().to_str() {
            Some("gone") => fs::remove_dir(path).unwrap(),
            Some("moved") => fs::rename(path, path.with_file_name("elsewhere")).unwrap(),
            Some("a_link_now") => {
                fs::remove_dir(path).unwrap();
                symlink("sub", path).unwrap();
            }
            _ => {}
        }
        WalkControl::Continue
    }
}

#[test]
fn folders_that_disappear_during_a_walk_are_reported_as_gone() {
    let place = Place::new(&[]);
    for name in ["gone", "moved/deep", "a_link_now"] {
        fs::create_dir_all(place.at("w").join(name)).unwrap();
    }
    let folder = place.granted.find(".").unwrap();
    let (_, missed) = place.granted.walk(&folder, limits(100, 9), (), &Removing(place.at("w"))).unwrap();
    let expected = ["a_link_now", "gone", "moved"].map(|name| (name.to_owned(), UnreadableReason::Gone));
    assert_eq!(missed.concat(), expected);
}

/// Returns limits with this number of entries and this depth, shallow folders first.
fn limits(entries: usize, depth: usize) -> WalkOptions {
    WalkOptions { entries, depth, order: WalkOrder::ShallowFirst }
}

#[test]
fn a_walk_stays_in_its_folder_and_skips_entries_that_a_rule_denies() {
    let place = Place::new(&["Read(hidden)"]);
    fs::create_dir_all(place.at("w/hidden/deep")).unwrap();
    symlink(place.at("out"), place.at("w/link")).unwrap();
    symlink("a.txt", place.at("w/file_link")).unwrap();
    let walk = |limits: WalkOptions| {
        let folder = place.granted.find(".").unwrap();
        let (walked, met) = place.granted.walk(&folder, limits, (), &Met).unwrap();
        (met.concat(), walked)
    };
    let (met, walked) = walk(limits(100, 9));
    assert_eq!(met, ["a.txt", "file_link -", "link -", "sub -", "sub/b.txt"]);
    assert_eq!((walked.entries, walked.refused, walked.ended), (6, 1, None));
    let (met, _) = walk(limits(100, 1));
    assert_eq!(met, ["a.txt", "file_link -", "link -", "sub -"]);
    let (_, walked) = walk(limits(3, 9));
    assert_eq!((walked.entries, walked.ended), (3, Some(WalkEnd::Entries)));
}

#[test]
fn a_parallel_walk_visits_the_same_entries_as_a_single_thread() {
    let place = Place::new(&["Read(denied)", "Read(*.no)"]);
    for number in 0..40 {
        let folder = place.at(&format!("w/{}/{}", number % 7, number % 3));
        fs::create_dir_all(folder.join("denied")).unwrap();
        for file in 0..number * 5 {
            fs::write(folder.join(format!("{number}-{file}.{}", if file % 9 == 0 { "no" } else { "yes" })), "")
                .unwrap();
        }
    }
    let folder = place.granted.find(".").unwrap();
    let walk = |limits| {
        let (walked, met) = place.granted.walk(&folder, limits, (), &Met).unwrap();
        let mut met = met.concat();
        met.sort();
        (walked, met)
    };
    let (walked, met) = walk(limits(100_000, 9));
    assert!(walked.refused > 100 && met.len() > 1000, "{walked:?}");
    assert!(!met.iter().any(|entry| entry.contains("denied") || entry.contains(".no")));
    for _ in 0..20 {
        assert_eq!(walk(WalkOptions { order: WalkOrder::AnyOrder, ..limits(100_000, 9) }), (walked, met.clone()));
    }
    let (walked, met) = walk(WalkOptions { order: WalkOrder::AnyOrder, ..limits(500, 9) });
    assert_eq!((walked.entries, walked.ended, met.len() + walked.refused), (500, Some(WalkEnd::Entries), 500));
}

/// Waits at each file until `wanted` threads have reached one.
struct Meeting {
    wanted: usize,
    there: Mutex<usize>,
    come: Condvar,
}

impl Visitor for Meeting {
    type Context = ();
    type Worker = ();

    fn worker(&self) {}

    fn visit_entry(&self, (): &mut (), entry: &WalkEntry<'_>, (): &()) -> WalkControl {
        if entry.kind() == FileKind::File {
            let mut there = self.there.lock().unwrap();
            *there += 1;
            self.come.notify_all();
            let missing = |there: &mut usize| *there < self.wanted;
            let late = self.come.wait_timeout_while(there, Duration::from_secs(120), missing).unwrap().1;
            assert!(!late.timed_out(), "not enough threads come");
        }
        WalkControl::Continue
    }
}

#[test]
fn a_walk_takes_more_threads_as_it_finds_more_to_do() {
    let place = Place::new(&[]);
    for name in ["a", "b", "c", "d"] {
        fs::create_dir_all(place.at(&format!("w/lone/lonely/{name}"))).unwrap();
        fs::write(place.at(&format!("w/lone/lonely/{name}/file")), "").unwrap();
    }
    let any_order = WalkOptions { order: WalkOrder::AnyOrder, ..limits(100, 9) };
    let folder = place.granted.find("lone").unwrap();
    let meeting = Meeting { wanted: 4, there: Mutex::default(), come: Condvar::new() };
    let (walked, workers) =
        walk_on(4, place.granted.grant(), place.granted.stop(), &folder, any_order, (), &meeting).unwrap();
    assert_eq!((walked.entries, workers.len()), (9, 4));
    // With a single chain of folders, one thread does all the work.
    let folder = place.granted.find("lone/lonely/a").unwrap();
    let alone = Meeting { wanted: 1, there: Mutex::default(), come: Condvar::new() };
    let (_, workers) = walk_on(4, place.granted.grant(), place.granted.stop(), &folder, any_order, (), &alone).unwrap();
    assert_eq!(workers.len(), 1);
}

/// Ends the walk at the first file.
struct Sated;

impl Visitor for Sated {
    type Context = ();
    type Worker = usize;

    fn worker(&self) -> usize {
        0
    }

    fn visit_entry(&self, met: &mut usize, entry: &WalkEntry<'_>, (): &()) -> WalkControl {
        assert!(entry.name() != "panic", "as the test wants it");
        *met += 1;
        if entry.kind() == FileKind::File { WalkControl::Stop } else { WalkControl::Continue }
    }
}

#[test]
fn a_walk_ends_for_all_threads_when_a_visitor_stops_or_panics() {
    let place = Place::new(&[]);
    for number in 0..2000 {
        fs::write(place.at(&format!("w/sub/{number}")), "").unwrap();
    }
    let any_order = WalkOptions { order: WalkOrder::AnyOrder, ..limits(100_000, 9) };
    let folder = place.granted.find("sub").unwrap();
    let (walked, met) = place.granted.walk(&folder, any_order, (), &Sated).unwrap();
    assert_eq!(walked.ended, Some(WalkEnd::Visitor));
    assert!(met.into_iter().sum::<usize>() < 100);
    fs::create_dir(place.at("w/only")).unwrap();
    fs::write(place.at("w/only/panic"), "").unwrap();
    let only = place.granted.find("only").unwrap();
    let walk = std::panic::AssertUnwindSafe(|| place.granted.walk(&only, any_order, (), &Sated).map(|_| ()));
    assert!(std::panic::catch_unwind(walk).is_err());
}

#[test]
fn a_walk_visits_kernel_files_without_opening_them() {
    let place = Place::new(&[]);
    let folder = place.granted.find(KERNELS).unwrap();
    let (_, met) = place.granted.walk(&folder, limits(100, 1), (), &Met).unwrap();
    assert!(met.concat().contains(&"uuid -".to_owned()), "{met:?}");
}

#[test]
fn a_walk_ends_at_its_deadline() {
    let place = Place::new(&[]);
    let late = place.granted.with_stop(StopCondition::at(Instant::now()));
    let folder = late.find(".").unwrap();
    let (walked, _) = late.walk(&folder, limits(100, 9), (), &Met).unwrap();
    assert_eq!((walked.entries, walked.ended), (0, Some(WalkEnd::Time)));
}

#[test]
fn a_file_that_is_replaced_all_the_time_is_always_found_under_its_name() {
    let place = Place::new(&[]);
    fs::write(place.at("w/odd (deleted)"), "odd").unwrap();
    assert_eq!(place.read("odd (deleted)").unwrap(), "odd");
    fs::hard_link(place.at("w/a.txt"), place.at("w/twin")).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = SetWhenDropped(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                fs::write(place.at("w/draft"), "inside").unwrap();
                fs::rename(place.at("w/draft"), place.at("w/a.txt")).unwrap();
            }
        });
        for _ in 0..1000 {
            assert_eq!(place.read("a.txt").unwrap(), "inside");
            let access = place.granted.workspace().access("a.txt").unwrap();
            assert_eq!(access.real, access.lexical);
        }
    });
}

/// Ends the swapping thread even if the test fails.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn swapping_a_folder_with_a_link_never_leads_outside_the_workspace() {
    let place = Place::new(&[]);
    fs::create_dir(place.at("w/swap")).unwrap();
    fs::write(place.at("w/swap/secret"), "harmless").unwrap();
    symlink(place.at("out"), place.at("w/other")).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = SetWhenDropped(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let exchange = RenameFlags::EXCHANGE;
                renameat_with(CWD, place.at("w/swap"), CWD, place.at("w/other"), exchange).unwrap();
            }
        });
        let mut done = [0; 3];
        let end = Instant::now() + Duration::from_secs(120);
        while done != [100; 3] && Instant::now() < end {
            match place.read("swap/secret") {
                Ok(content) => {
                    assert_eq!(content, "harmless");
                    done[0] = 100.min(done[0] + 1);
                }
                Err(outcome) => assert!(!outcome.contains("`secret`"), "{outcome}"),
            }
            if place.write("swap/written", "ours").is_ok() {
                done[1] = 100.min(done[1] + 1);
            }
            let folder = place.granted.find(".").unwrap();
            let any_order = WalkOptions { order: WalkOrder::AnyOrder, ..limits(100, 9) };
            let (_, met) = place.granted.walk(&folder, any_order, (), &Met).unwrap();
            if met.concat().iter().any(|entry| entry.ends_with("/secret")) {
                done[2] = 100.min(done[2] + 1);
            }
        }
        assert!(done.iter().all(|done| *done > 0), "each way was tried and worked at times: {done:?}");
    });
    assert_eq!(place.names_in("out"), ["secret"], "nothing was written outside");
    assert_eq!(place.on_disk("out/secret"), "secret");
}

#[test]
fn a_file_being_exchanged_with_a_draft_resolves_to_its_own_name() {
    let place = Place::new(&[]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = SetWhenDropped(&over);
        scope.spawn(|| {
            // In the way that drafts replace a file.
            while !over.load(Ordering::Relaxed) {
                fs::write(place.at("w/.draft"), "inside").unwrap();
                renameat_with(CWD, place.at("w/.draft"), CWD, place.at("w/a.txt"), RenameFlags::EXCHANGE).unwrap();
                fs::remove_file(place.at("w/.draft")).unwrap();
            }
        });
        for _ in 0..20_000 {
            let known = place.granted.workspace().access("a.txt").unwrap();
            assert_eq!(known.real, known.lexical);
        }
        for _ in 0..2_000 {
            let known = place.granted.find("a.txt").unwrap().path().clone();
            assert_eq!(known.real, known.lexical);
        }
    });
}

#[test]
fn a_removed_root_is_reported_even_if_a_new_folder_has_its_name() {
    let place = Place::new(&[]);
    for make in [false, true] {
        fs::remove_dir_all(place.at("w")).unwrap();
        fs::create_dir(place.at("w")).unwrap();
        if make {
            fs::write(place.at("w/a.txt"), "another").unwrap();
        }
        let failure = ToolFailure::from(place.granted.find("a.txt").unwrap_err());
        assert!(failure.message.ends_with("/w` was removed since Toolstead was started"), "{}", failure.message);
    }
}

#[test]
fn a_root_must_exist_and_be_a_real_folder() {
    let place = Place::new(&[]);
    symlink("w", place.at("link")).unwrap();
    let open = |name: &str| {
        let roots = WorkspaceRoots { write: vec![place.at(name)], ..Default::default() };
        Workspace::open(&roots, UserPathAliases::default())
    };
    assert!(matches!(open("link"), Err(OpenWorkspaceError::NotReal { .. })));
    assert!(matches!(open("missing"), Err(OpenWorkspaceError::Open { .. })));
    assert!(matches!(open("w/a.txt"), Err(OpenWorkspaceError::Open { .. })));
    let closed = Workspace::closed();
    assert_eq!(closed.access("a").unwrap().lexical, Path::new("/a"));
    assert!(matches!(closed.open_path(Path::new("/a")), Err(PathError::NoRoot)));
}
