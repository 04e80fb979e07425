//! All rules, roots and defaults together: the one place where it is decided what runs.

use crate::{
    access::{Access, AccessKind, Clarity, PathAccess},
    category::Category,
    permission::{
        decision::{Cause, Decision, Finding, Verdict},
        rule::{Effect, PermissionRule},
    },
    tool::{Tool, ToolSource},
    tool_selection::ToolSelection,
    workspace_roots::{RootKind, WorkspaceRoots},
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// How to treat what no deny or ask rule catches. Deny and ask rules hold in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Rules and defaults decide.
    #[default]
    Default,
    /// Reading only.
    Plan,
    /// Changes of files inside the roots are allowed.
    AcceptEdits,
    /// Nobody is asked: what would ask is denied.
    DontAsk,
    /// Everything that nothing denies is allowed.
    Bypass,
}

impl Mode {
    /// All modes.
    pub const ALL: &[Self] = &[Self::Default, Self::Plan, Self::AcceptEdits, Self::DontAsk, Self::Bypass];

    /// The mode's name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
            Self::AcceptEdits => "accept_edits",
            Self::DontAsk => "dont_ask",
            Self::Bypass => "bypass",
        }
    }

    /// The mode of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == text)
    }
}

/// The whole policy. A value without I/O; advertising and calling use the same one.
#[derive(Debug, Clone, Default)]
pub struct PermissionPolicy {
    /// All rules, in the order of their sources.
    pub rules: Vec<Arc<PermissionRule>>,
    /// The mode.
    pub mode: Mode,
    /// The folders of the workspace.
    pub roots: WorkspaceRoots,
    /// The tools that are offered.
    pub selection: ToolSelection,
}

impl PermissionPolicy {
    /// Decides on one call: the strictest finding of any part wins, deny over ask over allow.
    pub fn decide(&self, tool: &Tool, arguments: &Map<String, Value>, accesses: &[Access]) -> Decision {
        if !self.selection.includes(tool) {
            return whole(Verdict::Deny, Cause::NotSelected);
        }
        let mut trace: Vec<Finding> = self.of_whole_call(tool, arguments).into_iter().collect();
        let names_paths = accesses.iter().any(|access| access.kind() == AccessKind::Write);
        trace.extend(accesses.iter().map(|access| self.judge_beside(tool, access, names_paths)));
        if trace.is_empty() {
            trace.push(self.without_accesses(tool));
        }
        self.concluded(trace)
    }

    /// What a rule says of the tool as a whole, or of parameters.
    fn of_whole_call(&self, tool: &Tool, arguments: &Map<String, Value>) -> Option<Finding> {
        let caught = |effect| self.caught(effect, tool, arguments, &[]);
        caught(Effect::Deny).or_else(|| caught(Effect::Ask))
    }

    /// Judges one access, also of a call that runs already.
    pub fn judge(&self, tool: &Tool, access: &Access) -> Finding {
        // What it names beside this access was judged before it began.
        self.judge_beside(tool, access, true)
    }

    /// Judges one access, of a call that names the paths that it changes, or does not.
    fn judge_beside(&self, tool: &Tool, access: &Access, names_paths: bool) -> Finding {
        let one = std::slice::from_ref(access);
        // Rules on parameters were judged before the call began.
        let caught = |effect| {
            let finding = self.caught(effect, tool, &Map::new(), one)?;
            Some(Finding { part: Some(access.clone()), ..finding })
        };
        self.bounds(access)
            .or_else(|| caught(Effect::Deny))
            // Before the ask rules: nobody may say yes to what the mode forbids.
            .or_else(|| self.forbidden_by_mode(access))
            .or_else(|| caught(Effect::Ask))
            .unwrap_or_else(|| self.leave(tool, access, names_paths))
    }

    /// What decides on reading below a folder: the rules that may catch something there.
    pub(super) fn read_rules(&self, tool: &Tool, folder: &PathAccess) -> ReadRules<'_> {
        let matters = |effect: Effect| {
            let rules = self.rules.iter().filter(move |rule| rule.effect == effect);
            rules.filter(|rule| rule.may_catch_reading_below(tool, folder, &self.roots)).map(Arc::as_ref).collect()
        };
        let is_inside = self.roots.containing(&folder.real).is_some();
        let forbidden = self.roots.forbidden.iter();
        let has_forbidden =
            folder.forms().any(|form| forbidden.clone().any(|path| path.starts_with(form) || form.starts_with(path)));
        ReadRules {
            roots: &self.roots,
            is_inside,
            has_forbidden,
            deny: matters(Effect::Deny),
            ask: matters(Effect::Ask),
        }
    }

    /// Whether callers may see the tool: unless every call of it would be denied, whatever its arguments.
    pub fn advertises(&self, tool: &Tool) -> bool {
        self.selection.includes(tool)
            && !self.rules.iter().any(|rule| rule.effect == Effect::Deny && denies_always(rule, tool))
    }

    /// What no rule can change: the roots, and Toolstead's own data.
    fn bounds(&self, access: &Access) -> Option<Finding> {
        let path = access.path()?;
        let deny = |cause| Some(Finding { verdict: Verdict::Deny, part: Some(access.clone()), cause });
        if path.forms().any(|form| self.roots.is_forbidden(form)) {
            return deny(Cause::Forbidden);
        }
        if self.roots.start().is_none() {
            return deny(Cause::NoRoots);
        }
        // The real path counts: a root may itself be reached through a link.
        match self.roots.containing(&path.real) {
            None => deny(Cause::OutsideRoots),
            Some((_, RootKind::ReadOnly)) if access.kind() == AccessKind::Write => deny(Cause::ReadOnlyRoot),
            Some(_) => None,
        }
    }

    fn forbidden_by_mode(&self, access: &Access) -> Option<Finding> {
        let forbidden = self.mode == Mode::Plan && access.kind() != AccessKind::Read;
        let cause = Cause::Mode("the mode `plan` allows reading only");
        forbidden.then(|| Finding { verdict: Verdict::Deny, part: Some(access.clone()), cause })
    }

    fn caught(
        &self,
        effect: Effect,
        tool: &Tool,
        arguments: &Map<String, Value>,
        accesses: &[Access],
    ) -> Option<Finding> {
        let verdict = if effect == Effect::Deny { Verdict::Deny } else { Verdict::Ask };
        self.rules.iter().filter(|rule| rule.effect == effect).find_map(|rule| {
            let part = rule.catches(tool, arguments, accesses, &self.roots)?;
            Some(Finding { verdict, part: part.cloned(), cause: Cause::Rule(rule.clone()) })
        })
    }

    /// A call that touches nothing a rule could judge.
    fn without_accesses(&self, tool: &Tool) -> Finding {
        let allow = self.rules.iter().find(|rule| rule.effect == Effect::Allow && rule.allows_whole(tool));
        let cause = allow.map_or(Cause::Default("calls that touch nothing are allowed by default"), |rule| {
            Cause::Rule(rule.clone())
        });
        Finding { verdict: Verdict::Allow, part: None, cause }
    }

    /// What is left when nothing denies or asks: the mode, the allow rules, the defaults.
    fn leave(&self, tool: &Tool, access: &Access, names_paths: bool) -> Finding {
        let finding = |verdict, cause| Finding { verdict, part: Some(access.clone()), cause };
        match (self.mode, access.kind()) {
            (Mode::Bypass, _) => {
                return finding(Verdict::Allow, Cause::Mode("the mode `bypass` allows what nothing denies"));
            }
            (Mode::AcceptEdits, AccessKind::Run) if names_paths && only_changes_files(access) => {
                return finding(Verdict::Allow, Cause::Mode("the mode `accept_edits` allows changes inside the roots"));
            }
            (Mode::AcceptEdits, AccessKind::Write) => {
                return finding(Verdict::Allow, Cause::Mode("the mode `accept_edits` allows changes inside the roots"));
            }
            _ => {}
        }
        let mut allowing = self.rules.iter().filter(|rule| rule.effect == Effect::Allow);
        if let Some(rule) = allowing.find(|rule| rule.allows(tool, access, &self.roots)) {
            return finding(Verdict::Allow, Cause::Rule(rule.clone()));
        }
        match access.kind() {
            AccessKind::Read => {
                finding(Verdict::Allow, Cause::Default("reading inside the roots is allowed by default"))
            }
            AccessKind::Write => finding(Verdict::Ask, Cause::Default("changes of files are asked about by default")),
            AccessKind::Run => finding(Verdict::Ask, Cause::Default("commands are asked about by default")),
            AccessKind::Reach => {
                finding(Verdict::Ask, Cause::Default("connections to hosts are asked about by default"))
            }
            AccessKind::Send => finding(Verdict::Ask, Cause::Default("sending is always asked about")),
            AccessKind::Upstream => {
                finding(Verdict::Ask, Cause::Default("tools of MCP servers are asked about by default"))
            }
        }
    }

    fn concluded(&self, trace: Vec<Finding>) -> Decision {
        // The strictest; of those what is hardest to change, and of those the first.
        let weight = |finding: &Finding| (finding.verdict, finding.cause.weight());
        let strictest = trace.iter().reduce(|a, b| if weight(b) > weight(a) { b } else { a });
        let mut decisive = strictest.cloned().unwrap_or(Finding {
            verdict: Verdict::Deny,
            part: None,
            cause: Cause::Default("nothing allows it"),
        });
        if decisive.verdict == Verdict::Ask && self.mode == Mode::DontAsk {
            decisive.verdict = Verdict::Deny;
        }
        Decision { verdict: decisive.verdict, decisive, trace }
    }
}

/// What decides on reading below one folder. It says of every path there what [`PermissionPolicy::judge`] says, by
/// looking only at what can matter: reading inside the roots is allowed unless something denies or asks.
#[derive(Debug)]
pub(super) struct ReadRules<'a> {
    roots: &'a WorkspaceRoots,
    is_inside: bool,
    has_forbidden: bool,
    deny: Vec<&'a PermissionRule>,
    ask: Vec<&'a PermissionRule>,
}

impl ReadRules<'_> {
    pub(super) fn verdict(&self, path: &PathAccess) -> Verdict {
        let caught = |rules: &[&PermissionRule]| rules.iter().any(|rule| rule.catches_reading(path, self.roots));
        let is_forbidden = || self.has_forbidden && path.forms().any(|form| self.roots.is_forbidden(form));
        if !self.is_inside || is_forbidden() || caught(&self.deny) {
            Verdict::Deny
        } else if caught(&self.ask) {
            Verdict::Ask
        } else {
            Verdict::Allow
        }
    }
}

fn whole(verdict: Verdict, cause: Cause) -> Decision {
    let decisive = Finding { verdict, part: None, cause };
    Decision { verdict, trace: vec![decisive.clone()], decisive }
}

/// Whether this is a plain command that does nothing but change the files that it names, which come as accesses of their
/// own.
fn only_changes_files(access: &Access) -> bool {
    let Access::RunCommand(command) = access else { return false };
    let program = command.words.first().map_or("", |word| &**word);
    command.clarity == Clarity::Plain && matches!(program, "mkdir" | "touch" | "rm" | "rmdir" | "mv" | "cp")
}

/// Whether the rule leaves no call of the tool: it names the tool, or the one kind of access that all its calls have.
fn denies_always(rule: &PermissionRule, tool: &Tool) -> bool {
    let only_kind = match (tool.source(), tool.category) {
        (ToolSource::BuiltIn, Category::Shell) => Some(AccessKind::Run),
        (ToolSource::BuiltIn, Category::Web) => Some(AccessKind::Reach),
        _ => None,
    };
    rule.denies_whole(tool) || only_kind.is_some_and(|kind| rule.names_whole_kind(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::CommandAccess,
        permission::{path_pattern::PatternBase, rule::RuleOrigin},
        server_name::ServerName,
        tool_name::ToolName,
    };
    use proptest::prelude::*;
    use serde_json::json;

    fn policy(mode: Mode, rules: &[(Effect, &str)]) -> PermissionPolicy {
        let parse = |(effect, text): &(Effect, &str)| {
            Arc::new(PermissionRule::parse(*effect, text, RuleOrigin::CommandLine, &PatternBase::default()).unwrap())
        };
        let roots = WorkspaceRoots {
            write: vec!["/w".into()],
            read_only: vec!["/ro".into()],
            forbidden: vec!["/w/data".into()],
        };
        PermissionPolicy { rules: rules.iter().map(parse).collect(), mode, roots, ..Default::default() }
    }

    fn tool(name: &str) -> Tool {
        let (source, category) = match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            Some((server, tool)) => {
                (ToolSource::McpServer { server: ServerName::parse(server).unwrap(), tool: tool.into() }, Category::Mcp)
            }
            None => (ToolSource::BuiltIn, Category::File),
        };
        Tool::new(ToolName::parse(name).unwrap(), Map::new(), category, source)
    }

    /// Accesses as texts: `read /w/a`, `write /w/a`, `run ls -l`, `opaque $x`, `host x`, `up`, `send x`, or nothing.
    fn accesses(text: &str) -> Vec<Access> {
        let path = |path: &str| match path.split_once("->") {
            Some((lexical, real)) => PathAccess { lexical: lexical.into(), real: real.into(), tree: false },
            None => PathAccess::plain(path),
        };
        let one = |text: &str| match text.split_once(' ') {
            Some(("read", rest)) => Access::ReadPath(path(rest)),
            Some(("write", rest)) => Access::WritePath(path(rest)),
            Some(("run", rest)) => Access::RunCommand(CommandAccess::program(rest.split(' '))),
            Some(("opaque", rest)) => Access::RunCommand(CommandAccess::opaque(rest, "it holds a variable")),
            Some(("host", rest)) => Access::ReachHost(rest.into()),
            Some(("send", rest)) => Access::Send(rest.into()),
            _ => Access::CallUpstream { server: ServerName::parse("git").unwrap(), tool: "t".into() },
        };
        text.split(", ").filter(|part| !part.is_empty()).map(one).collect()
    }

    #[track_caller]
    fn check(rules: &[(Effect, &str)], call: &str, touches: &str, expected: Verdict) {
        check_mode(Mode::Default, rules, call, touches, expected);
    }

    #[track_caller]
    fn check_mode(mode: Mode, rules: &[(Effect, &str)], call: &str, touches: &str, expected: Verdict) {
        let decision = policy(mode, rules).decide(&tool(call), &Map::new(), &accesses(touches));
        assert_eq!(decision.verdict, expected, "{rules:?} {call} {touches}: {}", decision.reason());
    }

    use Effect::{Allow as A, Ask as Q, Deny as D};
    use Verdict::{Allow, Ask, Deny};

    #[test]
    fn without_rules_reading_is_allowed_and_everything_else_is_asked_or_denied() {
        check(&[], "echo", "", Allow);
        check(&[], "read_file", "read /w/a", Allow);
        check(&[], "read_file", "read /ro/a", Allow);
        check(&[], "write_file", "write /w/a", Ask);
        check(&[], "write_file", "write /ro/a", Deny);
        check(&[], "read_file", "read /etc/passwd", Deny);
        check(&[], "read_file", "read /w/data/token", Deny);
        check(&[], "bash", "run ls", Ask);
        check(&[], "web_fetch", "host example.com", Ask);
        check(&[], "gmail_send", "send a@example.com", Ask);
        check(&[], "mcp__git__t", "up", Ask);
    }

    #[test]
    fn deny_wins_over_ask_over_allow() {
        check(
            &[(A, "Write"), (Q, "Write(secret/**)"), (D, "Write(secret/deep/**)")],
            "write_file",
            "write /w/a",
            Allow,
        );
        check(&[(A, "Write"), (Q, "Write(secret/**)")], "write_file", "write /w/secret/a", Ask);
        check(&[(A, "Write"), (Q, "Write"), (D, "Write(secret/**)")], "write_file", "write /w/secret/a", Deny);
    }

    #[test]
    fn a_rule_means_the_same_for_every_tool() {
        check(&[(D, "Read(.env)")], "grep", "read /w/x/.env", Deny);
        check(&[(D, "Read(.env)")], "write_file", "write /w/x/.env", Deny);
        check(&[(D, "Edit(.env)")], "read_file", "read /w/x/.env", Allow);
        check(&[(A, "Edit(src/**)")], "write_file", "write /w/src/a", Allow);
        check(&[(A, "Write(src/*)")], "edit_file", "read /w/src/a/b, write /w/src/a/b", Allow);
        check(&[(A, "Edit(src/**)")], "write_file", "write /w/a/src/x", Ask);
        check(&[(A, "write_file")], "write_file", "write /w/a", Allow);
        check(&[(A, "write_file")], "edit_file", "write /w/a", Ask);
    }

    #[test]
    fn allow_needs_every_access_and_both_forms_of_a_path() {
        check(&[(A, "Write(src/**)")], "move", "write /w/src/a, write /w/b", Ask);
        check(&[(A, "Write(src/**)")], "write_file", "write /w/src/a->/w/b", Ask);
        check(&[(D, "Read(secret/**)")], "read_file", "read /w/a->/w/secret/k", Deny);
        check(&[], "read_file", "read /w/link->/etc/passwd", Deny);
    }

    #[test]
    fn rules_name_the_tools_of_mcp_servers() {
        check(&[(A, "mcp__git")], "mcp__git__t", "up", Allow);
        check(&[(A, "mcp__git__*")], "mcp__git__t", "up", Allow);
        check(&[(A, "mcp__git__t")], "mcp__git__t", "up", Allow);
        check(&[(A, "mcp__git__u")], "mcp__git__t", "up", Ask);
        check(&[(A, "mcp__git"), (D, "mcp__*__t")], "mcp__git__t", "up", Deny);
        check(&[(D, "mcp__*")], "mcp__git__t", "up", Deny);
        check(&[(A, "mcp__git"), (D, "*")], "echo", "", Deny);
    }

    #[test]
    fn rules_on_parameters_deny_and_ask() {
        let policy = policy(Mode::Default, &[(D, "mcp__git__t(opts.force:true)"), (Q, "echo(message:rm *)")]);
        let decide =
            |name: &str, arguments: Value| policy.decide(&tool(name), arguments.as_object().unwrap(), &[]).verdict;
        assert_eq!(decide("mcp__git__t", json!({"opts": {"force": true}})), Deny);
        assert_eq!(decide("mcp__git__t", json!({})), Allow);
        assert_eq!(decide("echo", json!({"message": "rm -rf"})), Ask);
    }

    #[test]
    fn no_broad_rule_covers_sending() {
        check(&[(A, "gmail_send")], "gmail_send", "send a@example.com", Allow);
        check(&[(A, "mcp__git__*")], "mcp__git__t", "up, send a@example.com", Ask);
    }

    #[test]
    fn rules_on_commands_follow_what_was_understood_of_them() {
        check(&[(A, "Bash(ls *)")], "bash", "run ls -l", Allow);
        check(&[(A, "Bash(ls *)")], "bash", "run lsof", Ask);
        check(&[(A, "bash(ls *)")], "bash", "run ls -l", Allow);
        check(&[(A, "bash(ls *)")], "git", "run ls -l", Ask);
        check(&[(A, "Bash(git *)")], "bash", "run git status, run rm -rf x", Ask);
        check(&[(A, "Bash(git *)"), (D, "Bash(rm *)")], "bash", "run git status, run rm -rf x", Deny);
        check(&[(A, "Bash")], "bash", "run ls -l", Allow);
        check(&[(D, "Bash")], "bash", "run ls -l", Deny);
        check(&[(A, "Bash"), (D, "Bash(rm *)")], "bash", "run ls -l", Allow);
        check(&[(A, "Bash"), (Q, "Bash(ls *)")], "bash", "run ls -l", Ask);
    }

    #[test]
    fn a_command_that_nobody_understands_is_never_allowed_by_pattern_and_caught_by_every_other_rule() {
        check(&[(A, "Bash(ls *)")], "bash", "opaque ls $x", Ask);
        check(&[(A, "Bash(ls $x)")], "bash", "opaque ls $x", Allow);
        check(&[(A, "Bash")], "bash", "opaque ls $x", Allow);
        check(&[(A, "Bash"), (D, "Bash(rm *)")], "bash", "opaque ls $x", Deny);
        check(&[(A, "Bash"), (Q, "Bash(rm *)")], "bash", "opaque ls $x", Ask);
        check_mode(Mode::Bypass, &[(D, "Bash(rm *)")], "bash", "opaque ls $x", Deny);
    }

    #[test]
    fn a_file_that_a_command_writes_to_needs_a_rule_of_its_own() {
        let echo = "run echo hi, write /w/x";
        check(&[(A, "Bash(echo *)")], "bash", echo, Ask);
        check(&[(A, "Bash(echo *)"), (A, "Edit(//w/x)")], "bash", echo, Allow);
        check(&[(A, "Bash(echo hi > x)")], "bash", echo, Ask);
        check(&[(A, "Bash(echo *)"), (A, "Edit(//etc/x)")], "bash", "run echo hi, write /etc/x", Deny);
        check(&[(D, "Bash(echo *)")], "bash", echo, Deny);
        check_mode(Mode::AcceptEdits, &[(A, "Bash(echo *)")], "bash", echo, Allow);
    }

    #[test]
    fn a_command_that_only_changes_files_is_accepted_with_the_files_that_it_names() {
        let accepted = |touches, verdict| check_mode(Mode::AcceptEdits, &[], "bash", touches, verdict);
        accepted("run rm x, write /w/x", Allow);
        accepted("run mkdir a, write /w/a", Allow);
        accepted("run rm x, write /etc/x", Deny);
        accepted("run rm x", Ask);
        accepted("run dd of=x, write /w/x", Ask);
        accepted("run rm x, run make, write /w/x", Ask);
        accepted("opaque rm $x, write /w/x", Ask);
        check_mode(Mode::AcceptEdits, &[(Q, "Bash(rm *)")], "bash", "run rm x, write /w/x", Ask);
        check_mode(Mode::AcceptEdits, &[(D, "Edit(x)")], "bash", "run rm x, write /w/x", Deny);
        check_mode(Mode::Default, &[], "bash", "run rm x, write /w/x", Ask);
    }

    #[test]
    fn a_write_rule_takes_effect_on_the_tool_that_writes() {
        // Claude Code reads `Write(src/*)` and never asks it.
        check(&[(A, "Write(src/*)")], "write_file", "write /w/src/a.rs", Allow);
        check(&[(D, "Write(src/*)")], "write_file", "write /w/src/deep/a.rs", Deny);
    }

    #[test]
    fn a_tool_that_was_not_chosen_is_refused_when_it_is_called_all_the_same() {
        for (choice, name, verdict) in [("glob", "bash", Deny), ("", "echo", Deny), ("echo", "echo", Allow)] {
            let mut policy = policy(Mode::Bypass, &[]);
            policy.selection = ToolSelection::all().adjusted(choice).unwrap();
            let decision = policy.decide(&tool(name), &Map::new(), &[]);
            assert_eq!(decision.verdict, verdict, "{choice:?} {name}");
            assert_eq!(policy.advertises(&tool(name)), verdict == Allow, "{choice:?} {name}");
        }
        let decision = policy(Mode::Bypass, &[(D, "bash")]).decide(&tool("bash"), &Map::new(), &accesses("run ls"));
        assert_eq!(decision.trace_json()[0]["rule"], "bash");
    }

    #[test]
    fn the_trace_names_every_part_with_what_decided_on_it() {
        let rules = [(A, "Bash(ls *)"), (D, "Bash(rm *)")];
        let decision = policy(Mode::Default, &rules).decide(
            &tool("bash"),
            &Map::new(),
            &accesses("run ls -l, run rm x, write /w/a"),
        );
        assert_eq!(
            decision.trace_json(),
            json!([
                {"verdict": "allow", "part": "run ls -l", "cause": "the allow rule `Bash(ls *)` in the command line",
                 "rule": "Bash(ls *)", "origin": "the command line"},
                {"verdict": "deny", "part": "run rm x", "cause": "the deny rule `Bash(rm *)` in the command line",
                 "rule": "Bash(rm *)", "origin": "the command line"},
                {"verdict": "ask", "part": "write /w/a", "cause": "changes of files are asked about by default"},
            ])
        );
        assert_eq!(decision.reason(), "the deny rule `Bash(rm *)` in the command line: to run rm x");
        assert_eq!(decision.more(), " Also: changes of files are asked about by default: to write /w/a.");
        assert!(decision.suggestions("bash").is_empty(), "no rule allows what another denies");
    }

    #[test]
    fn modes_change_what_is_left_and_never_what_is_denied() {
        check_mode(Mode::Plan, &[(A, "Write")], "write_file", "write /w/a", Deny);
        check_mode(Mode::Plan, &[(Q, "Write")], "write_file", "write /w/a", Deny);
        check_mode(Mode::Plan, &[], "read_file", "read /w/a", Allow);
        check_mode(Mode::AcceptEdits, &[], "write_file", "write /w/a", Allow);
        check_mode(Mode::AcceptEdits, &[], "mcp__git__t", "up", Ask);
        check_mode(Mode::DontAsk, &[], "write_file", "write /w/a", Deny);
        check_mode(Mode::Bypass, &[], "mcp__git__t", "up", Allow);
        check_mode(Mode::Bypass, &[(Q, "mcp__git__t")], "mcp__git__t", "up", Ask);
        check_mode(Mode::Bypass, &[(D, "mcp__git__t")], "mcp__git__t", "up", Deny);
        check_mode(Mode::Bypass, &[], "read_file", "read /etc/passwd", Deny);
    }

    #[test]
    fn what_is_never_callable_is_not_advertised_and_denied_when_called_all_the_same() {
        let mut policy = policy(Mode::Default, &[(D, "mcp__git__t"), (D, "Read(secret)"), (Q, "echo")]);
        policy.selection = ToolSelection::all().adjusted("-glob").unwrap();
        for (name, advertised) in [("mcp__git__t", false), ("glob", false), ("read_file", true), ("echo", true)] {
            assert_eq!(policy.advertises(&tool(name)), advertised, "{name}");
            let verdict = policy.decide(&tool(name), &Map::new(), &[]).verdict;
            assert_eq!(verdict == Deny, !advertised, "{name}");
        }
    }

    #[test]
    fn a_tool_is_hidden_when_the_one_kind_of_access_that_it_has_is_denied_as_a_whole() {
        let shell = Tool::new(ToolName::parse("bash").unwrap(), Map::new(), Category::Shell, ToolSource::BuiltIn);
        for (rule, advertised) in [("Bash", false), ("Bash(rm *)", true), ("WebFetch", true), ("bash", false)] {
            assert_eq!(policy(Mode::Default, &[(D, rule)]).advertises(&shell), advertised, "{rule}");
        }
    }

    #[test]
    fn a_refusal_names_the_rule_its_place_and_what_would_help() {
        let decision = policy(Mode::Default, &[(D, "Read(.env)")]).decide(
            &tool("read_file"),
            &Map::new(),
            &accesses("read /w/.env"),
        );
        assert_eq!(decision.reason(), "the deny rule `Read(.env)` in the command line: to read /w/.env");
        let decision = policy(Mode::Default, &[]).decide(&tool("write_file"), &Map::new(), &accesses("write /w/a"));
        let remedy = decision.remedy("write_file").unwrap();
        assert!(remedy.contains("`--allow 'Write(//w/a)'`"), "{remedy}");
        assert!(remedy.contains("`toolstead permissions allow 'Write(//w/a)'`"), "{remedy}");
        let allowed = policy(Mode::Default, &[(A, "Write(//w/a)")]).decide(
            &tool("write_file"),
            &Map::new(),
            &accesses("write /w/a"),
        );
        assert_eq!(allowed.verdict, Allow, "the suggested rule works");
    }

    fn any_access() -> impl Strategy<Value = Access> {
        let name = || {
            "[a-z*?{},!\\[\\] '\"().\\\\-]{1,6}".prop_filter("a name", |name| !matches!(name.trim(), "." | ".." | ""))
        };
        let path = prop::collection::vec(name(), 1..3).prop_map(|names| format!("/w/{}", names.join("/")));
        let path = (path.clone(), path, any::<bool>(), any::<bool>()).prop_map(|(lexical, other, linked, tree)| {
            let real = if linked { other } else { lexical.clone() };
            PathAccess { lexical: lexical.into(), real: real.into(), tree }
        });
        let words = prop::collection::vec("[a-z*'\"\\\\$;|<> -]{1,5}", 1..4);
        let clarity = prop_oneof![
            Just(Clarity::Plain),
            Just(Clarity::Exact("it writes".into())),
            Just(Clarity::Opaque("nobody knows".into()))
        ];
        prop_oneof![
            path.prop_map(Access::WritePath),
            (words, clarity).prop_map(|(words, clarity)| {
                Access::RunCommand(CommandAccess { clarity, ..CommandAccess::program(words) })
            }),
            "[a-z]{1,5}[.]example[.]com".prop_map(|host| Access::ReachHost(host.into())),
            Just(Access::Send("a@example.com".into())),
        ]
    }

    proptest! {
        #[test]
        fn what_a_refusal_suggests_allows_that_call_and_no_other(
            wanted in prop::collection::vec(any_access(), 1..3), other in any_access(),
        ) {
            let tool = tool("gmail_send");
            let suggested = policy(Mode::Default, &[]).decide(&tool, &Map::new(), &wanted).suggestions("gmail_send");
            if !suggested.is_empty() {
                let rules: Vec<(Effect, &str)> = suggested.iter().map(|rule| (A, rule.as_str())).collect();
                let policy = policy(Mode::Default, &rules);
                prop_assert_eq!(policy.decide(&tool, &Map::new(), &wanted).verdict, Allow, "{:?}", suggested);
                let is_new = |access: &Access| match (access, &other) {
                    (Access::RunCommand(wanted), Access::RunCommand(other)) => wanted.text.trim() != other.text.trim(),
                    (Access::WritePath(wanted), Access::WritePath(other)) => {
                        other.forms().any(|form| wanted.forms().all(|wanted| !form.starts_with(wanted)))
                    }
                    (Access::Send(_), _) => false,
                    (wanted, other) => wanted != other,
                };
                if wanted.iter().all(is_new) {
                    prop_assert_ne!(policy.judge(&tool, &other).verdict, Allow, "{:?} {}", suggested, other);
                }
            }
        }

        #[test]
        fn ordinary_accesses_get_a_suggestion(names in prop::collection::vec("[a-z][a-z0-9 *?{},()'-]{0,6}[a-z]", 1..4)) {
            let path = Access::WritePath(PathAccess::plain(format!("/w/{}", names.join("/"))));
            let command = Access::RunCommand(CommandAccess::program(names.iter().map(String::as_str)));
            for access in [path, command] {
                let decision = policy(Mode::Default, &[]).decide(&tool("bash"), &Map::new(), &[access.clone()]);
                prop_assert_eq!(decision.suggestions("bash").len(), 1, "{}", access);
            }
        }
    }
}
