//! The tools that call other tools, with examples that name tools there are.

use toolstead_application::orchestration::{Examples, Orchestration};

const EXAMPLES: Examples = Examples {
    batch: r#"{"invocations": [{"tool_name": "current_time", "parameters": {}}, {"tool_name": "glob", "parameters": {"pattern": "*.toml"}}]}"#,
};

/// The provider of these tools.
pub fn orchestration() -> Orchestration {
    Orchestration::new(EXAMPLES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::policy::nameable;

    #[test]
    fn rules_and_the_choice_of_tools_may_name_each_of_them() {
        for tool in orchestration().definitions() {
            let names = std::iter::once(tool.name().as_str()).chain(tool.aliases.iter().map(|alias| alias.name));
            names.for_each(|name| assert!(nameable().contains(&name), "{name}"));
        }
    }
}
