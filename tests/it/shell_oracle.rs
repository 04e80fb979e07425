//! The analysis of shell texts against bash itself: random scripts run in the sandbox, in an almost empty folder, with
//! nothing on PATH but programs that log their arguments (and the real `env`, `timeout`, `xargs`, `sh`, `touch`...). Every
//! program that ran and every file that was made must have been named by the analysis, or the analysis must have called the
//! script opaque.
//!
//! `TOOLSTEAD_ORACLE_SCRIPTS` sets how many scripts are run, `TOOLSTEAD_ORACLE_SEED` the first seed.

use crate::binaries::{Home, Pipe};
use serde_json::json;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use toolstead_domain::ParseConfidence;
use toolstead_infrastructure::shell_analysis::{Analysis, FileAccess, analyse};

#[path = "shell_oracle/script.rs"]
mod script;
use script::{EDIT, Random, STUBS, script};

/// Programs that start others or change files; the real ones.
const REAL: &[&str] =
    &["bash", "cat", "cp", "env", "find", "mkdir", "mv", "nice", "nohup", "sh", "sort", "timeout", "touch", "xargs"];

/// Files that are there before, for patterns that become options.
const OPTION_FILES: &[&str] = &["--output=made", "--target-directory=sub"];

/// Those of them that change files.
const FILE_PROGRAMS: &[&str] = &["cp", "mkdir", "mv", "sort", "touch"];

/// The one program that scripts find under many names. It writes `name NUL argument NUL ... SOH` at once into the folder
/// above its own. As `edit` it then starts what `EDITOR` says. As `runner` it runs the scripts in the places that it is
/// given, leaves nothing of them running, and says where it is.
const STUB: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static char line[65536], log_path[4200];

static void limit(int what, rlim_t most) {
    struct rlimit limits = {most, most};
    setrlimit(what, &limits);
}

static void start(const char *place) {
    char path[4200], home[4200], folder[4096];
    setpgid(0, 0);
    if (chdir(place) || !getcwd(folder, sizeof folder)) _exit(126);
    int script = open("script", O_RDONLY);
    if (script < 0 || read(script, line, sizeof line - 1) < 0 || chdir("work")) _exit(126);
    close(script);
    int nothing = open("/dev/null", O_RDWR);
    for (int stream = 0; stream < 3; stream++) dup2(nothing, stream);
    close(nothing);
    snprintf(path, sizeof path, "PATH=%s/bin", folder);
    snprintf(home, sizeof home, "HOME=%s/work", folder);
    limit(RLIMIT_CPU, 2);
    limit(RLIMIT_FSIZE, 64 * 1024);
    limit(RLIMIT_AS, 1024 * 1024 * 1024);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, 0);
    char *arguments[] = {"bash", "-c", line, 0}, *environment[] = {path, home, 0};
    execve("../bin/bash", arguments, environment);
    _exit(127);
}

static int run_all(char **places) {
    sigset_t ended;
    struct timespec moment = {0, 100000000};
    char where[100];
    ssize_t length = readlink("/proc/self/ns/pid", where, sizeof where);
    if (length < 0 || write(1, where, length) != length) return 1;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, 0);
    for (; *places; places++) {
        siginfo_t state = {0};
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) start(*places);
        setpgid(child, child);
        for (int moments = 0; moments < 100 && !state.si_pid; moments++) {
            waitid(P_PID, child, &state, WEXITED | WNOHANG | WNOWAIT);
            if (!state.si_pid) sigtimedwait(&ended, 0, &moment);
        }
        kill(-child, SIGKILL);
        waitpid(child, 0, 0);
        snprintf(log_path, sizeof log_path, "%s/ended", *places);
        if (state.si_pid) close(open(log_path, O_WRONLY | O_CREAT, 0600));
    }
    return 0;
}

int main(int argc, char **argv) {
    ssize_t length = readlink("/proc/self/exe", log_path, 4096);
    if (length < 0) return 1;
    char *name = log_path + length;
    while (name > log_path && name[-1] != '/') name--;
    if (!strcmp(name, "runner")) return run_all(argv + 1);
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
    char *editor = strcmp(name, "edit") ? 0 : getenv("EDITOR");
    strcpy(name, "../log");
    int file = open(log_path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (file < 0 || write(file, line, used) < 0) return 1;
    if (editor) execl("/bin/sh", "sh", "-c", editor, (char *)0);
    return failing;
}
"#;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect("a number"))
}

/// A program that ran, and its arguments.
type Run = Vec<String>;

/// Effects of a script.
struct Effects {
    runs: Vec<Run>,
    /// The files that it made.
    files: Vec<PathBuf>,
}

/// Scripts that run one after the other in one sandbox.
const BATCH: usize = 100;

/// Name of the folder in the analysis.
const WORK: &str = "/work";

/// Folders for scripts: the workspace of a server, whose `bash` tool starts them all in its sandbox.
struct Bench {
    home: Home,
    server: Pipe,
    calls: i64,
    /// Folders that scripts are put into, one after the other.
    places: Vec<PathBuf>,
}

impl Bench {
    /// A server with a workspace that holds the stub.
    fn start(stub: &Path) -> Self {
        let home = Home::new();
        let mut command = home.toolstead(&["mcp", "--config"]);
        command.arg(home.config("[permissions]\nallow = [\"Bash\"]\n"));
        let mut server = Pipe::start(command);
        server.initialize();
        fs::copy(stub, home.work().join("runner")).unwrap();
        Self { home, server, calls: 0, places: Vec::new() }
    }

    /// Runs these scripts with bash and returns their effects; `None` for scripts that had to be stopped.
    fn run(&mut self, scripts: &[String]) -> Vec<Option<Effects>> {
        while self.places.len() < scripts.len() {
            self.add_place();
        }
        let places = &self.places[..scripts.len()];
        for (place, script) in places.iter().zip(scripts) {
            furnish(place, script);
        }
        let names: Vec<_> = places.iter().map(|place| place.file_name().unwrap().to_str().unwrap()).collect();
        self.calls += 1;
        let arguments = json!({"command": format!("./runner {}", names.join(" ")), "timeout_ms": 600_000});
        let call = json!({"name": "bash", "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": call});
        self.server.send(request.to_string());
        let answer = self.server.answer(self.calls);
        let inside = answer["result"]["structuredContent"]["stdout"].as_str().unwrap_or_default();
        let outside = fs::read_link("/proc/self/ns/pid").unwrap();
        assert!(inside.starts_with("pid:[") && Path::new(inside.trim()) != outside, "not in a sandbox: {answer}");
        places.iter().map(|place| effects(place)).collect()
    }

    /// A folder with all programs that scripts find.
    fn add_place(&mut self) {
        let place = self.home.work().join(self.places.len().to_string());
        let programs = place.join("bin");
        fs::create_dir_all(&programs).unwrap();
        for name in STUBS.iter().chain([&EDIT]) {
            fs::hard_link(self.home.work().join("runner"), programs.join(name)).unwrap();
        }
        for name in REAL {
            let real =
                ["/usr/bin", "/bin"].iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
            std::os::unix::fs::symlink(real.expect("a usual system"), programs.join(name)).unwrap();
        }
        self.places.push(place);
    }
}

/// Puts a script into a place, and a new folder that it starts in.
fn furnish(place: &Path, script: &str) {
    let work = place.join("work");
    fs::create_dir_all(work.join("sub")).unwrap();
    fs::write(place.join("script"), script).unwrap();
    for name in OPTION_FILES {
        fs::write(work.join(name), "").unwrap();
    }
}

/// Returns the effects of the script in this folder, and empties the folder.
fn effects(place: &Path) -> Option<Effects> {
    let finished = place.join("ended").exists();
    let log = fs::read(place.join("log")).unwrap_or_default();
    let files = ["", "sub"].iter().flat_map(|folder| files_in(&place.join("work"), folder)).collect();
    fs::remove_dir_all(place.join("work")).unwrap();
    for file in ["log", "ended"] {
        let _ = fs::remove_file(place.join(file));
    }
    let lines = log.split(|byte| *byte == 1).filter(|line| line.contains(&0));
    let word = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let runs = lines.map(|line| line[..line.len() - 1].split(|byte| *byte == 0).map(word).collect());
    finished.then(|| Effects { runs: runs.collect(), files })
}

/// Returns the files in a folder in which a script ran, with the folder's name in the analysis.
fn files_in(work: &Path, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(work.join(folder)).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let files = files.filter(|file| !OPTION_FILES.iter().any(|known| file.file_name() == *known));
    files.map(|file| Path::new(WORK).join(folder).join(file.file_name())).collect()
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
    let plain = analysis.commands.iter().all(|command| command.clarity == ParseConfidence::Plain);
    let exact = plain && !script.contains(['*', '?', '[', '~']);
    let touched = |file: &PathBuf| {
        let changes_it = |file_access: &FileAccess| {
            let below = file_access.tree && file.starts_with(&file_access.path);
            file_access.writes && (below || file_access.path.components().eq(file.components()))
        };
        analysis.file_accesses.iter().any(changes_it)
    };
    // An exact command may change more files than it is known to; those that the shell opens are known always.
    let changes = analysis.commands.iter().any(|command| {
        let mut forms = std::iter::once(&command.words).chain(command.readings.iter());
        command.clarity != ParseConfidence::Plain
            && forms.any(|words| words.first().is_some_and(|name| FILE_PROGRAMS.contains(&&**name)))
    });
    if let Some(file) = effects.files.iter().find(|file| !touched(file)).filter(|_| !changes) {
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
                && bench
                    .run(std::slice::from_ref(&text))
                    .pop()
                    .flatten()
                    .is_some_and(|effects| unnamed(&text, &analysis, &effects).is_some());
            if fails { best = candidate } else { at += size }
        }
        size /= 2;
    }
    best.into_iter().collect()
}

/// Returns `true` if the text accesses folders outside of its own, whose effects are not examined. Such scripts are not
/// run.
fn leaves_its_folder(text: &str) -> bool {
    text.contains("..") || text.contains("> /") || text.contains(">/") || text.contains("-u")
}

#[test]
fn every_program_that_a_random_script_starts_is_named_unless_the_script_is_opaque() {
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
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).max(2) {
            let (next, understood, ran, stopped, failures) = (&next, &understood, &ran, &stopped, &failures);
            let mut bench = Bench::start(&stub);
            scope.spawn(move || {
                loop {
                    let (mut seeds, mut texts) = (Vec::new(), Vec::new());
                    while texts.len() < BATCH {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= scripts {
                            break;
                        }
                        let text = script(&mut Random::new((seed + at) as u64));
                        // What is opaque is refused whatever it starts: only every tenth is run, to see that scripts work.
                        let is_shown = at % 10 == 0 || !analyse(&text, Path::new(WORK)).is_opaque();
                        if is_shown && !leaves_its_folder(&text) {
                            seeds.push(seed + at);
                            texts.push(text);
                        }
                    }
                    if texts.is_empty() {
                        break;
                    }
                    for ((seed, text), effects) in seeds.iter().zip(&texts).zip(bench.run(&texts)) {
                        let Some(effects) = effects else {
                            stopped.fetch_add(1, Ordering::Relaxed);
                            continue;
                        };
                        let analysis = analyse(text, Path::new(WORK));
                        ran.fetch_add(effects.runs.len(), Ordering::Relaxed);
                        understood.fetch_add(usize::from(!analysis.is_opaque()), Ordering::Relaxed);
                        if let Some(program) = unnamed(text, &analysis, &effects) {
                            let small = shrunk(&mut bench, text);
                            let forms = format!("{:?}", named(&analyse(&small, Path::new(WORK))));
                            let failure =
                                format!("seed {seed}: {program} of {text:?}\n  in short {small:?}\n  named {forms}");
                            failures.lock().unwrap().push(failure);
                        }
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
