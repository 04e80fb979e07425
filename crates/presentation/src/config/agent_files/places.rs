//! The places where agents, skills and commands are looked for.

use crate::config::{folders::Folders, layers::LayerKind, source_file::project_folders};
use std::path::{Path, PathBuf};

/// The sort of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An agent that work can be handed to.
    Agent,
    /// Instructions that a model reads when it needs them.
    Skill,
    /// A prompt that a person calls by a name.
    Command,
}

impl Kind {
    /// The word for one of them.
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Skill => "skill",
            Self::Command => "command",
        }
    }
}

/// A folder that is looked in, if it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) folder: PathBuf,
    /// Whose it is: a project's, or the person's own.
    pub(super) owner: LayerKind,
    /// Tells whether places for arguments are Go templates, as kodelet has them.
    pub(super) has_templates: bool,
}

/// The names of the folders of each system in a project, ours first, with what of it is looked for.
const IN_PROJECT: &[(&str, Kind, bool)] = &[
    (".toolstead/agents", Kind::Agent, false),
    (".claude/agents", Kind::Agent, false),
    (".kodelet/agents", Kind::Agent, false),
    (".toolstead/skills", Kind::Skill, false),
    (".claude/skills", Kind::Skill, false),
    (".kodelet/skills", Kind::Skill, false),
    (".toolstead/commands", Kind::Command, false),
    (".claude/commands", Kind::Command, false),
    (".kodelet/recipes", Kind::Command, true),
];
/// The place where kodelet keeps recipes. The name is too common to mean that wherever it stands.
const RECIPES: &str = "recipes";
/// Their signs in a folder.
const KODELET: [&str; 2] = [".kodelet", "kodelet-config.yaml"];

/// All places, those of the highest precedence first: a project's before the person's, the nearest project's folder first,
/// ours before those of others.
pub(super) fn places(folders: &Folders) -> Vec<Place> {
    let mut places = Vec::new();
    // Files in the home folder are the person's, also where that is the project.
    for project in project_folders(folders).iter().filter(|folder| folders.home.as_ref() != Some(folder)) {
        places.extend(places_in(project, LayerKind::Project));
        if KODELET.iter().any(|sign| project.join(sign).symlink_metadata().is_ok()) {
            let folder = project.join(RECIPES);
            places.push(Place { kind: Kind::Command, folder, owner: LayerKind::Project, has_templates: true });
        }
    }
    let ours = |(name, kind)| folders.config.as_ref().map(|config| place(kind, config.join(name), LayerKind::User));
    places.extend(
        [("agents", Kind::Agent), ("skills", Kind::Skill), ("commands", Kind::Command)].into_iter().filter_map(ours),
    );
    if let Some(home) = &folders.home {
        places.extend(places_in(home, LayerKind::User));
    }
    places
}

fn places_in(folder: &Path, owner: LayerKind) -> impl Iterator<Item = Place> {
    // The person's own of ours lie in the configuration folder.
    let is_there = move |name: &str| owner == LayerKind::Project || !name.starts_with(".toolstead");
    IN_PROJECT.iter().filter(move |(name, ..)| is_there(name)).map(move |(name, kind, has_templates)| Place {
        has_templates: *has_templates,
        ..place(*kind, folder.join(name), owner)
    })
}

fn place(kind: Kind, folder: PathBuf, owner: LayerKind) -> Place {
    Place { kind, folder, owner, has_templates: false }
}
