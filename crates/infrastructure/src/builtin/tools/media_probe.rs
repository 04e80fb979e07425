//! The tool `media_probe`.

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
use std::{collections::BTreeMap, path::Path};
use toolstead_domain::{
    Access, Availability, Category, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind,
};

/// Tool that describes audio and video files.
pub(crate) struct MediaProbe;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The file.
    file: String,
    /// Format of the result.
    #[serde(default)]
    format: OutputFormat,
    /// Show the container: format, length and bit rate.
    #[serde(default = "default_true")]
    show_format: bool,
    /// Show each stream: codec, size, rate.
    #[serde(default = "default_true")]
    show_streams: bool,
    /// Show each frame. There are many.
    #[serde(default)]
    show_frames: bool,
    /// Only these streams, as ffprobe names them: `v:0`, `a`.
    select_streams: Option<String>,
    /// Only these entries, as ffprobe names them: `format=duration`.
    show_entries: Option<String>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputFormat {
    #[default]
    Json,
    Xml,
    Csv,
    Flat,
    Ini,
    Compact,
    Default,
}

fn default_true() -> bool {
    true
}

impl Input {
    /// Returns the arguments of `ffprobe`, which keep it from opening other files and hosts that the file names. Fails
    /// if `select_streams` or `show_entries` has characters that are not allowed.
    fn words(&self, file: &Path) -> Result<Vec<String>, ToolFailure> {
        let format = match self.format {
            OutputFormat::Json => "json",
            OutputFormat::Xml => "xml",
            OutputFormat::Csv => "csv",
            OutputFormat::Flat => "flat",
            OutputFormat::Ini => "ini",
            OutputFormat::Compact => "compact",
            OutputFormat::Default => "default",
        };
        let mut words: Vec<String> =
            ["-hide_banner", "-loglevel", "error", "-protocol_whitelist", "file", "-print_format", format]
                .map(str::to_owned)
                .into();
        let shown = [
            ("-show_format", self.show_format),
            ("-show_streams", self.show_streams),
            ("-show_frames", self.show_frames),
        ];
        words.extend(shown.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(option, _)| option.to_owned()));
        for (option, value) in [("-select_streams", &self.select_streams), ("-show_entries", &self.show_entries)] {
            let Some(value) = value else { continue };
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":=,_.#!".contains(&byte);
            if value.is_empty() || !value.bytes().all(is_plain) {
                let message = format!("`{}` cannot be used: `{}`", &option[1..], value.escape_debug());
                return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
            }
            words.extend([option.to_owned(), value.clone()]);
        }
        words.extend(["-i".to_owned(), format!("file:{}", file.display())]);
        Ok(words)
    }
}

impl BuiltInTool for MediaProbe {
    const NAME: &str = "media_probe";
    const TITLE: &str = "Probe sound and video";
    const DESCRIPTION: &str = "Describes a sound or video file, by ffprobe: container, length, streams, codecs, \
                               sizes and rates.";
    const CATEGORY: Category = Category::File;
    const TAGS: &[&str] = &["audio", "media", "video"];
    const KEYWORDS: &str = "audio bitrate clip duration film format metadata movie music resolution song";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"file": "talk.mp4"}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<ProgramRunSummary>())
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        world.processes().programs().availability("ffprobe", world.workspace())
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let file = world.access(&input.file).await?;
        let words = input.words(&file.real)?;
        let mut accesses = running("ffprobe", words.iter().map(String::as_str));
        accesses.push(Access::ReadPath(file));
        Ok(accesses)
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let asked = input.file.clone();
        let file = run.on_files(move |files| Ok(files.find(&asked)?.path().real.clone())).await?;
        let start = run.environment().workspace().start().unwrap_or(Path::new("/")).to_path_buf();
        let program = ProgramSpec {
            name: "ffprobe".into(),
            args: input.words(&file)?,
            working_dir: start,
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
    fn arguments_cannot_inject_command_line_options_and_only_the_file_protocol_is_allowed() {
        let bench = Bench::new();
        let answer = bench.call_unchecked("media_probe", json!({"file": "-version"})).unwrap()[0].to_string();
        assert!(answer.contains("-protocol_whitelist file ") && answer.ends_with("/-version"), "{answer}");
        let wrong = json!({"file": "a", "select_streams": "v -i http://x"});
        assert_eq!(bench.call_unchecked("media_probe", wrong).unwrap_err().kind, ErrorKind::InvalidInput);
    }
}
