//! The analysis of shell texts against bash itself: random scripts run in an otherwise empty folder with nothing on PATH
//! but programs that log their arguments (and the real `env`, `timeout`, `xargs`, `sh`...). Every program that ran and
//! every file that was made must have been named by the analysis, or the analysis must have called the script opaque.
//!
//! `TOOLSTEAD_ORACLE_SCRIPTS` sets how many scripts are run, `TOOLSTEAD_ORACLE_SEED` the first seed.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use toolstead_domain::access::Clarity;
use toolstead_infrastructure::builtin::shell_analysis::{Analysis, Touch, analyse};

#[path = "shell_oracle/script.rs"]
mod script;
use script::{Random, STUBS, script};

/// Programs that start others; the real ones.
const REAL: &[&str] = &["bash", "env", "find", "nice", "nohup", "sh", "timeout", "xargs"];

/// The logging program: `name NUL argument NUL ... SOH` in one write, into the folder above its own.
const STUB: &str = r#"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
static char line[65536], log_path[4200];
int main(int argc, char **argv) {
    ssize_t length = readlink("/proc/self/exe", log_path, 4096);
    if (length < 0) return 1;
    char *name = log_path + length;
    while (name > log_path && name[-1] != '/') name--;
    size_t used = strlen(name) + 1;
    memcpy(line, name, used);
    for (int at = 1; at < argc; at++) {
        size_t size = strlen(argv[at]) + 1;
        if (used + size + 1 > sizeof line) break;
        memcpy(line + used, argv[at], size);
        used += size;
    }
    line[used++] = 1;
    int failing = name[0] == 'n';
    strcpy(name, "../log");
    int file = open(log_path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (file < 0 || write(file, line, used) < 0) return 1;
    return failing;
}
"#;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect("a number"))
}

/// A program that ran, and its arguments.
type Run = Vec<String>;

/// What a script did.
struct Effects {
    runs: Vec<Run>,
    /// The files that it made.
    files: Vec<PathBuf>,
}

/// What the analysis is told the folder is called.
const WORK: &str = "/work";

/// A place to run scripts in.
struct Bench {
    folder: PathBuf,
    stub: PathBuf,
    runs: usize,
}

impl Bench {
    /// What bash does with this script; `None` if it had to be stopped.
    fn run(&mut self, script: &str) -> Option<Effects> {
        self.runs += 1;
        let place = self.folder.join(self.runs.to_string());
        let (programs, work) = (place.join("bin"), place.join("work"));
        fs::create_dir_all(&programs).unwrap();
        fs::create_dir_all(work.join("sub")).unwrap();
        for name in STUBS {
            fs::hard_link(&self.stub, programs.join(name)).unwrap();
        }
        for name in REAL {
            let real =
                ["/usr/bin", "/bin"].iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
            std::os::unix::fs::symlink(real.expect("a usual system"), programs.join(name)).unwrap();
        }
        let child = Command::new("/bin/sh")
            .args(["-c", "ulimit -t 2 -f 64 -v 1000000; exec bash -c \"$1\"", "sh", script])
            .env_clear()
            .env("PATH", &programs)
            .env("HOME", &work)
            .current_dir(&work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let finished = wait(child);
        let log = fs::read(place.join("log")).unwrap_or_default();
        let files = ["", "sub"].iter().flat_map(|folder| files_in(&work, folder)).collect();
        let _ = fs::remove_dir_all(&place);
        let lines = log.split(|byte| *byte == 1).filter(|line| line.contains(&0));
        let word = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        let runs = lines.map(|line| line[..line.len() - 1].split(|byte| *byte == 0).map(word).collect());
        finished.then(|| Effects { runs: runs.collect(), files })
    }
}

/// The files in a folder of the place where a script ran, as the analysis was told that it is called.
fn files_in(work: &Path, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(work.join(folder)).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.map(|file| Path::new(WORK).join(folder).join(file.file_name())).collect()
}

/// Whether it ended by itself in time. Nothing that it started is left.
fn wait(mut child: Child) -> bool {
    let group = Pid::from_child(&child);
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let finished = waitid(WaitId::Pid(group), options).unwrap().is_some();
        if finished || Instant::now() > end {
            // Before it is waited for, so that the group's number cannot be somebody else's yet.
            let _ = kill_process_group(group, Signal::KILL);
            child.wait().unwrap();
            return finished;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Every form in which the analysis names commands.
fn named(analysis: &Analysis) -> BTreeSet<Vec<&str>> {
    let commands = analysis.commands.iter();
    let forms = commands.flat_map(|command| std::iter::once(&command.words).chain(command.readings.iter()));
    forms.map(|words| words.iter().map(|word| &**word).collect()).collect()
}

/// A program that ran or a file that was made and was not named, if there is one.
fn unnamed(script: &str, analysis: &Analysis, effects: &Effects) -> Option<String> {
    if analysis.is_opaque() {
        return None;
    }
    let named = named(analysis);
    let programs: BTreeSet<&str> = named.iter().filter_map(|words| words.first().copied()).collect();
    // Where all words are plain and no file's name may replace them, the arguments must be right as well.
    let plain = analysis.commands.iter().all(|command| command.clarity == Clarity::Plain);
    let exact = plain && !script.contains(['*', '?', '[', '~']);
    let touched = |file: &PathBuf| {
        let touches = |touch: &Touch| touch.writes && touch.path.components().eq(file.components());
        analysis.touches.iter().any(touches)
    };
    if let Some(file) = effects.files.iter().find(|file| !touched(file)) {
        return Some(format!("the file {}", file.display()));
    }
    effects.runs.iter().find_map(|run| {
        let words: Vec<&str> = run.iter().map(String::as_str).collect();
        let known = programs.contains(words[0]) && (!exact || named.contains(&words));
        (!known).then(|| format!("{run:?}"))
    })
}

/// Takes parts away as long as it still fails.
fn shrunk(bench: &mut Bench, script: &str) -> String {
    let mut best: Vec<char> = script.chars().collect();
    let mut size = best.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < best.len() {
            let mut candidate = best.clone();
            candidate.drain(at..(at + size).min(best.len()));
            let text: String = candidate.iter().collect();
            let analysis = analyse(&text, Path::new(WORK));
            let fails = !analysis.is_opaque()
                && bench.run(&text).is_some_and(|effects| unnamed(&text, &analysis, &effects).is_some());
            if fails { best = candidate } else { at += size }
        }
        size /= 2;
    }
    best.into_iter().collect()
}

/// Whether the text reaches for folders outside of its own; those are not run.
fn leaves_its_folder(text: &str) -> bool {
    text.contains("..") || text.contains("> /") || text.contains(">/") || text.contains("-u")
}

#[test]
fn whatever_a_random_script_starts_was_named_or_the_script_was_called_opaque() {
    let scripts = number("TOOLSTEAD_ORACLE_SCRIPTS", 20_000);
    let seed = number("TOOLSTEAD_ORACLE_SEED", 1);
    let root = tempfile::tempdir().unwrap();
    let (source, stub) = (root.path().join("stub.c"), root.path().join("stub"));
    fs::write(&source, STUB).unwrap();
    // Linked statically it starts in half the time, where the system has the library for that.
    let compiled = ["-static", "-Os"].iter().any(|how| {
        let compiler =
            Command::new("cc").args([how, "-Os", "-o"]).arg(&stub).arg(&source).stderr(Stdio::null()).status();
        compiler.is_ok_and(|status| status.success())
    });
    assert!(compiled, "a C compiler is needed, as for the build itself");

    let (next, understood, ran, stopped) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let failures: Mutex<Vec<String>> = Mutex::default();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for worker in 0..std::thread::available_parallelism().map_or(2, usize::from).max(2) {
            let mut bench = Bench { folder: root.path().join(worker.to_string()), stub: stub.clone(), runs: 0 };
            let (next, understood, ran, stopped, failures) = (&next, &understood, &ran, &stopped, &failures);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= scripts {
                        break;
                    }
                    let text = script(&mut Random::new((seed + at) as u64));
                    let analysis = analyse(&text, Path::new(WORK));
                    // What is opaque is refused whatever it starts: only every tenth is run, to see that scripts work.
                    if leaves_its_folder(&text) || (analysis.is_opaque() && at % 10 != 0) {
                        continue;
                    }
                    let Some(effects) = bench.run(&text) else {
                        stopped.fetch_add(1, Ordering::Relaxed);
                        continue;
                    };
                    ran.fetch_add(effects.runs.len(), Ordering::Relaxed);
                    understood.fetch_add(usize::from(!analysis.is_opaque()), Ordering::Relaxed);
                    if let Some(program) = unnamed(&text, &analysis, &effects) {
                        let small = shrunk(&mut bench, &text);
                        let seed = seed + at;
                        let forms = format!("{:?}", named(&analyse(&small, Path::new(WORK))));
                        let failure =
                            format!("seed {seed}: {program} of {text:?}\n  in short {small:?}\n  named {forms}");
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let (understood, ran, stopped) = (understood.into_inner(), ran.into_inner(), stopped.into_inner());
    println!(
        "{scripts} scripts in {:.1?}: {understood} not opaque, {ran} programs started, {stopped} stopped",
        started.elapsed()
    );
    let failures = failures.into_inner().unwrap();
    let shown: Vec<&str> = failures.iter().take(20).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} scripts started what was not named:\n{}", failures.len(), shown.join("\n"));
    assert!(understood * 4 > scripts, "only {understood} of {scripts} were understood");
    assert!(ran * 2 > understood, "the scripts start hardly anything");
    assert!(stopped * 50 < scripts, "{stopped} scripts had to be stopped");
}
