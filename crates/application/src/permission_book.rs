//! The policy in force, with what people approved on top of it.

use arc_swap::ArcSwap;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolstead_domain::{
    access::{Access, Clarity},
    permission::{
        decision::narrowest_rule,
        path_pattern::PatternBase,
        policy::PermissionPolicy,
        rule::{Effect, PermissionRule, RuleOrigin},
    },
    ports::{
        approver::{ApprovalPart, ApprovalScope},
        rule_store::RuleStore,
    },
    principal::Principal,
    scope::Scope,
    tool::Tool,
    tool_name::ToolName,
    workspace_roots::WorkspaceRoots,
};

/// Sessions whose approvals are kept. The one that was not used for longest is forgotten, and asks again.
const MAX_SESSIONS: usize = 1024;
/// Approvals that are kept of one session, of either kind. The oldest is forgotten.
const MAX_APPROVALS: usize = 256;
/// Policies of views that are kept. Another one is made anew.
const MAX_NARROWED: usize = 64;

/// The policy of each session: the configured one, with the allow rules that people approved. They never get past a deny
/// or ask rule, or a mode: nothing but allow rules is ever added.
pub struct PermissionBook {
    policy: ArcSwap<PermissionPolicy>,
    store: Arc<dyn RuleStore>,
    sessions: Mutex<Sessions>,
}

/// Which call an approval without a rule belongs to: the tool, and the digest of all of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallIdentity {
    /// The name that rules know the tool by.
    pub tool: ToolName,
    /// SHA-256 of the arguments, whatever the order of their keys.
    pub digest: String,
}

#[derive(Debug, Default)]
struct Sessions {
    by_key: HashMap<SessionKey, SessionApprovals>,
    uses: u64,
    /// Policies of views, the last one last, with what each was made of.
    narrowed: VecDeque<Narrowed>,
}

/// Whose approvals they are. Those that were given through a view hold in that view of the session alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SessionKey {
    principal: Principal,
    session: Arc<str>,
    view: Option<Arc<str>>,
}

impl SessionKey {
    fn of(scope: &Scope) -> Self {
        let view = scope.view.as_ref().map(|view| view.name.clone());
        Self { principal: scope.principal.clone(), session: scope.session.clone(), view }
    }
}

#[derive(Debug)]
struct Narrowed {
    policy: Arc<PermissionPolicy>,
    by: Arc<PermissionPolicy>,
    both: Arc<PermissionPolicy>,
}

#[derive(Debug, Default)]
struct SessionApprovals {
    rules: VecDeque<Arc<PermissionRule>>,
    exact: VecDeque<(CallIdentity, Access)>,
    /// The policies with the rules, and what each was joined from; by [`Part`].
    joined: [Option<(Arc<PermissionPolicy>, Arc<PermissionPolicy>)>; 2],
    used: u64,
}

impl std::fmt::Debug for PermissionBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PermissionBook").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl PermissionBook {
    /// A book that begins with this policy. What is approved for longer than a session goes to the store.
    pub fn new(policy: Arc<PermissionPolicy>, store: Arc<dyn RuleStore>) -> Self {
        Self { policy: ArcSwap::new(policy), store, sessions: Mutex::default() }
    }

    /// The policy for calls in a scope. A view narrows it; a yes that was given through the view is one to both.
    pub fn policy_of(&self, scope: &Scope) -> Arc<PermissionPolicy> {
        let policy = self.policy.load_full();
        let mut sessions = self.lock();
        if sessions.by_key.is_empty() && scope.view.is_none() {
            return policy;
        }
        let of_session = SessionKey { view: None, ..SessionKey::of(scope) };
        let policy = sessions.joined(&of_session, policy, Part::Own);
        let Some(view) = &scope.view else { return policy };
        let of_view = SessionKey::of(scope);
        let policy = sessions.joined(&of_view, policy, Part::Own);
        let by = sessions.joined(&of_view, view.policy.clone(), Part::View);
        sessions.narrow(policy, by)
    }

    /// The policy that lists are made with: what people approved shows no tool more.
    pub fn advertising(&self, scope: &Scope) -> Arc<PermissionPolicy> {
        let policy = self.policy.load_full();
        match &scope.view {
            None => policy,
            Some(view) => self.lock().narrow(policy, view.policy.clone()),
        }
    }

    /// Whether this access of this very call was approved in the session, where no rule could say so.
    pub fn is_approved(&self, scope: &Scope, call: &CallIdentity, access: Option<&Access>) -> bool {
        let Some(access) = access else { return false };
        let mut sessions = self.lock();
        sessions
            .find(&SessionKey::of(scope))
            .is_some_and(|approvals| approvals.exact.iter().any(|(known, part)| known == call && part == access))
    }

    /// For how long a part may be approved: by a rule, or without one for the same call in the same session.
    ///
    /// What is kept beyond a session counts for everybody, so only the person at this machine can have it kept; and it
    /// would not get past a view.
    pub fn scopes(&self, scope: &Scope, has_rule: bool) -> Vec<ApprovalScope> {
        let may_keep = has_rule && scope.principal == Principal::local() && scope.view.is_none();
        let is_offered = |scope: &ApprovalScope| match scope {
            ApprovalScope::Once | ApprovalScope::Session => true,
            ApprovalScope::Project | ApprovalScope::Always => may_keep && self.store.keeps(*scope),
        };
        ApprovalScope::ALL.iter().copied().filter(is_offered).collect()
    }

    /// Remembers a yes to a part of a call for as long as it was given, and says for how long it holds. A scope that was
    /// not offered is once; a rule that cannot be kept holds for the session.
    pub async fn remember(
        &self,
        scope: &Scope,
        call: &CallIdentity,
        part: &ApprovalPart,
        holds: ApprovalScope,
    ) -> ApprovalScope {
        if !part.scopes.contains(&holds) {
            return ApprovalScope::Once;
        }
        match (holds, &part.rule, &part.access) {
            (ApprovalScope::Once, ..) | (_, None, None) => ApprovalScope::Once,
            (_, None, Some(access)) => {
                let approved = (call.clone(), access.clone());
                bounded_push(&mut self.lock().of(SessionKey::of(scope)).exact, approved);
                ApprovalScope::Session
            }
            (ApprovalScope::Session, Some(rule), _) => self.remember_in_session(scope, rule),
            (ApprovalScope::Project | ApprovalScope::Always, Some(rule), _) => match self.store.keep(rule, holds).await
            {
                Ok(origin) => {
                    self.add(rule, origin);
                    holds
                }
                Err(error) => {
                    tracing::warn!(%rule, %error, "an approval could not be kept");
                    match part.scopes.contains(&ApprovalScope::Session) {
                        true => self.remember_in_session(scope, rule),
                        false => ApprovalScope::Once,
                    }
                }
            },
        }
    }

    /// Allows what a program says, in one session alone, and through the scope's view alone where it has one.
    pub fn allow_in_session(&self, scope: &Scope, rules: impl IntoIterator<Item = PermissionRule>) {
        let mut sessions = self.lock();
        let approvals = sessions.of(SessionKey::of(scope));
        for rule in rules {
            bounded_push(&mut approvals.rules, Arc::new(rule));
        }
        approvals.joined = Default::default();
    }

    /// Forgets what was approved in a session that is over.
    pub fn forget(&self, principal: &Principal, session: &Arc<str>) {
        self.lock().by_key.retain(|key, _| (&key.principal, &key.session) != (principal, session));
    }

    fn remember_in_session(&self, scope: &Scope, rule: &str) -> ApprovalScope {
        let Some(rule) = allowing(rule, RuleOrigin::Session) else { return ApprovalScope::Once };
        let mut sessions = self.lock();
        let approvals = sessions.of(SessionKey::of(scope));
        bounded_push(&mut approvals.rules, rule);
        approvals.joined = Default::default();
        ApprovalScope::Session
    }

    /// Puts a rule in force for everybody from the next call on.
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
        // Nothing panics while it is held.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a view's policy to which approved rules are joined.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The policy in force.
    Own,
    /// The view's.
    View,
}

impl Sessions {
    /// The policy with the rules that were approved under the key.
    fn joined(&mut self, key: &SessionKey, policy: Arc<PermissionPolicy>, part: Part) -> Arc<PermissionPolicy> {
        match self.find(key) {
            Some(approvals) if !approvals.rules.is_empty() => approvals.join(policy, part),
            _ => policy,
        }
    }

    fn narrow(&mut self, policy: Arc<PermissionPolicy>, by: Arc<PermissionPolicy>) -> Arc<PermissionPolicy> {
        let is_known = |one: &&Narrowed| Arc::ptr_eq(&one.policy, &policy) && Arc::ptr_eq(&one.by, &by);
        if let Some(known) = self.narrowed.iter().find(is_known) {
            return known.both.clone();
        }
        if self.narrowed.len() >= MAX_NARROWED {
            self.narrowed.pop_front();
        }
        let both = Arc::new(policy.narrowed(&by));
        self.narrowed.push_back(Narrowed { policy, by, both: both.clone() });
        both
    }

    fn find(&mut self, key: &SessionKey) -> Option<&mut SessionApprovals> {
        self.uses += 1;
        let approvals = self.by_key.get_mut(key)?;
        approvals.used = self.uses;
        Some(approvals)
    }

    /// Those of the session, which get a place if they have none.
    fn of(&mut self, key: SessionKey) -> &mut SessionApprovals {
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
    /// The policy with the rules of the session.
    fn join(&mut self, policy: Arc<PermissionPolicy>, part: Part) -> Arc<PermissionPolicy> {
        let known = &mut self.joined[part as usize];
        if let Some((of, joined)) = known
            && Arc::ptr_eq(of, &policy)
        {
            return joined.clone();
        }
        let mut whole = PermissionPolicy::clone(&policy);
        whole.rules.extend(self.rules.iter().cloned());
        let joined = Arc::new(whole);
        *known = Some((policy, joined.clone()));
        joined
    }
}

/// Adds what is not there yet; the oldest makes room.
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
    PermissionRule::parse(Effect::Allow, rule, origin, &PatternBase::default()).ok().map(Arc::new)
}

/// The narrowest rule that allows this access of the tool, for remembering a yes to it; `None` where a rule would allow
/// more than was shown. A rule is proven to allow it before it is given out.
pub(crate) fn rule_to_remember(tool: &Tool, access: &Access, roots: &WorkspaceRoots) -> Option<String> {
    let says_more = match access {
        // The rule would be on the whole line, of which this is one part, and on all that it may do another time.
        Access::RunCommand(command) => matches!(command.clarity, Clarity::Opaque(_)),
        Access::ReachHost(host) => host.contains(['*', '?']),
        // It would be on the tool, whoever the receiver is.
        Access::Send(_) => true,
        Access::ReadPath(_)
        | Access::WritePath(_)
        | Access::CallUpstream { .. }
        | Access::RunAgent(_)
        | Access::OfferTools(_) => false,
    };
    if says_more {
        return None;
    }
    let rule = narrowest_rule(access, tool.rule_name().as_str())?;
    allowing(&rule, RuleOrigin::Session).filter(|rule| rule.allows(tool, access, roots)).map(|_| rule)
}

#[cfg(test)]
mod tests;
