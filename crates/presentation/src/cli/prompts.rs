//! `toolstead prompts [list|get NAME --argument NAME=VALUE]`.

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

/// Lists the prompts, or fills one in.
#[derive(Debug, Args)]
pub struct PromptsCommand {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the prompts with their arguments
    List,
    /// Fills in a prompt and prints it
    Get {
        /// The prompt
        name: String,
        /// Argument of the prompt; repeatable
        #[arg(long = "argument", value_name = "NAME=VALUE", value_parser = pair)]
        arguments: Vec<(String, String)>,
    },
}

impl Command {
    fn subject(&self) -> Option<&str> {
        match self {
            Self::List => None,
            Self::Get { name, .. } => Some(name),
        }
    }
}

impl PromptsCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let composition = global.compose_to_forward(self.command.as_ref().and_then(Command::subject)).await?;
        let done = match self.command.unwrap_or(Command::List) {
            Command::List => list(&composition.app, global.json, output),
            Command::Get { name, arguments } => {
                let request = ContextRequest::Get { name, arguments: arguments.into_iter().collect() };
                match answered(&composition, request).await {
                    Ok(answer) => print(&answer, global.json, output),
                    Err(error) => Err(error),
                }
            }
        };
        composition.close().await;
        done.map(|()| Exit::Done)
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn list(app: &crate::app::App, as_json: bool, output: &mut StdoutWriter) -> Result<(), CommandError> {
    let prompts = listed(app, ContextListKind::Prompts)?;
    if as_json {
        return Ok(output.json(&json!({"prompts": prompts}))?);
    }
    for prompt in &prompts {
        let text = |name: &str| prompt.get(name).and_then(Value::as_str).unwrap_or("");
        let arguments = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let arguments: Vec<String> = arguments
            .map(|one| {
                let name = one["name"].as_str().unwrap_or("?");
                if one["required"] == true { name.to_owned() } else { format!("[{name}]") }
            })
            .collect();
        let line = format!("{} {}  {}{}", text("name"), arguments.join(" "), offered_by(prompt), text("description"));
        output.line(&cut(&visible(&line), output.width()))?;
    }
    Ok(())
}

fn print(answer: &Map<String, Value>, as_json: bool, output: &mut StdoutWriter) -> Result<(), CommandError> {
    if as_json {
        return Ok(output.json(answer)?);
    }
    for message in answer.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let text = message["content"]["text"].as_str().unwrap_or("[content other than text; `--json` prints it]");
        output.content(text)?;
    }
    Ok(())
}
