//! Content of a configured view: overlays of tools, resources, prompts and limits.

use crate::{
    tool::{Tool, overlay::ToolOverlay},
    tool_selection::{patterns_meet, wildcard_match},
};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// Content of a configured view in addition to its policy.
///
/// ```
/// use std::collections::BTreeMap;
/// use toolstead_domain::{
///     scope::view_content::ViewContent,
///     tool::overlay::ToolOverlay,
///     tool_name::ToolName,
/// };
///
/// let overlay = ToolOverlay { name: ToolName::parse("history").ok(), ..ToolOverlay::default() };
/// let content = ViewContent::new(BTreeMap::from([("mcp__git__git_log".to_owned(), overlay)]))?
///     .with_resources(["config://*".to_owned()]);
/// assert_eq!(content.tool_named("history"), Some("mcp__git__git_log"));
/// assert!(content.offers_resource("config://server") && !content.offers_prompt("commit"));
/// # Ok::<(), toolstead_domain::scope::view_content::DuplicateToolName>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ViewContent {
    /// Overlays by the name of the tool.
    overlays: BTreeMap<String, ToolOverlay>,
    /// Names of tools by the names under which the view shows them, where these differ.
    by_shown_name: HashMap<String, String>,
    resources: Vec<String>,
    prompts: Vec<String>,
    /// Limits of each call through the view.
    pub limits: ViewCallLimits,
}

/// Limits of each call through a view. They apply in addition to those of the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ViewCallLimits {
    /// Maximum timeout of a call; `None`: that of the configuration.
    pub timeout: Option<Duration>,
    /// Maximum number of characters of one result that a model receives; `None`: that of the configuration.
    pub output_characters: Option<usize>,
    /// Maximum number of calls through the view that are open at the same time; `None`: that of the configuration.
    pub open_calls: Option<usize>,
}

/// Error: a view shows two tools under one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{first}` and `{second}` are both shown as `{name}`: give each tool a name of its own")]
pub struct DuplicateToolName {
    /// Name in the view.
    pub name: String,
    /// Own name of the first tool.
    pub first: String,
    /// Own name of the second tool.
    pub second: String,
}

impl ViewCallLimits {
    /// Returns the stricter value of each limit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self {
            timeout: least(self.timeout, other.timeout),
            output_characters: least(self.output_characters, other.output_characters),
            open_calls: least(self.open_calls, other.open_calls),
        }
    }
}

impl ViewContent {
    /// Creates the content of a view with these overlays by the name of the tool, and without resources and prompts.
    ///
    /// # Errors
    /// [`DuplicateToolName`] if two overlays give their tools the same name.
    pub fn new(overlays: BTreeMap<String, ToolOverlay>) -> Result<Self, DuplicateToolName> {
        let mut by_shown_name: HashMap<String, String> = HashMap::new();
        for (tool, overlay) in &overlays {
            let Some(name) = &overlay.name else { continue };
            if let Some(first) = by_shown_name.insert(name.to_string(), tool.clone()) {
                return Err(DuplicateToolName { name: name.to_string(), first, second: tool.clone() });
            }
        }
        Ok(Self { overlays, by_shown_name, ..Self::default() })
    }

    /// Offers the resources and templates whose URI matches one of these patterns with `*`.
    #[must_use]
    pub fn with_resources(self, patterns: impl IntoIterator<Item = String>) -> Self {
        Self { resources: patterns.into_iter().collect(), ..self }
    }

    /// Offers the prompts whose name matches one of these patterns with `*`.
    #[must_use]
    pub fn with_prompts(self, patterns: impl IntoIterator<Item = String>) -> Self {
        Self { prompts: patterns.into_iter().collect(), ..self }
    }

    /// Sets the limits of each call.
    #[must_use]
    pub fn with_limits(self, limits: ViewCallLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the overlays by the name of the tool.
    pub fn overlays(&self) -> &BTreeMap<String, ToolOverlay> {
        &self.overlays
    }

    /// Returns the patterns of the offered resources.
    pub fn resources(&self) -> &[String] {
        &self.resources
    }

    /// Returns the patterns of the offered prompts.
    pub fn prompts(&self) -> &[String] {
        &self.prompts
    }

    /// Returns the overlay of the tool, by its own name or by the one that rules match.
    pub fn overlay_of(&self, tool: &Tool) -> Option<&ToolOverlay> {
        let named = self.overlays.get(tool.name().as_str());
        named.or_else(|| self.overlays.get(tool.rule_name().as_str()))
    }

    /// Returns the own name of the tool that the view shows under this name; `None` if no overlay gives a tool this
    /// name.
    pub fn tool_named(&self, name: &str) -> Option<&str> {
        self.by_shown_name.get(name).map(String::as_str)
    }

    /// Returns `true` if the name of the tool refers to another tool in the view, so that the view cannot show this
    /// one.
    pub fn replaces(&self, tool: &Tool) -> bool {
        let is_renamed = self.overlay_of(tool).is_some_and(|overlay| overlay.name.is_some());
        !is_renamed && self.by_shown_name.contains_key(tool.name().as_str())
    }

    /// Returns `true` if the view offers the resource with this URI.
    pub fn offers_resource(&self, uri: &str) -> bool {
        self.resources.iter().any(|pattern| wildcard_match(pattern, uri))
    }

    /// Returns `true` if the view offers some resource of this template.
    pub fn offers_template(&self, template: &str) -> bool {
        let any = with_any_values(template);
        self.resources.iter().any(|pattern| patterns_meet(pattern, &any))
    }

    /// Returns `true` if the view offers the prompt with this name.
    pub fn offers_prompt(&self, name: &str) -> bool {
        self.prompts.iter().any(|pattern| wildcard_match(pattern, name))
    }
}

/// Returns the template with `*` in place of each expression.
fn with_any_values(template: &str) -> String {
    let mut pattern = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((literal, expression)) = rest.split_once('{') {
        pattern.push_str(literal);
        pattern.push('*');
        rest = expression.split_once('}').map_or("", |(_, rest)| rest);
    }
    pattern + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{category::Category, server_name::ServerName, tool::ToolSource, tool_name::ToolName};

    fn renamed(name: &str) -> ToolOverlay {
        ToolOverlay { name: ToolName::parse(name).ok(), ..ToolOverlay::default() }
    }

    fn tool(name: &str) -> Tool {
        Tool::new(ToolName::parse(name).unwrap(), Default::default(), Category::File, ToolSource::BuiltIn)
    }

    #[test]
    fn two_tools_cannot_have_one_name() {
        let overlays = [("a", "same"), ("b", "same")].map(|(tool, name)| (tool.to_owned(), renamed(name)));
        let error = ViewContent::new(BTreeMap::from(overlays)).unwrap_err();
        assert_eq!(error.to_string(), "`a` and `b` are both shown as `same`: give each tool a name of its own");
    }

    #[test]
    fn a_shown_name_resolves_to_the_tool_that_has_it_in_the_view() {
        let overlays = [("a", "b"), ("b", "a"), ("c", "d")].map(|(tool, name)| (tool.to_owned(), renamed(name)));
        let content = ViewContent::new(BTreeMap::from(overlays)).unwrap();
        assert_eq!((content.tool_named("a"), content.tool_named("b")), (Some("b"), Some("a")));
        assert_eq!(content.tool_named("c"), None);
        assert!(!content.replaces(&tool("a")) && !content.replaces(&tool("c")));
        assert!(content.replaces(&tool("d")), "its name leads to `c`");
    }

    #[test]
    fn an_overlay_is_found_by_the_rule_name_of_its_tool() {
        let overlays = BTreeMap::from([("mcp__git__log".to_owned(), renamed("history"))]);
        let content = ViewContent::new(overlays).unwrap();
        let source = ToolSource::McpServer { server: ServerName::parse("git").unwrap(), tool: "log".into() };
        let plain = Tool::new(ToolName::parse("log").unwrap(), Default::default(), Category::Mcp, source);
        assert_eq!(content.overlay_of(&plain), Some(&renamed("history")));
        assert_eq!(content.overlay_of(&tool("log")), None);
    }

    #[test]
    fn resources_and_prompts_are_offered_by_pattern() {
        let content = ViewContent::default()
            .with_resources(["docs://api/*".to_owned(), "config://server".to_owned()])
            .with_prompts(["mcp__git__*".to_owned()]);
        assert!(content.offers_resource("docs://api/v1") && content.offers_resource("config://server"));
        assert!(!content.offers_resource("docs://internal") && !content.offers_resource("docs://{part}"));
        assert!(content.offers_template("docs://{part}/{name}") && !content.offers_template("file:///{path}"));
        assert!(content.offers_prompt("mcp__git__commit") && !content.offers_prompt("review"));
        assert!(!ViewContent::default().offers_resource("config://server"));
    }

    #[test]
    fn the_stricter_limit_applies() {
        let limits = |seconds: Option<u64>, output_characters| ViewCallLimits {
            timeout: seconds.map(Duration::from_secs),
            output_characters,
            open_calls: None,
        };
        assert_eq!(limits(Some(5), None).and(limits(Some(3), Some(10))), limits(Some(3), Some(10)));
        assert_eq!(limits(None, Some(9)).and(ViewCallLimits::default()), limits(None, Some(9)));
    }
}
