//! `toolstead views list|show|export|import`.

use super::{
    CommandResult,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::{StdoutWriter, note, on_one_line, table, visible},
};
use crate::{
    app::App,
    composition_root::{RunningApp, ServerSelection, StartupError, check_rules},
    config::{
        tree::problem::ConfigError,
        views::{
            ConfiguredView,
            view_file::{self, ViewFileFormat},
        },
    },
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_application::{ListToolsQuery, PageLimit, SharedRegisteredTool, ToolFilter, ToolListForm};
use toolstead_domain::{Principal, RequestScope, ToolSelection, context::RULE_NAMES};

/// Lists, shows, exports and imports views.
#[derive(Debug, Args)]
pub struct ViewsCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the views
    List,
    /// Shows the tools of a view, as its clients receive them
    Show {
        /// The view
        name: String,
    },
    /// Prints a view as a file of its own; with `--json` as JSON, otherwise as TOML
    Export {
        /// The view
        name: String,
    },
    /// Adds the views of a file to the configuration of the user
    Import {
        /// A TOML, JSON or YAML file with the section `views`
        file: PathBuf,
        /// Replaces views of the same names
        #[arg(long)]
        replace: bool,
    },
}

impl ViewsCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        match self.command {
            Command::List => list(&global.load()?.views, global.json, output),
            Command::Show { name } => {
                global.load()?.view(&name).map_err(usage)?;
                let composition = global.compose(ServerSelection::All).await?;
                composition.settled().await;
                let outcome = show(&name, &composition, global.json, output);
                composition.close().await;
                outcome
            }
            Command::Export { name } => {
                let config = global.load()?;
                let view = config.view(&name).map_err(usage)?;
                let format = if global.json { ViewFileFormat::Json } else { ViewFileFormat::Toml };
                output.text(&view_file::export(view, format))?;
                Ok(Exit::Done)
            }
            Command::Import { file, replace } => import(global, &file, replace, output),
        }
    }
}

/// Returns the scope of the local user in this session, through the view with this name if there is one.
pub(super) fn scope_in(
    app: &App,
    view: Option<&str>,
    session: impl Into<Arc<str>>,
) -> Result<RequestScope, CommandError> {
    let scope = app.scope(Principal::local(), session);
    match view {
        Some(name) => Ok(scope.through(app.view(name).map_err(usage)?.clone())),
        None => Ok(scope),
    }
}

fn usage(error: impl ToString) -> CommandError {
    CommandError::Usage(error.to_string())
}

fn list(views: &[ConfiguredView], as_json: bool, output: &mut StdoutWriter) -> CommandResult {
    if as_json {
        let one = |view: &ConfiguredView| {
            json!({
                "name": view.name,
                "path": format!("/mcp/{}", view.name),
                "origin": view.origin.to_string(),
                "definition": view.written,
            })
        };
        output.json(&json!({"views": views.iter().map(one).collect::<Vec<_>>()}))?;
        return Ok(Exit::Done);
    }
    let names = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let tools = |tools: &ToolSelection| {
        let of_tools = tools.to_string();
        of_tools.split(", ").filter(|name| !RULE_NAMES.contains(name)).collect::<Vec<_>>().join(", ")
    };
    let row = |view: &ConfiguredView| {
        vec![
            view.name.clone(),
            on_one_line(&tools(&view.tools)),
            on_one_line(&names(view.content.resources())),
            on_one_line(&names(view.content.prompts())),
            view.origin.to_string(),
        ]
    };
    output.line(&table(&["NAME", "TOOLS", "RESOURCES", "PROMPTS", "ORIGIN"], views.iter().map(row)))?;
    Ok(Exit::Done)
}

fn show(name: &str, composition: &RunningApp, as_json: bool, output: &mut StdoutWriter) -> CommandResult {
    let app = &composition.app;
    let view = app.view(name).map_err(usage)?;
    let scope = scope_in(app, Some(name), "cli")?;
    let shown = shown(composition, &scope)?;
    let snapshot = app.registry.snapshot();
    let overlaid =
        snapshot.tools().iter().filter(|one| view.content.iter().any(|content| content.overlay_of(&one.own).is_some()));
    let unfit = overlaid.filter_map(|one| {
        let reason = app.get_tool.view(one, &scope).hidden_because?;
        Some(format!("`{}` is not shown: {reason}", one.own.name()))
    });
    let unfit: Vec<String> = unfit.collect();
    if as_json {
        let tool =
            |one: &SharedRegisteredTool| json!({"name": one.own.name().as_str(), "definition": one.tool.advertised()});
        let tools: Vec<Value> = shown.iter().map(tool).collect();
        output.json(&json!({"view": name, "tools": tools, "not_shown": unfit}))?;
        return Ok(Exit::Done);
    }
    let row = |one: &SharedRegisteredTool| {
        let own = if one.own.name() == one.tool.name() { "-".to_owned() } else { one.own.name().to_string() };
        let parameters = one.tool.advertised().get("inputSchema").and_then(|schema| schema.get("properties"));
        let parameters = parameters.and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str());
        vec![one.tool.name().to_string(), own, on_one_line(&parameters.collect::<Vec<_>>().join(", "))]
    };
    output.line(&table(&["NAME", "TOOL", "PARAMETERS"], shown.iter().map(row)))?;
    for reason in unfit {
        output.line(&on_one_line(&reason))?;
    }
    Ok(Exit::Done)
}

/// Returns the tools that clients of the scope receive.
fn shown(composition: &RunningApp, scope: &RequestScope) -> Result<Vec<SharedRegisteredTool>, CommandError> {
    let (filter, page) = (ToolFilter::default(), PageLimit::Tools(usize::MAX));
    let query = ListToolsQuery { scope: scope.clone(), filter, form: ToolListForm::Whole, cursor: None, page };
    Ok(composition.app.list_tools.handle(&query).map_err(usage)?.tools)
}

fn import(global: &GlobalFlags, file: &Path, replace: bool, output: &mut StdoutWriter) -> CommandResult {
    let config = global.load()?;
    let reload = || match global.load().map_err(|error| error.to_string()).map(|config| check_rules(&config)) {
        Ok(checked) => checked.map_err(|error| error.to_string()),
        Err(error) => Err(error),
    };
    let imported = view_file::import(&config, file, replace, reload);
    let imported = imported.map_err(|problem| StartupError::from(ConfigError::from(problem)))?;
    if global.json {
        output.json(&json!({"file": imported.path, "views": imported.names}))?;
        return Ok(Exit::Done);
    }
    note(&visible(&format!("added {} to {}", imported.names.join(", "), imported.path.display())));
    Ok(Exit::Done)
}
