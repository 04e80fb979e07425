//! The tool `system_info`.

use crate::{
    builtin::{
        text::report::{TextReport, gigabytes},
        tool_kit::{
            answer::answer, blocking::on_blocking_thread, built_in_tool::BuiltInTool, schema::output_schema,
            tool_context::ToolContext,
        },
    },
    host::machine::Machine,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that describes the machine.
pub(crate) struct SystemInfo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Kernel, release and architecture in one text.
    platform: String,
    /// The kernel's name.
    system: String,
    /// The system's full name.
    os: String,
    /// The kernel's release.
    release: String,
    /// Build of the kernel.
    version: String,
    /// The processor's architecture.
    machine: String,
    /// Equal to `machine`.
    architecture: String,
    /// The processor's model; empty if the kernel does not report it.
    processor: String,
    processor_count: usize,
    /// Always empty: no Python runs these tools.
    python_version: &'static str,
    hostname: String,
    user: String,
    /// Base of relative paths; absent without any root.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    total_memory_bytes: u64,
    uptime_seconds: u64,
    /// Runtime of these tools.
    runtime_version: String,
}

impl BuiltInTool for SystemInfo {
    const NAME: &str = "system_info";
    const TITLE: &str = "System information";
    const DESCRIPTION: &str = "Describes the machine of the tools: operating system, machine name, user, processors, memory and uptime. \
         Use it before you give advice or commands that depend on the system.";
    const BRIEF: &str = "Shows operating system, processors, memory and uptime.";
    const CATEGORY: Category = Category::System;
    const TAGS: &[&str] = &["host"];
    const KEYWORDS: &str = "computer cpu hardware hostname kernel os ram version";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = "{}";
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, _: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let machine = on_blocking_thread(|| Ok(Machine::read())).await?;
        let minutes = machine.uptime.as_secs() / 60;
        let report = TextReport::titled("System Information").section(
            "",
            &[
                ("OS", format!("{} ({} {})", machine.system, machine.kernel, machine.release)),
                ("Machine Name", machine.host_name.clone()),
                ("Current User", machine.user.clone()),
                ("Architecture", machine.architecture.clone()),
                ("Processor Count", machine.processors.to_string()),
                ("Total Memory", gigabytes(machine.total_memory_bytes)),
                ("System Uptime", format!("{}d {}h {}m", minutes / 1440, minutes / 60 % 24, minutes % 60)),
                ("Runtime Version", run.environment().version().to_owned()),
            ],
        );
        let start = run.context().grant.roots().start();
        let output = Output {
            platform: format!("{}-{}-{}", machine.kernel, machine.release, machine.architecture),
            system: machine.kernel,
            os: machine.system,
            release: machine.release,
            version: machine.version,
            machine: machine.architecture.clone(),
            architecture: machine.architecture,
            processor: machine.processor.unwrap_or_default(),
            processor_count: machine.processors,
            python_version: "",
            hostname: machine.host_name,
            user: machine.user,
            cwd: start.map(|path| path.to_string_lossy().into_owned()),
            total_memory_bytes: machine.total_memory_bytes,
            uptime_seconds: machine.uptime.as_secs(),
            runtime_version: run.environment().version().to_owned(),
        };
        answer(report.into_text(), &output)
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[test]
    fn system_information_is_returned_as_text_and_structured_content() {
        let result = Bench::new().call("system_info", json!({})).unwrap();
        let text = result.joined_text();
        assert!(text.starts_with("System Information\n==================\nOS:              "), "{text}");
        assert!(text.contains("Runtime Version: Toolstead test"), "{text}");
        assert_eq!(result.structured_content().unwrap()["system"], "Linux");
    }
}
