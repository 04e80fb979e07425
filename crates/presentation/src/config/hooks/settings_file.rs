//! The `hooks` of a settings file of Claude Code.

use super::{ConfiguredHooks, HookEntry, HookLoadContext, InactiveHook, waits};
use crate::config::{
    ConfigFile, FileTrust,
    layers::LayerKind,
    tree::{
        format::ConfigFormat,
        node::{Member, Node, NodeContent},
        origin::Origin,
        problem::Problem,
        source_file::{SourceFile, project_of},
    },
};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use toolstead_infrastructure::hooks::definition::{FailurePolicy, HookEvent};

/// A settings file of Claude Code that was read.
pub(super) struct ClaudeSettingsFile {
    pub(super) file: ConfigFile,
    root: Node,
    /// Folder of the project that the file belongs to, if any.
    folder: Option<PathBuf>,
}

/// Layer kind of imported settings files.
const FOREIGN: LayerKind = LayerKind::Foreign(u8::MAX);

/// Reads a file that a layer of this kind imports; `project` is the project of that layer. Returns `None` if the file
/// does not exist.
///
/// A file below a root, or one that a project file imports, takes effect only with content that the user trusted at
/// that path, because tools can write there. Such a file takes no effect if its path contains a symbolic link.
pub(super) fn read(
    kind: LayerKind,
    path: &Path,
    project: Option<&Path>,
    surroundings: &HookLoadContext<'_>,
) -> Result<Option<ClaudeSettingsFile>, Problem> {
    let roots = surroundings.roots.write.iter().map(PathBuf::as_path);
    let inside: Vec<&Path> = roots.chain(project).collect();
    let is_inside = |path: &Path| inside.iter().any(|folder| path.starts_with(folder));
    let Some(mut file) = SourceFile::read(kind, path)? else { return Ok(None) };
    let is_inside = is_inside(path) || is_inside(&file.path);
    if !kind.is_of_project() && is_inside {
        let Some(read) = SourceFile::read(FOREIGN, path)? else { return Ok(None) };
        file = read;
    }
    let root = ConfigFormat::Json.read(&file.text, &file.path)?;
    let SourceFile { path, text, leads_to, .. } = file;
    let trust = match &leads_to {
        Some(_) => FileTrust::Linked,
        None if !is_inside && !kind.is_of_project() => FileTrust::Always,
        None if surroundings.trusted.trusts(&path, &text) => FileTrust::Given,
        None => FileTrust::Waiting,
    };
    let folder = if is_inside { Some(project_of(&path)) } else { project };
    let folder = folder.map(Path::to_path_buf);
    Ok(Some(ClaudeSettingsFile { file: ConfigFile { path, kind: FOREIGN, trust, leads_to, text }, root, folder }))
}

impl ClaudeSettingsFile {
    /// Adds the hooks of the file. A problem that would keep a hook from running is an error; an event that Toolstead
    /// does not have is a note.
    pub(super) fn add_to(
        &self,
        hooks: &mut ConfiguredHooks,
        timeout: Duration,
        surroundings: &HookLoadContext<'_>,
        problems: &mut Vec<Problem>,
        notes: &mut Vec<Problem>,
    ) {
        match self.file.trust {
            FileTrust::Waiting => notes.push(waits(&self.file.path)),
            FileTrust::Linked => notes.extend(self.file.linked()),
            FileTrust::Always | FileTrust::Given => {}
        }
        if let Some(Node { content: NodeContent::Boolean(true), origin }) = member(&self.root, "disableAllHooks") {
            notes.push(Problem::new(origin.clone(), "its hooks do not run: `disableAllHooks` is set"));
            return;
        }
        for (event, group) in groups(&self.root, problems) {
            let matcher = member(group, "matcher");
            let matcher = matcher.and_then(|node| Some((text(node)?.to_owned(), node.origin.clone())));
            let Some(NodeContent::List(handlers)) = member(group, "hooks").map(|node| &node.content) else {
                problems
                    .push(Problem::new(group.origin.clone(), format!("`hooks.{event}`: a group has a list `hooks`")));
                continue;
            };
            for handler in handlers {
                if matches!(member(handler, "gate"), Some(Node { content: NodeContent::Boolean(true), .. })) {
                    hooks.gates.imported(&self.file.path);
                }
                let mut idle = |reason: String, waiting: Option<String>| {
                    let hook =
                        InactiveHook { origin: handler.origin.clone(), event: event.to_owned(), reason, waiting };
                    if self.file.trust.takes_effect() {
                        notes.push(Problem::new(hook.origin.clone(), format!("a hook of `{event}`: {}", hook.reason)));
                    }
                    hooks.idle.push(hook);
                };
                let Some(fired) = HookEvent::parse(event) else {
                    idle("nothing fires this event here".into(), None);
                    continue;
                };
                let kind = member(handler, "type").and_then(text).unwrap_or("command");
                if kind != "command" || member(handler, "shell").and_then(text) == Some("powershell") {
                    idle(format!("hooks of the type `{kind}` are not run here"), None);
                    continue;
                }
                if !self.file.trust.takes_effect() {
                    let line = member(handler, "command").and_then(text).unwrap_or_default().to_owned();
                    match self.file.trust {
                        FileTrust::Linked => {
                            idle("its file is a link in a project, and such links are not trusted".into(), None)
                        }
                        _ => idle(format!("its file waits for `toolstead config trust`: {line}"), Some(line)),
                    }
                    continue;
                }
                let written = written(self.name(&handler.origin), fired, matcher.clone(), handler);
                let written = written.map(|written| HookEntry { folder: self.folder.clone(), ..written });
                let added = written.and_then(|written| hooks.add(written, &handler.origin, timeout, surroundings));
                if let Err(reason) = added {
                    problems.push(Problem::new(handler.origin.clone(), format!("a hook of `{event}`: {reason}")));
                }
            }
        }
    }

    /// Returns the name of a hook, `FILE:LINE`.
    fn name(&self, origin: &Origin) -> String {
        let file = self.file.path.file_name().unwrap_or_default().to_string_lossy();
        match origin {
            Origin::File(_, line) => format!("{file}:{line}"),
            Origin::Environment(_) | Origin::Flag(_) | Origin::Default => file.into_owned(),
        }
    }
}

/// Returns each group of handlers with its event. Adds a problem for each part of `hooks` that has another form.
fn groups<'n>(root: &'n Node, problems: &mut Vec<Problem>) -> Vec<(&'n str, &'n Node)> {
    let mut groups = Vec::new();
    let mut wrong = |node: &Node, what: &str| problems.push(Problem::new(node.origin.clone(), what.to_owned()));
    match member(root, "hooks") {
        None => {}
        Some(Node { content: NodeContent::Table(events), .. }) => {
            for Member { name, node, .. } in events {
                match &node.content {
                    NodeContent::List(all) => groups.extend(all.iter().map(|group| (name.as_str(), group))),
                    _ => wrong(node, "an event of `hooks` has a list of groups"),
                }
            }
        }
        Some(node) => wrong(node, "`hooks` is a table of events"),
    }
    groups
}

fn written(
    name: String,
    event: HookEvent,
    matcher: Option<(String, Origin)>,
    handler: &Node,
) -> Result<HookEntry, String> {
    let mut written = HookEntry { name, event: Some(event), matcher, is_of_claude_code: true, ..HookEntry::default() };
    let NodeContent::Table(members) = &handler.content else { return Err("it is not a table".into()) };
    for Member { name, node, .. } in members {
        let wrong = |what: &str| Err(format!("`{name}` is {what}, got {}", node.content));
        match (name.as_str(), &node.content) {
            ("command", NodeContent::Text(command)) if !command.trim().is_empty() => {
                written.command = Some(command.clone())
            }
            ("command", _) => return wrong("a line for the shell"),
            ("if", NodeContent::Text(rule)) => written.filter = Some((rule.clone(), node.origin.clone())),
            ("if", _) => return wrong("a permission rule"),
            ("timeout", NodeContent::Integer(seconds @ 1..=3600)) => {
                written.timeout = Some(Duration::from_secs(seconds.unsigned_abs()));
            }
            ("timeout", _) => return wrong("a whole number of seconds up to 3600"),
            ("async", NodeContent::Boolean(background)) => written.background = *background,
            ("gate", NodeContent::Boolean(gate)) => written.gate = *gate,
            ("async" | "gate", _) => return wrong("`true` or `false`"),
            ("on_error", NodeContent::Text(word)) => match FailurePolicy::parse(word) {
                Some(on_error) => written.on_error = Some(on_error),
                None => return wrong("`allow`, `ask` or `deny`"),
            },
            ("on_error", _) => return wrong("`allow`, `ask` or `deny`"),
            ("args", NodeContent::List(nodes)) => {
                let arguments: Option<Vec<String>> = nodes.iter().map(|node| text(node).map(str::to_owned)).collect();
                written.args = Some(arguments.ok_or("`args` is a list of texts")?);
            }
            ("args", _) => return wrong("a list of texts"),
            // Other members do not affect when and how the hook runs.
            _ => {}
        }
    }
    Ok(written)
}

fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    match &node.content {
        NodeContent::Table(members) => members.iter().find(|member| member.name == name).map(|member| &member.node),
        _ => None,
    }
}

fn text(node: &Node) -> Option<&str> {
    match &node.content {
        NodeContent::Text(text) => Some(text),
        _ => None,
    }
}
