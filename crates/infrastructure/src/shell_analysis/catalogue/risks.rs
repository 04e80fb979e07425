//! Which arguments make a program run or write something else, as data.

/// Programs, what among their arguments is a risk, and what is said of it. A risk is
///
/// | form | hits |
/// | --- | --- |
/// | `--name` | that long option, or a beginning of it that is no option's name, with or without a value |
/// | `-x` | a group of short options that holds `x` |
/// | `-@` | an option that holds an `@` |
/// | `%codegen` | an option of rustc's code generation that is in no list |
/// | `+--name` | that long option, if some argument holds an `@` |
/// | `=word` | exactly that word |
/// | `^text` | a word that starts so |
/// | `~text` | a word that holds it |
/// | `$=` | a variable that is set (`NAME=value`, `-DNAME=value`) to more than a number or a switch |
/// | `@2` | so many operands |
/// | `*` | every use |
type Row = (&'static [&'static str], &'static [&'static str], &'static str);

/// Compilers, which take the same options.
pub(crate) const COMPILERS: &[&str] = &["c++", "cc", "clang", "clang++", "cpp", "g++", "gcc", "gfortran"];

const RISKS: &[Row] = &[
    (
        &["git"],
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
            "--build-fake-ancestor",
            "^ext::",
            "~=ext::",
        ],
        "this argument makes git run or write something else",
    ),
    (
        &["find"],
        &["=-exec", "=-execdir", "=-ok", "=-okdir", "=-delete", "^-fprint", "=-fls", "^-files0-from"],
        "this argument makes find run or change something",
    ),
    (&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"], "this argument makes fd run a program"),
    (
        &["tar", "gtar", "bsdtar"],
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
            "--files-from",
            "-I",
            "-F",
            "-T",
            "--index-file",
            "--volno-file",
        ],
        "this argument makes tar run or write something else",
    ),
    (
        &["rsync"],
        &[
            "-e",
            "-M",
            "--rsh",
            "--rsync-path",
            "--remote-option",
            "--log-file",
            "--write-batch",
            "--only-write-batch",
            "--daemon",
            "--config",
        ],
        "this argument makes rsync run or write something else",
    ),
    (
        &["sort"],
        &["-o", "--output", "--compress-program", "-T", "--files0-from"],
        "this argument makes sort run or write something else",
    ),
    (&["split"], &["--filter"], "this argument makes split run a program"),
    (&["csplit"], &["*"], "csplit writes files"),
    (&["dd"], &["^of="], "dd writes to this file"),
    (&["tee"], &["*"], "tee writes to the files it is given"),
    (&["rg"], &["--pre", "--hostname-bin", "--search-zip", "-z"], "this argument makes rg run a program"),
    (&["ripgrep"], &["*"], "it may run a program"),
    (
        &["man"],
        &[
            "-P",
            "--pager",
            "-H",
            "--html",
            "-C",
            "--config-file",
            "-T",
            "-t",
            "--troff",
            "-X",
            "--gxditview",
            "-M",
            "--manpath",
            "-l",
            "--local-file",
            "-p",
            "--preprocessor",
        ],
        "this argument makes man run a program",
    ),
    (&["zip"], &["-T", "--test", "--unzip-command"], "this argument makes zip run a program"),
    (&["vim", "vi", "view", "nvim", "ex", "ed", "emacs", "nano"], &["*"], "an editor runs commands"),
    (&["less"], &["*"], "a pager runs commands and writes files"),
    (&["more", "most"], &["*"], "a pager runs commands"),
    (&["scp"], &["-o", "-S", "-F", "-D", "-J"], "this argument makes scp run a program"),
    (&["sftp"], &["*"], "sftp runs commands"),
    (
        &["curl"],
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
            "^--expand-",
            "--variable",
            "+--data-urlencode",
            "+--url-query",
            "^@",
            "-@",
            "~=@",
            "~=<",
        ],
        "this argument makes curl write or send a file",
    ),
    (&["wget"], &["*"], "wget writes files"),
    (&["openssl"], &["*"], "openssl loads code and writes files"),
    (&["uniq"], &["@2"], "uniq writes to its second operand"),
    (&["xxd"], &["@2", "-r"], "xxd writes to its second operand"),
    (&["jq"], &["-L", "--from-file", "-f"], "this argument makes jq load code"),
    (&["yq"], &["-i", "--inplace"], "this argument makes yq write"),
    (
        COMPILERS,
        &[
            "^-fplugin",
            "^-fpass-plugin",
            "--plugin",
            "^-iplugindir",
            "^-wrapper",
            "--wrapper",
            "^-B",
            "--prefix",
            "^-specs",
            "--specs",
            "^@",
            "^-fuse-ld",
            "--ld-path",
            "--for-linker",
            "--for-assembler",
            "^-X",
            "^-Wl,",
            "^-Wa,@",
            "^-load",
            "^-cc1",
            "^-mllvm",
            "^-gcc-toolchain",
            "--gcc-toolchain",
            "--config",
            "--config-system-dir",
            "--config-user-dir",
            "--driver-mode",
            "^-ccc-",
        ],
        "this argument makes the compiler run something else",
    ),
    (
        &["rustc", "rustdoc"],
        &["%codegen", "-Z", "^@", "--extern", "--sysroot", "--runtool", "--test-runtool", "--test-builder"],
        "this argument makes the compiler run something else",
    ),
    (
        &["go"],
        &[
            "^-toolexec",
            "^--toolexec",
            "^-exec",
            "^--exec",
            "~extld",
            "^-gcflags",
            "^--gcflags",
            "^-asmflags",
            "^--asmflags",
            "^-gccgoflags",
            "^--gccgoflags",
            "^-compiler",
            "^--compiler",
            "^-C",
            "^--C",
            "=-o",
            "=--o",
            "^-o=",
            "^--o=",
            "=-w",
            "=--w",
            "^-w=",
            "^--w=",
            "^-modfile",
            "^--modfile",
            "^-overlay",
            "^--overlay",
            "^-vettool",
            "^--vettool",
        ],
        "this argument makes go run or write something else",
    ),
    (
        &["cargo"],
        &[
            "--config",
            "--config-file",
            "--tool-config-file",
            "--binaries-metadata",
            "-Z",
            "%codegen",
            "^@",
            "--runtool",
            "--test-runtool",
            "--test-builder",
        ],
        "this argument makes cargo run something else",
    ),
    (
        &["cmake"],
        &[
            "=-E",
            "^-P",
            "^-C",
            "^-T",
            "--toolchain",
            "--debugger-pipe",
            "--trace-redirect",
            "--graphviz",
            "--profiling-output",
            "--prefix",
            "--eval",
            "$=",
        ],
        "this argument makes cmake run or write something else",
    ),
    (&["make", "gmake"], &["--eval", "-E", "$=", "~$(", "~${", "~`"], "this argument makes make run something else"),
    (&["ninja"], &["-t"], "this argument makes ninja run something else"),
    (
        &["npm", "pnpm", "yarn"],
        &[
            "--script-shell",
            "--shell",
            "--node-options",
            "--git",
            "--viewer",
            "--browser",
            "--editor",
            "--node-gyp",
            "--python",
            "--userconfig",
            "--globalconfig",
            "--use-yarnrc",
            "^--config.",
        ],
        "this argument makes it run something else",
    ),
    (
        &["pip", "pip3"],
        &["--target", "-t", "--python", "--prefix", "--root", "--src", "--log"],
        "this argument makes pip run or write something else",
    ),
    (&["gh"], &["=--", "-e", "--editor"], "this argument makes gh run something else"),
    (
        &["apt", "apt-get"],
        &["-o", "--option", "-c", "--config-file", "-b", "--build", "--compile"],
        "this argument makes apt run something else",
    ),
    (
        &["dpkg"],
        &["--pre-invoke", "--post-invoke", "--status-logger", "--log", "--root", "--instdir", "--admindir"],
        "this argument makes dpkg run or write something else",
    ),
    (&["date"], &["-s", "--set"], "this argument makes date set the clock"),
    (&["hostname"], &["@1", "-F", "--file"], "hostname sets its operand"),
    (&["tree"], &["-o", "-R"], "this argument makes tree write a file"),
    (&["shuf"], &["-o", "--output"], "this argument makes shuf write a file"),
    (&["file"], &["-C", "--compile"], "this argument makes file write a file"),
    (&["crontab", "at", "batch"], &["*"], "it plans commands"),
    (&["tmux", "screen"], &["*"], "it runs commands"),
    (&["m4", "dc", "ftp", "telnet"], &["*"], "it runs commands"),
    (&["bc"], &["*"], "bc runs programs of its own"),
    (&["nmap"], &["*"], "nmap runs scripts"),
    (&["nc", "ncat"], &["*"], "it may start a program"),
    (&["install"], &["--strip-program"], "this argument makes install run a program"),
    (&["cpio"], &["*"], "cpio runs programs and writes files"),
    (&["ar"], &["*"], "ar writes files"),
    (&["patch"], &["*"], "patch writes the files named in its input"),
];

/// Long options that are no risk, though their names begin that of one. `*`: the program takes no beginnings of names.
const WHOLE_NAMES: &[(&[&str], &[&str])] = &[
    (&["cargo", "cmake", "rustc", "rustdoc"], &["*"]),
    (&["curl"], &["--cookie"]),
    (&["git"], &["--text"]),
    (&["npm", "pnpm", "yarn"], &["--global"]),
    (&["pip", "pip3"], &["--pre"]),
    (&["tar", "gtar", "bsdtar"], &["--checkpoint", "--file"]),
];

/// Short options that take the rest of their group for a value.
const VALUED: &[(&str, &str)] = &[("curl", "AbCdEFHhKmoPQrTtuUwxXyYz"), ("date", "dfIr")];

/// Options of rustc's code generation that choose how fast, how large and how checked the result is.
const CODEGEN: &[&str] = &[
    "codegen-units",
    "debug-assertions",
    "debuginfo",
    "embed-bitcode",
    "lto",
    "opt-level",
    "overflow-checks",
    "panic",
    "strip",
    "target-cpu",
    "target-feature",
];

/// What is a risk among the arguments of that program, and what is said of it.
pub(crate) fn of(name: &str) -> Option<(&'static [&'static str], &'static str)> {
    let row = RISKS.iter().find(|(names, ..)| names.contains(&name));
    row.map(|(_, risks, reason)| (*risks, *reason))
}

/// Whether one of these arguments of that program is one of those risks.
pub(crate) fn hits(program: &str, risks: &[&str], arguments: &[&str]) -> bool {
    let whole =
        WHOLE_NAMES.iter().find(|(programs, _)| programs.contains(&program)).map_or(&[][..], |(_, names)| *names);
    let valued = VALUED.iter().find(|(name, _)| *name == program).map_or("", |(_, letters)| *letters);
    let long = |risk: &str| {
        arguments.iter().any(|word| {
            let name = word.split('=').next().unwrap_or(word);
            let begins = name.len() > 2 && name.starts_with("--") && risk.starts_with(name);
            name == risk || begins && !whole.contains(&name) && !whole.contains(&"*")
        })
    };
    risks.iter().any(|risk| match risk.split_at(1) {
        ("*", "") => true,
        ("@", count) => count.parse().is_ok_and(|count: usize| operands(arguments) >= count),
        ("=", word) => arguments.contains(&word),
        ("^", start) => arguments.iter().any(|word| word.starts_with(start)),
        ("~", part) => arguments.iter().any(|word| word.contains(part)),
        ("+", option) => long(option) && arguments.iter().any(|word| word.contains('@')),
        ("%", _) => generates_code(arguments),
        ("-", "@") => arguments.iter().any(|word| word.starts_with('-') && word.contains('@')),
        ("$", _) => arguments.iter().any(|word| sets_more_than_a_switch(word)),
        _ if risk.starts_with("--") => long(risk),
        (_, letter) => arguments.iter().any(|word| {
            let group = word.strip_prefix('-').filter(|group| !group.starts_with('-')).unwrap_or_default();
            let own = group.find(|letter| valued.contains(letter)).map_or(group.len(), |value| value + 1);
            group[..own].contains(letter)
        }),
    })
}

/// Whether an option of rustc's code generation is in no list.
fn generates_code(arguments: &[&str]) -> bool {
    let chooses = |value: &str| CODEGEN.contains(&value.split('=').next().unwrap_or(value));
    arguments.iter().enumerate().any(|(at, word)| {
        let value = match word.strip_prefix("--codegen") {
            Some(value) => value.strip_prefix('='),
            None if word.starts_with("-C") => word.strip_prefix("-C").filter(|value| !value.is_empty()),
            None => return word.starts_with('-') && !word.starts_with("--") && word.contains('C'),
        };
        !value.or_else(|| arguments.get(at + 1).copied()).is_some_and(chooses)
    })
}

/// Whether the name of some file that starts so could be one of those risks.
pub(crate) fn may_be_hit_by_a_file(risks: &[&str], start: &str) -> bool {
    risks.iter().any(|risk| match risk.split_at(1) {
        ("*", "") | ("@", _) => true,
        ("=", word) => word.starts_with(start),
        ("^", text) => text.starts_with(start) || start.starts_with(text),
        ("~" | "$", _) => !start.contains('/'),
        _ => may_be_an_option(start),
    })
}

/// Whether the name of some file that starts so could be taken for an option.
pub(crate) fn may_be_an_option(start: &str) -> bool {
    start.is_empty() || start.starts_with('-')
}

/// How many of the words are operands.
fn operands(arguments: &[&str]) -> usize {
    let options_end = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    let (before, behind) = arguments.split_at(options_end);
    let plain = before.iter().filter(|word| !word.starts_with('-') || **word == "-").count();
    plain + behind.len().saturating_sub(1)
}

/// Whether a word sets a variable, and to something that could be a program: no number, no switch.
fn sets_more_than_a_switch(word: &str) -> bool {
    const SWITCHES: &[&str] =
        &["", "y", "n", "yes", "no", "on", "off", "true", "false", "debug", "release", "relwithdebinfo", "minsizerel"];
    let variable = word.strip_prefix("-D").unwrap_or(word);
    let Some((name, value)) = variable.split_once('=').filter(|_| !variable.starts_with('-')) else { return false };
    // `X!=command` runs it.
    name.ends_with('!')
        || !(SWITCHES.contains(&value.to_ascii_lowercase().as_str()) || value.bytes().all(|byte| byte.is_ascii_digit()))
}
