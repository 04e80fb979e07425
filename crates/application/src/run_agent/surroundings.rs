//! The surroundings of the agent of a run: the text that follows its system prompt, and the instructions of folders
//! that its calls touch.

use super::history::ConversationHistory;
use std::{path::PathBuf, sync::Arc};
use toolstead_domain::{
    Access, AgentSurroundings, ConversationId, DeliveredInstructions, FolderInstructions, SurroundingsDescription,
};

/// Reads the surroundings of one run.
pub(super) struct RunSurroundingsReader {
    port: Option<Arc<dyn AgentSurroundings>>,
    has_folder_instructions: bool,
}

impl RunSurroundingsReader {
    /// Creates the reader of a run. Without a port there are none.
    pub(super) fn new(port: Option<Arc<dyn AgentSurroundings>>) -> Self {
        Self { port, has_folder_instructions: false }
    }

    /// Returns the system prompt followed by the description of the surroundings, and notes for the user. Without a
    /// port, returns the system prompt alone.
    pub(super) async fn complete(&mut self, system: &str, conversation: ConversationId) -> (String, Vec<String>) {
        let Some(port) = &self.port else { return (system.to_owned(), Vec::new()) };
        let SurroundingsDescription { text, notes, has_folder_instructions } = port.describe(conversation).await;
        self.has_folder_instructions = has_folder_instructions;
        let parts = [system.trim_end(), &text];
        (parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n"), notes)
    }

    /// Returns `true` if a call that touches a path can add the instructions of a folder. Always `false` before
    /// [`complete`](Self::complete).
    pub(super) fn depend_on_paths(&self) -> bool {
        self.has_folder_instructions
    }

    /// Returns the instructions for these paths that the conversation does not contain yet.
    pub(super) async fn instructions_for(
        &self,
        paths: &[PathBuf],
        history: &ConversationHistory,
    ) -> FolderInstructions {
        match &self.port {
            Some(port) if self.has_folder_instructions && !paths.is_empty() => {
                port.instructions_for(paths, &DeliveredInstructions::in_messages(&history.messages())).await
            }
            _ => FolderInstructions::default(),
        }
    }
}

/// Returns the real paths of these accesses, including those of the files that commands access.
pub(super) fn touched_paths(accesses: &[Access]) -> Vec<PathBuf> {
    let of_access = |access: &Access| match access {
        Access::RunCommand(command) => command.files().filter_map(|file| Some(file.path()?.real.clone())).collect(),
        other => other.path().map(|path| path.real.clone()).into_iter().collect::<Vec<_>>(),
    };
    accesses.iter().flat_map(of_access).collect()
}
