//! What is known about programs by their names, as data: which start other programs, and which take any argument without
//! doing so. What single arguments of them do is in `risks`, what subcommands do in `subcommands`,
//! and what runs texts of other languages in `interpreters`.

use super::{
    interpreters,
    risks::{self, COMPILERS},
    subcommands,
};

/// Programs that change nothing about the command behind them, and are looked through for allow rules: no allow rule on
/// one of them can cover anything.
pub const LOOKED_THROUGH: &[&str] = &["timeout", "nice", "time", "nohup"];

/// Shells: they run the text behind `-c`, or what they read.
pub(crate) const SHELLS: &[&str] = &[
    "ash",
    "bash",
    "bash-static",
    "csh",
    "dash",
    "elvish",
    "fish",
    "hush",
    "ksh",
    "lksh",
    "mksh",
    "nu",
    "oksh",
    "osh",
    "posh",
    "rbash",
    "sash",
    "sh",
    "tcsh",
    "xonsh",
    "yash",
    "zsh",
];

/// Programs that start the program named among their arguments.
pub(crate) const FORWARDERS: &[&str] = &[
    "bubblewrap",
    "bundle",
    "bunx",
    "busybox",
    "bwrap",
    "caffeinate",
    "capsh",
    "catchsegv",
    "choom",
    "chpst",
    "chronic",
    "chroot",
    "chrt",
    "concurrently",
    "cpulimit",
    "cross-env",
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "direnv",
    "doas",
    "docker",
    "dotenv",
    "dtach",
    "dumb-init",
    "eatmydata",
    "entr",
    "env",
    "expect",
    "fakeroot",
    "faketime",
    "firejail",
    "flock",
    "gdb",
    "genv",
    "gnice",
    "gosu",
    "gtimeout",
    "hyperfine",
    "ifne",
    "ionice",
    "kubectl",
    "ld-linux-x86-64.so.2",
    "ld.so",
    "linux32",
    "linux64",
    "lldb",
    "ltrace",
    "machinectl",
    "mpirun",
    "newgrp",
    "nice",
    "nix-shell",
    "nodemon",
    "nohup",
    "npx",
    "nq",
    "nsenter",
    "numactl",
    "parallel",
    "pdsh",
    "pee",
    "perf",
    "pipenv",
    "pipx",
    "pkexec",
    "pnpx",
    "podman",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "rlwrap",
    "runcon",
    "runuser",
    "script",
    "sem",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "socat",
    "softlimit",
    "srun",
    "ssh",
    "ssh-agent",
    "sshpass",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "systemd-inhibit",
    "systemd-nspawn",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tini",
    "toolbox",
    "torsocks",
    "toybox",
    "tsocks",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
    "watchexec",
    "wine",
    "xargs",
    "xterm",
    "xvfb-run",
    "zargs",
];

/// Those of them that hand a whole argument to a shell.
pub(crate) const TEXT_FORWARDERS: &[&str] = &[
    "entr",
    "env",
    "flock",
    "hyperfine",
    "nix-shell",
    "nsenter",
    "parallel",
    "pee",
    "runuser",
    "script",
    "sem",
    "sg",
    "ssh",
    "su",
    "watch",
    "xargs",
];

/// Programs that start a shell, which reads its input, unless they are given a command; and how many operands stand in
/// front of that. With [`ONLY_BY_OPTION`] it is given behind `-c` alone.
pub(crate) const SHELLS_WITHOUT_COMMAND: &[(&str, usize)] = &[
    ("chroot", 1),
    ("fakeroot", 0),
    ("firejail", 0),
    ("linux32", 0),
    ("linux64", 0),
    ("newgrp", ONLY_BY_OPTION),
    ("nix-shell", ONLY_BY_OPTION),
    ("nsenter", 0),
    ("proot", 0),
    ("runuser", 0),
    ("script", ONLY_BY_OPTION),
    ("setarch", 1),
    ("sg", 1),
    ("su", ONLY_BY_OPTION),
    ("unshare", 0),
];

/// See [`SHELLS_WITHOUT_COMMAND`].
pub(crate) const ONLY_BY_OPTION: usize = usize::MAX;

/// Programs that run the commands in their input, and what among their arguments says that they do not.
pub(crate) const RUN_THEIR_INPUT: &[(&str, &[&str])] = &[
    ("at", &["-f", "-l", "-r", "-d", "-c"]),
    ("batch", &["-f"]),
    ("crontab", &["-l", "-r", "@"]),
    ("dc", &["-e", "-f", "@"]),
    ("ed", &[]),
    ("ex", &[]),
    ("expect", &["-c", "-f", "@"]),
    ("ftp", &[]),
    ("gdb", &["-batch", "--batch"]),
    ("lldb", &["-b", "--batch"]),
    ("m4", &["@"]),
    ("sftp", &["-b"]),
];

/// Programs whose arguments choose what is read and printed, nothing else.
pub(crate) const READERS: &[&str] = &[
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
pub(crate) const READ_WHATEVER_IS_NAMED: &[&str] = &[
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

/// Programs that take names of programs for names of packages.
pub(crate) const INSTALLERS: &[&str] = &["apk", "apt", "apt-get", "brew", "dnf", "pacman", "yum", "zypper"];

/// Further programs that start none of their arguments, but by an option that is in the table of risks or by a subcommand
/// that is in none of the lists of them.
pub(crate) const SETTLED: &[&str] = &[
    "apt", "apt-get", "cargo", "cd", "chgrp", "chmod", "chown", "cmake", "column", "cp", "csplit", "curl", "date",
    "dd", "dpkg", "export", "fd", "fdfind", "find", "gh", "git", "gmake", "go", "gofmt", "gunzip", "gzip", "host",
    "hostname", "install", "jq", "less", "ln", "local", "make", "man", "mkdir", "mktemp", "more", "mv", "npm", "pip",
    "pip3", "pnpm", "popd", "ps", "pushd", "rg", "rm", "rmdir", "rsync", "rustc", "rustdoc", "rustfmt", "scp", "sed",
    "set", "shred", "shuf", "sort", "split", "tar", "tee", "touch", "tree", "truncate", "umask", "uniq", "unset",
    "unzip", "vi", "vim", "wget", "yarn", "zip",
];

/// The name that the lists know a program by: without its folder and, if it is only known so, without its version
/// (`python3.11`, `gcc-12`).
pub(crate) fn known_as(name: &str) -> &str {
    let name = bare(name);
    if is_known(name) {
        return name;
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let stem = stem.strip_suffix('-').unwrap_or(stem);
    // Names of what only reads have no versions: `ls2` is some other program.
    let has_versions = stem.len() < name.len() && is_known(stem) && !READERS.contains(&stem);
    if has_versions { stem } else { name }
}

fn is_known(name: &str) -> bool {
    [SHELLS, FORWARDERS, READERS, SETTLED, COMPILERS].iter().any(|list| list.contains(&name))
        || interpreters::is_one(name)
        || risks::of(name).is_some()
        || subcommands::of(name).is_some()
}

/// Whether a program of that name runs a text: one among its arguments, or what it reads.
pub(crate) fn runs_texts(name: &str) -> bool {
    SHELLS.contains(&name)
        || matches!(name, "gmake" | "make" | "sed")
        || RUN_THEIR_INPUT.iter().any(|(program, _)| *program == name)
        || interpreters::is_one(name)
}

/// Whether none of a program's arguments is a program, but where a risk says so.
pub(crate) fn is_settled(name: &str) -> bool {
    [READERS, SETTLED, COMPILERS].iter().any(|list| list.contains(&name)) || interpreters::is_one(name)
}

/// The name of a program without its folder.
pub(crate) fn bare(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
