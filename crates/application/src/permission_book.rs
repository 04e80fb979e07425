//! The active policy, combined with approvals of users.

use arc_swap::ArcSwap;
use std::{
    collections::{HashMap, VecDeque},
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use toolstead_domain::{
    Access, AccessKind, ApprovalPart, ApprovalScope, Effect, ParseConfidence, PatternContext, PermissionPolicy,
    PermissionRule, Principal, ReadOnlyCommands, RequestScope, RuleStore, Tool, ToolName, Verdict, View,
    WorkspaceRoots,
    permission::{offered_rule::offered_rule, rule::RuleOrigin},
};

/// Maximum number of sessions with stored approvals. The least recently used one is forgotten; its calls require
/// approval again.
const MAX_SESSIONS: usize = 1024;
/// Maximum number of stored approvals of one session, for each kind. The oldest is forgotten.
const MAX_APPROVALS: usize = 256;
/// Maximum number of cached policies of restricted views. Others are computed again.
const MAX_NARROWED: usize = 64;
/// Maximum number of cached policies per restricted view with approvals. Others are computed again.
const MAX_JOINED: usize = 8;

/// The policy of each session: the configured one, with the allow rules that users approved. Only allow rules are ever
/// added, so an approval never overrides a deny rule, an ask rule or a mode.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::permission_book::PermissionBook;
/// use toolstead_domain::{NoRuleStore, PermissionPolicy, RequestScope};
///
/// let permissions = PermissionBook::new(Arc::new(PermissionPolicy::default()), Arc::new(NoRuleStore));
/// let policy = permissions.policy_of(&RequestScope::default());
/// assert!(policy.rules.is_empty());
/// ```
pub struct PermissionBook {
    policy: ArcSwap<PermissionPolicy>,
    store: Arc<dyn RuleStore>,
    read_only_commands: ReadOnlyCommands,
    sessions: Mutex<Sessions>,
}

/// The call that an approval without a rule belongs to: the tool, and the digest of all of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFingerprint {
    /// Name of the tool in rules.
    pub tool: ToolName,
    /// SHA-256 of the arguments, independent of the order of their keys.
    pub digest: String,
}

#[derive(Debug, Default)]
struct Sessions {
    by_key: HashMap<ApprovalOwner, SessionApprovals>,
    uses: u64,
    /// Cached policies of restricted views with the policies that each was computed from, the newest one last.
    narrowed: VecDeque<NarrowedPolicyCacheEntry>,
}

/// The owner of approvals. Those that were given in a restricted view only count in that view of the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ApprovalOwner {
    principal: Principal,
    session: Arc<str>,
    window: Option<ViewIdentity>,
}

/// The identity of a restricted view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ViewIdentity {
    /// Identified by its name and the view around it.
    Named(Arc<str>, Option<Arc<ViewIdentity>>),
    Run(RunViewIdentity),
}

/// The restricted view of a run. It equals only itself, and ends with the run.
#[derive(Debug, Clone)]
struct RunViewIdentity(Weak<View>);

impl PartialEq for RunViewIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Eq for RunViewIdentity {}

impl Hash for RunViewIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ptr().hash(state);
    }
}

impl ViewIdentity {
    fn of(view: &Arc<View>) -> Self {
        match view.is_run {
            true => Self::Run(RunViewIdentity(Arc::downgrade(view))),
            false => Self::Named(view.name.clone(), view.within.as_ref().map(|outer| Arc::new(Self::of(outer)))),
        }
    }

    /// Returns `true` if the view cannot be used any more.
    fn is_over(&self) -> bool {
        match self {
            Self::Run(run) => run.0.strong_count() == 0,
            Self::Named(_, outer) => outer.as_ref().is_some_and(|outer| outer.is_over()),
        }
    }
}

impl ApprovalOwner {
    fn through(scope: &RequestScope, view: Option<&Arc<View>>) -> Self {
        let window = view.map(ViewIdentity::of);
        Self { principal: scope.principal.clone(), session: scope.session.clone(), window }
    }

    fn of(scope: &RequestScope) -> Self {
        Self::through(scope, scope.view.as_ref())
    }

    /// Returns the key of the session, followed by those of the restricted views, from the outermost to the innermost.
    fn all(scope: &RequestScope) -> Vec<Self> {
        let mut keys: Vec<Self> = scope.windows().map(|view| Self::through(scope, Some(view))).collect();
        keys.push(Self::through(scope, None));
        keys.reverse();
        keys
    }

    /// Returns the keys under which an approval for the session is stored: that of the innermost view which is not of a
    /// run, or else of the session, and, within a run, also that of the run, whose own policy it answers as well.
    fn for_session(scope: &RequestScope) -> Vec<Self> {
        let beside = scope.windows().find(|view| !view.is_run);
        let is_run = scope.view.as_ref().is_some_and(|view| view.is_run);
        let mut keys = vec![Self::through(scope, beside)];
        keys.extend(is_run.then(|| Self::of(scope)));
        keys
    }
}

#[derive(Debug)]
struct NarrowedPolicyCacheEntry {
    policy: Arc<PermissionPolicy>,
    by: Arc<PermissionPolicy>,
    both: Arc<PermissionPolicy>,
}

#[derive(Debug, Default)]
struct SessionApprovals {
    rules: VecDeque<Arc<PermissionRule>>,
    exact: VecDeque<(CallFingerprint, Access)>,
    /// Cached policies, each without the rules and then with them; the newest pair is last.
    joined: VecDeque<(Arc<PermissionPolicy>, Arc<PermissionPolicy>)>,
    used: u64,
}

impl std::fmt::Debug for PermissionBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PermissionBook").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl PermissionBook {
    /// Creates a book with this policy. Approvals that outlast a session are written to the store.
    pub fn new(policy: Arc<PermissionPolicy>, store: Arc<dyn RuleStore>) -> Self {
        let read_only_commands = ReadOnlyCommands::default();
        Self { policy: ArcSwap::new(policy), store, read_only_commands, sessions: Mutex::default() }
    }

    /// Sets the read-only commands that an approval may include.
    #[must_use]
    pub fn with_read_only_commands(self, commands: ReadOnlyCommands) -> Self {
        Self { read_only_commands: commands, ..self }
    }

    /// Returns `true` if an approval of these parts may include all read-only commands.
    pub(crate) fn offers_read_only_commands(&self, tool: &Tool, parts: &[ApprovalPart]) -> bool {
        self.read_only_commands.are_offered(tool, parts)
    }

    /// Returns the rules that an approval of a part with this rule stores in the session.
    fn session_rules(&self, rule: &str, holds: ApprovalScope) -> Vec<String> {
        let read_only = (holds == ApprovalScope::ReadOnlyCommands).then(|| self.read_only_commands.rules());
        read_only.into_iter().flatten().chain([rule.to_owned()]).collect()
    }

    /// Returns the policy for calls in a scope, narrowed by each restricted view. An approval applies to the policies
    /// that required it: the active one, and those of the views from the outermost to the one in which it was given.
    pub fn policy_of(&self, scope: &RequestScope) -> Arc<PermissionPolicy> {
        let policy = self.policy.load_full();
        let mut sessions = self.lock();
        if sessions.by_key.is_empty() && scope.view.is_none() {
            return policy;
        }
        let keys = ApprovalOwner::all(scope);
        let policy = sessions.joined(&keys, policy);
        outermost_first(scope).enumerate().fold(policy, |policy, (index, view)| {
            let by = sessions.joined(&keys[index + 1..], view.policy.clone());
            sessions.narrow(policy, by)
        })
    }

    /// Returns the policy for lists. Approvals of users do not make any further tool visible.
    pub fn advertising(&self, scope: &RequestScope) -> Arc<PermissionPolicy> {
        let policy = self.policy.load_full();
        if scope.view.is_none() {
            return policy;
        }
        let mut sessions = self.lock();
        outermost_first(scope).fold(policy, |policy, view| sessions.narrow(policy, view.policy.clone()))
    }

    /// Returns `true` if this access of this very call was approved in the session without a rule. An approval from
    /// outside of a restricted view does not answer what the policy of that view asks.
    pub fn is_approved(
        &self,
        scope: &RequestScope,
        tool: &Tool,
        call: &CallFingerprint,
        access: Option<&Access>,
    ) -> bool {
        let Some(access) = access else { return false };
        let keys = ApprovalOwner::all(scope);
        let mut sessions = self.lock();
        let mut is_known = |key: &ApprovalOwner| {
            let approvals = sessions.find(key);
            approvals.is_some_and(|kept| kept.exact.iter().any(|(known, part)| known == call && part == access))
        };
        let Some(at) = keys.iter().rposition(&mut is_known) else { return false };
        outermost_first(scope).enumerate().skip(at).all(|(index, view)| {
            let by = sessions.joined(&keys[index + 1..], view.policy.clone());
            by.judge(tool, access).verdict == Verdict::Allow
        })
    }

    /// Returns the scopes for which an access may be approved: with a rule, or without one for the same call. Sending
    /// must be approved each time.
    ///
    /// Approvals that outlast a session apply to everyone, so they are offered only to the local user. They are not
    /// offered in a restricted view either, since they would not apply within it.
    pub fn scopes(&self, scope: &RequestScope, access: &Access, has_rule: bool) -> Vec<ApprovalScope> {
        if access.kind() == AccessKind::Send {
            return vec![ApprovalScope::Once];
        }
        let may_keep = has_rule && scope.principal == Principal::local() && scope.view.is_none();
        let is_offered = |holds: &ApprovalScope| match holds {
            ApprovalScope::Once | ApprovalScope::Session => true,
            ApprovalScope::Run => scope.view.as_ref().is_some_and(|view| view.is_run),
            ApprovalScope::Project | ApprovalScope::Always => may_keep && self.store.keeps(*holds),
            // Offered for all parts of a request or for none.
            ApprovalScope::ReadOnlyCommands => false,
        };
        ApprovalScope::ALL.iter().copied().filter(is_offered).collect()
    }

    /// Stores the approval of a part of a call, and returns the scope for which it counts. A scope that was not offered
    /// counts once; a rule that cannot be stored permanently counts for the session.
    pub async fn remember(
        &self,
        scope: &RequestScope,
        call: &CallFingerprint,
        part: &ApprovalPart,
        holds: ApprovalScope,
    ) -> ApprovalScope {
        if !part.scopes.contains(&holds) {
            return ApprovalScope::Once;
        }
        let keys = match holds {
            ApprovalScope::Once => return ApprovalScope::Once,
            ApprovalScope::Run => vec![ApprovalOwner::of(scope)],
            ApprovalScope::Session
            | ApprovalScope::ReadOnlyCommands
            | ApprovalScope::Project
            | ApprovalScope::Always => ApprovalOwner::for_session(scope),
        };
        match (holds, &part.rule, &part.access) {
            (_, None, None) => ApprovalScope::Once,
            (_, None, Some(access)) => {
                let mut sessions = self.lock();
                for key in keys {
                    bounded_push(&mut sessions.of(key).exact, (call.clone(), access.clone()));
                }
                holds.min(ApprovalScope::Session)
            }
            (ApprovalScope::Project | ApprovalScope::Always, Some(rule), _) => match self.store.keep(rule, holds).await
            {
                Ok(origin) => {
                    self.add(rule, origin);
                    holds
                }
                Err(error) => {
                    tracing::warn!(%rule, %error, "an approval could not be stored");
                    match part.scopes.contains(&ApprovalScope::Session)
                        && self.remember_rules(keys, std::slice::from_ref(rule))
                    {
                        true => ApprovalScope::Session,
                        false => ApprovalScope::Once,
                    }
                }
            },
            (_, Some(rule), _) => match self.remember_rules(keys, &self.session_rules(rule, holds)) {
                true => holds,
                false => ApprovalScope::Once,
            },
        }
    }

    /// Adds allow rules of an embedding application to one session, or to the restricted view of the scope in that
    /// session.
    pub fn allow_in_session(&self, scope: &RequestScope, rules: impl IntoIterator<Item = PermissionRule>) {
        let mut sessions = self.lock();
        let approvals = sessions.of(ApprovalOwner::of(scope));
        for rule in rules {
            bounded_push(&mut approvals.rules, Arc::new(rule));
        }
        approvals.joined.clear();
    }

    /// Deletes the approvals of a session that has ended.
    pub fn forget(&self, principal: &Principal, session: &Arc<str>) {
        self.lock().by_key.retain(|key, _| (&key.principal, &key.session) != (principal, session));
    }

    fn remember_rules(&self, keys: Vec<ApprovalOwner>, rules: &[String]) -> bool {
        let parsed = rules.iter().map(|rule| allowing(rule, RuleOrigin::Session));
        let Some(rules) = parsed.collect::<Option<Vec<_>>>() else { return false };
        let mut sessions = self.lock();
        for key in keys {
            let approvals = sessions.of(key);
            for rule in &rules {
                bounded_push(&mut approvals.rules, rule.clone());
            }
            approvals.joined.clear();
        }
        true
    }

    /// Adds a rule for everyone, from the next call on.
    fn add(&self, rule: &str, origin: RuleOrigin) {
        let Some(rule) = allowing(rule, origin) else { return };
        self.policy.rcu(|policy| {
            let mut policy = PermissionPolicy::clone(policy);
            if !policy.rules.contains(&rule) {
                policy.rules.push(rule.clone());
            }
            policy
        });
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        // Nothing panics while the lock is held.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the restricted views of a scope.
fn outermost_first(scope: &RequestScope) -> impl Iterator<Item = &Arc<View>> {
    let mut windows: Vec<&Arc<View>> = scope.windows().collect();
    windows.reverse();
    windows.into_iter()
}

impl Sessions {
    /// Returns the policy with the rules that were approved under these keys.
    fn joined(&mut self, keys: &[ApprovalOwner], policy: Arc<PermissionPolicy>) -> Arc<PermissionPolicy> {
        keys.iter().fold(policy, |policy, key| match self.find(key) {
            Some(approvals) if !approvals.rules.is_empty() => approvals.join(policy),
            _ => policy,
        })
    }

    fn narrow(&mut self, policy: Arc<PermissionPolicy>, by: Arc<PermissionPolicy>) -> Arc<PermissionPolicy> {
        let is_known = |one: &&NarrowedPolicyCacheEntry| Arc::ptr_eq(&one.policy, &policy) && Arc::ptr_eq(&one.by, &by);
        if let Some(known) = self.narrowed.iter().find(is_known) {
            return known.both.clone();
        }
        if self.narrowed.len() >= MAX_NARROWED {
            self.narrowed.pop_front();
        }
        let both = Arc::new(policy.narrowed(&by));
        self.narrowed.push_back(NarrowedPolicyCacheEntry { policy, by, both: both.clone() });
        both
    }

    fn find(&mut self, key: &ApprovalOwner) -> Option<&mut SessionApprovals> {
        self.uses += 1;
        let approvals = self.by_key.get_mut(key)?;
        approvals.used = self.uses;
        Some(approvals)
    }

    /// Returns the approvals under the key, and creates them if needed. Approvals of ended runs are deleted first.
    fn of(&mut self, key: ApprovalOwner) -> &mut SessionApprovals {
        if !self.by_key.contains_key(&key) {
            self.by_key.retain(|key, _| !key.window.as_ref().is_some_and(ViewIdentity::is_over));
        }
        if self.by_key.len() >= MAX_SESSIONS && !self.by_key.contains_key(&key) {
            let oldest = self.by_key.iter().min_by_key(|(_, approvals)| approvals.used).map(|(key, _)| key.clone());
            oldest.map(|oldest| self.by_key.remove(&oldest));
        }
        self.uses += 1;
        let approvals = self.by_key.entry(key).or_default();
        approvals.used = self.uses;
        approvals
    }
}

impl SessionApprovals {
    /// Returns the policy with the approved rules.
    fn join(&mut self, policy: Arc<PermissionPolicy>) -> Arc<PermissionPolicy> {
        if let Some((_, joined)) = self.joined.iter().find(|(of, _)| Arc::ptr_eq(of, &policy)) {
            return joined.clone();
        }
        if self.joined.len() >= MAX_JOINED {
            self.joined.pop_front();
        }
        let mut whole = PermissionPolicy::clone(&policy);
        whole.rules.extend(self.rules.iter().cloned());
        let joined = Arc::new(whole);
        self.joined.push_back((policy, joined.clone()));
        joined
    }
}

/// Adds a value unless it is present. The oldest one is dropped if there are too many.
fn bounded_push<T: PartialEq>(kept: &mut VecDeque<T>, new: T) {
    if kept.contains(&new) {
        return;
    }
    if kept.len() >= MAX_APPROVALS {
        kept.pop_front();
    }
    kept.push_back(new);
}

fn allowing(rule: &str, origin: RuleOrigin) -> Option<Arc<PermissionRule>> {
    PermissionRule::parse(Effect::Allow, rule, origin, &PatternContext::default()).ok().map(Arc::new)
}

/// Returns the rule that is offered for remembering approval of this access; `None` if a rule would allow more than the
/// approval request shows, or would not allow the access.
pub(crate) fn rule_to_remember(tool: &Tool, access: &Access, roots: &WorkspaceRoots) -> Option<String> {
    let says_more = match access {
        // The rule would cover the whole line, of which this is one part, and everything that the line could do another
        // time.
        Access::RunCommand(command) => matches!(command.clarity, ParseConfidence::Opaque(_)),
        Access::ReachHost(host) => host.contains(['*', '?']),
        Access::ReadPath(_)
        | Access::WritePath(_)
        | Access::CallUpstream { .. }
        | Access::Undeclared(_)
        | Access::ReadResource { .. }
        | Access::GetPrompt { .. }
        | Access::RunAgent(_)
        | Access::OfferTools(_)
        | Access::Send(_) => false,
    };
    if says_more {
        return None;
    }
    let rule = offered_rule(access, tool.rule_name().as_str())?;
    allowing(&rule, RuleOrigin::Session).filter(|rule| rule.allows(tool, access, roots)).map(|_| rule)
}

#[cfg(test)]
mod tests;
