//! Agents, skills and commands as users define them.

use crate::tool_selection::ToolSelection;
use std::{path::PathBuf, sync::Arc};

/// Agent to which work can be delegated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentDefinition {
    /// Name of the agent in rules and calls.
    pub name: Arc<str>,
    /// Work to delegate to it, described for the delegating model.
    pub description: String,
    /// Instructions of the agent.
    pub prompt: String,
    /// Tools that it may use, among those of the delegating agent.
    pub tools: ToolSelection,
    /// Model by name or strength; `None` for that of the delegating agent.
    pub model: Option<String>,
    /// Maximum number of answers of its model.
    pub max_turns: Option<u64>,
    /// File that defines it; `None` for an agent of the embedding application or of Toolstead.
    pub source: Option<PathBuf>,
}

/// Instructions for a kind of work, which a model reads when it needs them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Skill {
    /// Name of the skill.
    pub name: Arc<str>,
    /// Work that the skill is for, described for the model.
    pub description: String,
    /// Instructions of the skill.
    pub body: String,
    /// Folder with further files; `None` if there is none.
    pub folder: Option<PathBuf>,
}

/// Prompt that the user calls by name.
///
/// ```
/// use toolstead_domain::agent::definition::CommandPromptTemplate;
///
/// let command = CommandPromptTemplate::new("review", "Reviews a file.", "Review $1 for $2.");
/// assert_eq!(command.text("main.rs 'error handling'").unwrap(), "Review main.rs for error handling.");
/// assert!(command.takes_words());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CommandPromptTemplate {
    /// Name of the command, with `:` between the folders that contain it.
    pub name: Arc<str>,
    /// Description in one sentence, for the user.
    pub description: String,
    /// Arguments of the command, for the user (`[file]`).
    pub argument_hint: Option<String>,
    /// Text with placeholders for arguments.
    pub body: String,
    /// Named arguments. In addition, any words may be typed.
    pub arguments: Vec<CommandArgument>,
    /// File that defines it.
    pub source: Option<PathBuf>,
}

/// Named argument of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandArgument {
    /// Name of the argument.
    pub name: String,
    /// Default value; `None` if the argument is required.
    pub default: Option<String>,
}

impl AgentDefinition {
    /// Creates an agent with these instructions that has all tools and the model of the delegating agent. Set fields to
    /// change that.
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
    /// Creates a skill without a folder.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>, body: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), body: body.into(), folder: None }
    }
}

impl CommandPromptTemplate {
    /// Creates a command with this text.
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
