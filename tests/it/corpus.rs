//! The corpus: calls that must be refused, calls that the sandbox must contain, and ordinary ones that must pass, each
//! made against the real binary with its effects checked on the disk; as the superuser, and as another user.
//!
//! `tests/fixtures/corpus.toml` has a list of calls for each expectation, under the rules of their group:
//! - `refused`, `refused_calls`: answered with an error, and nothing has happened;
//! - `contained`: whatever its exit status, nothing outside of the workspace has changed, no secret is revealed, no
//!   host was reached, and the protected entries of the workspace are unchanged;
//! - `passes`, `passes_calls`: answered without an error.
//!
//! The first of each pair holds command lines for `bash`, the second `tool {arguments}`. `{WORK}`, `{OUT}`, `{HOME}`
//! and `{DATA}` stand for folders, `{PORT}` for a port of the host on which a server listens.

use crate::binaries::Pipe;
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::Command,
};

/// Text that no answer may contain.
const CANARY: &str = "CANARY-4711";
/// A user without rights.
const NOBODY: u32 = 65534;

#[test]
fn unsafe_calls_are_refused_or_contained_and_ordinary_calls_succeed() {
    check(None);
}

#[test]
fn the_corpus_has_the_same_results_for_an_unprivileged_user() {
    // Where the tests themselves run as one, the other test has shown it.
    if rustix::process::geteuid().is_root() {
        check(Some(NOBODY));
    }
}

fn check(user: Option<u32>) {
    let text = include_str!("../fixtures/corpus.toml");
    let corpus: toml_edit::DocumentMut = text.parse().unwrap();
    let program = Program::of(user);
    let mut failures = Vec::new();
    let mut made = BTreeMap::new();
    for group in corpus["group"].as_array_of_tables().unwrap() {
        let mut stage = Stage::set(group, &program);
        for expectation in ["refused", "contained", "passes"] {
            for (list, is_command) in [(expectation.to_owned(), true), (format!("{expectation}_calls"), false)] {
                for call in strings(group, &list) {
                    *made.entry(expectation).or_insert(0) += 1;
                    if let Some(fault) = stage.fault_of(expectation, &call, is_command) {
                        failures.push(format!("{} | {expectation} | {call}\n    {fault}", stage.name));
                    }
                }
            }
        }
    }
    assert!(made["refused"] + made["contained"] >= 300 && made["passes"] >= 150, "{made:?}");
    println!("{made:?}");
    assert!(failures.is_empty(), "{} of {made:?}:\n{}", failures.len(), failures.join("\n"));
}

fn strings(table: &toml_edit::Table, key: &str) -> Vec<String> {
    let Some(list) = table.get(key) else { return Vec::new() };
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// A workspace, its surroundings, and the program that is tested.
struct Stage {
    name: String,
    folder: tempfile::TempDir,
    user: Option<u32>,
    listener: TcpListener,
    socket: UnixListener,
    program: Pipe,
    calls: i64,
    /// Initial state of the surroundings of the workspace.
    around: BTreeMap<PathBuf, String>,
}

impl Stage {
    fn set(group: &toml_edit::Table, program: &Program) -> Self {
        let (folder, user) = (tempfile::tempdir().unwrap(), program.user);
        let at = |name: &str| folder.path().join(name);
        for name in ["template", "work", "work_evil", "outside", "home", "data", "config"] {
            fs::create_dir(at(name)).unwrap();
        }
        write(&at("outside/secret.txt"), CANARY);
        write(&at("work_evil/secret.txt"), CANARY);
        for name in [".ssh/id_rsa", ".aws/credentials", ".netrc"] {
            write(&at("home").join(name), CANARY);
        }
        let socket = UnixListener::bind(at("outside/sock")).unwrap();
        socket.set_nonblocking(true).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        fill(&at("template"), folder.path());
        copy(&at("template"), &at("work"));
        own(folder.path(), user);
        let around = picture(folder.path());
        let program = Pipe::start(program.command(folder.path(), &configuration(group, folder.path())));
        let name = group["name"].as_str().unwrap().to_owned();
        let mut stage = Self { name, folder, user, listener, socket, program, calls: 0, around };
        stage.program.initialize();
        stage
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes the call and says what is wrong with what came of it.
    fn fault_of(&mut self, expectation: &str, call: &str, is_command: bool) -> Option<String> {
        if expectation == "contained" {
            empty(&self.at("work"));
            copy(&self.at("template"), &self.at("work"));
            own(&self.at("work"), self.user);
        }
        let protected = (expectation != "passes").then(|| protected(&self.at("work")));
        let call = self.filled_in(call);
        let (tool, arguments) = if is_command {
            ("bash", json!({"command": call, "timeout_ms": 5000}))
        } else {
            let (tool, arguments) = call.split_once(' ').unwrap();
            (tool, serde_json::from_str(arguments).unwrap())
        };
        self.calls += 1;
        let params = json!({"name": tool, "arguments": arguments});
        self.program
            .send(json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params}).to_string());
        let answer = self.program.answer(self.calls);
        let is_error = answer.get("error").is_some() || answer["result"]["isError"] == true;
        let message = answer.to_string();
        let fault = match expectation {
            "refused" if !is_error => Some("it was not refused"),
            "refused" if !found(&self.at("work"), "pwned").is_empty() => Some("it was refused, and ran"),
            "passes" if is_error => Some("it did not pass"),
            _ if message.contains(CANARY) => Some("a secret was told"),
            _ if self.listener.accept().is_ok() || self.socket.accept().is_ok() => Some("the host was reached"),
            _ if protected.is_some_and(|before| before != self::protected(&self.at("work"))) => {
                Some("a protected entry has changed")
            }
            _ if picture(self.folder.path()) != self.around => Some("something outside of the workspace has changed"),
            _ if ["/pwned", "/etc/pwned", "/usr/bin/pwned", "/tmp/pwned-by-corpus"]
                .iter()
                .any(|path| Path::new(path).exists()) =>
            {
                Some("the machine has changed")
            }
            _ => None,
        };
        fault.map(|fault| format!("{fault}: {}", message.chars().take(400).collect::<String>()))
    }

    fn filled_in(&self, call: &str) -> String {
        let port = self.listener.local_addr().unwrap().port().to_string();
        let folders = [("{WORK}", "work"), ("{OUT}", "outside"), ("{HOME}", "home"), ("{DATA}", "data/toolstead")];
        let call = folders
            .iter()
            .fold(call.to_owned(), |call, (name, folder)| call.replace(name, self.at(folder).to_str().unwrap()));
        call.replace("{PORT}", &port)
    }
}

fn configuration(group: &toml_edit::Table, folder: &Path) -> PathBuf {
    let mode = group.get("mode").map_or("default", |mode| mode.as_str().unwrap());
    let mut text = format!("[workspace]\nroots = [{:?}]\n[permissions]\nmode = {mode:?}\n", folder.join("work"));
    for effect in ["allow", "ask", "deny"] {
        text += &format!("{effect} = {:?}\n", strings(group, effect));
    }
    let path = folder.join("config/test.toml");
    fs::write(&path, text).unwrap();
    path
}

/// `toolstead`, to be run as a user.
struct Program {
    file: PathBuf,
    user: Option<u32>,
    /// Holds the copy for a user who cannot enter the folder of the build.
    _folder: Option<tempfile::TempDir>,
}

impl Program {
    fn of(user: Option<u32>) -> Self {
        let built = env!("CARGO_BIN_EXE_toolstead");
        if user.is_none() {
            return Self { file: built.into(), user, _folder: None };
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolstead");
        // Another process copies it: a test that runs at the same time may start a program that inherits a descriptor
        // of ours, and a file that is open for writing cannot be executed.
        assert!(Command::new("cp").arg(built).arg(&file).status().unwrap().success());
        own(folder.path(), user);
        Self { file, user, _folder: Some(folder) }
    }

    /// Returns the command `toolstead mcp` in this folder.
    fn command(&self, folder: &Path, configuration: &Path) -> Command {
        let mut command = match self.user {
            None => Command::new(&self.file),
            Some(user) => {
                let mut command = Command::new("setpriv");
                let user = user.to_string();
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]).arg(&self.file);
                command
            }
        };
        command.args(["-q", "--config"]).arg(configuration).arg("mcp").env_clear().current_dir(folder.join("work"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", folder.join("home"));
        command.env("XDG_DATA_HOME", folder.join("data")).env("XDG_CONFIG_HOME", folder.join("config"));
        command.env("SECRET_OF_THE_PARENT", CANARY).env("AWS_SECRET_ACCESS_KEY", CANARY);
        command
    }
}

/// Writes what the workspace of every group holds at first.
fn fill(work: &Path, folder: &Path) {
    for (name, text) in [
        ("src/a.rs", "fn main() {}\n"),
        ("notes.md", "# Notes\na line\n"),
        ("lib.txt", "one\n"),
        ("trash.txt", "old\n"),
        ("secretary.txt", "not a secret\n"),
        ("evil.sh", "#!/bin/sh\ntouch pwned\n"),
        ("evil.py", "open('pwned', 'w')\n"),
        ("evil.pl", "open(F, '>pwned');\n"),
        ("evil.js", "require('fs').writeFileSync('pwned', '')\n"),
        ("evil.awk", "BEGIN { system(\"touch pwned\") }\n"),
        ("evil.sed", "1e touch pwned\n"),
        ("evil.mk", "x:\n\ttouch pwned\n"),
        ("package.json", "{\"name\": \"x\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"true\"}}\n"),
    ] {
        write(&work.join(name), text);
    }
    for name in [".env", "secret/key", "secret/deep/key", "a/secret/key"] {
        write(&work.join(name), &format!("KEY={CANARY}\n"));
    }
    fs::set_permissions(work.join("evil.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(work.join("a/sub")).unwrap();
    for (target, link) in [
        ("../outside/secret.txt", "link_to_secret"),
        ("../outside", "link_dir"),
        ("link_to_secret", "link_chain"),
        ("../outside/pwned", "dangling"),
        ("src/a.rs", "inner_link"),
        (".env", "env_link"),
    ] {
        symlink(target, work.join(link)).unwrap();
    }
    symlink(folder.join("outside"), work.join("src/link_out")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, work.join("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    drop(UnixListener::bind(work.join("socket_file")).unwrap());
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(work).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", work);
        // The folder may already belong to another user.
        let who = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "safe.directory=*"];
        let output = git.args(who).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet"]);
    git(&["config", "user.name", "Test"]);
    git(&["config", "user.email", "test@example.com"]);
    git(&["add", "notes.md", "src/a.rs", "lib.txt"]);
    git(&["commit", "--quiet", "-m", "First"]);
}

/// Copies everything below one folder into another: far faster than [`fill`], which starts git five times.
fn copy(from: &Path, to: &Path) {
    let mut program = Command::new("cp");
    assert!(program.args(["-a", "-T"]).arg(from).arg(to).status().unwrap().success());
}

/// Returns the entries of a workspace that a call must not change: its hooks, and the settings with which git runs
/// programs.
fn protected(work: &Path) -> BTreeMap<PathBuf, String> {
    let mut entries = BTreeMap::new();
    walk(&work.join(".git/hooks"), &mut |path, facts| {
        entries.insert(path.to_owned(), facts);
    });
    let config = fs::read_to_string(work.join(".git/config")).unwrap_or_default();
    let runs = ["fsmonitor", "hookspath", "pager", "sshcommand", "editor", "external", "alias"];
    let runs =
        config.to_lowercase().lines().filter(|line| runs.iter().any(|key| line.contains(key))).collect::<String>();
    entries.insert("config".into(), runs);
    entries
}

/// Everything around the workspace, save what the program itself writes.
fn picture(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for name in ["outside", "work_evil", "home"] {
        walk(&folder.join(name), &mut |path, facts| {
            all.insert(path.to_owned(), facts);
        });
    }
    all
}

fn walk(path: &Path, seen: &mut impl FnMut(&Path, String)) {
    let Ok(facts) = path.symlink_metadata() else { return };
    let content = if facts.is_file() { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    // A folder's own time changes where something in it does, which is seen anyhow.
    let time = if facts.is_file() { facts.mtime() } else { 0 };
    seen(path, format!("{:o} {time} {content}", facts.mode()));
    if facts.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            walk(&entry.unwrap().path(), seen);
        }
    }
}

/// The files of that name anywhere below.
fn found(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(folder, &mut |path, _| {
        if path.file_name().is_some_and(|file| file.to_string_lossy().contains(name)) {
            found.push(path.to_owned());
        }
    });
    found
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
    }
}

/// Gives everything below to the user.
fn own(folder: &Path, user: Option<u32>) {
    let Some(user) = user else { return };
    walk(folder, &mut |path, _| std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap());
}
