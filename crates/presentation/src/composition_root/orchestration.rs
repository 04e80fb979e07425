//! The tools that call other tools, with examples that name tools there are.

use toolstead_application::orchestration::{Examples, Orchestration};

const EXAMPLES: Examples = Examples {
    batch: r#"{"invocations": [{"tool_name": "current_time", "parameters": {}}, {"tool_name": "glob", "parameters": {"pattern": "*.toml"}}]}"#,
};

/// The provider of these tools.
pub fn orchestration() -> Orchestration {
    Orchestration::new(EXAMPLES)
}
