//! The tool `skill`.

use crate::builtin::tool_kit::{
    built_in_tool::BuiltInTool, tool_context::ToolContext, tool_environment::ToolEnvironment,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::{path::Path, sync::Arc};
use toolstead_domain::{
    Access, AccessPath, Availability, Category, Skill as Written, ToolAnnotations, ToolFailure, ToolResult,
    error_kind::ErrorKind, tool_input_schema::nearest_name,
};

/// Maximum number of characters of all names and descriptions of skills in the description of this tool.
const BUDGET: usize = 4_000;
/// Maximum number of characters of one skill's description in the description of this tool.
const LONGEST: usize = 250;
/// Name of the file that contains the instructions.
const FILE: &str = "SKILL.md";

/// Tool that returns the instructions for a kind of work.
pub(crate) struct Skill;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The skill. Without it, all are listed.
    #[schemars(length(max = 128))]
    name: Option<String>,
    /// Arguments, inserted where its instructions have a placeholder.
    #[schemars(length(max = 10_000))]
    arguments: Option<String>,
}

impl BuiltInTool for Skill {
    const NAME: &str = "skill";
    const TITLE: &str = "Skill";
    const DESCRIPTION: &str = "Returns the instructions of a skill: how to do a kind of work here. Read the matching one before you \
         begin such work. It runs nothing and grants no permissions.";
    const CATEGORY: Category = Category::Utility;
    const TAGS: &[&str] = &["documentation"];
    const KEYWORDS: &str = "guide knowledge playbook procedure recipe workflow";
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"name": "release-notes"}"#;
    const IS_LIVE: bool = true;
    type Input = Input;

    fn dynamic_description(&self, world: &ToolEnvironment) -> Option<String> {
        let skills = world.agents().catalogue().skills();
        (!skills.is_empty()).then(|| format!("Skills:\n{}", list(&skills, LONGEST, BUDGET)))
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        match world.agents().catalogue().skills().is_empty() {
            true => Availability::Unavailable(
                "there is no skill: write one as `.toolstead/skills/NAME/SKILL.md` and trust it".into(),
            ),
            false => Availability::Available,
        }
    }

    async fn accesses(&self, input: &Input, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
        let Some(skill) = input.name.as_deref().and_then(|name| find(&world.agents().catalogue().skills(), name))
        else {
            return Ok(Vec::new());
        };
        // A skill in the workspace is read like any file there: a rule that closes the file closes the skill.
        match &skill.folder {
            Some(folder) if is_in_workspace(folder, world) => {
                let file = folder.join(FILE);
                Ok(vec![Access::ReadPath(world.access(&file.to_string_lossy()).await?)])
            }
            _ => Ok(Vec::new()),
        }
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        let skills = run.environment().agents().catalogue().skills();
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
        let place = skill.folder.as_deref().map(|folder| describe_folder(folder, run)).unwrap_or_default();
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

/// Formats one line per skill, up to `budget` characters, with at most `longest` characters of each description. Ends
/// with the number of skills left out, if any.
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

fn is_in_workspace(folder: &Path, world: &ToolEnvironment) -> bool {
    world.workspace().contains(folder)
}

/// Returns a note that names the folder of a skill's files and says if tools can read them.
fn describe_folder(folder: &Path, run: &ToolContext<'_>) -> String {
    let access = Access::ReadPath(AccessPath::plain(folder));
    let shown = json!(folder.to_string_lossy());
    match is_in_workspace(folder, run.environment()) && run.context().grant.permits(&access) {
        true => format!("\n\n(The files of this skill are in {shown}; paths above are relative to it.)"),
        false => format!(
            "\n\n(The folder of this skill, {shown}, is not in the workspace: tools cannot read its other files.)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::tests::Bench;
    use async_trait::async_trait;
    use serde_json::{Value, json};
    use std::sync::Mutex;
    use toolstead_domain::{AgentCatalogue, AgentDefinition, CommandPromptTemplate, Effect};

    /// Skills that a test changes.
    #[derive(Default)]
    struct Skills(Mutex<Vec<Arc<Written>>>);

    impl Skills {
        fn of(skills: impl IntoIterator<Item = Written>) -> Arc<Self> {
            Arc::new(Self(Mutex::new(skills.into_iter().map(Arc::new).collect())))
        }
    }

    #[async_trait]
    impl AgentCatalogue for Skills {
        fn agents(&self) -> Vec<Arc<AgentDefinition>> {
            Vec::new()
        }

        fn skills(&self) -> Vec<Arc<Written>> {
            self.0.lock().unwrap().clone()
        }

        fn commands(&self) -> Vec<Arc<CommandPromptTemplate>> {
            Vec::new()
        }
    }

    fn pdf(folder: Option<&Path>) -> Written {
        let mut skill = Written::new("pdf", "Handles\n  PDF files", "Use pypdf on $1.");
        skill.folder = folder.map(Path::to_path_buf);
        skill
    }

    #[test]
    fn skill_instructions_include_the_given_arguments_and_the_skill_folder() {
        let bench = Bench::new();
        bench.put("skills/pdf/SKILL.md", "");
        let folder = bench.path("skills/pdf");
        let bench = bench.with_agents(Skills::of([pdf(Some(&folder))]));
        let text = bench.text("skill", json!({"name": "pdf", "arguments": "a.pdf"}));
        assert!(text.starts_with("Use pypdf on a.pdf.\n\n(The files of this skill are in \""), "{text}");
        let outside = Bench::new().with_agents(Skills::of([pdf(Some(Path::new("/elsewhere/pdf")))]));
        let text = outside.text("skill", json!({"name": "/pdf"}));
        assert!(text.contains("\"/elsewhere/pdf\", is not in the workspace"), "{text}");
        assert_eq!(
            Bench::new().with_agents(Skills::of([pdf(None)])).text("skill", json!({"name": "pdf"})),
            "Use pypdf on ."
        );
    }

    #[test]
    fn a_deny_rule_on_the_skill_file_also_denies_the_skill() {
        let bench = Bench::new();
        bench.put("skills/pdf/SKILL.md", "");
        let folder = bench.path("skills/pdf");
        let rule = format!("Read(/{}/**)", folder.display());
        let bench = bench.with_rule(Effect::Deny, &rule).with_agents(Skills::of([pdf(Some(&folder))]));
        let refused = bench.call("skill", json!({"name": "pdf"})).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::PermissionDenied, "{}", refused.text());
    }

    #[test]
    fn an_unknown_skill_error_names_similar_or_available_skills() {
        let bench = Bench::new().with_agents(Skills::of([pdf(None), Written::new("xlsx", "d", "x")]));
        for (name, said) in [("pfd", "Did you mean `pdf`?"), ("kubernetes", "There are `pdf`, `xlsx`.")] {
            let failure = bench.call("skill", json!({"name": name})).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::NotFound);
            assert!(failure.text().contains(said), "{}", failure.text());
        }
        assert_eq!(bench.text("skill", json!({})), "- `pdf`: Handles PDF files\n- `xlsx`: d");
    }

    #[test]
    fn the_tool_definition_lists_current_skills_within_a_length_limit() {
        let skills = Skills::of([]);
        let bench = Bench::new().with_agents(skills.clone());
        let listed = || bench.listed().into_iter().find(|tool| tool.name().as_str() == "skill").unwrap();
        assert!(matches!(listed().availability, Availability::Unavailable(why) if why.contains("SKILL.md")));
        let many = (0..100).map(|number| Arc::new(Written::new(format!("s{number}"), "long ".repeat(200), "x")));
        *skills.0.lock().unwrap() = many.collect();
        let tool = listed();
        assert_eq!(tool.availability, Availability::Available);
        assert!(tool.aliases.iter().any(|alias| alias.name == "Skill"));
        let message = tool.advertised()["description"].as_str().unwrap();
        assert!(
            message.contains("- `s0`: long long") && message.contains(" more: call `skill` without a name"),
            "{message}"
        );
        assert!(message.chars().count() < BUDGET + 600 && !message.contains("`s99`"), "{}", message.len());
        let whole: Value = tool.definition()["description"].clone();
        assert!(whole.as_str().unwrap().contains("- `s0`:"));
    }
}
