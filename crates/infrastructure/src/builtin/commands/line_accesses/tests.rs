//! Accesses of command lines, with real folders and links.

#![allow(clippy::disallowed_methods, reason = "the folders of a test are its own")]

mod answers;

use super::*;
use crate::sandbox::workspace::UserPathAliases;
use toolstead_domain::WorkspaceRoots;

/// Returns what a text would touch in a folder with `sub/` and `link`, which leads to another folder; the folders'
/// names are left out. The files that a command names follow it.
fn touched(text: &str) -> Vec<String> {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (here, there) = (here.path().canonicalize().unwrap(), there.path().canonicalize().unwrap());
    std::fs::create_dir(here.join("sub")).unwrap();
    std::os::unix::fs::symlink(&there, here.join("link")).unwrap();
    let roots = WorkspaceRoots { write: vec![here.clone()], ..Default::default() };
    let workspace = Workspace::open(&roots, UserPathAliases::default()).unwrap();
    let short = |text: String| text.replace(here.to_str().unwrap(), "HERE").replace(there.to_str().unwrap(), "THERE");
    let with_operands = |access: &Access| match access {
        Access::RunCommand(command) => command.files().map(|file| format!("naming: {file}")).collect(),
        _ => Vec::new(),
    };
    let accesses = accesses(&workspace, text, &here, None);
    accesses.iter().flat_map(|access| [vec![access.to_string()], with_operands(access)].concat()).map(short).collect()
}

#[test]
fn files_are_checked_by_their_lexical_and_resolved_paths() {
    assert_eq!(touched("ls > out 2>&1"), ["run ls > out 2>&1", "write HERE/out"]);
    assert_eq!(touched("ls > link/x"), ["run ls > link/x", "write HERE/link/x (which is THERE/x)"]);
    assert_eq!(touched("ls > /etc/out")[1], "write /etc/out");
    assert_eq!(touched("rm -r sub"), ["run rm -r sub", "naming: write HERE/sub and everything below"]);
}

#[test]
fn redirections_to_files_that_every_run_may_access_belong_to_their_command() {
    for file in ["/dev/tty", "/dev/full"] {
        assert_eq!(touched(&format!("ls > {file}"))[1..], [format!("naming: write {file}")], "{file}");
    }
    for rest in ["x", "a/b"] {
        let mut names = PRIVATE.map(|folder| format!("naming: write {folder}/{rest}"));
        names.sort();
        for folder in PRIVATE {
            let mut named = touched(&format!("ls > {folder}/{rest}")).split_off(1);
            named.sort();
            assert_eq!(named, names, "by each name, whichever is written");
        }
    }
    for file in ["/etc/hosts", "/etc/passwd", "/usr/include/x", "/proc/cpuinfo", "/dev/urandom", "/dev/tty"] {
        assert_eq!(touched(&format!("cat < {file}"))[1..].len(), 1, "{file}");
        assert!(touched(&format!("cat < {file}"))[1].starts_with(&format!("naming: read {file}")), "{file}");
    }
    for stream in ["> /dev/null", "> /dev/fd/2", "2> /dev/stdout", "< /dev/stdin"] {
        assert_eq!(touched(&format!("ls {stream}")), [format!("run ls {stream}")]);
    }
    assert_eq!(touched("ls; sh -c 'ls > /tmp/x'")[2], "naming: write /tmp/x");
    assert_eq!(touched("pwd; { ls; cat; } > /tmp/x")[2], "naming: write /tmp/x");
    let alone = touched("> /tmp/x");
    assert_eq!((alone.len(), &*alone[0], &*alone[1]), (4, "run > /tmp/x", "naming: write /tmp/x"));
    assert_eq!(touched("x=$(< /etc/passwd)")[1], "naming: read /etc/passwd");
}

#[test]
fn redirections_to_other_system_paths_are_separate_accesses() {
    for file in [
        "/etc/shadow",
        "/etc/hostsx",
        "/etc",
        "/proc/kcore",
        "/proc/self/cwd/x",
        "/proc/self/root/x",
        "/dev/sda",
        "/tmp",
    ] {
        let touched = touched(&format!("cat < {file}"));
        assert!(touched.iter().any(|line| line.starts_with(&format!("read {file}"))), "{touched:?}");
    }
    for file in ["/etc/hosts", "/usr/lib/x", "/proc/version", "/proc/self/fd/1", "/dev/sda", "/var/x", "/dev/shm"] {
        let touched = touched(&format!("ls > {file}"));
        assert!(touched.iter().any(|line| line.starts_with(&format!("write {file}"))), "{touched:?}");
    }
}

#[test]
fn redirections_to_a_workspace_name_in_any_temporary_folder_are_separate_accesses() {
    let here = tempfile::tempdir_in("/tmp").unwrap();
    let name = here.path().file_name().unwrap().to_str().unwrap();
    let roots = WorkspaceRoots { write: vec![here.path().canonicalize().unwrap()], ..Default::default() };
    let workspace = Workspace::open(&roots, UserPathAliases::default()).unwrap();
    for folder in PRIVATE {
        let text = format!("ls > {folder}/{name}/x");
        let found = accesses(&workspace, &text, here.path(), None);
        assert_eq!(found[1].to_string(), format!("write {folder}/{name}/x"));
    }
}

#[test]
fn parent_components_are_resolved_only_when_no_link_precedes_them() {
    assert_eq!(touched("ls > sub/../out"), ["run ls > sub/../out", "write HERE/out"]);
    let through_a_link = touched("ls > link/../out");
    assert_eq!(through_a_link[0], "run ls > link/../out");
    assert_eq!(through_a_link[1], "run HERE/link/../out (the target of this path is unknown)");
}

#[test]
fn each_command_has_its_own_files_and_no_others() {
    let own = ["run rm a", "naming: write HERE/a", "run rm b", "naming: write HERE/b"];
    assert_eq!(touched("rm a; rm b"), own);
    let inner = ["run sh -c 'rm a' (sh runs the text or the file it is given)", "naming: write HERE/a"];
    assert_eq!(touched("sh -c 'rm a'"), inner, "the files of a text are those of the shell that runs it");
    assert_eq!(touched("A=1 rm a")[1], "naming: write HERE/a");

    // Were all files held against each command, these would be a million.
    let many: String = (0..1_000).map(|at| format!("rm {at};")).collect();
    let touched_by_many = touched(&many);
    assert_eq!(touched_by_many.iter().filter(|line| line.starts_with("naming: ")).count(), 1_000);
    assert_eq!(touched_by_many.len(), 2_000);
}

#[test]
fn a_filter_that_the_workspace_could_supply_needs_approval() {
    let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/usr/local").ok());
    let here = here.path().canonicalize().unwrap();
    std::fs::create_dir(here.join("bin")).unwrap();
    let roots = WorkspaceRoots { write: vec![here.clone()], ..Default::default() };
    let workspace = Workspace::open(&roots, UserPathAliases::default()).unwrap();
    let allowed_with = |search_path: Option<&ShellPathAndHome>| -> Vec<String> {
        let accesses = accesses(&workspace, "ls | head -5; echo a", &here, search_path);
        let allowed = accesses.iter().filter_map(|access| match access {
            Access::RunCommand(command) => command.built_in_rule.map(|_| command.words[0].to_string()),
            _ => None,
        });
        allowed.collect()
    };
    let at_home = |folders: &str, home: &Path| {
        allowed_with(Some(&ShellPathAndHome { folders: folders.into(), home: Some(home.into()) }))
    };
    let allowed = |path: &str| at_home(path, Path::new("/"));
    let bin = here.join("bin").display().to_string();
    assert_eq!(allowed("/usr/bin:/bin"), ["head", "echo"]);
    assert_eq!(allowed(&format!("/usr/bin:{bin}")), ["head", "echo"], "the system's is found first");
    assert_eq!(allowed("/does/not/exist:/usr/bin"), ["head", "echo"]);
    for path in
        [&*format!("{bin}:/usr/bin"), ":/usr/bin", ".:/usr/bin", "bin:/usr/bin", "/tmp/x:/usr/bin", "/nowhere", ""]
    {
        assert_eq!(allowed(path), ["echo"], "{path}");
    }
    assert!(allowed_with(None).is_empty(), "without a shell no built-in rule holds");
    // The home is shared by the runs of a session, which write there.
    for path in ["/nowhere/user/bin:/usr/bin", "/usr/../nowhere/user/bin:/usr/bin", "/home/user/no/bin:/usr/bin"] {
        assert_eq!(at_home(path, Path::new("/nowhere/user")), ["echo"], "{path}");
    }
    assert_eq!(at_home("/usr/bin:/nowhere/user/bin", Path::new("/nowhere/user")), ["head", "echo"]);
    if let Ok(home) = tempfile::tempdir_in("/opt") {
        let local = home.path().join(".local/bin");
        std::fs::create_dir_all(&local).unwrap();
        let path = format!("{}:/usr/bin", local.display());
        assert_eq!(at_home(&path, home.path()), ["head", "echo"], "it is mounted for reading");
        std::os::unix::fs::symlink("/usr/bin/true", local.join("head")).unwrap();
        assert_eq!(at_home(&path, home.path()), ["echo"], "another program is found first");
    }
    // A folder of the system that leads into the workspace.
    if let Some(elsewhere) = elsewhere {
        std::os::unix::fs::symlink(here.join("bin"), elsewhere.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(here.join("missing"), elsewhere.path().join("missing")).unwrap();
        for name in ["bin", "missing"] {
            let path = format!("{}:/usr/bin", elsewhere.path().join(name).display());
            assert_eq!(allowed(&path), ["echo"], "{path}");
        }
    }
}
