//! The tools that are offered to the model.

use super::OfferedTools;
use crate::tool_deferral::is_search_tool;
use serde_json::Value;
use std::sync::Arc;
use toolstead_domain::{OfferedTool, Tool, ToolSelection, tool_input_schema::nearest_name};

/// The offered tools. Their order is stable: a new tool is always added at the end.
pub(super) struct AvailableTools {
    /// Tools in the request.
    tools: Vec<Arc<Tool>>,
    /// Tools that are not in the request but that `tool_search` can find.
    deferred_tools: Vec<Arc<Tool>>,
    /// `true` if calls by any other name are refused; `false` if the call path decides on them.
    is_closed: bool,
}

/// Returns the definition of a tool for a model, as lists show it.
pub fn offered_tool(tool: &Tool) -> OfferedTool {
    let schema = tool.advertised().get("inputSchema").unwrap_or_else(|| tool.input_schema());
    let description = tool.advertised().get("description").and_then(Value::as_str);
    OfferedTool {
        name: tool.name().to_string(),
        description: description.unwrap_or_else(|| tool.description()).to_owned(),
        input_schema: Arc::new(schema.clone()),
    }
}

impl AvailableTools {
    pub(super) fn new(offered: &OfferedTools) -> Self {
        Self { tools: Vec::new(), deferred_tools: Vec::new(), is_closed: !matches!(offered, OfferedTools::Listed) }
    }

    /// Updates the offered tools to those that are available now. `deferral` returns those of the given tools that a
    /// deferred list contains.
    pub(super) fn update(
        &mut self,
        offered: &OfferedTools,
        tools: Vec<Arc<Tool>>,
        deferral: impl FnOnce(Vec<Arc<Tool>>) -> Vec<Arc<Tool>>,
    ) {
        let is_offered = |tool: &Tool| match offered {
            OfferedTools::Listed => true,
            // Deferred tools of a selection are reached through these two, so they are offered with every selection.
            OfferedTools::Chosen(selection) => selection.includes(tool) || is_search_tool(tool),
            OfferedTools::Nothing => false,
        };
        let all: Vec<Arc<Tool>> = tools.into_iter().filter(|tool| is_offered(tool)).collect();
        let mut now = deferral(all.clone());
        let is_in = |tools: &[Arc<Tool>], tool: &Tool| tools.iter().any(|one| one.name() == tool.name());
        let chosen = |tool: &Tool| matches!(offered, OfferedTools::Chosen(chosen) if chosen.includes_literally(tool));
        let mut rest: Vec<Arc<Tool>> =
            all.into_iter().filter(|tool| !is_search_tool(tool) && !is_in(&now, tool)).collect();
        now.extend(rest.extract_if(.., |tool| chosen(tool)));
        self.deferred_tools = rest;
        for known in std::mem::take(&mut self.tools) {
            if let Some(at) = now.iter().position(|tool| tool.name() == known.name()) {
                self.tools.push(now.remove(at));
            }
        }
        self.tools.append(&mut now);
    }

    /// Returns the tool's own name if `name` leads to an offered tool, and otherwise `name`.
    pub(super) fn name_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.find(name).map_or(name, |tool| tool.own_name().as_str())
    }

    fn find(&self, name: &str) -> Option<&Arc<Tool>> {
        let selection = ToolSelection::only([name]);
        let leads_to = |tool: &&Arc<Tool>| !name.contains('*') && selection.includes(tool);
        self.tools.iter().chain(&self.deferred_tools).find(leads_to)
    }

    pub(super) fn tools(&self) -> Vec<OfferedTool> {
        self.tools.iter().map(|tool| offered_tool(tool)).collect()
    }

    /// Returns the reason why a call by this name is refused; `None` if it may be made.
    pub(super) fn refusal_of(&self, name: &str) -> Option<String> {
        if !self.is_closed || self.find(name).is_some() {
            return None;
        }
        let shown: String = name.chars().take(128).collect();
        let known = self.tools.iter().chain(&self.deferred_tools);
        let nearest = nearest_name(&shown, known.map(|tool| tool.name().as_str()));
        let next = match (nearest, self.tools.is_empty()) {
            (Some(nearest), _) => format!("Did you mean `{nearest}`?"),
            (None, true) => "No tools are offered here: answer without them.".into(),
            (None, false) => "Call one of the tools that are offered.".into(),
        };
        Some(format!("Unknown tool: {shown}. {next}"))
    }
}
