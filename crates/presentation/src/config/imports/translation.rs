//! Translation of the keys of other systems to Toolstead's own.

use super::{at, prohibitions};
use crate::config::{
    imports::foreign_tools::FOREIGN_TOOLS,
    sections::policy::{is_known_tool, is_of_mcp, no_such_tool},
    tree::{
        check::PathBase,
        node::{Member, Node, NodeContent},
        origin::Origin,
        problem::Problem,
    },
};
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};
use toolstead_domain::{
    Effect, PermissionRule, permission::path_pattern, tool_input_schema::nearest_name, workspace_roots::lexical,
};
use toolstead_infrastructure::builtin::{command_tools, names_and_aliases};

/// Folders that relative paths of an imported file refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct TranslationPaths<'a> {
    pub(super) base: PathBase<'a>,
    /// The default root; `None` if roots are configured.
    pub(super) default_root: Option<&'a Path>,
}

/// Tool of Claude Code that reads resources of every server.
const READS_RESOURCES: &str = "ReadMcpResourceTool";

impl TranslationPaths<'_> {
    /// Returns the folder that the file applies to: the parent of `.claude`, or else the folder of the file.
    fn project(&self) -> &Path {
        let folder = self.base.folder;
        match folder.file_name() {
            Some(name) if name == ".claude" => folder.parent().unwrap_or(folder),
            _ => folder,
        }
    }
}

/// A file translated to Toolstead's own keys.
pub(super) struct TranslatedFile {
    pub(super) root: Node,
    /// Files of hosts that the file names, with their origins.
    pub(super) domains: Vec<(PathBuf, Origin)>,
}

/// Top-level keys of one system. A file may contain keys of several systems: each key is translated by the first format
/// that accepts it with its value.
pub(super) struct ForeignFormat {
    /// Keys of the format. A value that no format accepts is an error.
    pub(super) keys: &'static [&'static str],
    /// Translates a member, or returns it if the format does not accept it.
    pub(super) take: fn(&mut TranslatedFileBuilder<'_>, Member) -> Option<Member>,
}

/// Translates the file. Entries without an equivalent are reported: an allow rule is omitted with a note, and a rule
/// that should forbid something is an error.
pub(super) fn translate(
    root: Node,
    formats: &[ForeignFormat],
    surroundings: TranslationPaths<'_>,
    notes: &mut Vec<Problem>,
    problems: &mut Vec<Problem>,
) -> TranslatedFile {
    let Node { content, origin } = root;
    let NodeContent::Table(members) = content else {
        return TranslatedFile { root: Node { content, origin }, domains: Vec::new() };
    };
    let (allow, ask, deny) = (Vec::new(), Vec::new(), Vec::new());
    let mut translation = TranslatedFileBuilder {
        surroundings,
        notes,
        problems,
        allow,
        ask,
        deny,
        rest: Vec::new(),
        domains: Vec::new(),
    };
    let mut ignored = Vec::new();
    for member in members {
        let name = member.name.clone();
        let rest = formats.iter().try_fold(member, |member, format| match (format.take)(&mut translation, member) {
            Some(member) => ControlFlow::Continue(member),
            None => ControlFlow::Break(()),
        });
        let ControlFlow::Continue(Member { origin, node, .. }) = rest else { continue };
        if formats.iter().any(|format| format.keys.contains(&name.as_str())) {
            let message = format!("`{name}` cannot be read: got {}", node.content);
            translation.problems.push(Problem::new(node.origin, message));
        } else if let Some(problem) = prohibitions::find_prohibition(&name, &origin, &node.content) {
            translation.problems.push(problem);
        } else {
            ignored.push(format!("`{name}`"));
        }
    }
    if !ignored.is_empty() {
        let message = format!("keys without a meaning for permissions are not read: {}", ignored.join(", "));
        translation.notes.push(Problem::new(origin.clone(), message));
    }
    let domains = std::mem::take(&mut translation.domains);
    TranslatedFile { root: translation.finished(&origin), domains }
}

/// Result of a translation in progress.
pub(super) struct TranslatedFileBuilder<'a> {
    pub(super) surroundings: TranslationPaths<'a>,
    notes: &'a mut Vec<Problem>,
    pub(super) problems: &'a mut Vec<Problem>,
    allow: Vec<Node>,
    ask: Vec<Node>,
    deny: Vec<Node>,
    /// Everything except rules, as pairs of a section and a member.
    rest: Vec<(&'static str, Member)>,
    pub(super) domains: Vec<(PathBuf, Origin)>,
}

impl TranslatedFileBuilder<'_> {
    /// Adds a note about an entry without an equivalent.
    pub(super) fn note(&mut self, origin: &Origin, message: impl Into<String>) {
        self.notes.push(Problem::new(origin.clone(), message));
    }

    /// Sets a key. Setting it again to a different value adds a problem, but an empty tool selection replaces any
    /// other.
    pub(super) fn put(&mut self, section: &'static str, name: &str, origin: &Origin, content: NodeContent) {
        let node = at(origin, content);
        let known = self.rest.iter_mut().find(|(known, member)| *known == section && member.name == name);
        match known {
            None => self.rest.push((section, Member { name: name.into(), origin: origin.clone(), node })),
            Some((_, first)) if first.node.content == node.content || is_nothing(&first.node.content) => {}
            // An empty selection is the strictest one and replaces the other.
            Some((_, first)) if is_nothing(&node.content) => first.node = node,
            Some(_) => {
                let message =
                    format!("`{section}.{name}` is set twice in this file with different values; keep one of them");
                self.problems.push(Problem::new(origin.clone(), message));
            }
        }
    }

    /// Returns the texts of a list, each with its origin. Adds a problem for anything else.
    pub(super) fn texts(&mut self, name: &str, content: NodeContent, origin: &Origin) -> Vec<(String, Origin)> {
        let NodeContent::List(nodes) = content else {
            self.problems
                .push(Problem::new(origin.clone(), format!("`{name}` must be a list of texts, got {content}")));
            return Vec::new();
        };
        let mut texts = Vec::with_capacity(nodes.len());
        for Node { content, origin } in nodes {
            match content {
                NodeContent::Text(text) => texts.push((text, origin)),
                other => {
                    let message = format!("`{name}` must be a list of texts, got {other} in it");
                    self.problems.push(Problem::new(origin, message));
                }
            }
        }
        texts
    }

    /// Adds the rules of a list. An allow rule that cannot be used is omitted with a note; an ask or deny rule that
    /// cannot be used is a problem.
    pub(super) fn rules(&mut self, name: &str, effect: Effect, content: NodeContent, origin: &Origin) {
        for (text, origin) in self.texts(name, content, origin) {
            match self.anchored(&text) {
                // An allow rule needs the name of the server, so only other effects are translated.
                Ok(_) if text.trim() == READS_RESOURCES && effect != Effect::Allow => {
                    self.derived_rule(effect, "Resource".into(), format!("`{text}` of `{name}`"), &origin);
                }
                Ok(anchored) if anchored != text => {
                    self.derived_rule(effect, anchored, format!("`{text}` of `{name}`"), &origin)
                }
                Ok(text) => self.rule(effect, text, &origin),
                Err(reason) => self.unusable(effect, &text, &reason, &origin),
            }
        }
    }

    /// Adds a rule as written in the file.
    fn rule(&mut self, effect: Effect, text: String, origin: &Origin) {
        self.checked_rule(effect, text.clone(), NodeContent::Text(text), origin);
    }

    /// Adds a rule that is derived from this entry, such as "`rm` of `denied_commands`".
    pub(super) fn derived_rule(&mut self, effect: Effect, text: String, entry: String, origin: &Origin) {
        let content = NodeContent::DerivedRule { rule: text.clone(), entry };
        self.checked_rule(effect, text, content, origin);
    }

    fn checked_rule(&mut self, effect: Effect, text: String, content: NodeContent, origin: &Origin) {
        let base = self.surroundings.base.patterns();
        let unusable = match PermissionRule::parse(effect, &text, origin.to_rule_origin(), &base) {
            Ok(rule) => match rule.named_tool() {
                Some(tool) if !is_known_tool(tool) => {
                    let is_typo = !FOREIGN_TOOLS.contains(&tool) && nearest_name(tool, names_and_aliases()).is_some();
                    if is_typo {
                        return self.unusable(effect, &text, &no_such_tool(tool, &names_and_aliases()), origin);
                    }
                    return self.note(
                        origin,
                        format!("the {} rule `{text}` is left out: no tool is called `{tool}` here", effect.as_str()),
                    );
                }
                _ => None,
            },
            Err(error) => Some(error.reason),
        };
        match (unusable, effect) {
            (None, Effect::Allow) => self.allow.push(at(origin, content)),
            (None, Effect::Ask) => self.ask.push(at(origin, content)),
            (None, Effect::Deny) => self.deny.push(at(origin, content)),
            (Some(reason), _) => self.unusable(effect, &text, &reason, origin),
        }
    }

    fn unusable(&mut self, effect: Effect, text: &str, reason: &str, origin: &Origin) {
        match effect {
            Effect::Allow => self.note(origin, format!("the allow rule `{text}` is left out: {reason}")),
            Effect::Ask | Effect::Deny => {
                let message = format!("the {} rule `{text}` cannot be used: {reason}", effect.as_str());
                self.problems.push(Problem::new(origin.clone(), message));
            }
        }
    }

    /// Anchors a rule at its project. In a settings file, `/x` is relative to the project, which is the parent folder
    /// of `.claude`. In a rule on commands, it is the path of a program and stays unchanged.
    fn anchored(&self, text: &str) -> Result<String, String> {
        let project = self.surroundings.project();
        if project == self.surroundings.base.folder {
            return Ok(text.to_owned());
        }
        let parts = text.trim().split_once('(').map(|(head, spec)| (head.trim(), spec.trim_start()));
        match parts {
            Some((head, spec))
                if !command_tools().contains(&head) && spec.starts_with('/') && !spec.starts_with("//") =>
            {
                let project = project.to_str().ok_or("the path of its project is not text")?;
                // The folder's name is escaped, so that it is matched literally.
                Ok(format!("{head}(/{}{spec}", path_pattern::literal(project.trim_end_matches('/'))))
            }
            _ => Ok(text.to_owned()),
        }
    }

    /// Adds further roots, and the default root if no roots are configured. Folders that do not exist are omitted with
    /// a note.
    pub(super) fn folders(&mut self, name: &str, content: NodeContent, origin: &Origin) {
        let TranslationPaths { base, default_root } = self.surroundings;
        let mut roots = Vec::new();
        for (text, origin) in self.texts(name, content, origin) {
            let path = match (text.strip_prefix("~/"), base.home) {
                (Some(rest), Some(home)) => lexical(home, Path::new(rest)),
                _ => lexical(self.surroundings.project(), Path::new(&text)),
            };
            match path.to_str() {
                Some(path) if Path::new(path).is_dir() => roots.push(at(&origin, NodeContent::Text(path.into()))),
                _ => self.note(&origin, format!("the folder `{text}` is left out: it does not exist")),
            }
        }
        if roots.is_empty() {
            return;
        }
        if let Some(root) = default_root.and_then(Path::to_str) {
            roots.insert(0, at(origin, NodeContent::Text(root.into())));
        }
        self.put("workspace", "roots", origin, NodeContent::List(roots));
    }

    /// Sets the tool selection of clai or kodelet, where `none` selects no tool. An empty list selects no tool, either.
    pub(super) fn selection(&mut self, name: &str, nodes: Vec<Node>, origin: &Origin) {
        let mut chosen = Vec::new();
        for (text, origin) in self.texts(name, NodeContent::List(nodes), origin) {
            // Entries with signs or commas would adjust the selection and could widen it.
            let is_name = !text.contains(',') && !text.trim_start().starts_with(['+', '-']);
            match is_name && (text.contains('*') || is_of_mcp(&text) || is_known_tool(&text)) {
                _ if text == "none" => {}
                true => chosen.push(at(&origin, NodeContent::Text(text))),
                false => self.note(&origin, format!("no tool is called `{text}` here: it is not chosen")),
            }
        }
        self.put("tools", "select", origin, NodeContent::List(chosen));
    }

    fn finished(self, origin: &Origin) -> Node {
        let mut sections: Vec<(&'static str, Vec<Member>)> = Vec::new();
        let lists = [("allow", self.allow), ("ask", self.ask), ("deny", self.deny)];
        let lists = lists.into_iter().filter(|(_, rules)| !rules.is_empty()).map(|(name, rules)| {
            let first = rules.first().map_or(origin, |rule| &rule.origin).clone();
            ("permissions", Member { name: name.into(), node: at(&first, NodeContent::List(rules)), origin: first })
        });
        for (section, member) in lists.collect::<Vec<_>>().into_iter().chain(self.rest) {
            match sections.iter_mut().find(|(known, _)| *known == section) {
                Some((_, members)) => members.push(member),
                None => sections.push((section, vec![member])),
            }
        }
        let sections = sections.into_iter().map(|(name, members)| Member {
            name: name.into(),
            origin: origin.clone(),
            node: at(origin, NodeContent::Table(members)),
        });
        at(origin, NodeContent::Table(sections.collect()))
    }
}

/// Returns `true` if a tool selection selects no tool.
fn is_nothing(content: &NodeContent) -> bool {
    matches!(content, NodeContent::Text(text) if text.is_empty()) || *content == NodeContent::List(Vec::new())
}
