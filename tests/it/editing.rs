//! Changes of files under concurrent processes and abrupt ends.
//!
//! A test that needs a second process starts this test binary again, for that one test alone. An environment variable
//! informs the copy that it is the other process.

use crate::{binaries::kill, editor::Editor};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Variable with the index of a copy of this binary and the folder in which it works.
const OTHER_PROCESS: &str = "TOOLSTEAD_TEST_EDITING";
/// Number of concurrent edits of each process.
const EDITS: usize = 25;
/// Size of the file that is rewritten, in bytes: large enough that a kill hits the middle of a write.
const FILE_BYTES: usize = 2 << 20;
/// Number of times that a process is killed.
const KILLS: usize = 12;

/// A copy of this binary that runs one test as the other process.
struct OtherProcess(Child);

impl OtherProcess {
    fn start(test: &str, folder: &Path, which: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture"]).env(OTHER_PROCESS, format!("{which}:{}", folder.display()));
        Self(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the index of this copy and its folder; `None` for the test itself.
fn other_process() -> Option<(usize, PathBuf)> {
    let outcome = std::env::var(OTHER_PROCESS).ok()?;
    let (which, folder) = outcome.split_once(':').unwrap();
    Some((which.parse().unwrap(), folder.into()))
}

#[tokio::test]
async fn fifty_edits_of_one_file_by_two_processes_all_land() {
    if let Some((which, folder)) = other_process() {
        let editor = Editor::in_folder(&folder);
        let edit = |number: usize| {
            let (old, new) = (format!("<{which}-{number}>"), format!("[{which}-{number}]"));
            editor.call("edit_file", json!({"path": "f", "old_text": old, "new_text": new}))
        };
        for result in futures::future::join_all((0..EDITS).map(edit)).await {
            result.unwrap();
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lines = |open: char, close: char| -> String {
        let all = (0..2).flat_map(|which| (0..EDITS).map(move |number| (which, number)));
        all.map(|(which, number)| format!("{open}{which}-{number}{close}\r\n")).collect()
    };
    fs::write(folder.path().join("f"), lines('<', '>')).unwrap();
    let test = "editing::fifty_edits_of_one_file_by_two_processes_all_land";
    let mut others = [0, 1].map(|which| OtherProcess::start(test, folder.path(), which));
    for other in &mut others {
        assert!(other.0.wait().unwrap().success());
    }
    assert_eq!(fs::read_to_string(folder.path().join("f")).unwrap(), lines('[', ']'));
    assert_eq!(names_in(folder.path()), ["f"]);
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_write_leaves_the_old_or_the_new() {
    let content = |letter: u8| String::from_utf8(vec![letter; FILE_BYTES]).unwrap();
    if let Some((_, folder)) = other_process() {
        let editor = Editor::in_folder(&folder);
        for letter in (b'a'..=b'z').cycle() {
            // Past the test harness, and at once.
            std::io::stdout().write_all(b"\nwriting\n").and_then(|()| std::io::stdout().flush()).unwrap();
            editor.call("write_file", json!({"path": "f", "content": content(letter)})).await.unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    fs::write(&file, content(b'a')).unwrap();
    let mut left_behind = 0;
    for round in 0..KILLS {
        let test = "editing::a_kill_in_the_middle_of_a_write_leaves_the_old_or_the_new";
        let mut other = OtherProcess::start(test, folder.path(), 0);
        let lines = BufReader::new(other.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        // Sometimes in the first write, sometimes later; how far it has come by then is chance,
        assert_eq!(lines.filter(|line| line == "writing").take(1 + round % 4).count(), 1 + round % 4);
        // unless it is to be caught with a draft beside the file.
        let end = Instant::now() + Duration::from_secs(120);
        while round % 2 == 1 && names_in(folder.path()).len() == 1 && Instant::now() < end {}
        kill(other.0.id(), Signal::KILL);
        other.0.wait().unwrap();
        let found = fs::read(&file).unwrap();
        assert_eq!(found.len(), FILE_BYTES);
        assert!(found.iter().all(|byte| *byte == found[0]), "it is one content, not a mixture");
        left_behind += names_in(folder.path()).len() - 1;
    }
    assert!(left_behind > 0, "some kill hit the middle of a write");
    println!("{left_behind} drafts were left behind by {KILLS} kills");
    // The next process removes what was left before it does anything.
    let editor = Editor::in_folder(folder.path());
    assert_eq!(names_in(folder.path()), ["f"]);
    editor.call("write_file", json!({"path": "f", "content": "new"})).await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
}

/// Maximum number of file descriptors of a process.
const DESCRIPTORS: u64 = 640;
/// Sets of files that are changed at once, and files of each.
const SETS: usize = 8;
const FILES: usize = 100;

#[tokio::test]
async fn large_changes_at_once_do_not_use_up_the_descriptors_of_the_process() {
    if let Some((_, folder)) = other_process() {
        let limit = Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) };
        setrlimit(Resource::Nofile, limit).unwrap();
        let editor = Editor::in_folder(&folder);
        let edit = |set: usize| {
            let edits: Vec<Value> = (0..FILES)
                .map(|file| json!({"path": format!("{set}/{file}/new"), "old_text": "", "new_text": "x"}))
                .collect();
            editor.call("multi_edit", json!({"edits": edits}))
        };
        for result in futures::future::join_all((0..SETS).map(edit)).await {
            result.unwrap();
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "editing::large_changes_at_once_do_not_use_up_the_descriptors_of_the_process";
    let mut other = OtherProcess::start(test, folder.path(), 0);
    assert!(other.0.wait().unwrap().success());
    for set in 0..SETS {
        for file in 0..FILES {
            assert_eq!(fs::read(folder.path().join(format!("{set}/{file}/new"))).unwrap(), b"x");
        }
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
