//! Checks of the overlays of views against the definitions of tools.

use super::ConfiguredView;
use crate::config::{
    Config,
    sections::policy::{is_of_mcp, nameable, no_such_tool},
    tree::{
        origin::Origin,
        problem::{ConfigError, Problem},
    },
};
use serde_json::Value;
use toolstead_domain::{FormatValidation, Tool, ToolInputSchema, ToolOverlay};
use toolstead_infrastructure::mcp::client::config::ToolNaming;

/// Checks the overlays of all views against these tools. Tools of MCP servers are not checked here, because their
/// servers may be unavailable; a view does not show such a tool if its overlay does not fit.
///
/// # Errors
/// Each overlay of an unknown tool or of a tool outside of its view, each unknown parameter, each hidden parameter that
/// is required, each fixed value that the tool does not accept, and each name that another tool of the view has.
pub fn check_overlays(config: &Config, tools: &[Tool]) -> Result<(), ConfigError> {
    // A server with plain names may offer a tool of any name.
    let may_be_upstream = |name: &str| {
        is_of_mcp(name) || config.mcp_servers.iter().any(|one| one.names == ToolNaming::Plain && !one.disabled)
    };
    let mut problems = Vec::new();
    for view in &config.views {
        for (name, overlay) in view.content.overlays() {
            let mut wrong = |reason: String| {
                let origin = view.overlay_origins.get(name).cloned().unwrap_or(Origin::Default);
                problems.push(Problem::new(origin, format!("`views.{}.overlay.{name}`: {reason}", view.name)));
            };
            if let Some(other) =
                overlay.name.as_ref().and_then(|shown| tool_with_name(view, name, shown.as_str(), tools))
            {
                let shown = other.name();
                wrong(format!(
                    "`{shown}` is the name of another tool of the view: choose another name, or rename both"
                ));
            }
            let Some(tool) = tools.iter().find(|tool| is_named(tool, name)) else {
                match tools.iter().find(|tool| tool.aliases.iter().any(|alias| alias.name == name)) {
                    Some(tool) => wrong(format!("it is another name of `{}`: use that one", tool.name())),
                    None if may_be_upstream(name) => {}
                    None => wrong(no_such_tool(name, &nameable())),
                }
                continue;
            };
            if !view.tools.includes(tool) {
                wrong("the view does not select the tool: add it to `tools`, or remove the overlay".into());
            }
            if let Err(error) = overlay.check(tool) {
                wrong(error.to_string());
            } else if let Some(reason) = unfit_value(overlay, tool) {
                wrong(reason);
            }
        }
    }
    ConfigError::unless_none(problems)
}

fn is_named(tool: &Tool, name: &str) -> bool {
    tool.name().as_str() == name || tool.rule_name().as_str() == name
}

/// Returns the other tool of the view that has this name and is not renamed.
fn tool_with_name<'t>(view: &ConfiguredView, tool: &str, shown: &str, tools: &'t [Tool]) -> Option<&'t Tool> {
    let other = tools.iter().find(|other| other.name().as_str() == shown && !is_named(other, tool))?;
    let is_renamed = view.content.overlay_of(other).is_some_and(|overlay| overlay.name.is_some());
    (view.tools.includes(other) && !is_renamed).then_some(other)
}

/// Returns the reason why the tool does not accept a fixed value.
fn unfit_value(overlay: &ToolOverlay, tool: &Tool) -> Option<String> {
    let schema = ToolInputSchema::compile(tool.input_schema(), FormatValidation::Asserted).ok()?;
    let fixed = Value::Object(overlay.fixed.clone());
    let toolstead_domain::ArgumentValidationError::Invalid(invalid) = schema.validate(&fixed).err()? else {
        return None;
    };
    let is_of_fixed = |path: &str| {
        let parameter = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        overlay.fixed.contains_key(parameter)
    };
    let violation = invalid.violations.iter().find(|violation| is_of_fixed(&violation.path))?;
    Some(format!("the fixed value at `{}` does not fit the tool: expected {}", violation.path, violation.expected))
}
