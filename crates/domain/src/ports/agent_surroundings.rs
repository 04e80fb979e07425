//! The surroundings of an agent, for its model.

use crate::{
    agent::instructions::{DeliveredInstructions, InstructionFile},
    conversation::ConversationId,
};
use async_trait::async_trait;
use std::path::PathBuf;

/// Describes the surroundings of agents to their models: instructions that files contain, and facts about the machine
/// and the workspace.
///
/// ```
/// use async_trait::async_trait;
/// use std::path::PathBuf;
/// use toolstead_domain::{
///     AgentSurroundings, ConversationId, DeliveredInstructions, FolderInstructions, SurroundingsDescription,
/// };
///
/// struct Desk;
///
/// #[async_trait]
/// impl AgentSurroundings for Desk {
///     async fn describe(&self, _: ConversationId) -> SurroundingsDescription {
///         SurroundingsDescription { text: "You sit at a desk.".to_owned(), ..SurroundingsDescription::default() }
///     }
///
///     async fn instructions_for(&self, _: &[PathBuf], _: &DeliveredInstructions) -> FolderInstructions {
///         FolderInstructions::default()
///     }
/// }
/// ```
#[async_trait]
pub trait AgentSurroundings: Send + Sync {
    /// Returns the description for a run of this conversation. Its text is the same for all runs of the conversation,
    /// unless the instructions or the user's trust in them have changed.
    async fn describe(&self, conversation: ConversationId) -> SurroundingsDescription;

    /// Returns the instructions of the folders that contain these absolute paths, the outermost folder first. Omits
    /// those of the system prompt and those that the conversation already contains.
    async fn instructions_for(&self, paths: &[PathBuf], delivered: &DeliveredInstructions) -> FolderInstructions;
}

/// Surroundings of the agent of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SurroundingsDescription {
    /// Text that follows the system prompt; empty for none.
    pub text: String,
    /// Notes for the user, such as a file that was not read. Each is returned once.
    pub notes: Vec<String>,
    /// `true` if folders may have instructions of their own, so that the paths that calls touch matter.
    pub has_folder_instructions: bool,
}

/// Instructions of folders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderInstructions {
    /// Instructions, one element per file, the outermost folder first.
    pub sections: Vec<InstructionFile>,
    /// Notes for the user, such as a file that was not read. Each is returned once.
    pub notes: Vec<String>,
}
