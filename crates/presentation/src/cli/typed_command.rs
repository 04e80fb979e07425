//! Text that starts with the name of a command defined in a file.

use super::{config::trusting, exit::CommandError};
use crate::config::agent_files::{AgentFileKind, DefinitionFileCatalogue};
use toolstead_domain::Block;

/// Returns the text of the command that was typed as `/name words`; `None` if there is no such command.
///
/// # Errors
/// [`CommandError::Usage`] if the command waits for trust, or its text cannot be built.
pub(super) fn text_of(typed: &str, files: &DefinitionFileCatalogue) -> Result<Option<String>, CommandError> {
    let Some(command) = typed.strip_prefix('/') else { return Ok(None) };
    let (name, words) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let listing = files.listing();
    if let Some(found) = listing.commands.iter().find(|listed| *listed.item.name == *name) {
        let text = found.item.text(words);
        return text.map(Some).map_err(|error| CommandError::Usage(format!("`/{name}` cannot be used: {error}")));
    }
    match listing.waiting(AgentFileKind::Command, name) {
        Some(waiting) => {
            Err(CommandError::Usage(format!("the command `/{name}` waits for {}", trusting(&waiting.path))))
        }
        None => Ok(None),
    }
}

/// Replaces each text block that is a command by the text of the command.
///
/// # Errors
/// The errors of [`text_of`].
pub(super) fn in_prompt(prompt: Vec<Block>, files: &DefinitionFileCatalogue) -> Result<Vec<Block>, CommandError> {
    let replaced = |block: Block| match &block {
        Block::Text { text } => Ok(text_of(text, files)?.map_or(block, Block::text)),
        _ => Ok(block),
    };
    prompt.into_iter().map(replaced).collect()
}
