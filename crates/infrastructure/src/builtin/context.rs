//! The provider of the built-in resources and prompts: reports on Toolstead itself, files of the workspace, prompts
//! from data files, and the commands of users.

mod commands;
mod files;
mod path_completion;
mod prompts;
mod report;

pub use report::ReportResource;

use crate::builtin::tool_kit::tool_environment::ToolEnvironment;
use async_trait::async_trait;
use files::FileResources;
use prompts::BuiltInPrompts;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolstead_domain::{
    Access, CallContext, CommandPromptTemplate, CompletionReference, CompletionRequest, ContextCatalogue,
    ContextProvider, ContextRequest, Prompt, ProviderListError, ToolFailure, error_kind::ErrorKind, tool::BUILT_IN,
};

/// Maximum number of values of a completion (MCP 2025-11-25, server/utilities/completion, "Completion Results").
const MOST_VALUES: usize = 100;

/// Toolstead's own resources and prompts.
#[derive(Debug)]
pub struct BuiltInContextProvider {
    reports: Vec<ReportResource>,
    files: FileResources,
    prompts: BuiltInPrompts,
    world: ToolEnvironment,
    catalogue: ContextCatalogue,
}

/// Reason why built-in data cannot be offered: a fault of Toolstead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the built-in {what} cannot be used: {reason}")]
pub struct InvalidBuiltInContext {
    what: String,
    reason: String,
}

impl BuiltInContextProvider {
    /// Creates a provider of these reports, the files of the workspace, and the prompts.
    ///
    /// # Errors
    /// [`InvalidBuiltInContext`] when a report or a prompt is malformed.
    pub fn new(world: ToolEnvironment, reports: Vec<ReportResource>) -> Result<Self, InvalidBuiltInContext> {
        let files = FileResources::new(world.clone());
        let prompts = BuiltInPrompts::built_in()?;
        let resources = reports.iter().map(ReportResource::definition).collect::<Result<_, _>>()?;
        let templates = files.templates()?;
        let catalogue = ContextCatalogue { resources, templates, prompts: prompts.definitions()? };
        Ok(Self { reports, files, prompts, world, catalogue })
    }

    /// Returns the command with this name, unless a built-in prompt has the name.
    fn command(&self, name: &str) -> Option<Arc<CommandPromptTemplate>> {
        let is_ours = self.catalogue.prompts.iter().any(|prompt| prompt.name() == name);
        if is_ours { None } else { commands::find(self.world.agents().catalogue(), name) }
    }

    fn report(&self, uri: &str) -> Option<&ReportResource> {
        self.reports.iter().find(|report| report.uri == uri)
    }
}

#[async_trait]
impl ContextProvider for BuiltInContextProvider {
    fn name(&self) -> &str {
        BUILT_IN
    }

    async fn list(&self) -> Result<ContextCatalogue, ProviderListError> {
        let mut catalogue = self.catalogue.clone();
        let is_free = |prompt: &Prompt| self.catalogue.prompts.iter().all(|ours| ours.name() != prompt.name());
        catalogue.prompts.extend(commands::definitions(self.world.agents().catalogue()).into_iter().filter(is_free));
        Ok(catalogue)
    }

    async fn changed(&self) {
        self.world.agents().catalogue().changed().await
    }

    async fn accesses(&self, request: &ContextRequest) -> Result<Vec<Access>, ToolFailure> {
        match request {
            ContextRequest::Read { uri } if self.report(uri).is_some() => Ok(Vec::new()),
            ContextRequest::Read { uri } => self.files.accesses(uri).await,
            ContextRequest::Complete(CompletionRequest { of: CompletionReference::Template(of), value, .. })
                if self.report(of).is_none() =>
            {
                self.files.completion_accesses(value).await
            }
            ContextRequest::Get { .. } | ContextRequest::Complete(_) => Ok(Vec::new()),
        }
    }

    async fn answer(
        &self,
        request: &ContextRequest,
        context: &CallContext<'_>,
    ) -> Result<Map<String, Value>, ToolFailure> {
        let (member, value) = match request {
            ContextRequest::Read { uri } => {
                let content = match self.report(uri) {
                    Some(report) => report.content().await,
                    None => self.files.content(uri, context).await?,
                };
                ("contents", json!([content]))
            }
            ContextRequest::Get { name, arguments } => {
                return match self.command(name) {
                    Some(command) => commands::get(&command, arguments),
                    None => self.prompts.get(name, arguments),
                };
            }
            ContextRequest::Complete(completion) => {
                let (values, total) = match &completion.of {
                    CompletionReference::Prompt(name) => match self.command(name) {
                        Some(command) => commands::values(&command, completion)?,
                        None => self.prompts.values(name, completion)?,
                    },
                    // A report has no variables to complete.
                    CompletionReference::Template(of) if self.report(of).is_some() => (Vec::new(), 0),
                    CompletionReference::Template(_) => self.files.values(completion, context).await?,
                };
                let more = total > values.len();
                ("completion", json!({"values": values, "total": total, "hasMore": more}))
            }
        };
        Ok(Map::from_iter([(member.to_owned(), value)]))
    }
}

/// Returns the members of an object.
fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Returns the first values with this prefix, in any case, and the number of all of them.
fn beginning_with<'a>(typed: &str, values: impl Iterator<Item = &'a str>) -> (Vec<String>, usize) {
    let typed = typed.to_lowercase();
    let mut fitting: Vec<String> =
        values.filter(|value| value.to_lowercase().starts_with(&typed)).map(str::to_owned).collect();
    let total = fitting.len();
    fitting.truncate(MOST_VALUES);
    (fitting, total)
}

fn unknown_argument(name: &str, known: impl Iterator<Item = impl AsRef<str>>) -> ToolFailure {
    let known: Vec<String> = known.map(|one| format!("`{}`", one.as_ref())).collect();
    let message = format!("there is no argument `{name}`");
    ToolFailure::new(ErrorKind::InvalidInput, message).next(format!("The arguments are {}.", known.join(", ")))
}

#[cfg(test)]
mod tests;
