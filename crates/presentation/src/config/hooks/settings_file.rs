//! The `hooks` of a settings file of Claude Code.

use super::{HookEntry, HookInputs, Hooks, IdleHook, waits};
use crate::config::{
    ConfigFile, Trust,
    layers::LayerKind,
    tree::{
        format::Format,
        node::{Content, Member, Node},
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

/// A settings file that was read.
pub(super) struct SettingsFile {
    pub(super) file: ConfigFile,
    root: Node,
    /// Folder of the project that the file belongs to, if any.
    folder: Option<PathBuf>,
}

/// Layer kind of these files.
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
    surroundings: &HookInputs<'_>,
) -> Result<Option<SettingsFile>, Problem> {
    let roots = surroundings.roots.write.iter().map(PathBuf::as_path);
    let inside: Vec<&Path> = roots.chain(project).collect();
    let is_inside = |path: &Path| inside.iter().any(|folder| path.starts_with(folder));
    let Some(mut file) = SourceFile::read(kind, path)? else { return Ok(None) };
    let is_inside = is_inside(path) || is_inside(&file.path);
    if !kind.is_of_project() && is_inside {
        let Some(read) = SourceFile::read(FOREIGN, path)? else { return Ok(None) };
        file = read;
    }
    let root = Format::Json.read(&file.text, &file.path)?;
    let SourceFile { path, text, leads_to, .. } = file;
    let trust = match &leads_to {
        Some(_) => Trust::Linked,
        None if !is_inside && !kind.is_of_project() => Trust::Always,
        None if surroundings.trusted.trusts(&path, &text) => Trust::Given,
        None => Trust::Waiting,
    };
    let folder = if is_inside { Some(project_of(&path)) } else { project };
    let folder = folder.map(Path::to_path_buf);
    Ok(Some(SettingsFile { file: ConfigFile { path, kind: FOREIGN, trust, leads_to, text }, root, folder }))
}

impl SettingsFile {
    /// Adds the hooks of the file. A problem that would keep a hook from running is an error; an event that never
    /// occurs here is a note.
    pub(super) fn add_to(
        &self,
        hooks: &mut Hooks,
        timeout: Duration,
        surroundings: &HookInputs<'_>,
        problems: &mut Vec<Problem>,
        notes: &mut Vec<Problem>,
    ) {
        match self.file.trust {
            Trust::Waiting => notes.push(waits(&self.file.path)),
            Trust::Linked => notes.extend(self.file.linked()),
            Trust::Always | Trust::Given => {}
        }
        if let Some(Node { content: Content::Boolean(true), origin }) = member(&self.root, "disableAllHooks") {
            notes.push(Problem::new(origin.clone(), "its hooks do not run: `disableAllHooks` is set"));
            return;
        }
        for (event, group) in groups(&self.root, problems) {
            let matcher = member(group, "matcher");
            let matcher = matcher.and_then(|node| Some((text(node)?.to_owned(), node.origin.clone())));
            let Some(Content::List(handlers)) = member(group, "hooks").map(|node| &node.content) else {
                problems
                    .push(Problem::new(group.origin.clone(), format!("`hooks.{event}`: a group has a list `hooks`")));
                continue;
            };
            for handler in handlers {
                if matches!(member(handler, "gate"), Some(Node { content: Content::Boolean(true), .. })) {
                    hooks.gates.imported(&self.file.path);
                }
                let mut idle = |reason: String, waiting: Option<String>| {
                    let hook = IdleHook { origin: handler.origin.clone(), event: event.to_owned(), reason, waiting };
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
                        Trust::Linked => {
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

    /// Returns the name `FILE:LINE`.
    fn name(&self, origin: &Origin) -> String {
        let file = self.file.path.file_name().unwrap_or_default().to_string_lossy();
        match origin {
            Origin::File(_, line) => format!("{file}:{line}"),
            Origin::Environment(_) | Origin::Flag(_) | Origin::Default => file.into_owned(),
        }
    }
}

/// Returns each group of handlers with its event.
fn groups<'n>(root: &'n Node, problems: &mut Vec<Problem>) -> Vec<(&'n str, &'n Node)> {
    let mut groups = Vec::new();
    let mut wrong = |node: &Node, what: &str| problems.push(Problem::new(node.origin.clone(), what.to_owned()));
    match member(root, "hooks") {
        None => {}
        Some(Node { content: Content::Table(events), .. }) => {
            for Member { name, node, .. } in events {
                match &node.content {
                    Content::List(all) => groups.extend(all.iter().map(|group| (name.as_str(), group))),
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
    let Content::Table(members) = &handler.content else { return Err("it is not a table".into()) };
    for Member { name, node, .. } in members {
        let wrong = |what: &str| Err(format!("`{name}` is {what}, got {}", node.content));
        match (name.as_str(), &node.content) {
            ("command", Content::Text(command)) if !command.trim().is_empty() => {
                written.command = Some(command.clone())
            }
            ("command", _) => return wrong("a line for the shell"),
            ("if", Content::Text(rule)) => written.filter = Some((rule.clone(), node.origin.clone())),
            ("if", _) => return wrong("a permission rule"),
            ("timeout", Content::Integer(seconds @ 1..=3600)) => {
                written.timeout = Some(Duration::from_secs(seconds.unsigned_abs()));
            }
            ("timeout", _) => return wrong("a whole number of seconds up to 3600"),
            ("async", Content::Boolean(background)) => written.background = *background,
            ("gate", Content::Boolean(gate)) => written.gate = *gate,
            ("async" | "gate", _) => return wrong("`true` or `false`"),
            ("on_error", Content::Text(word)) => match FailurePolicy::parse(word) {
                Some(on_error) => written.on_error = Some(on_error),
                None => return wrong("`allow`, `ask` or `deny`"),
            },
            ("on_error", _) => return wrong("`allow`, `ask` or `deny`"),
            ("args", Content::List(nodes)) => {
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
        Content::Table(members) => members.iter().find(|member| member.name == name).map(|member| &member.node),
        _ => None,
    }
}

fn text(node: &Node) -> Option<&str> {
    match &node.content {
        Content::Text(text) => Some(text),
        _ => None,
    }
}
