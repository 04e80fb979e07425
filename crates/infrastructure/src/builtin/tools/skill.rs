//! The tool `skill`.

use crate::builtin::{built_in_tool::BuiltInTool, run::Run, world::World};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::{path::Path, sync::Arc};
use toolstead_domain::{
    access::{Access, PathAccess},
    agent::definition::Skill as Written,
    category::Category,
    error_kind::ErrorKind,
    tool::{Availability, ToolAnnotations},
    tool_failure::ToolFailure,
    tool_input_schema::nearest_name,
    tool_result::ToolResult,
};

/// So many characters of names and descriptions stand in the list of tools.
const BUDGET: usize = 4_000;
/// So many of one description.
const LONGEST: usize = 250;
/// The file that its instructions stand in.
const FILE: &str = "SKILL.md";

/// Hands a model the instructions for a kind of work.
pub(crate) struct Skill;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The skill. Without it: the list of all.
    #[schemars(length(max = 128))]
    name: Option<String>,
    /// What to use it on, in words that its instructions may have a place for.
    #[schemars(length(max = 10_000))]
    arguments: Option<String>,
}

#[async_trait]
impl BuiltInTool for Skill {
    const NAME: &str = "skill";
    const TITLE: &str = "Skill";
    const DESCRIPTION: &str = "Returns the instructions of a skill: how people here want a kind of work done. Read the one that fits before you \
         begin such work. Nothing runs by it, and it gives no rights.";
    const CATEGORY: Category = Category::Utility;
    const TAGS: &[&str] = &["documentation"];
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"name": "release-notes"}"#;
    const IS_LIVE: bool = true;
    type Input = Input;

    fn told_here(&self, world: &World) -> Option<String> {
        let skills = world.agents().skills();
        (!skills.is_empty()).then(|| format!("Skills:\n{}", list(&skills, LONGEST, BUDGET)))
    }

    fn availability(&self, world: &World) -> Availability {
        match world.agents().skills().is_empty() {
            true => Availability::Unavailable(
                "there is no skill: write one as `.toolstead/skills/NAME/SKILL.md` and trust it".into(),
            ),
            false => Availability::Available,
        }
    }

    async fn accesses(&self, input: &Input, world: &World) -> Result<Vec<Access>, ToolFailure> {
        let Some(skill) = input.name.as_deref().and_then(|name| find(&world.agents().skills(), name)) else {
            return Ok(Vec::new());
        };
        // What lies in the workspace is read as any file of it: a rule that closes it closes it here.
        match &skill.folder {
            Some(folder) if is_in_workspace(folder, world) => {
                let file = folder.join(FILE);
                Ok(vec![Access::ReadPath(world.access(&file.to_string_lossy()).await?)])
            }
            _ => Ok(Vec::new()),
        }
    }

    async fn run(&self, input: Input, run: &Run<'_>) -> Result<ToolResult, ToolFailure> {
        let skills = run.world().agents().skills();
        let Some(name) = input.name.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
            return Ok(ToolResult::text(list(&skills, usize::MAX, usize::MAX)));
        };
        let Some(skill) = find(&skills, name) else {
            let failure = ToolFailure::new(ErrorKind::NotFound, format!("there is no skill `{name}`"));
            let near = nearest_name(name, skills.iter().map(|skill| &*skill.name));
            return Err(match near {
                Some(near) => failure.next(format!("Did you mean `{near}`?")),
                None => failure.next(format!("There are {}.", names(&skills))),
            });
        };
        let text = skill.text(input.arguments.as_deref().unwrap_or_default());
        let text = text.map_err(|error| ToolFailure::new(ErrorKind::InvalidInput, format!("`{name}`: {error}")))?;
        let place = skill.folder.as_deref().map(|folder| told_folder(folder, run)).unwrap_or_default();
        Ok(ToolResult::text(format!("{text}{place}")))
    }
}

fn find(skills: &[Arc<Written>], name: &str) -> Option<Arc<Written>> {
    let name = name.trim().trim_start_matches('/');
    skills.iter().find(|skill| *skill.name == *name).cloned()
}

fn names(skills: &[Arc<Written>]) -> String {
    skills.iter().map(|skill| format!("`{}`", skill.name)).collect::<Vec<_>>().join(", ")
}

/// A line for each, as many as fit, and how many more there are.
fn list(skills: &[Arc<Written>], longest: usize, budget: usize) -> String {
    let (mut text, mut left) = (String::new(), budget);
    for (at, skill) in skills.iter().enumerate() {
        let whole = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut description: String = whole.chars().take(longest).collect();
        if description.len() < whole.len() {
            description.push('…');
        }
        let line = format!("- `{}`: {description}\n", skill.name);
        let Some(rest) = left.checked_sub(line.chars().count()) else {
            text.push_str(&format!("- and {} more: call `skill` without a name\n", skills.len() - at));
            break;
        };
        left = rest;
        text.push_str(&line);
    }
    text.trim_end().to_owned()
}

fn is_in_workspace(folder: &Path, world: &World) -> bool {
    world.workspace().contains(folder)
}

/// Where the files of a skill lie, and whether tools read them.
fn told_folder(folder: &Path, run: &Run<'_>) -> String {
    let access = Access::ReadPath(PathAccess::plain(folder));
    let shown = json!(folder.to_string_lossy());
    match is_in_workspace(folder, run.world()) && run.context().grant.permits(&access) {
        true => format!("\n\n(The files of this skill lie in {shown}; paths above are relative to it.)"),
        false => format!(
            "\n\n(The folder of this skill, {shown}, is not in the workspace: tools cannot read what else lies there.)"
        ),
    }
}
