//! Agents, skills and commands as people write them down.

use crate::tool_selection::ToolSelection;
use std::{path::PathBuf, sync::Arc};

/// An agent that work can be handed to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentDefinition {
    /// Its name, as rules and calls write it.
    pub name: Arc<str>,
    /// The work to hand to it, for the model that does.
    pub description: String,
    /// Its instructions.
    pub prompt: String,
    /// The tools it may use, among those of the one who hands it work.
    pub tools: ToolSelection,
    /// Its model, by name or strength; `None`: that of the one who hands it work.
    pub model: Option<String>,
    /// The most answers of its model.
    pub max_turns: Option<u64>,
    /// The file; `None`: a program's own, or one of ours.
    pub source: Option<PathBuf>,
}

/// Instructions for a kind of work, which a model reads when it needs them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Skill {
    /// Its name.
    pub name: Arc<str>,
    /// The work to read it for, told to the model.
    pub description: String,
    /// The instructions.
    pub body: String,
    /// The folder with further files; `None` where there is none.
    pub folder: Option<PathBuf>,
}

/// A prompt that a person calls by a name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PromptCommand {
    /// Its name, with `:` between the folders that it lies in.
    pub name: Arc<str>,
    /// A sentence on what it does, for the person.
    pub description: String,
    /// The arguments it takes, for the person (`[file]`).
    pub argument_hint: Option<String>,
    /// The text, with places for arguments.
    pub body: String,
    /// The arguments that have a name. Beside them a text of any words may be typed.
    pub arguments: Vec<CommandArgument>,
    /// The file.
    pub source: Option<PathBuf>,
}

/// An argument of a command that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandArgument {
    /// Its name.
    pub name: String,
    /// The text that stands for it where it is not given; `None`: it must be given.
    pub default: Option<String>,
}

impl AgentDefinition {
    /// An agent with these instructions, which has all tools and the model of the one who hands it work. The fields say
    /// what is different.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            prompt: prompt.into(),
            tools: ToolSelection::all(),
            model: None,
            max_turns: None,
            source: None,
        }
    }
}

impl Skill {
    /// A skill without a folder.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>, body: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), body: body.into(), folder: None }
    }
}

impl PromptCommand {
    /// A command with this text.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            argument_hint: None,
            body: body.into(),
            arguments: Vec::new(),
            source: None,
        }
    }
}
