//! From a text to accesses, with real folders and links.

#![allow(clippy::disallowed_methods, reason = "the folders of a test are its own")]

use super::super::*;
use crate::sandbox::workspace::FolderNames;
use toolstead_domain::workspace_roots::WorkspaceRoots;

/// What a text would touch in a folder that holds `sub/` and `link`, which leads to another folder; the folders' names
/// are left out. The files that a command names stand behind it.
fn touched(text: &str) -> Vec<String> {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (here, there) = (here.path().canonicalize().unwrap(), there.path().canonicalize().unwrap());
    std::fs::create_dir(here.join("sub")).unwrap();
    std::os::unix::fs::symlink(&there, here.join("link")).unwrap();
    let roots = WorkspaceRoots { write: vec![here.clone()], ..Default::default() };
    let workspace = Workspace::open(&roots, FolderNames::default()).unwrap();
    let short = |text: String| text.replace(here.to_str().unwrap(), "HERE").replace(there.to_str().unwrap(), "THERE");
    let with_operands = |access: &Access| match access {
        Access::RunCommand(command) => command.operands.iter().map(|operand| format!("naming: {operand}")).collect(),
        _ => Vec::new(),
    };
    let accesses = accesses(&workspace, text, &here);
    accesses.iter().flat_map(|access| [vec![access.to_string()], with_operands(access)].concat()).map(short).collect()
}

#[test]
fn files_are_judged_by_both_forms_of_their_path() {
    assert_eq!(touched("ls > out 2>&1"), ["run ls > out 2>&1", "write HERE/out"]);
    assert_eq!(touched("ls > link/x"), ["run ls > link/x", "write HERE/link/x (which is THERE/x)"]);
    assert_eq!(touched("ls > /tmp/out"), ["run ls > /tmp/out"], "the folder is the command's own");
    assert_eq!(touched("ls > /etc/out")[1], "write /etc/out");
    assert_eq!(touched("rm -r sub"), ["run rm -r sub", "naming: write HERE/sub and everything below"]);
}

#[test]
fn a_parent_folder_is_followed_where_no_link_stands_before_it() {
    assert_eq!(touched("ls > sub/../out"), ["run ls > sub/../out", "write HERE/out"]);
    let through_a_link = touched("ls > link/../out");
    assert_eq!(through_a_link[0], "run ls > link/../out");
    assert_eq!(through_a_link[1], "run HERE/link/../out (where this path leads cannot be told)");
}
