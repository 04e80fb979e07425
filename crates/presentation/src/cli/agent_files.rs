//! `toolstead agents`, `toolstead skills` and `toolstead commands`.

use super::{
    CommandResult,
    config::trusting,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::{StdoutWriter, cut, table, visible},
};
use crate::config::agent_files::{AgentFileKind, AgentFileListing, AgentFileListingEntry};
use clap::Args;
use serde_json::{Map, Value, json};
use toolstead_domain::{AgentDefinition, CommandPromptTemplate, Skill, tool_input_schema::nearest_name};

/// Lists Markdown files of agents, skills or commands, files that need trust, and problems.
#[derive(Debug, Args)]
pub struct AgentFilesCommand {
    /// Only this one, with its text
    name: Option<String>,
}

/// An agent, a skill or a command to show.
struct AgentFileEntry {
    name: String,
    owner: &'static str,
    path: String,
    description: String,
    text: String,
    /// Further members, by name.
    rest: Map<String, Value>,
}

impl AgentFilesCommand {
    pub(super) fn run(self, kind: AgentFileKind, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        // Loads without printing notes, because the list contains what they say.
        let listing = global.load_silently()?.agent_files().listing();
        let all: Vec<AgentFileEntry> = match kind {
            AgentFileKind::Agent => listing.agents.iter().map(agent).collect(),
            AgentFileKind::Skill => listing.skills.iter().map(skill).collect(),
            AgentFileKind::Command => listing.commands.iter().map(command).collect(),
        };
        match &self.name {
            None if global.json => output.json(&to_json(&all, &listing, kind))?,
            None => show(&all, &listing, kind, output)?,
            Some(name) => {
                let Some(one) = all.iter().find(|one| one.name == *name) else {
                    return Err(absent(name, &all, &listing, kind));
                };
                match global.json {
                    true => output.json(&one.to_json(true))?,
                    false => {
                        output.line(&visible(&format!("# {} ({}, {})", one.name, one.owner, one.path)))?;
                        output.line(&visible(&format!("# {}", one.description.replace('\n', "\n# "))))?;
                        for (name, value) in &one.rest {
                            output.line(&visible(&format!("# {name}: {value}")))?;
                        }
                        output.line(&visible(&one.text))?;
                    }
                }
            }
        }
        Ok(Exit::Done)
    }
}

fn entry<T>(
    listed: &AgentFileListingEntry<T>,
    name: &str,
    description: &str,
    text: &str,
    rest: Value,
) -> AgentFileEntry {
    let rest = match rest {
        Value::Object(rest) => rest.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    };
    let path = listed.path.display().to_string();
    let (name, description, text) = (name.to_owned(), description.to_owned(), text.to_owned());
    AgentFileEntry { name, owner: listed.owner, path, description, text, rest }
}

fn agent(listed: &AgentFileListingEntry<AgentDefinition>) -> AgentFileEntry {
    let agent = &listed.item;
    let rest = json!({"model": agent.model, "max_turns": agent.max_turns, "tools": agent.tools.to_string()});
    entry(listed, &agent.name, &agent.description, &agent.prompt, rest)
}

fn skill(listed: &AgentFileListingEntry<Skill>) -> AgentFileEntry {
    let skill = &listed.item;
    let rest = json!({"folder": skill.folder});
    entry(listed, &skill.name, &skill.description, &skill.body, rest)
}

fn command(listed: &AgentFileListingEntry<CommandPromptTemplate>) -> AgentFileEntry {
    let command = &listed.item;
    let arguments: Vec<&str> = command.arguments.iter().map(|argument| argument.name.as_str()).collect();
    let arguments = if arguments.is_empty() { Value::Null } else { json!(arguments) };
    let rest = json!({"argument_hint": command.argument_hint, "arguments": arguments});
    entry(listed, &command.name, &command.description, &command.body, rest)
}

impl AgentFileEntry {
    fn to_json(&self, with_text: bool) -> Value {
        let mut object = json!({
            "name": self.name, "source": self.owner, "file": self.path, "description": self.description,
        });
        if let Some(object) = object.as_object_mut() {
            object.extend(self.rest.clone());
            if with_text {
                object.insert("text".into(), self.text.clone().into());
            }
        }
        object
    }
}

fn absent(name: &str, all: &[AgentFileEntry], listing: &AgentFileListing, kind: AgentFileKind) -> CommandError {
    let word = kind.word();
    if let Some(waiting) = listing.waiting(kind, name) {
        return CommandError::NotFound(format!("the {word} `{name}` waits for {}", trusting(&waiting.path)));
    }
    let advice = match nearest_name(name, all.iter().map(|one| one.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`toolstead {word}s` lists them"),
    };
    CommandError::NotFound(format!("there is no {word} `{name}`; {advice}"))
}

fn show(
    all: &[AgentFileEntry],
    listing: &AgentFileListing,
    kind: AgentFileKind,
    output: &mut StdoutWriter,
) -> Result<(), CommandError> {
    let word = kind.word();
    if all.is_empty() {
        output.line(&format!("no {word} is defined; docs/guide/agent-files.md lists the folders that are searched"))?;
    } else {
        let width = output.width().map(|width| width / 2);
        let row = |one: &AgentFileEntry| {
            vec![one.name.clone(), one.owner.to_owned(), cut(&one.description, width.or(Some(100))), one.path.clone()]
        };
        output.line(&table(&[&word.to_uppercase(), "SOURCE", "DESCRIPTION", "FILE"], all.iter().map(row)))?;
    }
    for file in listing.waiting.iter().filter(|file| file.kind == kind) {
        output.line(&visible(&format!("{}: waits for {}", file.name, trusting(&file.path))))?;
    }
    for hidden in listing.hidden.iter().filter(|hidden| hidden.kind == kind) {
        let line = format!("{}: {} is hidden by {}", hidden.name, hidden.path.display(), hidden.by.display());
        output.line(&visible(&line))?;
    }
    for problem in &listing.problems {
        output.line(&visible(&format!("wrong: {problem}")))?;
    }
    for note in &listing.notes {
        output.line(&visible(&format!("note: {note}")))?;
    }
    Ok(())
}

fn to_json(all: &[AgentFileEntry], listing: &AgentFileListing, kind: AgentFileKind) -> Value {
    let waiting = listing.waiting.iter().filter(|file| file.kind == kind);
    let waiting = waiting.map(|file| json!({"name": file.name, "file": file.path}));
    let hidden = listing.hidden.iter().filter(|hidden| hidden.kind == kind);
    let hidden = hidden.map(|hidden| json!({"name": hidden.name, "file": hidden.path, "by": hidden.by}));
    let mut object = Map::new();
    object.insert(format!("{}s", kind.word()), all.iter().map(|one| one.to_json(false)).collect());
    object.insert("waiting".into(), waiting.collect());
    object.insert("hidden".into(), hidden.collect());
    object.insert("problems".into(), listing.problems.iter().map(ToString::to_string).collect());
    object.insert("notes".into(), listing.notes.iter().map(ToString::to_string).collect());
    Value::Object(object)
}
