//! `toolstead resources [list|read URI]`.

use super::{
    CommandResult,
    context_requests::{answered, listed, offered_by},
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::{StdoutWriter, cut, visible},
};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use toolstead_application::ContextListKind;
use toolstead_domain::ContextRequest;

/// Lists the resources, or reads one.
#[derive(Debug, Args)]
pub struct ResourcesCommand {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists resources and templates of resources
    List,
    /// Reads a resource
    Read {
        /// The resource: `config://server`, `status://health`, `file:///` and an absolute path without its first slash, or one
        /// of an MCP server, as the list has it
        uri: String,
    },
}

impl Command {
    fn subject(&self) -> Option<&str> {
        match self {
            Self::List => None,
            Self::Read { uri } => Some(uri),
        }
    }
}

impl ResourcesCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let composition = global.compose_to_forward(self.command.as_ref().and_then(Command::subject)).await?;
        let done = match self.command.unwrap_or(Command::List) {
            Command::List => list(&composition.app, global.json, output),
            Command::Read { uri } => match answered(&composition, ContextRequest::Read { uri }).await {
                Ok(answer) => print(&answer, global.json, output),
                Err(error) => Err(error),
            },
        };
        composition.close().await;
        done.map(|()| Exit::Done)
    }
}

fn list(app: &crate::app::App, as_json: bool, output: &mut StdoutWriter) -> Result<(), CommandError> {
    let (resources, templates) = (listed(app, ContextListKind::Resources)?, listed(app, ContextListKind::Templates)?);
    if as_json {
        return Ok(output.json(&json!({"resources": resources, "resourceTemplates": templates}))?);
    }
    let text = |one: &Map<String, Value>, name: &str| one.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let rows: Vec<(String, String)> = resources
        .iter()
        .map(|one| (text(one, "uri"), offered_by(one) + &text(one, "description")))
        .chain(templates.iter().map(|one| (text(one, "uriTemplate"), offered_by(one) + &text(one, "description"))))
        .collect();
    let width = rows.iter().map(|(uri, _)| uri.chars().count()).max().unwrap_or(0);
    for (uri, description) in rows {
        let first = description.lines().next().unwrap_or("");
        output.line(&cut(&visible(&format!("{uri:width$}  {first}")), output.width()))?;
    }
    Ok(())
}

/// Prints the contents. Text is printed as it is; other content is only named, unless `--json` is set.
fn print(answer: &Map<String, Value>, as_json: bool, output: &mut StdoutWriter) -> Result<(), CommandError> {
    if as_json {
        return Ok(output.json(answer)?);
    }
    for content in answer.get("contents").and_then(Value::as_array).into_iter().flatten() {
        let text = match content["text"].as_str() {
            Some(text) => text.to_owned(),
            None => {
                let media_type = content["mimeType"].as_str().unwrap_or("unknown type");
                let bytes = content["blob"].as_str().map_or(0, |blob| blob.len() / 4 * 3);
                visible(&format!("[content of {media_type}, about {bytes} bytes; `--json` prints it]"))
            }
        };
        output.content(text.strip_suffix('\n').unwrap_or(&text))?;
    }
    Ok(())
}
