//! Programs that run or write something else if certain arguments are given.

use super::{
    program::{ProgramClass, ProgramFacts, ReadOnlyArguments},
    risks::{
        RiskyArgumentPattern::{
            self, Always, Codegen, Long, LongWithFile, Operands, OptionWithFile, Part, Short, Start, Variable, Word,
        },
        RiskyArguments,
    },
    subcommands,
};

pub(super) const RISKY: &[ProgramFacts] = &[
    ProgramFacts::of(ProgramClass::Settled, &["git"]).with_risks(
        RiskyArguments::running(
            &[
                Long("--output"),
                Long("--ext-diff"),
                Long("--textconv"),
                Long("--upload-pack"),
                Long("--receive-pack"),
                Long("--exec"),
                Long("--extcmd"),
                Long("--config"),
                Long("--config-env"),
                Long("--template"),
                Long("--separate-git-dir"),
                Long("--open-files-in-pager"),
                Long("--output-directory"),
                Long("--build-fake-ancestor"),
                Start("ext::"),
                Part("=ext::"),
            ],
            "this argument makes git run or write something else",
        )
        .knowing(&["--text"]),
    ),
    ProgramFacts::of(ProgramClass::Settled, &["find"]).with_risks(RiskyArguments::running(
        &[
            Word("-exec"),
            Word("-execdir"),
            Word("-ok"),
            Word("-okdir"),
            Word("-delete"),
            Start("-fprint"),
            Word("-fls"),
            Start("-files0-from"),
        ],
        "this argument makes find run or change something",
    )),
    ProgramFacts::of(ProgramClass::Settled, &["fd", "fdfind"]).with_risks(RiskyArguments::running(
        &[Short('x'), Short('X'), Long("--exec"), Long("--exec-batch")],
        "this argument makes fd run a program",
    )),
    ProgramFacts::of(ProgramClass::Settled, &["tar"]).with_risks(
        RiskyArguments::running(TAR, "this argument makes tar run or write something else")
            .knowing(&["--checkpoint", "--file"]),
    ),
    ProgramFacts::of(ProgramClass::Other, &["gtar", "bsdtar"]).with_risks(
        RiskyArguments::running(TAR, "this argument makes tar run or write something else")
            .knowing(&["--checkpoint", "--file"]),
    ),
    ProgramFacts::of(ProgramClass::Settled, &["rsync"]).with_risks(RiskyArguments::running(
        &[
            Short('e'),
            Short('M'),
            Long("--rsh"),
            Long("--rsync-path"),
            Long("--remote-option"),
            Long("--log-file"),
            Long("--write-batch"),
            Long("--only-write-batch"),
            Long("--daemon"),
            Long("--config"),
        ],
        "this argument makes rsync run or write something else",
    )),
    ProgramFacts::of(ProgramClass::Settled, &["sort"]).with_risks(
        RiskyArguments::running(&[Long("--compress-program")], "this argument makes sort run or write something else")
            .and_writing(&[Short('o'), Long("--output"), Short('T'), Long("--files0-from")]),
    ),
    ProgramFacts::of(ProgramClass::Settled, &["split"])
        .with_risks(RiskyArguments::running(&[Long("--filter")], "this argument makes split run a program")),
    ProgramFacts::of(ProgramClass::Settled, &["csplit"])
        .with_risks(RiskyArguments::running(&[Always], "csplit writes files")),
    ProgramFacts::of(ProgramClass::Settled, &["dd"])
        .with_risks(RiskyArguments::writing(&[Start("of=")], "dd writes to this file")),
    ProgramFacts::of(ProgramClass::Settled, &["tee"])
        .with_risks(RiskyArguments::running(&[Always], "tee writes to the files it is given")),
    ProgramFacts::of(ProgramClass::Settled, &["rg"]).with_risks(RiskyArguments::running(
        &[Long("--pre"), Long("--hostname-bin"), Long("--search-zip"), Short('z')],
        "this argument makes rg run a program",
    )),
    ProgramFacts::of(ProgramClass::Other, &["ripgrep"])
        .with_risks(RiskyArguments::running(&[Always], "it may run a program")),
    ProgramFacts::of(ProgramClass::Settled, &["man"]).with_risks(RiskyArguments::running(
        &[
            Short('P'),
            Long("--pager"),
            Short('H'),
            Long("--html"),
            Short('C'),
            Long("--config-file"),
            Short('T'),
            Short('t'),
            Long("--troff"),
            Short('X'),
            Long("--gxditview"),
            Short('M'),
            Long("--manpath"),
            Short('l'),
            Long("--local-file"),
            Short('p'),
            Long("--preprocessor"),
        ],
        "this argument makes man run a program",
    )),
    ProgramFacts::of(ProgramClass::Settled, &["zip"]).with_risks(RiskyArguments::running(
        &[Short('T'), Long("--test"), Long("--unzip-command")],
        "this argument makes zip run a program",
    )),
    ProgramFacts::of(ProgramClass::Settled, &["vim", "vi"])
        .with_risks(RiskyArguments::running(&[Always], "an editor runs commands")),
    ProgramFacts::of(ProgramClass::Other, &["view", "nvim", "emacs", "nano"])
        .with_risks(RiskyArguments::running(&[Always], "an editor runs commands")),
    ProgramFacts::of(ProgramClass::Other, &["ex", "ed"])
        .with_risks(RiskyArguments::running(&[Always], "an editor runs commands"))
        .running_its_input(&[]),
    ProgramFacts::of(ProgramClass::Settled, &["less"])
        .with_risks(RiskyArguments::running(&[Always], "a pager runs commands and writes files")),
    ProgramFacts::of(ProgramClass::Settled, &["more"])
        .with_risks(RiskyArguments::running(&[Always], "a pager runs commands")),
    ProgramFacts::of(ProgramClass::Other, &["most"])
        .with_risks(RiskyArguments::running(&[Always], "a pager runs commands")),
    ProgramFacts::of(ProgramClass::Settled, &["scp"]).with_risks(RiskyArguments::running(
        &[Short('o'), Short('S'), Short('F'), Short('D'), Short('J')],
        "this argument makes scp run a program",
    )),
    ProgramFacts::of(ProgramClass::Other, &["sftp"])
        .with_risks(RiskyArguments::running(&[Always], "sftp runs commands"))
        .running_its_input(&["-b"]),
    ProgramFacts::of(ProgramClass::Settled, &["curl"]).with_risks(
        RiskyArguments::writing(
            &[
                Short('o'),
                Short('O'),
                Short('K'),
                Short('J'),
                Short('T'),
                Short('D'),
                Short('c'),
                Long("--output"),
                Long("--output-dir"),
                Long("--remote-name"),
                Long("--remote-name-all"),
                Long("--config"),
                Long("--upload-file"),
                Long("--dump-header"),
                Long("--cookie-jar"),
                Long("--trace"),
                Long("--trace-ascii"),
                Long("--stderr"),
                Long("--engine"),
                Long("--libcurl"),
                Long("--etag-save"),
                Long("--hsts"),
                Long("--alt-svc"),
                Start("--expand-"),
                Long("--variable"),
                LongWithFile("--data-urlencode"),
                LongWithFile("--url-query"),
                Start("@"),
                OptionWithFile,
                Part("=@"),
                Part("=<"),
            ],
            "this argument makes curl write or send a file",
        )
        .knowing(&["--cookie"])
        .with_values("AbCdEFHhKmoPQrTtuUwxXyYz"),
    ),
    ProgramFacts::of(ProgramClass::Settled, &["wget"])
        .with_risks(RiskyArguments::running(&[Always], "wget writes files")),
    ProgramFacts::of(ProgramClass::Other, &["openssl"])
        .with_risks(RiskyArguments::running(&[Always], "openssl loads code and writes files")),
    ProgramFacts::of(ProgramClass::Settled, &["uniq"])
        .with_risks(RiskyArguments::running(&[Operands(2)], "uniq writes to its second operand")),
    ProgramFacts::of(ProgramClass::Other, &["xxd"])
        .with_risks(RiskyArguments::writing(&[Operands(2), Short('r')], "xxd writes to its second operand")),
    ProgramFacts::of(ProgramClass::Settled, &["jq"]).with_risks(RiskyArguments::running(
        &[Short('L'), Long("--from-file"), Short('f')],
        "this argument makes jq load code",
    )),
    ProgramFacts::of(ProgramClass::Other, &["yq"])
        .with_risks(RiskyArguments::writing(&[Short('i'), Long("--inplace")], "this argument makes yq write")),
    ProgramFacts::of(ProgramClass::Settled, &["c++", "cc", "clang", "clang++", "cpp", "g++", "gcc", "gfortran"])
        .with_risks(RiskyArguments::running(
            &[
                Start("-fplugin"),
                Start("-fpass-plugin"),
                Long("--plugin"),
                Start("-iplugindir"),
                Start("-wrapper"),
                Long("--wrapper"),
                Start("-B"),
                Long("--prefix"),
                Start("-specs"),
                Long("--specs"),
                Start("@"),
                Start("-fuse-ld"),
                Long("--ld-path"),
                Long("--for-linker"),
                Long("--for-assembler"),
                Start("-X"),
                Start("-Wl,"),
                Start("-Wa,@"),
                Start("-load"),
                Start("-cc1"),
                Start("-mllvm"),
                Start("-gcc-toolchain"),
                Long("--gcc-toolchain"),
                Long("--config"),
                Long("--config-system-dir"),
                Long("--config-user-dir"),
                Long("--driver-mode"),
                Start("-ccc-"),
            ],
            "this argument makes the compiler run something else",
        )),
    ProgramFacts::of(ProgramClass::Settled, &["rustc", "rustdoc"]).with_risks(
        RiskyArguments::running(
            &[
                Codegen,
                Short('Z'),
                Start("@"),
                Long("--extern"),
                Long("--sysroot"),
                Long("--runtool"),
                Long("--test-runtool"),
                Long("--test-builder"),
            ],
            "this argument makes the compiler run something else",
        )
        .with_no_beginnings(),
    ),
    ProgramFacts::of(ProgramClass::Settled, &["go"])
        .with_risks(RiskyArguments::running(
            &[
                Start("-toolexec"),
                Start("--toolexec"),
                Start("-exec"),
                Start("--exec"),
                Part("extld"),
                Start("-gcflags"),
                Start("--gcflags"),
                Start("-asmflags"),
                Start("--asmflags"),
                Start("-gccgoflags"),
                Start("--gccgoflags"),
                Start("-compiler"),
                Start("--compiler"),
                Start("-C"),
                Start("--C"),
                Word("-o"),
                Word("--o"),
                Start("-o="),
                Start("--o="),
                Word("-w"),
                Word("--w"),
                Start("-w="),
                Start("--w="),
                Start("-modfile"),
                Start("--modfile"),
                Start("-overlay"),
                Start("--overlay"),
                Start("-vettool"),
                Start("--vettool"),
            ],
            "this argument makes go run or write something else",
        ))
        .with_subcommands(&subcommands::GO),
    ProgramFacts::of(ProgramClass::Settled, &["cargo"])
        .with_risks(
            RiskyArguments::running(
                &[
                    Long("--config"),
                    Long("--config-file"),
                    Long("--tool-config-file"),
                    Long("--binaries-metadata"),
                    Short('Z'),
                    Codegen,
                    Start("@"),
                    Long("--runtool"),
                    Long("--test-runtool"),
                    Long("--test-builder"),
                ],
                "this argument makes cargo run something else",
            )
            .with_no_beginnings(),
        )
        .with_subcommands(&subcommands::CARGO),
    ProgramFacts::of(ProgramClass::Settled, &["cmake"]).with_risks(
        RiskyArguments::running(
            &[
                Word("-E"),
                Start("-P"),
                Start("-C"),
                Start("-T"),
                Long("--toolchain"),
                Long("--debugger-pipe"),
                Long("--trace-redirect"),
                Long("--graphviz"),
                Long("--profiling-output"),
                Long("--prefix"),
                Long("--eval"),
                Variable,
            ],
            "this argument makes cmake run or write something else",
        )
        .with_no_beginnings(),
    ),
    ProgramFacts::of(ProgramClass::Settled, &["make", "gmake"])
        .with_risks(RiskyArguments::running(
            &[Long("--eval"), Short('E'), Variable, Part("$("), Part("${"), Part("`")],
            "this argument makes make run something else",
        ))
        .running_texts(),
    ProgramFacts::of(ProgramClass::Other, &["ninja"])
        .with_risks(RiskyArguments::running(&[Short('t')], "this argument makes ninja run something else")),
    ProgramFacts::of(ProgramClass::Settled, &["npm"])
        .with_risks(
            RiskyArguments::running(NODE_PACKAGES, "this argument makes it run something else").knowing(&["--global"]),
        )
        .with_subcommands(&subcommands::NPM),
    ProgramFacts::of(ProgramClass::Settled, &["pnpm"])
        .with_risks(
            RiskyArguments::running(NODE_PACKAGES, "this argument makes it run something else").knowing(&["--global"]),
        )
        .with_subcommands(&subcommands::PNPM)
        .running_packages(),
    ProgramFacts::of(ProgramClass::Settled, &["yarn"])
        .with_risks(
            RiskyArguments::running(NODE_PACKAGES, "this argument makes it run something else").knowing(&["--global"]),
        )
        .with_subcommands(&subcommands::YARN)
        .running_packages(),
    ProgramFacts::of(ProgramClass::Settled, &["pip", "pip3"])
        .with_risks(
            RiskyArguments::running(
                &[
                    Long("--target"),
                    Short('t'),
                    Long("--python"),
                    Long("--prefix"),
                    Long("--root"),
                    Long("--src"),
                    Long("--log"),
                ],
                "this argument makes pip run or write something else",
            )
            .knowing(&["--pre"]),
        )
        .with_subcommands(&subcommands::PIP),
    ProgramFacts::of(ProgramClass::Settled, &["gh"])
        .with_risks(RiskyArguments::running(
            &[Word("--"), Short('e'), Long("--editor")],
            "this argument makes gh run something else",
        ))
        .with_subcommands(&subcommands::GH),
    ProgramFacts::of(ProgramClass::Settled, &["apt", "apt-get"])
        .with_risks(RiskyArguments::running(
            &[
                Short('o'),
                Long("--option"),
                Short('c'),
                Long("--config-file"),
                Short('b'),
                Long("--build"),
                Long("--compile"),
            ],
            "this argument makes apt run something else",
        ))
        .installing(),
    ProgramFacts::of(ProgramClass::Settled, &["dpkg"]).with_risks(RiskyArguments::running(
        &[
            Long("--pre-invoke"),
            Long("--post-invoke"),
            Long("--status-logger"),
            Long("--log"),
            Long("--root"),
            Long("--instdir"),
            Long("--admindir"),
        ],
        "this argument makes dpkg run or write something else",
    )),
    ProgramFacts::of(ProgramClass::Settled, &["date"]).with_risks(
        RiskyArguments::writing(&[Short('s'), Long("--set")], "this argument makes date set the clock")
            .with_values("dfIr"),
    ),
    ProgramFacts::of(ProgramClass::Settled, &["hostname"])
        .with_risks(RiskyArguments::writing(&[Operands(1), Short('F'), Long("--file")], "hostname sets its operand")),
    ProgramFacts::of(ProgramClass::Settled, &["tree"])
        .with_risks(RiskyArguments::writing(&[Short('o'), Short('R')], "this argument makes tree write a file")),
    ProgramFacts::of(ProgramClass::Settled, &["shuf"])
        .with_risks(RiskyArguments::writing(&[Short('o'), Long("--output")], "this argument makes shuf write a file")),
    ProgramFacts::of(ProgramClass::Reader(ReadOnlyArguments::Literal), &["file"])
        .with_risks(RiskyArguments::writing(&[Short('C'), Long("--compile")], "this argument makes file write a file")),
    ProgramFacts::of(ProgramClass::Other, &["crontab"])
        .with_risks(RiskyArguments::running(&[Always], "it plans commands"))
        .running_its_input_without_operands(&["-l", "-r"]),
    ProgramFacts::of(ProgramClass::Other, &["at"])
        .with_risks(RiskyArguments::running(&[Always], "it plans commands"))
        .running_its_input(&["-f", "-l", "-r", "-d", "-c"]),
    ProgramFacts::of(ProgramClass::Other, &["batch"])
        .with_risks(RiskyArguments::running(&[Always], "it plans commands"))
        .running_its_input(&["-f"]),
    ProgramFacts::of(ProgramClass::Other, &["tmux", "screen"])
        .with_risks(RiskyArguments::running(&[Always], "it runs commands")),
    ProgramFacts::of(ProgramClass::Other, &["m4"])
        .with_risks(RiskyArguments::running(&[Always], "it runs commands"))
        .running_its_input_without_operands(&[]),
    ProgramFacts::of(ProgramClass::Other, &["dc"])
        .with_risks(RiskyArguments::running(&[Always], "it runs commands"))
        .running_its_input_without_operands(&["-e", "-f"]),
    ProgramFacts::of(ProgramClass::Other, &["ftp"])
        .with_risks(RiskyArguments::running(&[Always], "it runs commands"))
        .running_its_input(&[]),
    ProgramFacts::of(ProgramClass::Other, &["telnet"])
        .with_risks(RiskyArguments::running(&[Always], "it runs commands")),
    ProgramFacts::of(ProgramClass::Other, &["bc"])
        .with_risks(RiskyArguments::running(&[Always], "bc runs programs of its own")),
    ProgramFacts::of(ProgramClass::Other, &["nmap"])
        .with_risks(RiskyArguments::running(&[Always], "nmap runs scripts")),
    ProgramFacts::of(ProgramClass::Other, &["nc", "ncat"])
        .with_risks(RiskyArguments::running(&[Always], "it may start a program")),
    ProgramFacts::of(ProgramClass::Settled, &["install"])
        .with_risks(RiskyArguments::running(&[Long("--strip-program")], "this argument makes install run a program")),
    ProgramFacts::of(ProgramClass::Other, &["cpio"])
        .with_risks(RiskyArguments::running(&[Always], "cpio runs programs and writes files")),
    ProgramFacts::of(ProgramClass::Other, &["ar"]).with_risks(RiskyArguments::running(&[Always], "ar writes files")),
    ProgramFacts::of(ProgramClass::Other, &["patch"])
        .with_risks(RiskyArguments::running(&[Always], "patch writes the files named in its input")),
];

/// Risks of GNU tar and compatible programs.
const TAR: &[RiskyArgumentPattern] = &[
    Long("--checkpoint-action"),
    Long("--to-command"),
    Long("--use-compress-program"),
    Long("--info-script"),
    Long("--new-volume-script"),
    Long("--rsh-command"),
    Long("--rmt-command"),
    Long("--files-from"),
    Short('I'),
    Short('F'),
    Short('T'),
    Long("--index-file"),
    Long("--volno-file"),
];

/// Risks of the package managers for Node.
const NODE_PACKAGES: &[RiskyArgumentPattern] = &[
    Long("--script-shell"),
    Long("--shell"),
    Long("--node-options"),
    Long("--git"),
    Long("--viewer"),
    Long("--browser"),
    Long("--editor"),
    Long("--node-gyp"),
    Long("--python"),
    Long("--userconfig"),
    Long("--globalconfig"),
    Long("--use-yarnrc"),
    Start("--config."),
];
