//! The tool `git`.

use crate::{
    builtin::{
        bash::permitted_folder,
        built_in_tool::BuiltInTool,
        capture::Stream,
        program_run::{ProgramOutput, answer, run_to_end, running},
        programs::Program,
        run::Run,
        schema::output_schema,
        world::World,
    },
    sandbox::launcher::Input as StandardInput,
};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, path::Path, str};
use toolstead_domain::{
    access::Access,
    category::Category,
    error_kind::ErrorKind,
    tool::{Availability, ToolAnnotations},
    tool_failure::ToolFailure,
    tool_result::ToolResult,
};

/// A repository's own configuration is data of strangers: these keys would make git run programs that it names.
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

/// Reads a git repository.
pub(super) struct Git;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What to show.
    operation: Operation,
    /// Only what concerns this file or folder; for `blame` the file.
    file: Option<String>,
    /// A commit, branch or tag.
    commit: Option<String>,
    /// Two commits with `..` or `...` between them; for `blame` the first and the last line, such as `10,20`.
    range: Option<String>,
    /// How many commits `log` shows.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 200))]
    n: u32,
    /// A folder in the repository; the start folder without it.
    dir: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operation {
    Log,
    Diff,
    Show,
    Status,
    Blame,
}

fn twenty() -> u32 {
    20
}

#[async_trait]
impl BuiltInTool for Git {
    const NAME: &str = "git";
    const TITLE: &str = "Read a git repository";
    const DESCRIPTION: &str = "Shows the log, differences, a commit, the status or the origin of lines of a git \
                               repository. It changes nothing and runs nothing that the repository brings; for other git \
                               commands use bash.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["repository", "version"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"operation": "log", "n": 5}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<ProgramOutput>())
    }

    fn availability(&self, world: &World) -> Availability {
        world.programs.availability("git")
    }

    async fn accesses(&self, input: &Input, world: &World) -> Result<Vec<Access>, ToolFailure> {
        let folder = world.access(input.folder()).await?.whole_tree();
        let words = input.words()?;
        let mut accesses = running("git", words.iter().map(String::as_str));
        accesses.push(Access::ReadPath(folder));
        Ok(accesses)
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let folder = permitted_folder(input.folder(), run).await?;
        let words = input.words()?;
        let filters = filters(&folder, run).await?;
        let config = HARMLESS_CONFIG.iter().map(|setting| (*setting).to_owned()).chain(filters);
        let mut args: Vec<String> = config.flat_map(|setting| ["-c".to_owned(), setting]).collect();
        args.extend(["--no-pager", "--literal-pathspecs"].map(str::to_owned));
        args.extend(words);
        let (command, mut output) = run_to_end(program(&folder, args, run), run).await?;
        // The settings are ours, and say nothing to anybody.
        output.command = std::iter::once("git".to_owned()).chain(input.words()?).collect();
        answer(&command, output, run).await
    }
}

impl Input {
    fn folder(&self) -> &str {
        self.dir.as_deref().unwrap_or(".")
    }

    /// The words after `git`.
    fn words(&self) -> Result<Vec<String>, ToolFailure> {
        let wrong = |message: String| ToolFailure::new(ErrorKind::InvalidInput, message);
        for (name, text) in [("commit", &self.commit), ("range", &self.range)] {
            let text = text.as_deref().unwrap_or("x");
            if text.is_empty() || text.starts_with('-') || text.contains('\0') {
                return Err(wrong(format!("`{name}` is no name of a commit: `{}`", text.escape_debug())));
            }
        }
        if self.file.as_ref().is_some_and(|file| file.contains('\0') || file.is_empty()) {
            return Err(wrong("`file` is no path".into()));
        }
        let n = format!("--max-count={}", self.n);
        let plain = ["--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
        let mut words: Vec<&str> = match self.operation {
            Operation::Log => vec!["log", "--no-color", "--no-show-signature", &n],
            Operation::Diff => [&["diff"], &plain[..]].concat(),
            Operation::Show => [&["show", "--no-show-signature"], &plain[..]].concat(),
            Operation::Status => vec!["status", "--short", "--branch", "--ignore-submodules=all"],
            Operation::Blame => vec!["blame", "--no-textconv"],
        };
        match self.operation {
            Operation::Blame => {
                if self.file.is_none() {
                    return Err(wrong("`blame` needs a `file`".into()));
                }
                if let Some(lines) = &self.range {
                    let is_lines = lines.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
                    if !is_lines {
                        return Err(wrong("`range` of `blame` is two numbers of lines, such as `10,20`".into()));
                    }
                    words.extend(["-L", lines]);
                }
                words.extend(self.commit.as_deref());
            }
            Operation::Status => {
                if self.commit.is_some() || self.range.is_some() {
                    return Err(wrong(
                        "`status` is about the working tree: it takes no `commit` and no `range`".into(),
                    ));
                }
            }
            Operation::Log | Operation::Diff | Operation::Show => {
                words.push("--end-of-options");
                words.extend(self.commit.as_deref());
                words.extend(self.range.as_deref());
            }
        }
        words.push("--");
        words.extend(self.file.as_deref());
        Ok(words.into_iter().map(str::to_owned).collect())
    }
}

/// Settings that take the programs out of all filters for contents that the configuration knows.
async fn filters(folder: &Path, run: &Run<'_>) -> Result<Vec<String>, ToolFailure> {
    let query = ["config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"];
    let (command, done) = run_to_end(program(folder, query.map(str::to_owned).into(), run), run).await?;
    let unknown = || {
        let message = "the filters that the repository's configuration names cannot all be switched off";
        ToolFailure::new(ErrorKind::PermissionDenied, message)
    };
    let printed = command.capture.ends(Stream::Stdout);
    let printed = printed.whole().filter(|_| done.exit_code.is_some()).ok_or_else(unknown)?;
    let text = str::from_utf8(printed).map_err(|_| unknown())?;
    let names: Vec<&str> = text.split('\0').filter(|name| !name.is_empty()).collect();
    // Of a setting that is given to git as `NAME=VALUE`, the name ends at the first sign.
    if names.len() > 256 || names.iter().any(|name| name.contains('=')) {
        return Err(unknown());
    }
    let off = |name: &str| format!("{name}={}", if name.ends_with(".required") { "false" } else { "" });
    Ok(names.into_iter().map(off).collect())
}

fn program(folder: &Path, args: Vec<String>, run: &Run<'_>) -> Program {
    let root = run.context().grant.roots().containing(folder).map(|(root, _)| root);
    // A repository around the root is not the workspace's.
    let ceiling = root.and_then(Path::parent).map(|above| above.to_string_lossy().into_owned());
    let environment = BTreeMap::from([
        ("GIT_CEILING_DIRECTORIES".to_owned(), ceiling.unwrap_or_default()),
        ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        ("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()),
        ("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned()),
    ]);
    Program { name: "git", args, working_dir: folder.to_path_buf(), input: StandardInput::Nothing, environment }
}

#[cfg(test)]
mod tests;
