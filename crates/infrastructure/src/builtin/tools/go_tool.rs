//! The tool `go_tool`.

use crate::{
    builtin::{
        commands::{
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
use std::collections::BTreeMap;
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Tool that runs the go command.
pub(crate) struct GoTool;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The subcommand: `build`, `test`, `vet`, ….
    command: String,
    /// Its arguments, one by one.
    #[serde(default)]
    args: Vec<String>,
    /// The working directory. Default: the start folder.
    dir: Option<String>,
}

impl Input {
    fn folder(&self) -> &str {
        self.dir.as_deref().unwrap_or(".")
    }

    fn words(&self) -> Result<Vec<String>, ToolFailure> {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        if self.command.starts_with('-') || self.command.is_empty() || !self.command.bytes().all(is_name) {
            let message = format!("`{}` is not a valid subcommand of go", self.command.escape_debug());
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
        }
        if self.args.iter().any(|word| word.contains('\0')) {
            return Err(ToolFailure::new(ErrorKind::InvalidInput, "an argument contains a NUL character"));
        }
        Ok(std::iter::once(&self.command).chain(&self.args).cloned().collect())
    }
}

impl BuiltInTool for GoTool {
    const NAME: &str = "go_tool";
    const TITLE: &str = "Run go";
    const DESCRIPTION: &str = "Runs a subcommand of the go tool, such as build, test or vet, without a shell, and returns \
                               what it prints.";
    const CATEGORY: Category = Category::Shell;
    const TAGS: &[&str] = &["build", "test"];
    const KEYWORDS: &str = "compile golang lint module package";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &str = r#"{"command": "test", "args": ["./..."]}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<ProgramRunSummary>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        world.processes().programs().availability("go", world.workspace())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let words = input.words()?;
        let folder = world.access(input.folder()).await?;
        let mut accesses = running("go", words.iter().map(String::as_str));
        accesses.push(Access::ReadPath(folder));
        Ok(accesses)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let program = ProgramSpec {
            name: "go".into(),
            args: input.words()?,
            working_dir: run.permitted_folder(input.folder()).await?,
            input: StandardInput::Nothing,
            environment: BTreeMap::new(),
            offers_tools: false,
        };
        let (command, output) = run_to_end(program, run).await?;
        answer(&command, output, run).await
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;
    use toolstead_domain::error_kind::ErrorKind;

    #[test]
    fn a_go_call_is_checked_as_the_command_it_runs_and_options_are_not_subcommands() {
        let bench = Bench::new();
        let answer = bench.call_unchecked("go_tool", json!({"command": "test", "args": ["./..."]})).unwrap();
        assert_eq!(answer[0].to_string(), "run go test ./...");
        for command in ["-C", "", "run;ls", "../x"] {
            let wrong = bench.call_unchecked("go_tool", json!({"command": command})).unwrap_err();
            assert_eq!(wrong.kind, ErrorKind::InvalidInput, "{command}");
        }
    }
}
