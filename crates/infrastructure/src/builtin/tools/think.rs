//! The tool `think`.

use crate::builtin::tool_kit::{built_in_tool::BuiltInTool, tool_context::ToolContext};
use schemars::JsonSchema;
use serde::Deserialize;
use toolstead_domain::{Category, ToolAnnotations, ToolFailure, ToolResult};

/// Tool that accepts a thought, and does nothing.
pub(crate) struct Think;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The thought.
    #[schemars(length(min = 1, max = 100_000))]
    #[schemars(extend("x-advertised" = ""))]
    #[serde(rename = "thought")]
    _thought: String,
}

impl BuiltInTool for Think {
    const NAME: &str = "think";
    const TITLE: &str = "Think";
    const DESCRIPTION: &str = "Records a thought, and changes nothing. Use it to think between calls: to weigh what a \
                               result means, to check a plan against the rules, or to find the cause of a failure.";
    const BRIEF: &str = "Records a thought between calls.";
    const CATEGORY: Category = Category::Utility;
    const TAGS: &[&str] = &["plan"];
    const KEYWORDS: &str = "brainstorm consider ponder reason reflect scratchpad";
    const STANDS_ALONE: bool = true;
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"thought": "The test fails only on the second run, so something is kept between runs."}"#;
    type Input = Input;

    async fn run(&self, _: Input, _: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        Ok(ToolResult::text("Noted."))
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::{Bench, definition};
    use serde_json::json;

    #[test]
    fn every_thought_has_the_same_answer_and_changes_nothing() {
        let bench = Bench::new();
        for thought in ["a", "delete everything"] {
            assert_eq!(bench.text("think", json!({"thought": thought})), "Noted.");
        }
        assert!(bench.call_unchecked("think", json!({"thought": "a"})).unwrap().is_empty());
        assert!(bench.names("").is_empty());
        assert!(definition("think").stands_alone);
    }
}
