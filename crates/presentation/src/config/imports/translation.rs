//! From another program's keys to ours.

use super::{at, prohibitions};
use crate::config::{
    check::Base,
    foreign_tools::FOREIGN_TOOLS,
    node::{Content, Member, Node},
    origin::Origin,
    policy::{is_known_tool, is_of_mcp, no_such_tool},
    problem::Problem,
};
use std::path::{Path, PathBuf};
use toolstead_domain::{
    permission::{
        path_pattern,
        rule::{Effect, PermissionRule},
    },
    tool_input_schema::nearest_name,
    workspace_roots::lexical,
};
use toolstead_infrastructure::builtin::{command_tools, spellings};

/// What kodelet never runs, whatever its lists say.
const KODELET_BANNED: &[&str] = &["vim", "view", "less", "more", "cd"];
/// The keys of a block of tools, as in our own files.
const BLOCK_KEYS: &[&str] = &["allowed_commands", "denied_commands", "allowed_paths", "denied_paths", "timeout"];

/// What a file is read in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) base: Base<'a>,
    /// The folder that is the root when nobody names one; `None` when somebody does.
    pub(super) default_root: Option<&'a Path>,
}

impl Surroundings<'_> {
    /// The folder that the file is about: around `.claude`, else its own.
    fn project(&self) -> &Path {
        let folder = self.base.folder;
        match folder.file_name() {
            Some(name) if name == ".claude" => folder.parent().unwrap_or(folder),
            _ => folder,
        }
    }
}

/// A file under our own keys.
pub(super) struct Translated {
    pub(super) root: Node,
    /// The files of hosts that it names, and where.
    pub(super) domains: Vec<(PathBuf, Origin)>,
}

/// The file under our own keys. What has no meaning here is told: a rule that would only have allowed something is left
/// out with a note, a rule that should have stopped something and cannot is an error.
pub(super) fn translate(
    root: Node,
    surroundings: Surroundings<'_>,
    notes: &mut Vec<Problem>,
    problems: &mut Vec<Problem>,
) -> Translated {
    let Node { content, origin } = root;
    let Content::Table(members) = content else {
        return Translated { root: Node { content, origin }, domains: Vec::new() };
    };
    let (allow, ask, deny) = (Vec::new(), Vec::new(), Vec::new());
    let mut made = Made { surroundings, notes, problems, allow, ask, deny, rest: Vec::new(), domains: Vec::new() };
    let mut ignored = Vec::new();
    for member in members {
        made.top_level(member, &mut ignored);
    }
    if !ignored.is_empty() {
        let message = format!("keys without a meaning for permissions are not read: {}", ignored.join(", "));
        made.notes.push(Problem::new(origin.clone(), message));
    }
    let domains = std::mem::take(&mut made.domains);
    Translated { root: made.finished(&origin), domains }
}

struct Made<'a> {
    surroundings: Surroundings<'a>,
    notes: &'a mut Vec<Problem>,
    problems: &'a mut Vec<Problem>,
    allow: Vec<Node>,
    ask: Vec<Node>,
    deny: Vec<Node>,
    /// Everything that is no rule: section, key, value.
    rest: Vec<(&'static str, Member)>,
    domains: Vec<(PathBuf, Origin)>,
}

impl Made<'_> {
    fn note(&mut self, origin: &Origin, message: impl Into<String>) {
        self.notes.push(Problem::new(origin.clone(), message));
    }

    fn put(&mut self, section: &'static str, name: &str, origin: &Origin, content: Content) {
        let node = at(origin, content);
        let known = self.rest.iter_mut().find(|(known, member)| *known == section && member.name == name);
        match known {
            None => self.rest.push((section, Member { name: name.into(), origin: origin.clone(), node })),
            Some((_, first)) if first.node.content == node.content || is_nothing(&first.node.content) => {}
            // No tools are fewer than any.
            Some((_, first)) if is_nothing(&node.content) => first.node = node,
            Some(_) => {
                let message =
                    format!("`{section}.{name}` is said twice in this file, and differently: keep one of them");
                self.problems.push(Problem::new(origin.clone(), message));
            }
        }
    }

    fn top_level(&mut self, member: Member, ignored: &mut Vec<String>) {
        let Member { name, origin, node } = member;
        match (name.as_str(), node.content) {
            ("permissions", Content::Table(members)) => members.into_iter().for_each(|one| self.claude(one)),
            ("allowedTools", content) => self.rules(&name, Effect::Allow, content, &node.origin),
            ("disallowedTools", content) => self.rules(&name, Effect::Deny, content, &node.origin),
            ("additionalDirectories", content) => self.folders(&name, content, &node.origin),
            ("permissionMode", content) => self.mode(content, &node.origin),
            ("tools", Content::Table(tools)) => tools.into_iter().for_each(|tool| self.block(tool)),
            ("tools" | "allowed_tools", Content::List(nodes)) => self.selection(&name, nodes, &origin),
            ("allowed_tools", Content::Text(none)) if none == "none" => self.selection(&name, Vec::new(), &origin),
            ("use_tools" | "use-tools", Content::Boolean(false)) => {
                self.put("tools", "select", &origin, Content::Text(String::new()));
            }
            ("use_tools" | "use-tools", Content::Boolean(true)) => {}
            ("allowed_commands", content) => self.kodelet(content, &node.origin),
            ("allowed_domains_file", Content::Text(path)) => {
                let path = match (path.strip_prefix("~/"), self.surroundings.base.home) {
                    (Some(rest), Some(home)) => lexical(home, Path::new(rest)),
                    _ => lexical(self.surroundings.base.folder, Path::new(&path)),
                };
                self.domains.push((path, node.origin));
                self.note(&origin, "hosts that are not in the file are asked about here, not refused");
            }
            ("cmd-ban" | "cmd_ban" | "cmdBan", content) => self.banned(&name, content, &node.origin),
            (
                "permissions" | "allowed_domains_file" | "allowed_tools" | "tools" | "use_tools" | "use-tools",
                content,
            ) => self.problems.push(Problem::new(node.origin, format!("`{name}` cannot be read: got {content}"))),
            ("disabledMcpjsonServers", content) => {
                for (server, origin) in self.texts(&name, content, &node.origin) {
                    self.rule(Effect::Deny, format!("mcp__{server}"), &origin);
                }
            }
            (_, content) => match prohibitions::found(&name, &origin, &content) {
                Some(problem) => self.problems.push(problem),
                None => ignored.push(format!("`{name}`")),
            },
        }
    }

    /// One member of `permissions` of Claude Code's settings.
    fn claude(&mut self, member: Member) {
        let Member { name, origin, node } = member;
        match name.as_str() {
            "allow" => self.rules(&name, Effect::Allow, node.content, &node.origin),
            "ask" => self.rules(&name, Effect::Ask, node.content, &node.origin),
            "deny" => self.rules(&name, Effect::Deny, node.content, &node.origin),
            "defaultMode" => self.mode(node.content, &node.origin),
            "additionalDirectories" => self.folders(&name, node.content, &node.origin),
            "disableBypassPermissionsMode" if node.content == Content::Text("disable".into()) => {
                self.put("permissions", "disable_bypass", &origin, Content::Boolean(true));
            }
            _ if prohibitions::HARMLESS_PERMISSIONS.contains(&name.as_str()) => {
                self.note(&origin, format!("`permissions.{name}` has no meaning here"));
            }
            _ => self.problems.push(prohibitions::unknown(&format!("permissions.{name}"), &node.content, &origin)),
        }
    }

    fn texts(&mut self, name: &str, content: Content, origin: &Origin) -> Vec<(String, Origin)> {
        let Content::List(nodes) = content else {
            self.problems
                .push(Problem::new(origin.clone(), format!("`{name}` must be a list of texts, got {content}")));
            return Vec::new();
        };
        let mut texts = Vec::with_capacity(nodes.len());
        for Node { content, origin } in nodes {
            match content {
                Content::Text(text) => texts.push((text, origin)),
                other => {
                    let message = format!("`{name}` must be a list of texts, got {other} in it");
                    self.problems.push(Problem::new(origin, message));
                }
            }
        }
        texts
    }

    fn rules(&mut self, name: &str, effect: Effect, content: Content, origin: &Origin) {
        for (text, origin) in self.texts(name, content, origin) {
            match self.anchored(&text) {
                Ok(text) => self.rule(effect, text, &origin),
                Err(reason) => self.unusable(effect, &text, &reason, &origin),
            }
        }
    }

    fn rule(&mut self, effect: Effect, text: String, origin: &Origin) {
        let base = self.surroundings.base.patterns();
        let unusable = match PermissionRule::parse(effect, &text, origin.to_rule_origin(), &base) {
            Ok(rule) => match rule.named_tool() {
                Some(tool) if !is_known_tool(tool) => {
                    let is_typo = !FOREIGN_TOOLS.contains(&tool) && nearest_name(tool, spellings()).is_some();
                    if is_typo {
                        return self.unusable(effect, &text, &no_such_tool(tool, &spellings()), origin);
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
            (None, Effect::Allow) => self.allow.push(at(origin, Content::Text(text))),
            (None, Effect::Ask) => self.ask.push(at(origin, Content::Text(text))),
            (None, Effect::Deny) => self.deny.push(at(origin, Content::Text(text))),
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

    /// `/x` of a settings file means below its project, which is the folder around `.claude`; of a command it is the path
    /// of a program.
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
                let project = project.to_str().ok_or("the path of its project is no text")?;
                // The folder's name is a name, whatever it holds.
                Ok(format!("{head}(/{}{spec}", path_pattern::literal(project.trim_end_matches('/'))))
            }
            _ => Ok(text.to_owned()),
        }
    }

    fn mode(&mut self, content: Content, origin: &Origin) {
        let mode = match &content {
            Content::Text(text) => match text.as_str() {
                "default" => "default",
                "plan" => "plan",
                "acceptEdits" => "accept_edits",
                "dontAsk" => "dont_ask",
                "bypassPermissions" => "bypass",
                // It lets more happen than the usual mode, which is in force without it.
                "auto" => return self.note(origin, "the mode \"auto\" is not known here and left out"),
                _ => {
                    let message = format!("the mode {text:?} is not known here, and may be stricter than any that is");
                    return self.problems.push(Problem::new(origin.clone(), message));
                }
            },
            other => {
                let message = format!("the mode must be a text, got {other}");
                return self.problems.push(Problem::new(origin.clone(), message));
            }
        };
        self.put("permissions", "mode", origin, Content::Text(mode.into()));
    }

    fn folders(&mut self, name: &str, content: Content, origin: &Origin) {
        let Surroundings { base, default_root } = self.surroundings;
        let mut roots = Vec::new();
        for (text, origin) in self.texts(name, content, origin) {
            let path = match (text.strip_prefix("~/"), base.home) {
                (Some(rest), Some(home)) => lexical(home, Path::new(rest)),
                _ => lexical(self.surroundings.project(), Path::new(&text)),
            };
            match path.to_str() {
                Some(path) if Path::new(path).is_dir() => roots.push(at(&origin, Content::Text(path.into()))),
                _ => self.note(&origin, format!("the folder `{text}` is left out: there is none")),
            }
        }
        if roots.is_empty() {
            return;
        }
        if let Some(root) = default_root.and_then(Path::to_str) {
            roots.insert(0, at(origin, Content::Text(root.into())));
        }
        self.put("workspace", "roots", origin, Content::List(roots));
    }

    /// One tool of a block `tools`, which has the same keys here.
    fn block(&mut self, tool: Member) {
        let Member { name, origin, node } = tool;
        let Content::Table(members) = node.content else {
            let message = format!("`tools.{name}` must be a table, got {}", node.content);
            return self.problems.push(Problem::new(node.origin, message));
        };
        let of_mcp = is_of_mcp(&name);
        if !is_known_tool(&name) && !of_mcp {
            let is_typo = !FOREIGN_TOOLS.contains(&name.as_str()) && nearest_name(&name, spellings()).is_some();
            let message = format!("`tools.{name}` is left out: no tool is called `{name}` here");
            return match is_typo {
                true => self.problems.push(Problem::new(origin, no_such_tool(&name, &spellings()))),
                false => self.note(&origin, message),
            };
        }
        let (known, others): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|member| BLOCK_KEYS.contains(&member.name.as_str()));
        for Member { name: key, origin, node } in others {
            match (key.as_str(), &node.content) {
                ("enabled", Content::Boolean(true)) => {}
                ("enabled", Content::Boolean(false)) => self.rule(Effect::Deny, name.clone(), &origin),
                (key, _) if prohibitions::HARMLESS_OF_TOOLS.contains(&key) => {
                    self.note(&origin, format!("`tools.{name}.{key}` has no meaning here"));
                }
                (key, content) => {
                    self.problems.push(prohibitions::unknown(&format!("tools.{name}.{key}"), content, &origin));
                }
            }
        }
        self.put("tools", &name, &origin, Content::Table(known));
    }

    /// The list of tools of clai and of kodelet, where `none` stands for none. An empty one is no tools, not all.
    fn selection(&mut self, name: &str, nodes: Vec<Node>, origin: &Origin) {
        let mut chosen = Vec::new();
        for (text, origin) in self.texts(name, Content::List(nodes), origin) {
            // Signs and commas would adjust the choice, and so widen it.
            let is_name = !text.contains(',') && !text.trim_start().starts_with(['+', '-']);
            match is_name && (text.contains('*') || is_of_mcp(&text) || is_known_tool(&text)) {
                _ if text == "none" => {}
                true => chosen.push(at(&origin, Content::Text(text))),
                false => self.note(&origin, format!("no tool is called `{text}` here: it is not chosen")),
            }
        }
        self.put("tools", "select", origin, Content::List(chosen));
    }

    /// kodelet's list of commands: each entry is the whole command, and `*` in it a wildcard.
    fn kodelet(&mut self, content: Content, origin: &Origin) {
        for (entry, origin) in self.texts("allowed_commands", content, origin) {
            match entry.contains(['?', '[', ']', '{', '}']) {
                true => self
                    .note(&origin, format!("the command {entry:?} is left out: of wildcards only `*` is known here")),
                false => self.rule(Effect::Allow, format!("Bash({entry})"), &origin),
            }
        }
        for banned in KODELET_BANNED {
            self.rule(Effect::Deny, format!("Bash({banned} *)"), origin);
        }
        self.note(origin, "commands that are not in the list are asked about here, not refused");
    }

    /// clai's banned phrases: words in a row, anywhere in a command.
    fn banned(&mut self, name: &str, content: Content, origin: &Origin) {
        let phrases = match content {
            Content::Text(text) => text.split(',').map(|phrase| (phrase.to_owned(), origin.clone())).collect(),
            content => self.texts(name, content, origin),
        };
        for (phrase, origin) in phrases.iter().filter(|(phrase, _)| !phrase.trim().is_empty()) {
            let words: Vec<String> = phrase.split_whitespace().map(literal).collect();
            let words = words.join(" ");
            self.rule(Effect::Deny, format!("Bash({words} *)"), origin);
            self.rule(Effect::Deny, format!("Bash(* {words} *)"), origin);
        }
    }

    fn finished(self, origin: &Origin) -> Node {
        let mut sections: Vec<(&'static str, Vec<Member>)> = Vec::new();
        let lists = [("allow", self.allow), ("ask", self.ask), ("deny", self.deny)];
        let lists = lists.into_iter().filter(|(_, rules)| !rules.is_empty()).map(|(name, rules)| {
            let first = rules.first().map_or(origin, |rule| &rule.origin).clone();
            ("permissions", Member { name: name.into(), node: at(&first, Content::List(rules)), origin: first })
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
            node: at(origin, Content::Table(members)),
        });
        at(origin, Content::Table(sections.collect()))
    }
}

/// Whether a choice of tools is one of no tools.
fn is_nothing(content: &Content) -> bool {
    matches!(content, Content::Text(text) if text.is_empty()) || *content == Content::List(Vec::new())
}

/// A word of a phrase: quotes mean in patterns what they mean in a command, a star does not.
fn literal(word: &str) -> String {
    word.replace('*', r"\*")
}
