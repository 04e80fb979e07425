//! What is known about programs, as data: which of their arguments make them run or write something else, which start
//! other programs, and which take any argument without doing either (`sandbox.md` 2.1).

/// Shells: they run the text behind `-c`, or what they read.
pub(super) const SHELLS: &[&str] =
    &["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "yash", "zsh"];

/// Programs that start the program named among their arguments.
pub(super) const FORWARDERS: &[&str] = &[
    "bubblewrap",
    "bundle",
    "busybox",
    "bwrap",
    "capsh",
    "catchsegv",
    "chpst",
    "choom",
    "chronic",
    "chroot",
    "chrt",
    "cpulimit",
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "direnv",
    "doas",
    "docker",
    "dumb-init",
    "eatmydata",
    "entr",
    "env",
    "expect",
    "faketime",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "gosu",
    "ionice",
    "kubectl",
    "ld-linux-x86-64.so.2",
    "ld.so",
    "lldb",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "npx",
    "parallel",
    "perf",
    "pipenv",
    "pkexec",
    "podman",
    "prlimit",
    "proot",
    "proxychains",
    "runuser",
    "runcon",
    "rlwrap",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "socat",
    "softlimit",
    "ssh",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tini",
    "toolbox",
    "torsocks",
    "toybox",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
    "xargs",
    "xvfb-run",
    "zargs",
];

/// Those of them that hand a whole argument to a shell.
pub(super) const TEXT_FORWARDERS: &[&str] =
    &["entr", "env", "flock", "nsenter", "parallel", "runuser", "script", "ssh", "su", "watch", "xargs"];

/// Programs that run the text or the file they are given.
pub(super) const INTERPRETERS: &[&str] = &[
    "awk",
    "bun",
    "deno",
    "gawk",
    "guile",
    "irb",
    "julia",
    "lua",
    "luajit",
    "mawk",
    "nawk",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "psql",
    "pypy",
    "pypy3",
    "python",
    "python2",
    "python3",
    "R",
    "Rscript",
    "ruby",
    "sqlite3",
    "tclsh",
];

/// Programs whose arguments choose what is read and printed, nothing else.
pub(super) const READERS: &[&str] = &[
    ":",
    "[",
    "basename",
    "break",
    "cat",
    "cksum",
    "cmp",
    "comm",
    "continue",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "exit",
    "expr",
    "false",
    "fgrep",
    "file",
    "fold",
    "grep",
    "head",
    "id",
    "kill",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "printf",
    "pwd",
    "read",
    "readlink",
    "realpath",
    "return",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "shift",
    "sleep",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "test",
    "tr",
    "true",
    "type",
    "tty",
    "uname",
    "wait",
    "wc",
    "which",
    "whoami",
];

/// Those of them that do nothing else whatever their arguments turn out to be: no builtin that may evaluate a word, no
/// option that writes. A pattern on them covers arguments that are known only when they run.
pub(super) const READ_WHATEVER_IS_NAMED: &[&str] = &[
    "basename",
    "cat",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "df",
    "dirname",
    "du",
    "echo",
    "egrep",
    "fgrep",
    "fold",
    "grep",
    "head",
    "ls",
    "md5sum",
    "nl",
    "od",
    "paste",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "tr",
    "wc",
];

/// Further programs that start none of their arguments.
pub(super) const SETTLED: &[&str] = &[
    "apt", "apt-get", "brew", "cargo", "cc", "cd", "chgrp", "chmod", "chown", "clang", "cmake", "column", "cp",
    "csplit", "curl", "cd", "date", "dd", "dnf", "dpkg", "export", "fd", "fdfind", "find", "g++", "gcc", "gh", "git",
    "go", "gofmt", "gunzip", "gzip", "host", "hostname", "install", "jq", "less", "ln", "local", "man", "make",
    "mkdir", "mktemp", "more", "mount", "mv", "npm", "pip", "pip3", "pnpm", "ps", "popd", "pushd", "rg", "rm", "rmdir",
    "rsync", "rustc", "rustfmt", "scp", "sed", "set", "shred", "shuf", "sort", "split", "tar", "tee", "touch", "tree",
    "truncate", "umask", "umount", "uniq", "unset", "unzip", "vi", "vim", "wget", "yarn", "yum", "zip",
];

/// Which arguments of a program make it run or write something else. A word of the list means:
///
/// | form | hits |
/// | --- | --- |
/// | `--name` | that long option, or a beginning of it, with or without a value |
/// | `-x` | a group of short options that holds `x` |
/// | `=word` | exactly that word |
/// | `^text` | a word that starts so |
/// | `~text` | a word that holds it |
/// | `*` | every use |
pub(super) const RISKS: &[(&str, &[&str], &str)] = &[
    (
        "git",
        &[
            "--output",
            "--ext-diff",
            "--textconv",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--extcmd",
            "--config",
            "--config-env",
            "--template",
            "--separate-git-dir",
            "--open-files-in-pager",
            "--output-directory",
            "~ext::",
        ],
        "this argument makes git run or write something else",
    ),
    (
        "find",
        &["=-exec", "=-execdir", "=-ok", "=-okdir", "=-delete", "^-fprint", "=-fls", "^-files0-from"],
        "this argument makes find run or change something",
    ),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"], "this argument makes fd run a program"),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"], "this argument makes fdfind run a program"),
    (
        "tar",
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
            "-I",
            "-F",
            "--index-file",
            "--volno-file",
        ],
        "this argument makes tar run or write something else",
    ),
    (
        "rsync",
        &["-e", "--rsh", "--rsync-path", "--log-file", "--daemon", "--config"],
        "this argument makes rsync run or write something else",
    ),
    (
        "sort",
        &["-o", "--output", "--compress-program", "-T", "--files0-from"],
        "this argument makes sort run or write something else",
    ),
    ("split", &["--filter"], "this argument makes split run a program"),
    ("csplit", &["*"], "csplit writes files"),
    ("dd", &["^of="], "dd writes to this file"),
    ("tee", &["*"], "tee writes to the files it is given"),
    ("rg", &["--pre", "--hostname-bin", "--search-zip", "-z"], "this argument makes rg run a program"),
    ("ripgrep", &["*"], "it may run a program"),
    ("man", &["-P", "--pager", "-H", "--html", "-C", "--config-file"], "this argument makes man run a program"),
    ("zip", &["-T", "--test", "--unzip-command"], "this argument makes zip run a program"),
    ("vim", &["*"], "an editor runs commands"),
    ("vi", &["*"], "an editor runs commands"),
    ("view", &["*"], "an editor runs commands"),
    ("nvim", &["*"], "an editor runs commands"),
    ("ex", &["*"], "an editor runs commands"),
    ("ed", &["*"], "an editor runs commands"),
    ("emacs", &["*"], "an editor runs commands"),
    ("nano", &["*"], "an editor runs commands"),
    ("less", &["*"], "a pager runs commands and writes files"),
    ("more", &["*"], "a pager runs commands"),
    ("most", &["*"], "a pager runs commands"),
    ("scp", &["-o", "-S", "-F", "-D", "-J"], "this argument makes scp run a program"),
    ("sftp", &["*"], "sftp runs commands"),
    (
        "curl",
        &[
            "-o",
            "-O",
            "-K",
            "-J",
            "-T",
            "-D",
            "-c",
            "--output",
            "--output-dir",
            "--remote-name",
            "--remote-name-all",
            "--config",
            "--upload-file",
            "--dump-header",
            "--cookie-jar",
            "--trace",
            "--trace-ascii",
            "--stderr",
            "--engine",
            "--libcurl",
            "--etag-save",
            "--hsts",
            "--alt-svc",
        ],
        "this argument makes curl write or send a file",
    ),
    ("wget", &["*"], "wget writes files"),
    ("openssl", &["*"], "openssl loads code and writes files"),
    ("uniq", &["@2"], "uniq writes to its second operand"),
    ("xxd", &["@2", "-r"], "xxd writes to its second operand"),
    ("jq", &["-L", "--from-file", "-f"], "this argument makes jq load code"),
    ("yq", &["-i", "--inplace"], "this argument makes yq write"),
    (
        "gcc",
        &["^-fplugin", "^-wrapper", "=-wrapper", "^-B", "^-specs", "^@"],
        "this argument makes gcc run something else",
    ),
    ("cc", &["^-fplugin", "=-wrapper", "^-B", "^-specs", "^@"], "this argument makes cc run something else"),
    ("g++", &["^-fplugin", "=-wrapper", "^-B", "^-specs", "^@"], "this argument makes g++ run something else"),
    (
        "go",
        &[
            "^-toolexec",
            "^--toolexec",
            "^-exec",
            "^--exec",
            "=-o",
            "=generate",
            "^-modfile",
            "^-overlay",
            "^-vettool",
            "^--vettool",
        ],
        "this argument makes go run or write something else",
    ),
    ("cargo", &["--config", "-Z", "^+"], "this argument makes cargo run something else"),
    (
        "make",
        &["--eval", "-E", "^SHELL=", "^.SHELLFLAGS=", "~$(", "~${", "~`"],
        "this argument makes make run something else",
    ),
    (
        "npm",
        &["=exec", "=x", "--script-shell", "--prefix", "=explore", "=config", "=set"],
        "this argument makes npm run something else",
    ),
    ("pnpm", &["=exec", "=dlx"], "this argument makes pnpm run something else"),
    ("yarn", &["=exec", "=dlx"], "this argument makes yarn run something else"),
    ("pip", &["--target", "--python", "--prefix", "--root"], "this argument makes pip write elsewhere"),
    ("pip3", &["--target", "--python", "--prefix", "--root"], "this argument makes pip3 write elsewhere"),
    ("gh", &["=alias", "=extension", "=api", "=config"], "this argument makes gh run or send something else"),
    ("apt", &["-o", "--option", "-c", "--config-file"], "this argument makes apt run something else"),
    ("apt-get", &["-o", "--option", "-c", "--config-file"], "this argument makes apt-get run something else"),
    ("date", &["-s", "--set"], "this argument makes date set the clock"),
    ("hostname", &["@1", "-F", "--file"], "hostname sets its operand"),
    ("tree", &["-o"], "this argument makes tree write a file"),
    ("shuf", &["-o", "--output"], "this argument makes shuf write a file"),
    ("file", &["-C", "--compile"], "this argument makes file write a file"),
    ("crontab", &["*"], "crontab plans commands"),
    ("at", &["*"], "at plans commands"),
    ("batch", &["*"], "batch plans commands"),
    ("tmux", &["*"], "tmux runs commands"),
    ("screen", &["*"], "screen runs commands"),
    ("m4", &["*"], "m4 runs commands"),
    ("bc", &["*"], "bc runs programs of its own"),
    ("dc", &["*"], "dc runs commands"),
    ("nmap", &["*"], "nmap runs scripts"),
    ("ftp", &["*"], "ftp runs commands"),
    ("telnet", &["*"], "telnet runs commands"),
    ("nc", &["*"], "nc may start a program"),
    ("ncat", &["*"], "ncat may start a program"),
    ("install", &["--strip-program"], "this argument makes install run a program"),
    ("cpio", &["*"], "cpio runs programs and writes files"),
    ("ar", &["*"], "ar writes files"),
    ("patch", &["*"], "patch writes the files named in its input"),
];

/// Subcommands of git that are what they say. Others may be aliases, which run anything, or run commands by design.
pub(super) const GIT_SUBCOMMANDS: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "blame",
    "branch",
    "cat-file",
    "check-ignore",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "commit-tree",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "notes",
    "prune",
    "pull",
    "push",
    "range-diff",
    "rebase",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "var",
    "verify-commit",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];

/// Short options of single subcommands that make git run something else.
pub(super) const GIT_RISKS: &[(&str, &[&str])] =
    &[("clone", &["-c", "-u"]), ("grep", &["-O"]), ("ls-remote", &["-u"]), ("rebase", &["-x"])];

/// Options of git before its subcommand that take the next word as their value.
pub(super) const GIT_VALUED: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--exec-path",
    "--attr-source",
];

/// Whether one of these arguments is one of those risks.
pub(super) fn hits(risks: &[&str], arguments: &[&str]) -> bool {
    risks.iter().any(|risk| match risk.split_at(1) {
        ("*", "") => true,
        ("@", count) => {
            let operands = arguments.iter().filter(|word| !word.starts_with('-') || **word == "-").count();
            count.parse().is_ok_and(|count: usize| operands >= count)
        }
        ("=", word) => arguments.contains(&word),
        ("^", start) => arguments.iter().any(|word| word.starts_with(start)),
        ("~", part) => arguments.iter().any(|word| word.contains(part)),
        _ if risk.starts_with("--") => arguments.iter().any(|word| {
            let name = word.split('=').next().unwrap_or(word);
            name == *risk || name.len() > 2 && name.starts_with("--") && risk.starts_with(name)
        }),
        (_, letter) => arguments
            .iter()
            .any(|word| word.strip_prefix('-').is_some_and(|group| !group.starts_with('-') && group.contains(letter))),
    })
}

/// Whether a script of sed only prints, deletes, quits or substitutes.
pub(super) fn sed_only_edits_text(script: &str) -> bool {
    let address = |byte: u8| byte.is_ascii_digit() || matches!(byte, b',' | b'$' | b'!');
    let start = script.bytes().take_while(|byte| address(*byte)).count();
    let rest = &script[start..];
    match rest.as_bytes() {
        [b'p' | b'd' | b'q' | b'='] => true,
        [b's', delimiter, ..] if delimiter.is_ascii_punctuation() && *delimiter != b'\\' => {
            let delimiter = *delimiter as char;
            let mut parts = 0;
            let mut flags = String::new();
            let mut escaped = false;
            for character in rest.chars().skip(2) {
                if character == '\n' {
                    return false;
                }
                if parts == 2 {
                    flags.push(character);
                } else if escaped {
                    escaped = false;
                } else if character == '\\' {
                    escaped = true;
                } else if character == delimiter {
                    parts += 1;
                }
            }
            parts == 2 && flags.chars().all(|flag| matches!(flag, 'g' | 'p' | 'i' | 'I') || flag.is_ascii_digit())
        }
        _ => false,
    }
}
