//! Approval rules and labels of an embedding application.

use super::{hooks::Guard, *};
use crate::{approval_rule_approver::ApprovalRuleApprover, deadline_approver::DeadlineApprover};
use toolstead_domain::{ApprovalRuleDecision, AutoApprovalRule, CallLabels};

/// Approval rule with a constant answer, which counts its calls.
struct Nightly(ApprovalRuleDecision, AtomicUsize);

#[async_trait]
impl AutoApprovalRule for Nightly {
    fn name(&self) -> &str {
        "nightly"
    }

    async fn judge(&self, request: &ApprovalRequest<'_>) -> ApprovalRuleDecision {
        assert!(!request.parts.is_empty());
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0
    }
}

struct Ruled {
    house: House,
    rule: Arc<Nightly>,
    person: Arc<ScriptedApprover>,
    kept: Arc<InMemoryRuleStore>,
}

impl Ruled {
    /// Creates the rule with this answer, in front of an approver who approves once.
    async fn of(says: ApprovalRuleDecision, rules: &[(Effect, &'static str)], hooks: Vec<Arc<dyn ToolHook>>) -> Self {
        let rule = Arc::new(Nightly(says, AtomicUsize::new(0)));
        let person = Arc::new(ScriptedApprover::answering([ApprovalOutcome::once("ada")]));
        let kept = Arc::new(InMemoryRuleStore::new());
        let approver =
            Arc::new(ApprovalRuleApprover::new(vec![rule.clone() as Arc<dyn AutoApprovalRule>], person.clone()));
        let plan = Plan { approver, rules: rules.to_vec(), hooks, store: kept.clone(), ..Default::default() };
        let house = plan.house(provider().with(send())).await;
        Self { house, rule, person, kept }
    }

    fn judged(&self) -> usize {
        self.rule.1.load(Ordering::SeqCst)
    }

    /// Returns the approver of each call so far.
    fn approved_by(&self) -> Vec<Option<String>> {
        let mut rows = self.house.log.rows();
        rows.sort_by_key(|row| row.id);
        rows.into_iter().map(|row| row.decision.and_then(|decision| decision.approved_by)).collect()
    }
}

#[tokio::test]
async fn an_auto_approval_rule_decides_under_its_own_name_and_for_at_most_the_session() {
    let ruled = Ruled::of(ApprovalRuleDecision::Once, &[], Vec::new()).await;
    for _ in 0..2 {
        assert_eq!(ruled.house.call("write", json!({})).await, "written");
    }
    assert_eq!(ruled.approved_by(), vec![Some("the program's rule `nightly`".to_owned()); 2]);
    assert_eq!((ruled.judged(), ruled.person.questions().len()), (2, 0));

    let ruled = Ruled::of(ApprovalRuleDecision::Session, &[], Vec::new()).await;
    for _ in 0..2 {
        assert_eq!(ruled.house.call("write", json!({})).await, "written");
    }
    assert_eq!(ruled.approved_by()[0].as_deref(), Some("the program's rule `nightly` (session)"));
    assert_eq!(ruled.judged(), 1);
    assert!(ruled.kept.stored_rules().is_empty(), "a rule keeps nothing beyond the session");

    let ruled = Ruled::of(ApprovalRuleDecision::Refuse, &[], Vec::new()).await;
    let answer = ruled.house.call("write", json!({})).await;
    assert!(answer.ends_with("The call of `write` was refused by the program's rule `nightly`."), "{answer}");
    assert_eq!(ruled.person.questions().len(), 0);

    let ruled = Ruled::of(ApprovalRuleDecision::Pass, &[], Vec::new()).await;
    assert_eq!(ruled.house.call("write", json!({})).await, "written");
    assert_eq!(ruled.approved_by(), [Some("ada".to_owned())]);
}

#[tokio::test]
async fn an_auto_approval_rule_cannot_override_a_denial_or_a_required_human_approval() {
    for says in [ApprovalRuleDecision::Once, ApprovalRuleDecision::Session] {
        let denied = Ruled::of(says, &[(Effect::Deny, "Write")], Vec::new()).await;
        assert!(denied.house.call("write", json!({})).await.contains("the deny rule `Write`"));
        assert!(denied.house.call("outside", json!({})).await.contains("outside of the workspace's roots"));
        assert_eq!((denied.judged(), denied.person.questions().len()), (0, 0));

        let guard: Vec<Arc<dyn ToolHook>> = vec![Arc::new(Guard::default())];
        for (tool, arguments, rules, hooks) in [
            ("write", json!({}), &[(Effect::Ask, "Write")][..], Vec::new()),
            ("send", json!({}), &[], Vec::new()),
            ("read", json!({"path": "doubtful"}), &[], guard),
        ] {
            let asked = Ruled::of(says, rules, hooks).await;
            asked.house.call(tool, arguments).await;
            assert_eq!(asked.approved_by(), [Some("ada".to_owned())], "{tool}");
        }
    }
}

/// An approval rule or approver that never answers, or panics.
struct Faulty {
    panics: bool,
}

impl Faulty {
    async fn answer<T>(&self) -> T {
        assert!(!self.panics, "out of order");
        std::future::pending().await
    }
}

#[async_trait]
impl AutoApprovalRule for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    async fn judge(&self, _: &ApprovalRequest<'_>) -> ApprovalRuleDecision {
        self.answer().await
    }
}

#[async_trait]
impl Approver for Faulty {
    async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalOutcome {
        let left = tokio::time::Instant::from_std(request.deadline) - tokio::time::Instant::now();
        assert_eq!(left, CallSettings::default().approval_timeout, "the request has the deadline");
        self.answer().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_denied_if_its_rule_or_approver_panics_and_refused_if_either_is_late() {
    let approver = |panics| Arc::new(DeadlineApprover::new(Arc::new(Faulty { panics }))) as Arc<dyn Approver>;
    let rule = |panics| {
        let rules = vec![Arc::new(Faulty { panics }) as Arc<dyn AutoApprovalRule>];
        Arc::new(ApprovalRuleApprover::new(rules, Arc::new(ScriptedApprover::granting(1)))) as Arc<dyn Approver>
    };
    let late = "No approver answered in time.";
    for (approver, kind, words, approved_by) in [
        (approver(true), "permission_denied", "the approver, which panicked", Some("the approver, which panicked")),
        (
            rule(true),
            "permission_denied",
            "the program's rule `faulty`, which panicked",
            Some("the program's rule `faulty`, which panicked"),
        ),
        (approver(false), "approval_timeout", late, None),
        (rule(false), "approval_timeout", late, None),
    ] {
        let house = Plan { approver, ..Default::default() }.house(provider()).await;
        let answer = house.call("write", json!({})).await;
        assert!(answer.starts_with(&format!("refused {kind}")) && answer.contains(words), "{answer}");
        let row = house.only_row();
        assert_eq!(row.outcome.kind().as_str(), "refused");
        assert_eq!(row.decision.unwrap().approved_by.as_deref(), approved_by);
        assert_eq!(house.provider.calls().len(), 0);
    }
}

/// Labels every call.
struct Labeller;

#[async_trait]
impl ToolHook for Labeller {
    fn name(&self) -> &str {
        "labeller"
    }

    async fn before(&self, _: &ToolCall, _: Option<&[Access]>) -> BeforeCallResponse {
        let labels = CallLabels::default().with("risk", "high").unwrap().with("team", "other").unwrap();
        BeforeCallResponse { labels, ..BeforeCallResponse::default() }
    }

    async fn after(&self, ended: EndedCall<'_>) -> AfterCallResponse {
        assert_eq!(ended.execution.labels.get("risk"), Some("high"));
        AfterCallResponse::default()
    }
}

#[tokio::test]
async fn a_record_has_the_labels_of_the_program_and_hooks_with_secrets_redacted() {
    let login = ScriptedTool::of(tool_with_schema("login", json!({"type": "object"}))).touches(write("/w/a"));
    let login =
        login.ends_by(|moment| Ending::Done(ToolResult::text(moment.context.labels.get("risk").unwrap_or("no label"))));
    let provider = provider().with(login);
    let house = Plan { hooks: vec![Arc::new(Labeller)], rules: vec![(Effect::Allow, "Write")], ..Default::default() }
        .house(provider)
        .await;
    let labels = CallLabels::default().with("team", "search").unwrap();
    let labels = labels.with("note", "signed in with hunter2pw").unwrap().with("api_token", "abc").unwrap();
    let labelled = command("login", json!({"password": "hunter2pw"})).labelled(labels);
    let Ok(CallOutcome::Done(result)) = house.handler.handle(labelled).await else { panic!("it is allowed") };
    assert_eq!(result.joined_text(), "high", "the tool has the labels of hooks");
    let row = house.only_row();
    let output: Vec<(&str, &str)> = row.labels.iter().collect();
    assert_eq!(
        output,
        [("api_token", "[redacted]"), ("note", "signed in with [redacted]"), ("risk", "high"), ("team", "search")]
    );
}
