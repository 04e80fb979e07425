//! While a folder and a link to the outside change places all the time, no file tool reads or writes outside of the
//! workspace. Each tool runs for some seconds; `TOOLSTEAD_SWAP_SECONDS` makes it longer.

use crate::editor::Editor;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use toolstead_domain::error_kind::ErrorKind;

/// For each tool, unless the environment says otherwise.
const SECONDS: u64 = 5;
/// Tools that are tried at once.
const AT_ONCE: usize = 4;
/// Content of the files outside, and part of their names.
const SECRET: &str = "treasure";

/// A tool, and the call that is made over and over; the number is that of the call.
type Case = (&'static str, fn(usize) -> Value);

const CASES: &[Case] = &[
    ("read_file", |_| json!({"path": "d/f"})),
    ("write_file", |number| json!({"path": "d/f", "content": format!("inside {number}\n")})),
    ("append_file", |_| json!({"path": "d/f", "content": "."})),
    ("edit_file", |number| {
        let words = ["inside", "INSIDE"];
        json!({"path": "d/f", "old_text": words[number % 2], "new_text": words[(number + 1) % 2]})
    }),
    ("multi_edit", |number| {
        let edit = |path: String| json!({"path": path, "old_text": "", "new_text": "inside"});
        json!({"edits": [edit(format!("d/m{number}")), edit(format!("d/sub{number}/m"))]})
    }),
    ("delete_file", |number| match number % 2 {
        0 => json!({"path": "d/f"}),
        _ => json!({"path": format!("d/file_{SECRET}")}),
    }),
    ("apply_patch", |number| {
        let patch = format!("*** Begin Patch\n*** Add File: d/new/p{number}\n+inside\n*** End Patch\n");
        json!({"patch": patch})
    }),
    ("list_directory", |number| json!({"path": (["d", "."][number % 2]), "depth": 3})),
    ("glob", |number| json!({"path": (["d", "."][number % 2]), "pattern": "**/*"})),
    ("grep", |number| json!({"path": (["d", "."][number % 2]), "pattern": "side", "output_mode": "content"})),
    ("file_info", |_| json!({"path": "d/f"})),
    ("notebook_edit", |number| json!({"path": "d/n.ipynb", "cell_index": 0, "new_source": format!("inside {number}")})),
    ("undo", |_| json!({})),
    ("redo", |_| json!({})),
];

/// A notebook with one cell.
fn notebook(source: &str) -> String {
    let cell = json!({"cell_type": "markdown", "metadata": {}, "source": [source]});
    json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).to_string()
}

/// All that lies outside: path and content.
fn picture(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path().to_string_lossy().into_owned();
        match entry.path().is_dir() {
            true => found.extend(picture(&entry.path())),
            false => _ = found.insert(path, fs::read(entry.path()).unwrap()),
        }
    }
    found
}

/// Results of a tool.
struct Tally {
    swaps: usize,
    done: usize,
    refused: usize,
}

fn race((tool, arguments): Case, time: Duration) -> Tally {
    let place = tempfile::tempdir().unwrap();
    let (inside, outside) = (place.path().join("w"), place.path().join("out"));
    fs::create_dir_all(inside.join("d")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(inside.join("d/f"), "inside\n").unwrap();
    fs::write(inside.join("d/n.ipynb"), notebook("inside")).unwrap();
    fs::write(outside.join("n.ipynb"), notebook(SECRET)).unwrap();
    fs::write(outside.join("f"), format!("{SECRET}\n")).unwrap();
    fs::write(outside.join(format!("file_{SECRET}")), SECRET).unwrap();
    symlink("../out", inside.join("link")).unwrap();
    let before = picture(&outside);
    let editor = Editor::in_folder(&inside);
    let (is_over, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut done, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, link) = (inside.join("d"), inside.join("link"));
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            let _over = Over(&is_over);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let end = Instant::now() + time;
            let mut number = 0;
            // On a busy machine it may take longer until a call gets through at all.
            while Instant::now() < end || (done == 0 && Instant::now() < end + 5 * time) {
                number += 1;
                if matches!(tool, "undo" | "redo") {
                    // A change that can be undone.
                    let content = format!("inside {number}\n");
                    let _ = runtime.block_on(editor.call("write_file", json!({"path": "d/f", "content": content})));
                }
                if tool == "redo" {
                    let _ = runtime.block_on(editor.call("undo", json!({})));
                }
                let arguments = arguments(number);
                let named =
                    arguments["path"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or("nothing").to_owned();
                match runtime.block_on(editor.call(tool, arguments)) {
                    Ok(result) => {
                        let message = format!("{result:?}");
                        assert!(!message.contains(SECRET), "{tool} told what lies outside: {message}");
                        done += 1;
                    }
                    Err(failure) => {
                        assert_ne!(failure.kind, ErrorKind::Internal, "{failure}");
                        // A refusal may name what the call named, and nothing else that lies there.
                        let message = failure.text().replace(&named, "");
                        assert!(!message.contains(SECRET), "{tool} told what lies outside: {message}");
                        refused += 1;
                    }
                }
                // What was deleted is there again.
                if tool == "delete_file" {
                    let _ = runtime.block_on(editor.call("write_file", json!({"path": "d/f", "content": "inside\n"})));
                }
            }
        });
    });
    assert_eq!(picture(&outside), before, "{tool} wrote outside");
    Tally { swaps: swaps.into_inner(), done, refused }
}

/// Says so when a thread ends, however it ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn no_file_tool_follows_a_folder_that_becomes_a_link_out_of_the_workspace() {
    let seconds = std::env::var("TOOLSTEAD_SWAP_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let waiting = Mutex::new(CASES.to_vec());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = next() {
                    let tally = race(case, Duration::from_secs(seconds));
                    let Tally { swaps, done, refused } = tally;
                    println!("{}: {swaps} swaps, {done} calls done, {refused} refused", case.0);
                    assert!(swaps > 100 && done > 0, "{}", case.0);
                }
            });
        }
    });
}
