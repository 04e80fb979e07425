//! A server of notes, written with the macros of `rmcp`. Nothing in this file is about Toolstead.

use rmcp::{handler::server::wrapper::Parameters, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};

/// Notes in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<String>>>);

/// Arguments of `add`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct NewNote {
    /// Text of the note.
    text: String,
}

#[tool_router(server_handler)]
impl Notes {
    #[tool(description = "Adds a note and returns the number of notes.", annotations(destructive_hint = false))]
    fn add(&self, Parameters(NewNote { text }): Parameters<NewNote>) -> String {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(text);
        notes.len().to_string()
    }

    #[tool(description = "Returns all notes, one per line.", annotations(read_only_hint = true))]
    fn list(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }
}
