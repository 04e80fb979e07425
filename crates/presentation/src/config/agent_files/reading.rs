//! Parses a Markdown file as an agent, a skill or a command.

use super::{
    embedded_commands::replace_commands,
    front_matter::{FrontMatterDocument, parts},
    recipe,
    search::FoundFile,
    search_folders::{AgentFileKind, SearchFolder},
    tool_names::{TextWithOrigin, selection},
};
use crate::config::{
    layers::LayerKind,
    tree::{
        node::{Member, NodeContent},
        origin::Origin,
        problem::Problem,
    },
};
use std::{path::Path, sync::Arc};
use toolstead_domain::{AgentDefinition, CommandPromptTemplate, Skill};
use toolstead_infrastructure::builtin::command_tools;

/// Maximum length of a name in bytes.
const LONGEST_NAME: usize = 64;
/// Maximum length of a description in characters. Longer descriptions are truncated.
const LONGEST_DESCRIPTION: usize = 8_000;

/// A parsed file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParsedAgentFile {
    Agent(AgentDefinition),
    Skill(Skill),
    Command(CommandPromptTemplate),
}

/// Parses a trusted file. Adds the parts that have no effect to `notes`.
///
/// # Errors
/// A [`Problem`] with the line of the first error that makes the file unusable.
pub(super) fn read(
    found: &FoundFile,
    place: &SearchFolder,
    file: &Arc<Path>,
    text: &str,
    notes: &mut Vec<Problem>,
) -> Result<ParsedAgentFile, Problem> {
    let FrontMatterDocument { members, body, note } = parts(text, file)?;
    notes.extend(note);
    let wrong = |line: usize, message: String| Err(Problem::new(Origin::File(file.clone(), line), message));
    if members.is_none() && place.kind != AgentFileKind::Command {
        let word = place.kind.word();
        return wrong(1, format!("{word} files begin with `---`, the keys `name` and `description`, and `---`"));
    }
    let mut keys = FrontMatterKeyReader { members: members.unwrap_or_default(), notes, file: file.clone() };
    let name = match place.kind {
        // The name of a command is derived from its path, as users of those systems expect.
        AgentFileKind::Command => {
            keys.drop("name");
            (found.name.clone(), Origin::file(file.clone()))
        }
        _ => keys.text("name")?.unwrap_or((found.name.clone(), Origin::File(file.clone(), 1))),
    };
    check_name(&name)?;
    let (name, _) = name;
    let described = keys.text("description")?;
    let description = match (described, place.kind) {
        (Some((text, _)), _) if !text.trim().is_empty() => text,
        (_, AgentFileKind::Command) => {
            body.lines().next().unwrap_or_default().trim_start_matches('#').trim().to_owned()
        }
        _ => return wrong(1, "`description` is missing: it says when to use it".into()),
    };
    let description: String = description.trim().chars().take(LONGEST_DESCRIPTION).collect();
    let written = match place.kind {
        AgentFileKind::Agent => ParsedAgentFile::Agent(agent(&name, description, body, &mut keys)?),
        AgentFileKind::Skill => {
            keys.grants_nothing(&["allowed-tools", "allowed_tools"]);
            let mut skill = Skill::new(name, description, replace_commands(&body));
            skill.folder = file.parent().map(Path::to_path_buf);
            ParsedAgentFile::Skill(skill)
        }
        AgentFileKind::Command => {
            keys.grants_nothing(&["allowed-tools", "allowed_tools", "allowed_commands"]);
            let defaults = keys.table(if place.has_templates { "defaults" } else { "" });
            let mut command = CommandPromptTemplate::new(name, description, "");
            command.argument_hint = keys.text("argument-hint")?.map(|(text, _)| text);
            if place.has_templates {
                (command.body, command.arguments) = recipe::read(&body, defaults, file)?;
            } else {
                command.body = replace_commands(&body);
            }
            command.source = Some(file.to_path_buf());
            ParsedAgentFile::Command(command)
        }
    };
    keys.note_unknown_keys();
    Ok(written)
}

fn agent(
    name: &str,
    description: String,
    body: String,
    keys: &mut FrontMatterKeyReader<'_>,
) -> Result<AgentDefinition, Problem> {
    let mut prompt = body;
    let mut only = None;
    for key in ["tools", "allowed-tools", "allowed_tools"] {
        only = keys.list(key)?.or(only);
    }
    let mut without = Vec::new();
    for key in ["disallowedTools", "disallowed-tools"] {
        without.extend(keys.list(key)?.unwrap_or_default());
    }
    // A tool selection cannot express "only some command lines", so the command tools are removed.
    if let Some(commands) = keys.list("allowed_commands")?.filter(|commands| !commands.is_empty()) {
        let origin = commands[0].1.clone();
        without.extend(command_tools().iter().map(|tool| ((*tool).to_owned(), origin.clone())));
        let message = "`allowed_commands` takes the tools for command lines away: say which commands in rules";
        keys.notes.push(Problem::new(origin, message));
    }
    if let Some((mode, origin)) = keys.text("permissionMode")? {
        let message = match mode.as_str() {
            "plan" => {
                only = Some(super::planning::narrowed(only, &origin));
                "`plan` leaves the tools of ours that change nothing".to_owned()
            }
            "default" | "dontAsk" => String::new(),
            _ => format!("`permissionMode: {mode}` does not count: a file gives no rights"),
        };
        if !message.is_empty() {
            keys.notes.push(Problem::new(origin, message));
        }
    }
    if let Some(skills) = keys.list("skills")?.filter(|skills| !skills.is_empty()) {
        let names: Vec<String> = skills.iter().map(|(name, _)| format!("`{name}`")).collect();
        prompt.push_str(&format!("\n\nBefore you begin, read these with the tool `skill`: {}.", names.join(", ")));
    }
    let mut agent = AgentDefinition::new(name, description, prompt);
    agent.tools = selection(only, without, keys.notes);
    agent.model = keys.text("model")?.map(|(model, _)| model).filter(|model| !model.is_empty() && model != "inherit");
    agent.max_turns = match keys.text("maxTurns")? {
        None => None,
        Some((turns, origin)) => match turns.parse() {
            Ok(turns) if turns > 0 => Some(turns),
            _ => return Err(Problem::new(origin, format!("`maxTurns` must be a number above 0, got {turns:?}"))),
        },
    };
    agent.source = Some(keys.file.to_path_buf());
    Ok(agent)
}

/// Checks a name. Names are used in rules, lists and typed commands.
fn check_name((name, origin): &TextWithOrigin) -> Result<(), Problem> {
    let is_fit = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_fit) {
        return Ok(());
    }
    let message = format!(
        "{name:?} can be no name: it has letters, digits, `-`, `_`, `.` and `:`, and at most {LONGEST_NAME} bytes"
    );
    Err(Problem::new(origin.clone(), message))
}

/// Remaining keys of a front matter. Each accessor removes the key that it reads.
struct FrontMatterKeyReader<'a> {
    members: Vec<Member>,
    notes: &'a mut Vec<Problem>,
    file: Arc<Path>,
}

impl FrontMatterKeyReader<'_> {
    fn take(&mut self, key: &str) -> Option<Member> {
        let at = self.members.iter().position(|member| member.name == key)?;
        Some(self.members.swap_remove(at)).filter(|member| member.node.content != NodeContent::Other("nothing"))
    }

    fn drop(&mut self, key: &str) {
        self.take(key);
    }

    fn text(&mut self, key: &str) -> Result<Option<TextWithOrigin>, Problem> {
        let Some(Member { node, .. }) = self.take(key) else { return Ok(None) };
        match node.content {
            NodeContent::Text(text) => Ok(Some((text.trim().to_owned(), node.origin))),
            NodeContent::Integer(number) => Ok(Some((number.to_string(), node.origin))),
            NodeContent::Boolean(is) => Ok(Some((is.to_string(), node.origin))),
            // YAML parses `argument-hint: [file]` as a list, although it is meant as text.
            NodeContent::List(items) if key == "argument-hint" => {
                let words: Vec<String> = items.iter().filter_map(text_of).map(|word| format!("[{word}]")).collect();
                Ok(Some((words.join(" "), node.origin)))
            }
            other => Err(Problem::new(node.origin, format!("`{key}` must be a text, got {other}"))),
        }
    }

    /// Removes a key and returns its names: a list, or text separated by commas. A list item may contain such text,
    /// too.
    fn list(&mut self, key: &str) -> Result<Option<Vec<TextWithOrigin>>, Problem> {
        let Some(Member { node, .. }) = self.take(key) else {
            return Ok(None);
        };
        match &node.content {
            NodeContent::Text(text) => {
                Ok(Some(split(text).into_iter().map(|name| (name, node.origin.clone())).collect()))
            }
            NodeContent::List(items) => {
                let mut named: Vec<TextWithOrigin> = Vec::new();
                for item in items {
                    let wrong = || format!("`{key}` must be a list of names, got {}", item.content);
                    let text = text_of(item).ok_or_else(|| Problem::new(item.origin.clone(), wrong()))?;
                    // The item `- Bash, Write` contains two names.
                    named.extend(split(&text).into_iter().map(|name| (name, item.origin.clone())));
                }
                Ok(Some(named))
            }
            other => Err(Problem::new(node.origin.clone(), format!("`{key}` must be a list of names, got {other}"))),
        }
    }

    /// Removes a key and returns the members of its table, or an empty list if it is not a table.
    fn table(&mut self, key: &str) -> Vec<Member> {
        match self.take(key).map(|member| member.node.content) {
            Some(NodeContent::Table(members)) => members,
            _ => Vec::new(),
        }
    }

    fn grants_nothing(&mut self, keys: &[&str]) {
        for key in keys {
            if let Some(member) = self.take(key) {
                let message = format!("`{key}` does not count: a file gives no rights, rules do");
                self.notes.push(Problem::new(member.origin, message));
            }
        }
    }

    /// Adds a note for each remaining key.
    fn note_unknown_keys(self) {
        for member in self.members {
            let message = format!("`{}` has no meaning here", member.name);
            self.notes.push(Problem::new(member.origin, message));
        }
    }
}

fn text_of(node: &crate::config::tree::node::Node) -> Option<String> {
    match &node.content {
        NodeContent::Text(text) => Some(text.clone()),
        NodeContent::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Splits a text into names, at newlines and at commas outside of parentheses. ` #` starts a comment.
fn split(text: &str) -> Vec<String> {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let mut names: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let line = line.split_once(" #").map_or(line, |(line, _)| line).trim();
        let line = line.strip_prefix("- ").unwrap_or(line);
        // An unbalanced parenthesis must not hide the names after it, so parentheses are ignored in such a line.
        let are_pairs = line.matches('(').count() == line.matches(')').count();
        let mut depth = 0_usize;
        let parts = line.split(|letter: char| {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            letter == ',' && (depth == 0 || !are_pairs)
        });
        names.extend(parts.map(|name| name.trim_matches(['"', '\'', ' ', '\t']).to_owned()));
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Returns the owner of a file as a word.
pub(super) fn owner(place: &SearchFolder) -> &'static str {
    match place.owner {
        LayerKind::Project => "project",
        _ => "user",
    }
}
