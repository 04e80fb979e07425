//! The folders that are searched for agents, skills and commands.

use crate::config::{
    layers::{LayerKind, folders::StandardFolders},
    tree::source_file::project_folders,
};
use std::path::{Path, PathBuf};

/// Kind of a Markdown file with a definition for agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentFileKind {
    /// An agent to which work can be delegated.
    Agent,
    /// Instructions that a model reads on demand.
    Skill,
    /// A prompt that the user runs by name.
    Command,
}

impl AgentFileKind {
    /// Returns the singular noun for this kind.
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Skill => "skill",
            Self::Command => "command",
        }
    }
}

/// A folder to search, if it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchFolder {
    pub(super) kind: AgentFileKind,
    pub(super) folder: PathBuf,
    /// Owner of the folder: the project or the user.
    pub(super) owner: LayerKind,
    /// `true` if prompts are Go templates, as in kodelet.
    pub(super) has_templates: bool,
}

/// Folders in a project for each system, Toolstead's own first; for each, the kind of file and whether prompts are Go
/// templates.
const IN_PROJECT: &[(&str, AgentFileKind, bool)] = &[
    (".toolstead/agents", AgentFileKind::Agent, false),
    (".claude/agents", AgentFileKind::Agent, false),
    (".kodelet/agents", AgentFileKind::Agent, false),
    (".toolstead/skills", AgentFileKind::Skill, false),
    (".claude/skills", AgentFileKind::Skill, false),
    (".kodelet/skills", AgentFileKind::Skill, false),
    (".toolstead/commands", AgentFileKind::Command, false),
    (".claude/commands", AgentFileKind::Command, false),
    (".kodelet/recipes", AgentFileKind::Command, true),
];
/// Folder of kodelet's recipes. The name is common, so it is used only in projects with an entry of [`KODELET`].
const RECIPES: &str = "recipes";
/// Entries that identify a kodelet project.
const KODELET: [&str; 2] = [".kodelet", "kodelet-config.yaml"];

/// Returns all folders in order of precedence: project folders before the user's, the nearest project folder first,
/// Toolstead's own before those of other systems.
pub(super) fn search_folders(folders: &StandardFolders) -> Vec<SearchFolder> {
    let mut places = Vec::new();
    // Files in the home folder belong to the user, even if the home folder is also the project.
    for project in project_folders(folders).iter().filter(|folder| folders.home.as_ref() != Some(folder)) {
        places.extend(places_in(project, LayerKind::Project));
        if KODELET.iter().any(|sign| project.join(sign).symlink_metadata().is_ok()) {
            let folder = project.join(RECIPES);
            places.push(SearchFolder {
                kind: AgentFileKind::Command,
                folder,
                owner: LayerKind::Project,
                has_templates: true,
            });
        }
    }
    let ours = |(name, kind)| folders.config.as_ref().map(|config| place(kind, config.join(name), LayerKind::User));
    places.extend(
        [("agents", AgentFileKind::Agent), ("skills", AgentFileKind::Skill), ("commands", AgentFileKind::Command)]
            .into_iter()
            .filter_map(ours),
    );
    if let Some(home) = &folders.home {
        places.extend(places_in(home, LayerKind::User));
    }
    places
}

fn places_in(folder: &Path, owner: LayerKind) -> impl Iterator<Item = SearchFolder> {
    // The user's own `.toolstead` files are in the configuration folder instead.
    let is_there = move |name: &str| owner == LayerKind::Project || !name.starts_with(".toolstead");
    IN_PROJECT.iter().filter(move |(name, ..)| is_there(name)).map(move |(name, kind, has_templates)| SearchFolder {
        has_templates: *has_templates,
        ..place(*kind, folder.join(name), owner)
    })
}

fn place(kind: AgentFileKind, folder: PathBuf, owner: LayerKind) -> SearchFolder {
    SearchFolder { kind, folder, owner, has_templates: false }
}
