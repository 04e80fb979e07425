//! Categories of tools, as a fixed list.

use std::fmt;

/// Category of a tool. Every tool has exactly one; tools of MCP servers are [`Category::Mcp`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Reads or changes files.
    File,
    /// Finds files and text.
    Search,
    /// Runs commands.
    Shell,
    /// Reports facts about the machine.
    System,
    /// Reaches the web.
    Web,
    /// Requests answers from a model.
    Ai,
    /// Reads or sends mail.
    Mail,
    /// Reads or changes calendars.
    Calendar,
    /// Small functions that belong to no other category.
    Utility,
    /// Comes from an MCP server.
    Mcp,
}

impl Category {
    /// All categories, in the order of lists.
    pub const ALL: &[Self] = &[
        Self::File,
        Self::Search,
        Self::Shell,
        Self::System,
        Self::Web,
        Self::Ai,
        Self::Mail,
        Self::Calendar,
        Self::Utility,
        Self::Mcp,
    ];

    /// Returns the name of the category in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Search => "search",
            Self::Shell => "shell",
            Self::System => "system",
            Self::Web => "web",
            Self::Ai => "ai",
            Self::Mail => "mail",
            Self::Calendar => "calendar",
            Self::Utility => "utility",
            Self::Mcp => "mcp",
        }
    }

    /// Parses the name of a category.
    ///
    /// # Errors
    /// [`UnknownCategory`], which lists the valid names.
    pub fn parse(text: &str) -> Result<Self, UnknownCategory> {
        Self::ALL.iter().copied().find(|category| category.as_str() == text).ok_or_else(|| UnknownCategory(text.into()))
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Text that is not the name of a category.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a category: use one of file, search, shell, system, web, ai, mail, calendar, utility, mcp")]
pub struct UnknownCategory(String);
