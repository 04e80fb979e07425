//! The surroundings of agents: instructions of `AGENTS.md` and `CLAUDE.md`, and facts about the machine and the
//! workspace.
//!
//! All files are opened through the guard of the workspace, beneath its roots and without following links. Files of
//! untrusted folders are never read.

mod environment;
mod includes;
mod instruction_files;
mod instruction_reader;
mod shown_name;

use async_trait::async_trait;
use environment::{MachineFacts, environment_text};
pub use instruction_files::{InstructionFileLoader, InstructionFileStatus, ListedInstructionFile};
use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::task::spawn_blocking;
use toolstead_domain::{
    AgentSurroundings, Clock, ConversationId, DeliveredInstructions, FolderInstructions, SurroundingsDescription,
};

/// Maximum number of conversations whose description of the environment is retained.
const MOST_CONVERSATIONS: usize = 64;
/// Maximum number of notes that are remembered, so that none is returned twice.
const MOST_NOTES: usize = 1_000;
/// Introduction of the instructions.
const INTRODUCTION: &str = "# Instructions\n\nThe user trusts these files. Instructions of a folder apply to the files in it and below; those \
                            of an inner folder take precedence over those of an outer one, and what the user says takes \
                            precedence over both. They grant no permissions.";

/// The surroundings of the agents of one application.
#[derive(Clone)]
pub struct SurroundingsDescriber {
    files: Arc<InstructionFileLoader>,
    clock: Arc<dyn Clock>,
    facts: MachineFacts,
    state: Arc<Mutex<SurroundingsDeliveryState>>,
}

#[derive(Debug, Default)]
struct SurroundingsDeliveryState {
    /// Descriptions of the environment, oldest first. One does not change while its conversation continues, so that
    /// providers can use their prompt caches.
    environments: VecDeque<(ConversationId, Arc<str>)>,
    /// Notes that were returned.
    reported: BTreeSet<String>,
}

impl SurroundingsDescriber {
    /// Creates the surroundings with these instruction files.
    pub fn new(files: Arc<InstructionFileLoader>, clock: Arc<dyn Clock>) -> Self {
        Self { files, clock, facts: MachineFacts::of_this_machine(), state: Arc::default() }
    }

    fn describe_blocking(&self, conversation: ConversationId) -> SurroundingsDescription {
        let instructions = self.files.of_system_prompt();
        let environment = self.environment(conversation);
        // The instructions are the same for all conversations and come first, so that conversations share the cached
        // beginning.
        let sections = instructions.sections.iter().map(|section| section.to_text());
        let mut parts: Vec<String> = sections.collect();
        if !parts.is_empty() {
            parts.insert(0, INTRODUCTION.to_owned());
        }
        parts.push(environment.to_string());
        SurroundingsDescription {
            text: parts.join("\n\n"),
            notes: self.unreported(instructions.notes),
            has_folder_instructions: self.files.has_trusted_folders(),
        }
    }

    /// Returns the description of the environment at the beginning of the conversation, or creates and retains one if
    /// this process has none.
    fn environment(&self, conversation: ConversationId) -> Arc<str> {
        let known = |state: &SurroundingsDeliveryState| {
            state.environments.iter().find(|(id, _)| *id == conversation).map(|(_, text)| text.clone())
        };
        if let Some(text) = known(&self.state.lock().unwrap_or_else(PoisonError::into_inner)) {
            return text;
        }
        let text: Arc<str> = environment_text(&self.facts, self.clock.now(), &self.files.granted()).into();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.environments.len() == MOST_CONVERSATIONS {
            state.environments.pop_front();
        }
        state.environments.push_back((conversation, text.clone()));
        text
    }

    fn unreported(&self, notes: Vec<String>) -> Vec<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.reported.len() + notes.len() > MOST_NOTES {
            state.reported.clear();
        }
        notes.into_iter().filter(|note| state.reported.insert(note.clone())).collect()
    }
}

#[async_trait]
impl AgentSurroundings for SurroundingsDescriber {
    async fn describe(&self, conversation: ConversationId) -> SurroundingsDescription {
        let this = self.clone();
        // Fails only if the process ends.
        spawn_blocking(move || this.describe_blocking(conversation)).await.unwrap_or_default()
    }

    async fn instructions_for(&self, paths: &[PathBuf], delivered: &DeliveredInstructions) -> FolderInstructions {
        let (this, paths, delivered) = (self.clone(), paths.to_vec(), delivered.clone());
        let read = move || {
            let read = this.files.for_paths(&paths, &delivered);
            FolderInstructions { sections: read.sections, notes: this.unreported(read.notes) }
        };
        spawn_blocking(read).await.unwrap_or_default()
    }
}

impl fmt::Debug for SurroundingsDescriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SurroundingsDescriber").field("files", &self.files).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
