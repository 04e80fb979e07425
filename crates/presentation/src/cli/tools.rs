//! `toolstead tools [NAME]`.

use super::{
    CommandResult,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::{StdoutWriter, cut, note, on_one_line, quoted},
    views::scope_in,
};
use crate::composition_root::{RunningApp, ServerSelection};
use clap::Args;
use serde_json::{Value, json};
use toolstead_application::{
    AbsentServer, GetToolQuery, ListToolsQuery, PageLimit, ResolveError, SetToolEnabledCommand, SharedRegisteredTool,
    ToolFilter, ToolListForm, ToolView, run_agent::offered_tool,
};
use toolstead_domain::{Category, OfferedTool, RequestScope, Tool};
use toolstead_infrastructure::models::{self, ProviderKind};

/// Lists the tools, or shows one.
#[derive(Debug, Args)]
pub struct ToolsCommand {
    /// The tool to show, by name or alias
    name: Option<String>,
    /// Includes tools that cannot be called, with the reason
    #[arg(long)]
    all: bool,
    /// Only this category: file, search, shell, system, web, ai, mail, calendar, utility or mcp
    #[arg(long, value_name = "C")]
    category: Option<String>,
    /// Only tools with this text in name, title or description
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Only what this view shows, by its name in `[views]`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["enable", "disable"])]
    view: Option<String>,
    /// The format of this model provider: `anthropic`, `openai`, `openai_responses` or `gemini`
    #[arg(long, value_name = "P", value_parser = provider, conflicts_with_all = ["enable", "disable"])]
    provider: Option<ProviderKind>,
    /// Enables the tool for all users of this data folder; running processes apply it at their next start
    #[arg(long, requires = "name", conflicts_with = "disable")]
    enable: bool,
    /// Disables the tool for all users of this data folder; running processes apply it at their next start
    #[arg(long, requires = "name")]
    disable: bool,
}

impl ToolsCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        if let Some(name) = &self.view {
            // Checked before servers start.
            global.load()?.view(name).map_err(|error| CommandError::Usage(error.to_string()))?;
        }
        let composition = global.compose(ServerSelection::All).await?;
        composition.settled().await;
        if !global.is_quiet() {
            print_unavailable_servers(&composition);
        }
        let outcome = match &self.name {
            Some(name) if self.enable || self.disable => self.switch(name, &composition, global.json, output).await,
            name if self.provider.is_some() => self.print_definitions(name.as_deref(), &composition, output),
            Some(name) => self.show(name, &composition, global.json, output),
            None => self.list(&composition, global.json, output),
        };
        composition.close().await;
        outcome
    }

    async fn switch(
        &self,
        name: &str,
        composition: &RunningApp,
        as_json: bool,
        output: &mut StdoutWriter,
    ) -> CommandResult {
        let command = SetToolEnabledCommand { name: name.to_owned(), enabled: self.enable };
        use toolstead_application::SetToolEnabledError as Error;
        match composition.app.set_tool_enabled.handle(&command).await {
            Ok(()) => {
                note(&format!("`{name}` is switched {}", if self.enable { "on" } else { "off" }));
                if as_json {
                    output.json(&json!({"tool": name, "enabled": self.enable}))?;
                }
                Ok(Exit::Done)
            }
            Err(Error::Unknown(_, unresolved)) => Err(unknown(name, unresolved)),
            Err(Error::Store(error)) => Err(error.into()),
        }
    }

    /// Returns the scope in which tools are listed and shown: that of the view of `--view`, if there is one.
    fn scope(&self, composition: &RunningApp) -> Result<RequestScope, CommandError> {
        scope_in(&composition.app, self.view.as_deref(), "cli")
    }

    fn show(&self, name: &str, composition: &RunningApp, as_json: bool, output: &mut StdoutWriter) -> CommandResult {
        let query = GetToolQuery { scope: self.scope(composition)?, name: name.to_owned() };
        let view = composition.app.get_tool.handle(&query).map_err(|unresolved| unknown(name, unresolved))?;
        if as_json {
            output.json(view.registered.tool.definition())?;
            return Ok(Exit::Done);
        }
        describe(&view, output)?;
        Ok(Exit::Done)
    }

    /// Returns the tools in the scope that match the filter.
    fn listed(&self, composition: &RunningApp) -> Result<Vec<SharedRegisteredTool>, CommandError> {
        let category = self.category.as_deref().map(Category::parse).transpose();
        let category = category.map_err(|error| CommandError::Usage(error.to_string()))?;
        let filter = ToolFilter { category, tags: Vec::new(), text: self.text.clone(), with_uncallable: self.all };
        let scope = self.scope(composition)?;
        let mut query = ListToolsQuery {
            scope,
            filter,
            cursor: None,
            page: PageLimit::Tools(usize::MAX),
            form: ToolListForm::Whole,
        };
        let mut tools = Vec::new();
        loop {
            let page =
                composition.app.list_tools.handle(&query).map_err(|error| CommandError::Usage(error.to_string()))?;
            tools.extend(page.tools);
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                return Ok(tools);
            }
        }
    }

    /// Prints definitions exactly as they are sent to a model: an array, or the object of one tool.
    fn print_definitions(
        &self,
        name: Option<&str>,
        composition: &RunningApp,
        output: &mut StdoutWriter,
    ) -> CommandResult {
        let Some(provider) = self.provider else { return Ok(Exit::Done) };
        let tools: Vec<OfferedTool> = self.listed(composition)?.iter().map(|one| offered_tool(&one.tool)).collect();
        let mut definitions = models::definitions(provider, &tools);
        match name {
            None => output.json(&Value::from(definitions))?,
            Some(name) => {
                let scope = self.scope(composition)?;
                let view = composition.app.get_tool.handle(&GetToolQuery { scope, name: name.to_owned() });
                let tool = offered_tool(&view.map_err(|unresolved| unknown(name, unresolved))?.registered.tool);
                // Its name in the request may depend on the other offered tools.
                let definition = match tools.iter().position(|one| one.name == tool.name) {
                    Some(at) => definitions.swap_remove(at),
                    None => models::definitions(provider, &[tool]).pop().unwrap_or_default(),
                };
                output.json(&definition)?;
            }
        }
        Ok(Exit::Done)
    }

    /// Returns the definition; with `--all` also `available` and, if it is `false`, the `reason`.
    fn definition(&self, view: &ToolView) -> Value {
        let mut definition = view.registered.tool.definition().clone();
        if self.all {
            definition.insert("available".into(), view.hidden_because.is_none().into());
            if let Some(reason) = &view.hidden_because {
                definition.insert("reason".into(), reason.as_str().into());
            }
        }
        definition.into()
    }

    fn list(&self, composition: &RunningApp, as_json: bool, output: &mut StdoutWriter) -> CommandResult {
        let scope = self.scope(composition)?;
        let listed = self.listed(composition)?;
        let views: Vec<ToolView> = listed.iter().map(|one| composition.app.get_tool.view(one, &scope)).collect();
        if as_json {
            let definitions: Vec<Value> = views.iter().map(|view| self.definition(view)).collect();
            output.json(&json!({"tools": definitions}))?;
            return Ok(Exit::Done);
        }
        let (registry, selection) = (composition.app.registry.snapshot(), &composition.config.tools.selection);
        for name in selection.unmatched(registry.tools().iter().map(|one| &*one.tool)) {
            note(&format!("note: the choice of tools: `{name}` fits no tool"));
        }
        let width = views.iter().map(|view| view.registered.tool.name().as_str().len()).max().unwrap_or(0);
        for view in &views {
            let tool = &view.registered.tool;
            let about = match &view.hidden_because {
                Some(reason) => format!("({reason}) {}", tool.description()),
                None => tool.description().to_owned(),
            };
            let line = format!("{:width$}  {}", tool.name().as_str(), on_one_line(about.lines().next().unwrap_or("")));
            output.line(&cut(&line, output.width()))?;
        }
        note("`toolstead tools NAME` shows one tool with its schema, `--all` also those that cannot be called.");
        Ok(Exit::Done)
    }
}

fn provider(word: &str) -> Result<ProviderKind, String> {
    let known = || ProviderKind::ALL.map(ProviderKind::as_str).join(", ");
    ProviderKind::parse(word).ok_or_else(|| format!("it is one of {}", known()))
}

/// Prints a note for each unavailable server whose tools are missing from the list or are shown as last known.
pub(super) fn print_unavailable_servers(composition: &RunningApp) {
    for AbsentServer { server, why, shows_earlier_tools } in composition.app.registry.absent() {
        let shown = match shows_earlier_tools {
            // The server is still starting, and its tools are already known.
            true if why == AbsentServer::ON_ITS_WAY => continue,
            true => "its tools are shown as they were last",
            false => "its tools are unknown",
        };
        note(&format!(
            "note: the MCP server `{server}` is not available, and {shown}: {}",
            on_one_line(why.trim_end())
        ));
    }
}

fn describe(view: &ToolView, output: &mut StdoutWriter) -> std::io::Result<()> {
    let tool = &view.registered.tool;
    for line in facts(tool, view.hidden_because.as_deref()) {
        output.line(&line)?;
    }
    output.line("input schema")?;
    output.json(tool.input_schema())?;
    if let Some(schema) = tool.output_schema() {
        output.line("output schema")?;
        output.json(schema)?;
    }
    Ok(())
}

/// Returns the facts about a tool, one per line. No text of a server begins a line.
fn facts(tool: &Tool, hidden_because: Option<&str>) -> Vec<String> {
    let mut facts = vec![("name", tool.name().to_string()), ("title", tool.title().unwrap_or("-").to_owned())];
    facts.push(("source", tool.source().label()));
    facts.push(("category", tool.category.to_string()));
    facts.push(("tags", listed(tool.tags.iter().map(String::as_str))));
    facts.push((
        "aliases",
        listed(tool.aliases.iter().map(|alias| alias.name).filter(|name| *name != tool.name().as_str())),
    ));
    facts.push(("annotations", tool.definition().get("annotations").map_or("-".into(), Value::to_string)));
    facts.push(("offered", hidden_because.map_or("yes".into(), |reason| format!("no: {reason}"))));
    let facts = facts.iter().map(|(label, fact)| format!("{label:<12} {}", on_one_line(fact)));
    facts.chain(["description".into(), quoted(tool.description()), String::new()]).collect()
}

fn listed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut words: Vec<&str> = words.collect();
    words.sort_unstable();
    words.dedup();
    if words.is_empty() { "-".into() } else { words.join(", ") }
}

fn unknown(name: &str, unresolved: ResolveError) -> CommandError {
    CommandError::NotFound(match unresolved {
        ResolveError::Unknown(nearest) if nearest.is_empty() => {
            format!("no tool is called `{name}`: `toolstead tools` lists them")
        }
        ResolveError::Unknown(nearest) => format!("no tool is called `{name}`: did you mean {}?", nearest.join(", ")),
        ResolveError::Ambiguous(several) => format!("`{name}` could be several tools: {}", several.join(", ")),
        ResolveError::Absent(absent) => {
            format!("`{name}` is unknown: the MCP server `{}` is unavailable: {}", absent.server, absent.why)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{ServerName, ToolName, ToolSource};

    #[test]
    fn server_text_begins_no_line_of_the_shown_tool_details() {
        let Value::Object(definition) = json!({
            "title": "Adds\noffered      yes",
            "description": "Adds.\n\u{1b}[2Jname         bash\n\u{202e}input schema",
            "annotations": {"title": "x\nsource"},
            "inputSchema": {"type": "object"},
        }) else {
            panic!()
        };
        let source = ToolSource::McpServer { server: ServerName::parse("up").unwrap(), tool: "add".into() };
        let tool = Tool::new(ToolName::parse("mcp__up__add").unwrap(), definition, Category::Mcp, source);
        let lines = facts(&tool, Some("a reason\nof a server")).join("\n");
        let labels =
            ["name", "title", "source", "category", "tags", "aliases", "annotations", "offered", "description"];
        let begun: Vec<&str> = lines.lines().filter(|line| !line.starts_with("  | ") && !line.is_empty()).collect();
        assert_eq!(begun.len(), labels.len(), "{lines}");
        assert!(begun.iter().zip(labels).all(|(line, label)| line.starts_with(label)), "{lines}");
        assert!(lines.ends_with("  | Adds.\n  | \\u{1b}[2Jname         bash\n  | \\u{202e}input schema\n"), "{lines}");
    }
}
