//! The permission policy: combines rules, roots and defaults into the one decision on what runs.

use crate::{
    access::{Access, AccessKind, AccessPath, ParseConfidence},
    category::Category,
    permission::{
        decision::{Cause, Decision, Finding, NearMiss, Verdict},
        rule::{Effect, PermissionRule, RuleSubject},
    },
    tool::{Tool, ToolSource},
    tool_selection::ToolSelection,
    workspace_roots::{RootPermission, WorkspaceRoots},
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Treatment of accesses that no deny or ask rule catches. Deny and ask rules apply in every mode.
///
/// ```
/// use toolstead_domain::permission::policy::PermissionMode;
///
/// assert_eq!(PermissionMode::parse("accept_edits"), Some(PermissionMode::AcceptEdits));
/// assert_eq!(PermissionMode::default().as_str(), "default");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PermissionMode {
    /// Rules and defaults decide.
    #[default]
    Default,
    /// Only reading is allowed.
    Plan,
    /// File changes inside the roots are allowed.
    AcceptEdits,
    /// No approval is requested: calls that would need one are denied.
    DontAsk,
    /// Everything that nothing denies is allowed.
    Bypass,
}

impl PermissionMode {
    /// All modes.
    pub const ALL: &[Self] = &[Self::Default, Self::Plan, Self::AcceptEdits, Self::DontAsk, Self::Bypass];

    /// Returns the name of the mode in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
            Self::AcceptEdits => "accept_edits",
            Self::DontAsk => "dont_ask",
            Self::Bypass => "bypass",
        }
    }

    /// Returns the mode with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == text)
    }
}

/// Complete permission policy. A value without I/O; listing and calling use the same one.
///
/// ```
/// use toolstead_domain::{
///     permission::policy::{PermissionMode, PermissionPolicy},
///     tool_selection::ToolSelection,
/// };
///
/// let policy = PermissionPolicy { mode: PermissionMode::DontAsk, ..PermissionPolicy::default() };
/// assert!(policy.denies_instead_of_asking());
/// let view = policy.window(ToolSelection::only(["read_file"]));
/// assert_eq!(view.mode, PermissionMode::Bypass);
/// ```
#[derive(Debug, Clone, Default)]
pub struct PermissionPolicy {
    /// All rules, in the order of their sources.
    pub rules: Vec<Arc<PermissionRule>>,
    /// Allow rules of files that are not trusted yet. They have no effect on decisions, and are named where they would
    /// have applied.
    pub waiting: Vec<Arc<PermissionRule>>,
    /// Mode of the policy.
    pub mode: PermissionMode,
    /// Folders of the workspace.
    pub roots: WorkspaceRoots,
    /// Tools that are offered.
    pub selection: ToolSelection,
    /// Policies that apply in addition; set by [`narrowed`](Self::narrowed).
    pub within: Option<Arc<OuterPolicies>>,
}

/// Policies that narrow another policy.
#[derive(Debug)]
pub struct OuterPolicies {
    policies: Vec<Arc<PermissionPolicy>>,
    /// Roots that are contained in the roots of all of these policies.
    roots: WorkspaceRoots,
}

impl PermissionPolicy {
    /// Returns the policy that denies what either denies, asks for what either asks for, and allows what both allow.
    /// Each continues to resolve its rules by its own roots.
    #[must_use]
    pub fn narrowed(&self, by: &Arc<Self>) -> Self {
        let mut policies = self.within.as_ref().map_or_else(Vec::new, |within| within.policies.clone());
        policies.push(Arc::new(Self { within: None, ..(**by).clone() }));
        policies.extend(by.within.iter().flat_map(|within| within.policies.iter().cloned()));
        let roots = self.workspace().intersection(by.workspace());
        Self { within: Some(Arc::new(OuterPolicies { policies, roots })), ..self.clone() }
    }

    /// Returns a policy that offers only the selected tools and allows every access in the roots of this policy. It
    /// contains no other limits: combine it with this policy by [`narrowed`](Self::narrowed).
    #[must_use]
    pub fn window(&self, selection: ToolSelection) -> Self {
        Self { mode: PermissionMode::Bypass, roots: self.workspace().clone(), selection, ..Self::default() }
    }

    /// Returns [`window`](Self::window) for the tools that a program may call. Tools that a deny rule forbids to offer
    /// to programs are not part of it, by whatever name they are offered.
    #[must_use]
    pub fn window_of_program(&self, selection: ToolSelection) -> Self {
        let rules = self.layers().flat_map(|layer| &layer.rules);
        let rules = rules.filter_map(|rule| rule.of_offered_tools()).map(Arc::new).collect();
        Self { rules, ..self.window(selection) }
    }

    /// Returns this policy with only those rules for which `keep` returns `true`, in the policies that narrow it as
    /// well.
    #[must_use]
    pub(super) fn keeping(&self, keep: &impl Fn(&PermissionRule) -> bool) -> Self {
        let mut policy = self.clone();
        policy.rules.retain(|rule| keep(rule));
        policy.within = self.within.as_ref().map(|within| {
            let policies = within.policies.iter().map(|one| Arc::new(one.keeping(keep))).collect();
            Arc::new(OuterPolicies { policies, roots: within.roots.clone() })
        });
        policy
    }

    /// Returns this policy and those that narrow it.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Self> {
        let within = self.within.iter().flat_map(|within| within.policies.iter().map(Arc::as_ref));
        std::iter::once(self).chain(within)
    }

    /// Returns the folders that tools may work in: the intersection of the roots of all policies.
    pub fn workspace(&self) -> &WorkspaceRoots {
        self.within.as_ref().map_or(&self.roots, |within| &within.roots)
    }

    /// Returns `true` if calls that would need approval are denied.
    pub fn denies_instead_of_asking(&self) -> bool {
        self.layers().any(|layer| layer.mode == PermissionMode::DontAsk)
    }

    /// Decides on one call: the strictest finding on any part wins, deny over ask over allow.
    pub fn decide(&self, tool: &Tool, arguments: &Map<String, Value>, accesses: &[Access]) -> Decision {
        if let Some(cause) = self.leaves_out(tool) {
            return decision_on_call(Verdict::Deny, cause);
        }
        let strictest = |of: &dyn Fn(&Self) -> Option<Finding>| self.layers().filter_map(of).reduce(stricter);
        let on_whole_call = strictest(&|layer| layer.of_whole_call(tool, arguments));
        let mut trace = Vec::with_capacity((accesses.len() + usize::from(on_whole_call.is_some())).max(1));
        trace.extend(on_whole_call);
        trace.extend(accesses.iter().map(|access| self.judge(tool, access)));
        if trace.is_empty() {
            trace.push(self.without_accesses(tool));
        }
        let mut decision = concluded(trace);
        let denies = |layer: &Self| {
            let is_asked = || layer.judged_alone(tool, arguments, accesses) == Verdict::Ask;
            layer.mode == PermissionMode::DontAsk && (self.within.is_none() || is_asked())
        };
        if decision.verdict == Verdict::Ask && self.layers().any(denies) {
            decision.verdict = Verdict::Deny;
            decision.decisive.verdict = Verdict::Deny;
        }
        decision
    }

    /// Returns the verdict of this policy alone, without the effect of the mode on approvals.
    fn judged_alone(&self, tool: &Tool, arguments: &Map<String, Value>, accesses: &[Access]) -> Verdict {
        let whole = self.of_whole_call(tool, arguments).map(|finding| finding.verdict);
        let parts = accesses.iter().map(|access| self.finding(tool, access).verdict);
        parts.chain(whole).max().unwrap_or(Verdict::Allow)
    }

    /// Returns the finding of a deny or ask rule on the tool as a whole or on its arguments; `None` if no rule applies.
    fn of_whole_call(&self, tool: &Tool, arguments: &Map<String, Value>) -> Option<Finding> {
        let caught = |effect| self.caught(effect, tool, arguments, &[]);
        caught(Effect::Deny).or_else(|| caught(Effect::Ask))
    }

    /// Returns the strictest finding on one access, by this policy and by those that narrow it. Rules on arguments do
    /// not apply.
    pub fn judge(&self, tool: &Tool, access: &Access) -> Finding {
        let mut finding = self.finding(tool, access);
        for layer in self.layers().skip(1) {
            finding = stricter(finding, layer.finding(tool, access));
        }
        finding
    }

    /// Returns the finding of this policy, without those that narrow it.
    fn finding(&self, tool: &Tool, access: &Access) -> Finding {
        let one = std::slice::from_ref(access);
        // Rules on parameters were checked before the call began.
        let caught = |effect| {
            let finding = self.caught(effect, tool, &Map::new(), one)?;
            Some(Finding { part: Some(access.clone()), ..finding })
        };
        let finding = self
            .bounds(access)
            .or_else(|| caught(Effect::Deny))
            // Before the ask rules: an approval cannot override what the mode forbids.
            .or_else(|| self.forbidden_by_mode(tool, access))
            .or_else(|| caught(Effect::Ask))
            .unwrap_or_else(|| self.leave(tool, access));
        Finding { near_miss: self.near_miss(tool, access, &finding), ..finding }
    }

    /// Returns the allow rule that matches the access without effect, if a default asks for approval or the path is in
    /// no root.
    fn near_miss(&self, tool: &Tool, access: &Access, finding: &Finding) -> Option<NearMiss> {
        let allows = |rule: &&Arc<PermissionRule>| rule.allows(tool, access, &self.roots);
        match (finding.verdict, &finding.cause) {
            (Verdict::Ask, Cause::Default(_)) => {
                let not_plain = self.allow_rules().find(|rule| rule.misses(tool, access)).cloned();
                let waiting = || self.waiting.iter().find(allows).cloned();
                let of_tools = || self.allow_rules().find(|rule| rule.names_only_tools(tool)).cloned();
                let not_plain = not_plain.map(NearMiss::NotPlain);
                not_plain.or_else(|| waiting().map(NearMiss::Waiting)).or_else(|| of_tools().map(NearMiss::OfTools))
            }
            (_, Cause::OutsideRoots) => {
                let mut naming = self.allow_rules().filter(|rule| rule.names_paths());
                naming.find(allows).cloned().map(NearMiss::Outside)
            }
            _ => None,
        }
    }

    /// Returns `true` if an ask rule on paths catches the access.
    pub(super) fn has_path_ask_rule(&self, tool: &Tool, access: &Access) -> bool {
        self.asks(tool, access, |rule| rule.subject() == RuleSubject::Path)
    }

    /// Returns `true` if an ask rule that names paths catches the access.
    pub(super) fn has_named_path_ask_rule(&self, tool: &Tool, access: &Access) -> bool {
        self.asks(tool, access, PermissionRule::names_paths)
    }

    /// Returns `true` if an ask rule that applies to parts of a call catches the access.
    pub(super) fn has_part_ask_rule(&self, tool: &Tool, access: &Access) -> bool {
        self.asks(tool, access, PermissionRule::is_about_parts)
    }

    fn asks(&self, tool: &Tool, access: &Access, which: impl Fn(&PermissionRule) -> bool) -> bool {
        self.layers().any(|layer| {
            let mut asking = layer.rules.iter().filter(|rule| rule.effect == Effect::Ask && which(rule));
            asking.any(|rule| rule.catches(tool, &Map::new(), std::slice::from_ref(access), &layer.roots).is_some())
        })
    }

    /// Returns the rules that may catch reading below a folder: one element for this policy and for each that narrows
    /// it.
    pub(super) fn read_rules<'a>(&'a self, tool: &'a Tool, folder: &AccessPath) -> Vec<ReadRules<'a>> {
        self.layers().map(|layer| layer.own_read_rules(tool, folder)).collect()
    }

    fn own_read_rules<'a>(&'a self, tool: &'a Tool, folder: &AccessPath) -> ReadRules<'a> {
        let matters = |effect: Effect| {
            let rules = self.rules.iter().filter(move |rule| rule.effect == effect);
            rules
                .filter(|rule| rule.may_catch_below(tool, AccessKind::Read, folder, &self.roots))
                .map(Arc::as_ref)
                .collect()
        };
        let is_inside = self.roots.containing(&folder.real).is_some();
        let forbidden = self.roots.forbidden.iter();
        let has_forbidden =
            folder.forms().any(|form| forbidden.clone().any(|path| path.starts_with(form) || form.starts_with(path)));
        ReadRules {
            tool,
            roots: &self.roots,
            is_inside,
            has_forbidden,
            deny: matters(Effect::Deny),
            ask: matters(Effect::Ask),
        }
    }

    /// Returns `true` if callers may see the tool: unless every call of it would be denied, whatever its arguments.
    pub fn advertises(&self, tool: &Tool) -> bool {
        self.refusal_of_every_call(tool).is_none()
    }

    /// Returns `true` if the selection of this policy, or of one that narrows it, contains the tool under a name without
    /// `*`.
    pub fn selects_literally(&self, tool: &Tool) -> bool {
        self.layers().any(|layer| layer.selection.includes_literally(tool))
    }

    /// Returns the decision on every call of the tool if each is denied, whatever its arguments and accesses: the tool
    /// is not selected, or a deny rule names it. Such a call is refused before anything else is checked.
    pub fn refusal_of_every_call(&self, tool: &Tool) -> Option<Decision> {
        if let Some(cause) = self.leaves_out(tool) {
            return Some(decision_on_call(Verdict::Deny, cause));
        }
        let denies = |rule: &&Arc<PermissionRule>| rule.effect == Effect::Deny && denies_always(rule, tool);
        self.layers()
            .flat_map(|layer| &layer.rules)
            .find(denies)
            .map(|rule| decision_on_call(Verdict::Deny, Cause::Rule(rule.clone())))
    }

    /// Returns `true` if a deny rule closes everything that the access requests, so that no list includes it.
    pub fn closes_request(&self, access: &Access) -> bool {
        self.layers().any(|layer| layer.rules.iter().any(|rule| rule.closes_request(access, &layer.roots)))
    }

    /// Returns the reason why the tool is not offered; `None` if it is.
    fn leaves_out(&self, tool: &Tool) -> Option<Cause> {
        match self.layers().position(|layer| !layer.selection.includes(tool))? {
            0 => Some(Cause::NotSelected),
            _ => Some(Cause::OutsideWindow),
        }
    }

    /// Returns a denial if the access violates a limit that no rule can change: the roots, or Toolstead's own data;
    /// otherwise `None`.
    fn bounds(&self, access: &Access) -> Option<Finding> {
        let path = access.path()?;
        let deny = |cause| Some(Finding::new(Verdict::Deny, Some(access.clone()), cause));
        if path.forms().any(|form| self.roots.is_forbidden(form)) {
            return deny(Cause::Forbidden);
        }
        if self.roots.start().is_none() {
            return deny(Cause::NoRoots);
        }
        // The real path is checked: a root may itself be reached through a link.
        match self.roots.containing(&path.real) {
            None => deny(Cause::OutsideRoots),
            Some((_, RootPermission::ReadOnly)) if access.kind() == AccessKind::Write => deny(Cause::ReadOnlyRoot),
            Some(_) => None,
        }
    }

    /// Returns `true` if a command only changes files inside the roots or at unrestricted paths, and names all of them.
    fn only_changes_files(&self, access: &Access) -> bool {
        let Access::RunCommand(command) = access else { return false };
        command.clarity == ParseConfidence::Plain
            && command.only_changes_files
            && command.files().next().is_some()
            && command.operands.iter().all(|operand| self.bounds(operand).is_none())
    }

    fn forbidden_by_mode(&self, tool: &Tool, access: &Access) -> Option<Finding> {
        let reads = access.kind() == AccessKind::Read || reads_by_a_program(tool, access) || is_own(tool, access);
        // Calls of an agent are checked by themselves, in the same mode.
        let forbidden = self.mode == PermissionMode::Plan && !reads && access.kind() != AccessKind::Agent;
        let cause = Cause::Mode("the mode `plan` allows reading only");
        forbidden.then(|| Finding::new(Verdict::Deny, Some(access.clone()), cause))
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
            Some(Finding::new(verdict, part.cloned(), Cause::Rule(rule.clone())))
        })
    }

    /// Returns the finding on a call without accesses.
    fn without_accesses(&self, tool: &Tool) -> Finding {
        let allow = self.rules.iter().find(|rule| rule.effect == Effect::Allow && rule.allows_whole(tool));
        let cause = allow.map_or(Cause::Default("calls that touch nothing are allowed by default"), |rule| {
            Cause::Rule(rule.clone())
        });
        Finding::new(Verdict::Allow, None, cause)
    }

    /// Judges an access that nothing denies or asks for: by the mode, the allow rules, the defaults.
    fn leave(&self, tool: &Tool, access: &Access) -> Finding {
        let finding = |verdict, cause| Finding::new(verdict, Some(access.clone()), cause);
        match (self.mode, access.kind()) {
            (PermissionMode::Bypass, _) => {
                return finding(Verdict::Allow, Cause::Mode("the mode `bypass` allows what nothing denies"));
            }
            (PermissionMode::AcceptEdits, AccessKind::Run) if self.only_changes_files(access) => {
                return finding(Verdict::Allow, Cause::Mode("the mode `accept_edits` allows changes inside the roots"));
            }
            (PermissionMode::AcceptEdits, AccessKind::Write) => {
                return finding(Verdict::Allow, Cause::Mode("the mode `accept_edits` allows changes inside the roots"));
            }
            _ => {}
        }
        if let Some(rule) = self.allow_rules().find(|rule| rule.allows(tool, access, &self.roots)) {
            return finding(Verdict::Allow, Cause::Rule(rule.clone()));
        }
        if let Access::RunCommand(command) = access
            && let Some(rule) = command.allowing_rule()
        {
            return finding(Verdict::Allow, Cause::Default(rule.reason()));
        }
        match access.kind() {
            AccessKind::Read => {
                finding(Verdict::Allow, Cause::Default("reading inside the roots is allowed by default"))
            }
            AccessKind::Write => finding(Verdict::Ask, Cause::Default("changes to files need approval by default")),
            AccessKind::Run if reads_by_a_program(tool, access) => {
                finding(Verdict::Allow, Cause::Default("programs that only read are allowed by default"))
            }
            AccessKind::Run => finding(Verdict::Ask, Cause::Default("commands need approval by default")),
            AccessKind::Reach => finding(Verdict::Ask, Cause::Default("connections to hosts need approval by default")),
            AccessKind::Send => finding(Verdict::Ask, Cause::Default("sending always needs approval")),
            AccessKind::Resource | AccessKind::Prompt if is_own(tool, access) => {
                finding(Verdict::Allow, Cause::Default("resources and prompts of this program are allowed by default"))
            }
            AccessKind::Resource => {
                finding(Verdict::Ask, Cause::Default("resources of MCP servers need approval by default"))
            }
            AccessKind::Prompt => {
                finding(Verdict::Ask, Cause::Default("prompts of MCP servers need approval by default"))
            }
            AccessKind::Upstream => {
                finding(Verdict::Ask, Cause::Default("tools of MCP servers need approval by default"))
            }
            AccessKind::Undeclared => finding(
                Verdict::Ask,
                Cause::Default("tools that do not declare what they touch need approval by default"),
            ),
            // The agent's calls are checked one by one, and it may do nothing that its caller may not.
            AccessKind::Agent => finding(Verdict::Allow, Cause::Default("agents are allowed by default")),
            AccessKind::Offer => finding(Verdict::Ask, Cause::Default("tools for programs need approval by default")),
        }
    }

    fn allow_rules(&self) -> impl Iterator<Item = &Arc<PermissionRule>> {
        self.rules.iter().filter(|rule| rule.effect == Effect::Allow)
    }
}

fn concluded(trace: Vec<Finding>) -> Decision {
    let nothing = || Finding::new(Verdict::Deny, None, Cause::Default("nothing allows it"));
    let decisive = trace.iter().cloned().reduce(stricter).unwrap_or_else(nothing);
    Decision { verdict: decisive.verdict, decisive, trace }
}

/// Returns the stricter finding; of equally strict ones the one that is hardest to change, and of those the first.
fn stricter(a: Finding, b: Finding) -> Finding {
    let weight = |finding: &Finding| (finding.verdict, finding.cause.weight());
    if weight(&b) > weight(&a) { b } else { a }
}

/// Rules on reading below one folder. They give the same verdicts on paths there as [`PermissionPolicy::judge`], and
/// check only what can apply: reading inside the roots is allowed unless something denies it or asks for approval.
#[derive(Debug)]
pub(super) struct ReadRules<'a> {
    tool: &'a Tool,
    roots: &'a WorkspaceRoots,
    is_inside: bool,
    has_forbidden: bool,
    deny: Vec<&'a PermissionRule>,
    ask: Vec<&'a PermissionRule>,
}

impl ReadRules<'_> {
    pub(super) fn are_against_something(&self) -> bool {
        !self.is_inside || self.has_forbidden || !self.deny.is_empty() || !self.ask.is_empty()
    }

    pub(super) fn verdict(&self, path: &AccessPath) -> Verdict {
        let caught =
            |rules: &[&PermissionRule]| rules.iter().any(|rule| rule.catches_reading(self.tool, path, self.roots));
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

/// Returns `true` if this is the program through which a built-in tool reads. Its reads are checked by themselves.
fn reads_by_a_program(tool: &Tool, access: &Access) -> bool {
    access.kind() == AccessKind::Run
        && tool.annotations().read_only_hint == Some(true)
        && matches!(tool.source(), ToolSource::BuiltIn)
}

/// Returns `true` for a request to an in-process provider, as opposed to an MCP server.
fn is_own(tool: &Tool, access: &Access) -> bool {
    matches!(access.kind(), AccessKind::Resource | AccessKind::Prompt)
        && !matches!(tool.source(), ToolSource::McpServer { .. })
}

fn decision_on_call(verdict: Verdict, cause: Cause) -> Decision {
    let decisive = Finding::new(verdict, None, cause);
    Decision { verdict, trace: vec![decisive.clone()], decisive }
}

/// Returns `true` if the rule denies every call of the tool: it names the tool, or the one kind of access that all its
/// calls have.
fn denies_always(rule: &PermissionRule, tool: &Tool) -> bool {
    let only_kind = match (tool.source(), tool.category) {
        (ToolSource::BuiltIn, Category::Shell) => Some(AccessKind::Run),
        (ToolSource::BuiltIn, Category::Web) => Some(AccessKind::Reach),
        _ => None,
    };
    let is_of_agents =
        || matches!(tool.source(), ToolSource::BuiltIn) && rule.names_whole_kind_of(AccessKind::Agent, tool);
    rule.denies_whole(tool)
        || rule.names_requests_of(tool)
        || only_kind.is_some_and(|kind| rule.names_whole_kind(kind))
        || is_of_agents()
}

#[cfg(test)]
mod tests;
