//! The tool `echo`.

use crate::builtin::tool_kit::{built_in_tool::BuiltInTool, tool_context::ToolContext};
use schemars::JsonSchema;
use serde::Deserialize;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that returns a message.
pub(crate) struct Echo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The text to return.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    message: String,
}

impl BuiltInTool for Echo {
    const NAME: &str = "echo";
    const TITLE: &str = "Echo";
    const DESCRIPTION: &str = "Returns a message unchanged. Use it to test that tools can be called.";
    const BRIEF: &str = "Returns a message.";
    const CATEGORY: Category = Category::Utility;
    const TAGS: &[&str] = &["test"];
    const KEYWORDS: &str = "connectivity ping repeat";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"message": "hello"}"#;
    type Input = Input;

    async fn run(&self, input: Input, _: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        Ok(ToolResult::text(format!("Echo: {}", input.message)))
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;

    #[test]
    fn echo_returns_the_given_message() {
        let bench = Bench::new();
        assert_eq!(bench.text("echo", json!({"message": "hä\n\"x\""})), "Echo: hä\n\"x\"");
        assert_eq!(bench.text("echo", json!({})), "Echo: ");
    }
}
