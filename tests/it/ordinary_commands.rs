//! Ordinary work succeeds in the sandbox: each command ends as it does outside, for the superuser and for an ordinary
//! user.

use crate::binaries::Pipe;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A user without rights.
const NOBODY: u32 = 65534;

/// Command lines, run one after the other in the same workspace; outside in a copy of it.
const WORK: &[&str] = &[
    "cargo build --offline --quiet",
    "cargo test --offline --quiet",
    "cd broken && cargo build --offline --quiet",
    "npm test --silent",
    "npm run --silent fails",
    "node --version && npm --version",
    "/usr/bin/python3 -m pytest -q -p no:cacheprovider good",
    "/usr/bin/python3 -m pytest -q -p no:cacheprovider bad",
    "git init --quiet repo",
    "cd repo && git config user.name Somebody && git config user.email somebody@example.com",
    "cd repo && echo one > a.txt && git add a.txt && git commit --quiet -m One && git log --oneline",
    "cd repo && git commit -m Nothing",
    "git init --quiet --bare bare.git",
    "cd repo && git remote add origin ../bare.git && git push --quiet origin HEAD:main",
    "cd repo && git checkout --quiet -b topic && echo two >> a.txt && git commit --quiet -am Two && git diff --stat HEAD~1",
    "git clone --quiet bare.git clone && ls clone/a.txt",
    "cd repo && git push --quiet nowhere",
    "cd repo && git worktree add --quiet ../tree && cd ../tree && git commit --quiet --allow-empty -m Two",
    "cd repo && git worktree remove ../tree && git worktree list",
    "mktemp && mktemp -d && echo x > /tmp/x-$$ && cat /tmp/x-$$ && rm /tmp/x-$$",
    "mkdir -p ~/.cache/thing && echo x > ~/.cache/thing/x",
    "ps -o pid= -p $$ && sort < /dev/null && head -c 8 /dev/urandom | wc -c",
    "tar czf src.tgz src && tar tzf src.tgz && rm src.tgz",
    "echo 'int main(void){return 7;}' > m.c && cc m.c -o m && ./m",
    "install -m 755 test.js copy.js && cp -a src src2 && chmod -R u+rwX,go-w src2 && mkdir -m 700 closed",
    "/usr/bin/python3 -c 'import shutil; shutil.copytree(\"src\", \"src3\")'",
    "ls /nowhere",
    "exit 42",
    "kill -TERM $$",
];

#[test]
fn common_commands_end_the_same_inside_and_outside_the_sandbox() {
    check(None);
}

#[test]
fn common_commands_of_an_ordinary_user_end_the_same_inside_and_outside_the_sandbox() {
    // Where the tests themselves run as one, the other test has shown it.
    if rustix::process::geteuid().is_root() {
        check(Some(NOBODY));
    }
}

/// Folders that an ordinary user cannot look into: another one's, one's own, and one that lets in who knows a name.
#[test]
fn deny_rules_apply_inside_unreadable_folders_and_commands_still_run() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let life = Life::begin(Some(NOBODY));
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(life.work().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    for (name, owner, bits) in [("theirs", 0, 0o700), ("named", 0, 0o711), ("own", NOBODY, 0o000)] {
        let folder = life.work().join(name);
        fs::create_dir_all(folder.join("deep")).unwrap();
        fs::write(folder.join("secret.key"), format!("secret of {name}\n")).unwrap();
        std::os::unix::fs::chown(folder.join("deep"), Some(owner), Some(owner)).unwrap();
        std::os::unix::fs::chown(&folder, Some(owner), Some(owner)).unwrap();
        mode(name, bits);
    }
    let look = "chmod 700 own; for name in theirs named own; do cat $name/secret.key; done; echo it runs; true";
    for (rules, own, named) in [
        // About what lies elsewhere.
        ("deny = [\"Write(//etc)\", \"Read(//elsewhere/**)\"]", true, true),
        ("deny = [\"Read(secret.key)\"]", false, false),
        // It can be read where it lets one in, and not be opened.
        ("deny = [\"Write(secret.key)\"]", false, true),
    ] {
        let mut program = life.toolstead_with(rules);
        let answer = call(&mut program, "bash", json!({"command": look})).to_string();
        assert!(answer.contains("it runs"), "{rules}: {answer}");
        assert!(!answer.contains("secret of theirs"), "{rules}: {answer}");
        assert_eq!(answer.contains("secret of own"), own, "{rules}: {answer}");
        assert_eq!(answer.contains("secret of named"), named, "{rules}: {answer}");
        mode("own", 0o000);
    }
}

fn check(user: Option<u32>) {
    let life = Life::begin(user);
    let mut program = life.toolstead();
    let memory = fs::metadata(format!("/proc/{}/mem", program.child.id())).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&memory), 0, "no program of its user may read its memory");
    let mut differences = Vec::new();
    for command in WORK {
        let outside = life.outside(command);
        let answer = call(&mut program, "bash", json!({"command": command, "timeout_ms": 120_000}));
        let inside = answer["result"]["structuredContent"]["exit_code"].as_i64();
        let signal = &answer["result"]["structuredContent"]["signal"];
        let same = match outside {
            Ok(code) => inside == Some(code.into()),
            Err(_) => !signal.is_null(),
        };
        if !same {
            differences.push(format!("{command}\n    outside {outside:?}, inside {answer}"));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    let stored = fs::metadata(life.work().join("repo/a.txt")).unwrap();
    assert_eq!(
        std::os::unix::fs::MetadataExt::uid(&stored),
        user.unwrap_or(0),
        "what a command writes belongs to the one who runs Toolstead"
    );
    check_server(&mut program);
}

/// Checks that a server that is started in the background can be reached by the next command, and from nowhere else.
fn check_server(program: &mut Pipe) {
    let server = "cd www && exec /usr/bin/python3 -u -m http.server 8123 --bind 127.0.0.1";
    let arguments = json!({"command": server, "background": true, "ready_when": "Serving HTTP", "timeout_ms": 60_000});
    let started = call(program, "bash", arguments);
    let task =
        started["result"]["structuredContent"]["task_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    let fetch = "/usr/bin/python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/index.html').read().decode())\"";
    let fetched = call(program, "bash", json!({"command": fetch}));
    assert!(fetched.to_string().contains("it is served"), "{fetched}");
    assert!(std::net::TcpStream::connect("127.0.0.1:8123").is_err(), "the host reaches the private network");
    let stopped = call(program, "task_stop", json!({"task_id": task}));
    assert_ne!(stopped["result"]["isError"], true, "{stopped}");
}

fn call(program: &mut Pipe, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    program.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string());
    program.answer(1)
}

/// Two equal workspaces: one for the sandbox, one for the comparison outside.
struct Life {
    folder: tempfile::TempDir,
    user: Option<u32>,
    path: String,
}

impl Life {
    fn begin(user: Option<u32>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let path = match user {
            None => path,
            // The superuser's own toolchain is closed to others.
            Some(_) => format!("{}:/usr/local/bin:/usr/bin:/bin", toolchain(folder.path()).display()),
        };
        let life = Self { folder, user, path };
        for name in ["work", "plain"] {
            fill(&life.at(name));
        }
        for name in ["home", "data", "config"] {
            fs::create_dir_all(life.at(name)).unwrap();
        }
        // By another process: a descriptor of ours that can write may be inherited by what a test beside this one starts.
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_toolstead")).arg(life.at("toolstead")).status().unwrap();
        assert!(copied.success());
        if let Some(user) = user {
            fs::set_permissions(life.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
            for name in ["work", "plain", "home", "data", "config"] {
                let owner = format!("{user}:{user}");
                let changed = Command::new("chown").args(["-R", &owner]).arg(life.at(name)).status().unwrap();
                assert!(changed.success());
            }
        }
        life
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn work(&self) -> PathBuf {
        self.at("work")
    }

    fn command(&self, program: &Path, folder: &str) -> Command {
        let mut command = match self.user {
            None => Command::new(program),
            Some(user) => {
                let user = user.to_string();
                let mut command = Command::new("setpriv");
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]).arg(program);
                command
            }
        };
        command.env_clear().current_dir(self.at(folder)).env("PATH", &self.path).env("LANG", "C.UTF-8");
        command.env("HOME", if self.user.is_none() { home() } else { self.at("home") });
        command
    }

    /// Returns how the command ends without a sandbox: its exit code, or the signal.
    fn outside(&self, command: &str) -> Result<i32, i32> {
        let mut bash = self.command(Path::new("/bin/bash"), "plain");
        let status = bash.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = status.status().unwrap();
        status.code().ok_or_else(|| std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0))
    }

    fn toolstead(&self) -> Pipe {
        self.toolstead_with("")
    }

    /// With these further lines of permissions.
    fn toolstead_with(&self, rules: &str) -> Pipe {
        let text = format!("[workspace]\nroots = [{:?}]\n[permissions]\nallow = [\"Bash\"]\n{rules}\n", self.work());
        let file = self.at("config").join("test.toml");
        fs::write(&file, text).unwrap();
        let mut command = self.command(&self.at("toolstead"), "work");
        command.args(["-q", "--config"]).arg(file).arg("mcp");
        command.env("XDG_DATA_HOME", self.at("data")).env("XDG_CONFIG_HOME", self.at("config"));
        let mut program = Pipe::start(command);
        program.initialize();
        program
    }
}

fn home() -> PathBuf {
    std::env::var_os("HOME").map_or_else(|| "/".into(), PathBuf::from)
}

/// A copy of the Rust toolchain that everybody may use; the folder of its programs.
fn toolchain(folder: &Path) -> PathBuf {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let from = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    let to = folder.join("toolchain");
    fs::create_dir_all(to.join("lib")).unwrap();
    for part in ["bin", "lib"] {
        // Linked where that is possible, so that it costs nothing.
        let linked =
            Command::new("cp").arg("-al").arg(from.join(part)).arg(&to).stderr(Stdio::null()).status().unwrap();
        if !linked.success() {
            assert!(Command::new("cp").arg("-a").arg(from.join(part)).arg(&to).status().unwrap().success());
        }
    }
    to.join("bin")
}

fn fill(work: &Path) {
    for (name, text) in [
        ("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n"),
        ("src/lib.rs", "pub fn two() -> u8 { 2 }\n#[test]\nfn it_is() { assert_eq!(two(), 2); }\n"),
        ("broken/Cargo.toml", "[package]\nname = \"broken\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n"),
        ("broken/src/lib.rs", "pub fn two() -> u8 { \"2\" }\n"),
        (
            "package.json",
            "{\"name\": \"small\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node test.js\", \"fails\": \"exit 3\"}}\n",
        ),
        ("test.js", "require('assert').strictEqual(1 + 1, 2);\n"),
        ("good/test_it.py", "def test_it():\n    assert 1 + 1 == 2\n"),
        ("bad/test_that.py", "def test_that():\n    assert 1 + 1 == 3\n"),
        ("www/index.html", "it is served\n"),
    ] {
        let path = work.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}
