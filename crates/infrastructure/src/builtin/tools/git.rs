//! The tool `git`.

mod closed_history;

use crate::{
    builtin::{
        commands::{
            capture::OutputStream,
            command::CommandHandle,
            program_run::{ProgramRunSummary, answer, run_to_end, running},
            programs::ProgramSpec,
        },
        tool_kit::{
            built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
            tool_environment::ToolEnvironment,
        },
    },
    sandbox::launcher::ChildInput as StandardInput,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    str,
    sync::Arc,
};
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
    tool_result::text_block,
};

/// Overrides for the configuration of a repository, which is untrusted: these keys would make git run programs.
const HARMLESS_CONFIG: &[&str] = &[
    "core.fsmonitor=",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "diff.external=",
    "diff.submodule=short",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "status.submoduleSummary=false",
    "color.ui=never",
    "safe.directory=*",
];

/// Tool that reads a git repository.
pub(crate) struct Git;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The operation.
    #[schemars(extend("x-advertised" = ""))]
    operation: Operation,
    /// Only this file or folder; for `blame` the file.
    #[schemars(extend("x-advertised" = ""))]
    file: Option<String>,
    /// A commit, branch or tag; for `show` also a file's content there, as `HEAD:src/a.rs`.
    #[schemars(extend("x-advertised" = ""))]
    commit: Option<String>,
    /// Two commits with `..` or `...` between them; for `blame` the first and the last line, such as `10,20`.
    #[schemars(extend("x-advertised" = "Like `main..HEAD`; of `blame` lines, like `10,20`."))]
    range: Option<String>,
    /// Maximum commits in `log`.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 200))]
    #[schemars(extend("x-advertised" = ""))]
    n: u32,
    /// A folder in the repository. Default: the start folder.
    #[schemars(extend("x-advertised" = false))]
    dir: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    Log,
    Diff,
    Show,
    Status,
    Blame,
}

fn twenty() -> u32 {
    20
}

impl BuiltInTool for Git {
    const NAME: &str = "git";
    const TITLE: &str = "Read a git repository";
    const DESCRIPTION: &str = "Shows the log, differences, a commit, the status or the origin of lines of a git \
         repository. It changes nothing and runs nothing from the repository; for other git commands use bash.";
    const BRIEF: &str = "Shows log, differences, a commit, status or blame of a git repository; changes nothing.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["repository", "version"];
    const KEYWORDS: &str = "author blame branch commit control history revision vcs version";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"operation": "log", "n": 5}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<ProgramRunSummary>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        world.processes().programs().availability("git", world.workspace())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let folder = world.access(input.folder()).await?.whole_tree();
        let words = input.words()?;
        let mut accesses = running("git", words.iter().map(String::as_str));
        accesses.push(Access::ReadPath(folder.clone()));
        if let Some(file) = &input.file {
            let path = folder.lexical.join(file);
            let unusable = || ToolFailure::new(ErrorKind::InvalidInput, "the path of `dir` is not in UTF-8");
            let path = path.to_str().ok_or_else(unusable)?;
            accesses.push(Access::ReadPath(world.access(path).await?.whole_tree()));
        }
        if let Some((_, path)) = input.content()? {
            accesses.extend(closed_history::places(&folder, path, world.workspace()).map(Access::ReadPath));
        }
        Ok(accesses)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let folder = run.permitted_folder(input.folder()).await?;
        let mut repository = Repository { folder, settings: Vec::new(), run };
        repository.switch_off_programs().await?;
        let words = input.words()?;
        let (run_words, left_out) = closed_history::restrict_arguments(&input, &repository).await?;
        let (command, mut output) = repository.git(run_words).await?;
        // These settings are not part of the command as the caller requested it.
        output.command = std::iter::once("git".to_owned()).chain(words).collect();
        let result = answer(&command, output, run).await?;
        Ok(match left_out {
            0 => result,
            count => result.with_block(text_block(format!("[{count} files that may not be read are omitted]"))),
        })
    }
}

impl Input {
    fn folder(&self) -> &str {
        self.dir.as_deref().unwrap_or(".")
    }

    /// Returns the arguments after `git`.
    fn words(&self) -> Result<Vec<String>, ToolFailure> {
        self.check()?;
        Ok(self.words_with(&[], str::to_owned, self.file.iter().cloned()))
    }

    /// Returns the commit and the path if the call requests the content of a file at a commit: `HEAD:a.txt`.
    fn content(&self) -> Result<Option<(&str, &str)>, ToolFailure> {
        let wrong = |message: &str| Err(ToolFailure::new(ErrorKind::InvalidInput, message));
        let texts = [self.commit.as_deref(), self.range.as_deref()];
        if texts.iter().flatten().all(|text| !text.contains(':')) {
            return Ok(None);
        }
        match (self.operation, self.commit.as_deref().and_then(|commit| commit.split_once(':'))) {
            _ if self.range.is_some() || self.file.is_some() => {
                wrong("`COMMIT:PATH` cannot be combined with `range` or `file`")
            }
            // In braces a colon has another meaning.
            (Operation::Show, Some((commit, path)))
                if !commit.is_empty() && !commit.contains(['{', '}']) && !path.is_empty() =>
            {
                Ok(Some((commit, path)))
            }
            _ => wrong("a colon is allowed only in the `commit` of `show`, as in `HEAD:src/a.rs`"),
        }
    }

    fn check(&self) -> Result<(), ToolFailure> {
        let wrong = |message: String| Err(ToolFailure::new(ErrorKind::InvalidInput, message));
        for (name, text) in [("commit", &self.commit), ("range", &self.range)] {
            let text = text.as_deref().unwrap_or("x");
            if text.is_empty() || text.starts_with('-') || text.contains('\0') {
                return wrong(format!("`{name}` is not a valid name of a commit: `{}`", text.escape_debug()));
            }
        }
        if self.file.as_ref().is_some_and(|file| file.contains('\0') || file.is_empty()) {
            return wrong("`file` is not a valid path".into());
        }
        self.content()?;
        match self.operation {
            Operation::Blame if self.file.is_none() => wrong("`blame` needs a `file`".into()),
            Operation::Blame => {
                let is_line = |byte: u8| byte.is_ascii_digit() || byte == b',';
                match &self.range {
                    Some(lines) if !lines.bytes().all(is_line) => {
                        wrong("`range` of `blame` must be two line numbers, such as `10,20`".into())
                    }
                    _ => Ok(()),
                }
            }
            Operation::Status if self.commit.is_some() || self.range.is_some() => {
                wrong("`status` shows the working tree: it takes no `commit` and no `range`".into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the arguments of a checked call, with additional options, its commits as `commit` formats them, and
    /// these paths.
    fn words_with(
        &self,
        options: &[&str],
        commit: impl Fn(&str) -> String,
        paths: impl IntoIterator<Item = String>,
    ) -> Vec<String> {
        let n = format!("--max-count={}", self.n);
        let plain = ["--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
        let words = match self.operation {
            Operation::Log => vec!["log", "--no-color", "--no-show-signature", &n],
            Operation::Diff => [&["diff"], &plain[..]].concat(),
            Operation::Show => [&["show", "--no-show-signature"], &plain[..]].concat(),
            Operation::Status => vec!["status", "--short", "--branch", "--ignore-submodules=all"],
            Operation::Blame => vec!["blame", "--no-textconv"],
        };
        let mut words: Vec<String> = words.into_iter().chain(options.iter().copied()).map(str::to_owned).collect();
        match self.operation {
            Operation::Blame => {
                words.extend(self.range.iter().flat_map(|lines| ["-L".to_owned(), lines.clone()]));
                words.extend(self.commit.as_deref().map(commit));
            }
            Operation::Status => {}
            Operation::Log | Operation::Diff | Operation::Show => {
                words.push("--end-of-options".into());
                words.extend([&self.commit, &self.range].into_iter().flatten().map(|text| commit(text)));
            }
        }
        words.push("--".into());
        words.extend(paths);
        words
    }
}

/// The repository that contains a folder.
struct Repository<'a> {
    /// Real path of the folder.
    folder: PathBuf,
    /// Settings that disable the programs of all filters in the repository's configuration.
    settings: Vec<String>,
    run: &'a ToolContext<'a>,
}

impl Repository<'_> {
    /// Runs git in the folder until it ends, with settings that keep the repository's configuration from running
    /// programs.
    async fn git(&self, words: Vec<String>) -> Result<(Arc<CommandHandle>, ProgramRunSummary), ToolFailure> {
        let settings = HARMLESS_CONFIG.iter().copied().chain(self.settings.iter().map(String::as_str));
        let mut args: Vec<String> = settings.flat_map(|setting| ["-c", setting]).map(str::to_owned).collect();
        args.push("--no-pager".into());
        args.extend(words);
        run_to_end(program(&self.folder, args, self.run), self.run).await
    }

    async fn switch_off_programs(&mut self) -> Result<(), ToolFailure> {
        let query = ["config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"];
        let program = program(&self.folder, query.map(str::to_owned).into(), self.run);
        let (command, done) = run_to_end(program, self.run).await?;
        let unknown = || {
            let message = "some filters in the repository's configuration cannot be disabled";
            ToolFailure::new(ErrorKind::PermissionDenied, message)
        };
        let printed = command.capture.ends(OutputStream::Stdout);
        let printed = printed.complete_bytes().filter(|_| done.exit_code.is_some()).ok_or_else(unknown)?;
        let text = str::from_utf8(printed).map_err(|_| unknown())?;
        let names: Vec<&str> = text.split('\0').filter(|name| !name.is_empty()).collect();
        // git ends the name at the first `=` of a setting of the form `NAME=VALUE`.
        if names.len() > 256 || names.iter().any(|name| name.contains('=')) {
            return Err(unknown());
        }
        let off = |name: &str| format!("{name}={}", if name.ends_with(".required") { "false" } else { "" });
        self.settings = names.into_iter().map(off).collect();
        Ok(())
    }
}

fn program(folder: &Path, args: Vec<String>, run: &ToolContext<'_>) -> ProgramSpec {
    let root = run.context().grant.roots().containing(folder).map(|(root, _)| root);
    // A repository that contains the root does not belong to the workspace.
    let ceiling = root.and_then(Path::parent).map(|above| above.to_string_lossy().into_owned());
    let environment = BTreeMap::from([
        ("GIT_CEILING_DIRECTORIES".to_owned(), ceiling.unwrap_or_default()),
        ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        ("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()),
        ("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned()),
        // git's error messages are parsed, so they must be in English.
        ("LC_ALL".to_owned(), "C".to_owned()),
    ]);
    let (working_dir, input) = (folder.to_path_buf(), StandardInput::Nothing);
    ProgramSpec { name: "git".into(), args, working_dir, input, environment, offers_tools: false }
}

#[cfg(test)]
mod tests;
