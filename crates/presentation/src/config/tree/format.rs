//! The formats of configuration files, each read into the same tree.

mod json;
mod toml;
mod yaml;

use crate::config::tree::{
    node::{Node, NodeContent},
    problem::Problem,
};
use std::{path::Path, sync::Arc};

/// A format of configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum ConfigFormat {
    Toml,
    Json,
    Yaml,
}

impl ConfigFormat {
    /// File name extensions, in the order in which files are searched.
    pub(in crate::config) const ENDINGS: &[(&str, Self)] =
        &[("toml", Self::Toml), ("json", Self::Json), ("yaml", Self::Yaml), ("yml", Self::Yaml)];

    /// Returns the format of a file with this name.
    pub(in crate::config) fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?;
        Self::ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format)
    }

    /// Parses a text as a tree whose root is a table.
    ///
    /// # Errors
    /// A [`Problem`] with the line of the syntax error.
    pub(in crate::config) fn read(self, text: &str, file: &Arc<Path>) -> Result<Node, Problem> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = match self {
            Self::Toml => toml::read(text, file),
            Self::Json => json::read(text, file),
            Self::Yaml => yaml::read(text, file),
        }?;
        match root.content {
            NodeContent::Table(_) => Ok(root),
            other => Err(Problem::new(root.origin, format!("the file must hold a table of keys, got {other}"))),
        }
    }
}
