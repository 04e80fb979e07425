//! The permissions of one running call.

use crate::{
    access::{Access, AccessKind, AccessPath},
    permission::{
        decision::{Cause, Verdict},
        policy::{PermissionPolicy, ReadRules},
        rule::{Effect, PermissionRule, RuleSubject},
    },
    tool::Tool,
    workspace_roots::WorkspaceRoots,
};
use std::{path::Path, sync::Arc};

/// Permissions of one call while it runs. A pure value: the sandbox and the connectors query it for what is known only
/// at run time, such as the real path of an open file, the target host of a redirect, or a file found in a directory
/// walk.
#[derive(Debug, Clone)]
pub struct CallPermissions {
    policy: Arc<PermissionPolicy>,
    tool: Arc<Tool>,
    approved: Vec<Access>,
}

impl CallPermissions {
    /// Creates the grant for a call of `tool`. `approved` are the accesses that the user saw and approved; empty
    /// without an approval. Approval of a command includes those of the files it names for which an ask rule required
    /// the approval, and no others: the contents of a folder that it names were not shown.
    pub fn new(policy: Arc<PermissionPolicy>, tool: Arc<Tool>, mut approved: Vec<Access>) -> Self {
        let files = approved.iter().flat_map(|access| match access {
            Access::RunCommand(command) => command.files().collect(),
            _ => Vec::new(),
        });
        let asked: Vec<Access> = files.filter(|operand| policy.has_path_ask_rule(&tool, operand)).cloned().collect();
        approved.extend(asked);
        Self { policy, tool, approved }
    }

    /// Returns `true` if nothing denies the access, and it is allowed or lies within what was approved.
    pub fn permits(&self, access: &Access) -> bool {
        match self.policy.judge(&self.tool, access).verdict {
            Verdict::Allow => true,
            Verdict::Ask => self.approved.iter().any(|approved| approved.covers(access)),
            Verdict::Deny => false,
        }
    }

    /// Returns `Deny` for everything that the policy denies, `Ask` if an ask rule on parts of calls requires an
    /// approval that was not given, and otherwise `Allow`, even if a default requires approval. Used for what a running
    /// command may reach, when no approval can be requested any more.
    pub fn objection(&self, access: &Access) -> Verdict {
        let finding = self.policy.judge(&self.tool, access);
        let is_approved = || self.approved.iter().any(|approved| approved.covers(access));
        match (finding.verdict, finding.cause) {
            (Verdict::Ask, Cause::Rule(_)) if !is_approved() && self.policy.has_part_ask_rule(&self.tool, access) => {
                Verdict::Ask
            }
            (Verdict::Deny, _) => Verdict::Deny,
            _ => Verdict::Allow,
        }
    }

    /// Returns the result of [`objection`](Self::objection) to a change of the path by a running command. An ask rule
    /// that names no path counts as approved together with the command.
    pub fn objection_to_change(&self, path: AccessPath) -> Verdict {
        let access = Access::WritePath(path);
        match self.objection(&access) {
            Verdict::Ask if !self.policy.has_named_path_ask_rule(&self.tool, &access) => Verdict::Allow,
            verdict => verdict,
        }
    }

    /// Returns the rule that denies the access or requires approval for it; `None` if no rule decides against it.
    pub fn rule_against(&self, access: &Access) -> Option<Arc<PermissionRule>> {
        match self.policy.judge(&self.tool, access).cause {
            Cause::Rule(rule) if rule.effect != Effect::Allow => Some(rule),
            _ => None,
        }
    }

    /// Returns `true` if the approval includes a write access in the folder.
    pub fn approves_writing_in(&self, folder: &Path) -> bool {
        self.approved.iter().any(|access| matches!(access, Access::WritePath(path) if path.real.starts_with(folder)))
    }

    /// Returns the grant for paths that a running command may reach, by real paths alone: an approved link is approved
    /// at its target, and the folders on the way to it may be listed. Ask rules on the call as a whole have been
    /// approved, or the call would not run.
    #[must_use]
    pub fn of_running_command(&self) -> Self {
        let policy = self.policy.keeping(&|rule| rule.effect != Effect::Ask || rule.is_about_parts());
        let mut approved = self.approved.clone();
        for access in &self.approved {
            let Some(path) = access.path() else { continue };
            let real = AccessPath { lexical: path.real.clone(), ..path.clone() };
            let way = path.real.ancestors().skip(1).filter(|folder| self.roots().containing(folder).is_some());
            approved.extend(way.map(|folder| Access::ReadPath(AccessPath::plain(folder))));
            approved.push(match access.kind() {
                AccessKind::Read => Access::ReadPath(real),
                _ => Access::WritePath(real),
            });
        }
        Self { policy: Arc::new(policy), approved, tool: self.tool.clone() }
    }

    /// Returns `true` if a deny or ask rule names paths, so that some paths in the roots may be closed.
    pub fn has_rules_against_paths(&self) -> bool {
        let mut against = self.policy.layers().flat_map(|layer| &layer.rules);
        against.any(|rule| rule.effect != Effect::Allow && rule.subject() == RuleSubject::Path)
    }

    /// Returns a deny or ask rule that may catch reading or changing something below this folder, as far as that can be
    /// determined without the names of its entries.
    pub fn rule_below(&self, folder: &AccessPath, kind: AccessKind) -> Option<Arc<PermissionRule>> {
        self.policy.layers().find_map(|layer| {
            let mut against = layer.rules.iter().filter(|rule| rule.effect != Effect::Allow);
            against.find(|rule| rule.may_catch_below(&self.tool, kind, folder, &layer.roots)).cloned()
        })
    }

    /// Returns the rules on reading below a folder, compiled once for a walk over many files.
    pub fn reading_below(&self, folder: &AccessPath) -> FolderReadPermissions<'_> {
        FolderReadPermissions { rules: self.policy.read_rules(&self.tool, folder), approved: &self.approved }
    }

    /// Returns `true` if another tool may be listed to the caller of this call. Lists of tools use the same decision.
    pub fn advertises(&self, tool: &Tool) -> bool {
        self.policy.advertises(tool)
    }

    /// Returns the folders of the workspace.
    pub fn roots(&self) -> &WorkspaceRoots {
        self.policy.workspace()
    }
}

/// Part of a [`CallPermissions`] that applies below one folder.
#[derive(Debug)]
pub struct FolderReadPermissions<'a> {
    rules: Vec<ReadRules<'a>>,
    approved: &'a [Access],
}

impl FolderReadPermissions<'_> {
    /// Returns `true` if some path below the folder may be unreadable, as far as that can be determined without the
    /// names of its entries.
    pub fn is_limited(&self) -> bool {
        self.rules.iter().any(ReadRules::are_against_something)
    }

    /// Returns `true` if a path below the folder may be read, as [`CallPermissions::permits`] does.
    pub fn permits(&self, path: &AccessPath) -> bool {
        match self.rules.iter().map(|rules| rules.verdict(path)).max().unwrap_or(Verdict::Deny) {
            Verdict::Allow => true,
            Verdict::Ask => self.approved.iter().any(|approved| approved.covers_reading(path)),
            Verdict::Deny => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::CommandAccess,
        category::Category,
        permission::{path_pattern::PatternContext, policy::PermissionMode, rule::RuleOrigin},
        tool::ToolSource,
        tool_name::ToolName,
    };
    use proptest::prelude::*;
    use serde_json::Map;

    fn under(rules: &[(Effect, &str)], approved: Vec<Access>) -> CallPermissions {
        let rule = |(effect, text): &(Effect, &str)| {
            Arc::new(PermissionRule::parse(*effect, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap())
        };
        let roots = WorkspaceRoots { write: vec!["/w".into()], ..Default::default() };
        let policy = PermissionPolicy { rules: rules.iter().map(rule).collect(), roots, ..Default::default() };
        let tool = Tool::new(ToolName::parse("bash").unwrap(), Map::new(), Category::Shell, ToolSource::BuiltIn);
        CallPermissions::new(Arc::new(policy), Arc::new(tool), approved)
    }

    #[test]
    fn an_approved_command_opens_protected_subfolders_only_of_folders_that_needed_approval() {
        let tree = |path: &str| AccessPath::plain(path).whole_tree();
        let operands = [Access::ReadPath(tree("/w/a")), Access::WritePath(tree("/w/x"))].into();
        let copy = CommandAccess { operands, ..CommandAccess::program(["cp", "-r", "a", "x"]) };
        let opened = |rules: &[&str]| {
            let rules: Vec<_> = rules.iter().map(|rule| (Effect::Ask, *rule)).collect();
            let grant = under(&rules, vec![Access::RunCommand(copy.clone())]);
            let is_open = |access: Access| grant.objection(&access) == Verdict::Allow;
            [Access::ReadPath, Access::WritePath].map(|access| {
                ["/w/a/secret/key", "/w/x/secret/key"].map(|path| is_open(access(AccessPath::plain(path))))
            })
        };
        // A default, or a rule on commands or on the tool, required the approval: the folders in it were not shown.
        for rules in [&["Read(secret/**)"][..], &["Read(secret/**)", "Bash(cp *)"]] {
            assert_eq!(opened(rules), [[false, false], [true, true]], "{rules:?}");
        }
        assert_eq!(opened(&["bash", "Read(secret/**)"])[0], [false, false]);
        assert_eq!(opened(&["Edit(secret/**)"]), [[true, true], [false, false]]);
        // The folder itself needed approval.
        assert_eq!(opened(&["Read(a/**)", "Read(secret/**)"]), [[true, false], [true, true]]);
        assert_eq!(opened(&["Edit(x)", "Edit(secret/**)"]), [[true, true], [false, true]]);
    }

    #[test]
    fn approving_a_call_satisfies_ask_rules_on_its_tool_but_not_on_paths_or_hosts() {
        let approved = vec![Access::ReadPath(AccessPath::plain("/w"))];
        for whole in ["bash", "*", "ba*"] {
            let grant = under(&[(Effect::Ask, whole), (Effect::Ask, "Read(secret/**)")], approved.clone());
            let grant = grant.of_running_command();
            let read = |path: &str| Access::ReadPath(AccessPath::plain(path));
            assert!(grant.permits(&read("/w/a")) && !grant.permits(&read("/w/secret/key")), "{whole}");
            let below = grant.reading_below(&AccessPath::plain("/w"));
            let may_read = |path: &str| below.permits(&AccessPath::plain(path));
            assert!(may_read("/w/a/b") && !may_read("/w/secret/key"), "{whole}");
            let hosts = under(&[(Effect::Ask, whole), (Effect::Ask, "WebFetch(domain:a.org)")], approved.clone());
            let objection = |host: &str| hosts.objection(&Access::ReachHost(host.into()));
            assert_eq!([objection("a.org"), objection("b.org")], [Verdict::Ask, Verdict::Allow], "{whole}");
        }
    }

    #[test]
    fn only_ask_rules_that_name_paths_apply_to_changes_by_a_running_command() {
        let change = |rules: &[(Effect, &str)]| under(rules, Vec::new()).objection_to_change(AccessPath::plain("/w/a"));
        let (ask, deny) = (Effect::Ask, Effect::Deny);
        for (rules, expected) in [
            (&[(ask, "Edit")][..], Verdict::Allow),
            (&[(ask, "Write"), (ask, "bash")], Verdict::Allow),
            (&[(ask, "Edit"), (ask, "Edit(b)")], Verdict::Allow),
            (&[(ask, "Edit"), (ask, "Edit(a)")], Verdict::Ask),
            (&[(ask, "Edit"), (deny, "Edit")], Verdict::Deny),
        ] {
            assert_eq!(change(rules), expected, "{rules:?}");
        }
    }

    fn names() -> impl Strategy<Value = String> {
        prop::collection::vec("(a|b|secret|[.]env|x[.]rs)", 1..5).prop_map(|names| names.join("/"))
    }

    fn rules() -> impl Strategy<Value = Vec<(Effect, String)>> {
        let spec = prop_oneof![
            names(),
            names().prop_map(|name| format!("//w/{name}")),
            names().prop_map(|name| format!("//elsewhere/{name}/**")),
            Just("*.rs".to_owned()),
            Just("**/b/*".to_owned()),
            Just("//w/{a,b}/secret".to_owned()),
        ];
        let text = prop_oneof![
            6 => spec.prop_map(|spec| format!("Read({spec})")),
            1 => Just("Read".to_owned()),
            1 => Just("grep".to_owned()),
            1 => Just("grep(a/**)".to_owned()),
            1 => Just("other".to_owned()),
            1 => Just("Write(b)".to_owned()),
        ];
        let effect = prop_oneof![Just(Effect::Deny), Just(Effect::Ask), Just(Effect::Allow)];
        prop::collection::vec((effect, text), 0..4)
    }

    proptest! {
        #[test]
        fn a_folder_walk_permits_exactly_the_paths_that_the_whole_policy_permits(
            rules in rules(), folder in names(), link in names(), rest in names(), is_approved: bool, is_data: bool,
        ) {
            let parse = |(effect, text): &(Effect, String)| {
                PermissionRule::parse(*effect, text, RuleOrigin::CommandLine, &PatternContext::default()).map(Arc::new)
            };
            let forbidden = if is_data { vec!["/w/a/b".into()] } else { Vec::new() };
            let roots = WorkspaceRoots { write: vec!["/w".into()], read_only: Vec::new(), forbidden };
            let policy = PermissionPolicy {
                rules: rules.iter().map(|rule| parse(rule).unwrap()).collect(), mode: PermissionMode::Default, roots,
                ..Default::default()
            };
            let tool = Tool::new(ToolName::parse("grep").unwrap(), Map::new(), Category::Search, ToolSource::BuiltIn);
            let at = |tail: &str| AccessPath {
                lexical: format!("/w/{folder}{tail}").into(), real: format!("/w/{link}{tail}").into(), tree: false,
            };
            let approved = if is_approved { vec![Access::ReadPath(at("").whole_tree())] } else { Vec::new() };
            let grant = CallPermissions::new(Arc::new(policy), Arc::new(tool), approved);
            let met = at(&format!("/{rest}"));
            prop_assert_eq!(grant.reading_below(&at("")).permits(&met), grant.permits(&Access::ReadPath(met.clone())));
        }
    }
}
