//! Changes that a view makes to one tool.

use super::Tool;
use crate::{error_kind::ErrorKind, tool_failure::ToolFailure, tool_input_schema::nearest_name, tool_name::ToolName};
use serde_json::{Map, Value};

/// Changes that a view makes to one tool: another name and description, fixed and hidden parameters. They change what a
/// caller reads and sends. Rules, hooks and audit records receive the tool's own name and the complete arguments.
///
/// ```
/// use serde_json::json;
/// use toolstead_domain::{
///     category::Category,
///     tool::{Tool, ToolSource, overlay::ToolOverlay},
///     tool_name::ToolName,
/// };
///
/// let schema = json!({"type": "object", "properties": {"path": {}, "count": {}}, "required": ["path"]});
/// let definition = json!({"description": "Shows commits.", "inputSchema": schema}).as_object().unwrap().clone();
/// let tool = Tool::new(ToolName::parse("git_log").unwrap(), definition, Category::Mcp, ToolSource::BuiltIn);
/// let overlay = ToolOverlay {
///     name: ToolName::parse("history").ok(),
///     fixed: json!({"path": "."}).as_object().unwrap().clone(),
///     ..ToolOverlay::default()
/// };
/// overlay.check(&tool)?;
/// let shown = tool.with_overlay(&overlay);
/// assert_eq!(shown.name().as_str(), "history");
/// assert_eq!(shown.input_schema(), &json!({"type": "object", "properties": {"count": {}}}));
/// # Ok::<(), toolstead_domain::tool::overlay::InvalidOverlay>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOverlay {
    /// Name under which the view shows the tool; `None`: its own name.
    pub name: Option<ToolName>,
    /// Description in the view; `None`: the tool's own description.
    pub description: Option<String>,
    /// Values of parameters that callers cannot set.
    pub fixed: Map<String, Value>,
    /// Parameters that callers cannot set and that have no fixed value.
    pub hidden: Vec<String>,
}

/// The reason why an overlay does not fit its tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOverlay {
    /// The tool has no such parameter.
    #[error("the tool `{tool}` has no parameter `{parameter}`{advice}")]
    UnknownParameter {
        /// Name of the tool.
        tool: String,
        /// Name in the overlay.
        parameter: String,
        /// Nearest parameter as the end of a sentence; empty if there is none.
        advice: String,
    },
    /// The parameter is required, hidden, and has no fixed value, so no call could succeed.
    #[error("the tool `{tool}` requires the parameter `{parameter}`: set its value in `fixed`, or do not hide it")]
    HiddenRequired {
        /// Name of the tool.
        tool: String,
        /// Name of the parameter.
        parameter: String,
    },
}

impl ToolOverlay {
    /// Checks the overlay against the schema of its tool. The parameters of a tool without declared properties are
    /// unknown, so any name is accepted.
    ///
    /// # Errors
    /// [`InvalidOverlay`] for the first parameter that is unknown, or that is hidden although it is required.
    pub fn check(&self, tool: &Tool) -> Result<(), InvalidOverlay> {
        let schema = tool.input_schema();
        let name = || tool.rule_name().to_string();
        if let Some(Value::Object(known)) = schema.get("properties") {
            let unknown = self.removed().find(|parameter| !known.contains_key(*parameter));
            if let Some(parameter) = unknown {
                let near = nearest_name(parameter, known.keys().map(String::as_str));
                let advice = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                return Err(InvalidOverlay::UnknownParameter { tool: name(), parameter: parameter.to_owned(), advice });
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut required = required.filter_map(Value::as_str).filter(|parameter| !self.fixed.contains_key(*parameter));
        match required.find(|parameter| self.hidden.iter().any(|hidden| hidden == parameter)) {
            Some(parameter) => Err(InvalidOverlay::HiddenRequired { tool: name(), parameter: parameter.to_owned() }),
            None => Ok(()),
        }
    }

    /// Checks that a caller sets no fixed or hidden parameter in the view with this name.
    ///
    /// # Errors
    /// A refusal that names the parameter.
    pub fn check_arguments(&self, view: &str, arguments: &Map<String, Value>) -> Result<(), ToolFailure> {
        let Some(parameter) = self.removed().find(|parameter| arguments.contains_key(*parameter)) else {
            return Ok(());
        };
        let message = match self.fixed.contains_key(parameter) {
            true => format!("The view `{view}` fixes the value of `{parameter}`."),
            false => format!("The view `{view}` hides the parameter `{parameter}`."),
        };
        Err(ToolFailure::new(ErrorKind::InvalidInput, message).next(format!("Call again without `{parameter}`.")))
    }

    /// Adds the fixed values to the arguments.
    pub fn insert_fixed(&self, arguments: &mut Map<String, Value>) {
        arguments.extend(self.fixed.clone());
    }

    /// Returns the parameters that callers cannot set.
    fn removed(&self) -> impl Iterator<Item = &str> {
        self.fixed.keys().chain(&self.hidden).map(String::as_str)
    }

    /// Removes the fixed and hidden parameters from an input schema.
    fn narrow(&self, schema: &mut Map<String, Value>) {
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for parameter in self.removed() {
                properties.shift_remove(parameter);
            }
        }
        let Some(Value::Array(required)) = schema.get_mut("required") else { return };
        required.retain(|name| !name.as_str().is_some_and(|name| self.removed().any(|parameter| parameter == name)));
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
}

impl Tool {
    /// Returns the tool as a view with this overlay shows it. Rules still match its own name.
    #[must_use]
    pub fn with_overlay(&self, overlay: &ToolOverlay) -> Self {
        let name = overlay.name.clone().unwrap_or_else(|| self.name.clone());
        let mut definition = self.advertised().clone();
        definition.insert("name".into(), name.as_str().into());
        if let Some(description) = &overlay.description {
            definition.insert("description".into(), description.as_str().into());
        }
        if let Some(Value::Object(schema)) = definition.get_mut("inputSchema") {
            overlay.narrow(schema);
        }
        Self { name, definition: definition.into(), advertised: None, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{category::Category, server_name::ServerName, tool::ToolSource};
    use serde_json::json;

    fn log() -> Tool {
        let server = ServerName::parse("git").unwrap();
        let definition = json!({
            "name": "git_log",
            "description": "Shows commits.",
            "inputSchema": {
                "type": "object",
                "properties": {"repo_path": {"type": "string"}, "max_count": {"type": "integer"}, "since": {}},
                "required": ["repo_path"],
            },
            "_meta": {"kept": true},
        });
        let name = ToolName::for_upstream(&server, "git_log");
        let source = ToolSource::McpServer { server, tool: "git_log".into() };
        Tool::new(name, definition.as_object().unwrap().clone(), Category::Mcp, source)
    }

    fn overlay(fixed: Value, hidden: &[&str]) -> ToolOverlay {
        ToolOverlay {
            fixed: fixed.as_object().unwrap().clone(),
            hidden: hidden.iter().map(|name| (*name).to_owned()).collect(),
            ..ToolOverlay::default()
        }
    }

    #[track_caller]
    fn check(fixed: Value, hidden: &[&str], expected: Result<(), &str>) {
        let checked = overlay(fixed, hidden).check(&log()).map_err(|error| error.to_string());
        assert_eq!(checked, expected.map_err(str::to_owned));
    }

    #[test]
    fn rejects_an_overlay_with_unknown_or_hidden_required_parameters() {
        check(json!({"repo_path": "."}), &["since"], Ok(()));
        check(json!({}), &["max_count"], Ok(()));
        check(json!({"repo_path": "."}), &["repo_path"], Ok(()));
        check(
            json!({"max_cuont": 3}),
            &[],
            Err("the tool `mcp__git__git_log` has no parameter `max_cuont`; did you mean `max_count`?"),
        );
        check(json!({}), &["zzzzzzzz"], Err("the tool `mcp__git__git_log` has no parameter `zzzzzzzz`"));
        check(
            json!({"max_count": 3}),
            &["repo_path"],
            Err(
                "the tool `mcp__git__git_log` requires the parameter `repo_path`: set its value in `fixed`, or do not \
                 hide it",
            ),
        );
    }

    #[test]
    fn a_tool_without_properties_accepts_any_fixed_value() {
        let name = ToolName::parse("any").unwrap();
        let tool = Tool::new(name, Map::new(), Category::Utility, ToolSource::BuiltIn);
        assert_eq!(overlay(json!({"x": 1}), &["y"]).check(&tool), Ok(()));
    }

    #[test]
    fn the_shown_definition_has_no_fixed_or_hidden_parameter() {
        let shown = log().with_overlay(&ToolOverlay {
            name: ToolName::parse("history").ok(),
            description: Some("The last commits.".into()),
            ..overlay(json!({"repo_path": ".", "max_count": 20}), &[])
        });
        let expected = json!({
            "name": "history",
            "description": "The last commits.",
            "inputSchema": {"type": "object", "properties": {"since": {}}},
            "_meta": {"kept": true},
        });
        assert_eq!(Value::Object(shown.advertised().clone()).to_string(), expected.to_string());
        assert_eq!(shown.rule_name().as_str(), "mcp__git__git_log");
    }

    #[test]
    fn a_caller_that_sets_a_fixed_or_hidden_parameter_is_refused() {
        let overlay = overlay(json!({"max_count": 20}), &["since"]);
        let refusal = |arguments: Value| {
            let failure = overlay.check_arguments("review", arguments.as_object().unwrap()).unwrap_err();
            format!("{} {}", failure.message, failure.next.unwrap_or_default())
        };
        assert_eq!(
            refusal(json!({"max_count": 20})),
            "The view `review` fixes the value of `max_count`. Call again without `max_count`."
        );
        assert_eq!(
            refusal(json!({"since": null})),
            "The view `review` hides the parameter `since`. Call again without `since`."
        );
        let mut arguments = json!({"repo_path": "a"}).as_object().unwrap().clone();
        overlay.check_arguments("review", &arguments).unwrap();
        overlay.insert_fixed(&mut arguments);
        assert_eq!(Value::Object(arguments), json!({"repo_path": "a", "max_count": 20}));
    }
}
