//! Nested restricted views, and the approvals that are given in them.

use super::*;
use toolstead_domain::ToolSelection;

/// A node in a tree of scopes: the scope around it, and the restricted view that leads to it.
#[derive(Debug, Clone)]
struct Node {
    /// Its index among those before it, counted from this one.
    parent: usize,
    is_run: bool,
    policy: PermissionPolicy,
}

/// An approval of one access, in one of the scopes.
#[derive(Debug, Clone)]
struct Yes {
    node: usize,
    access: Access,
    holds: ApprovalScope,
}

/// The scopes of a tree; the first is that of the session.
struct Tree {
    parents: Vec<Option<usize>>,
    scopes: Vec<RequestScope>,
}

impl Tree {
    /// Views of one scope have different names, except that all views of runs share one name.
    fn of(nodes: &[Node]) -> Self {
        let mut tree = Self { parents: vec![None], scopes: vec![of(&Principal::local(), "s")] };
        for (index, node) in nodes.iter().enumerate() {
            let parent = node.parent % tree.scopes.len();
            let policy = Arc::new(node.policy.clone());
            let view = match node.is_run {
                true => View::of_run("run", policy),
                false => View::new(format!("view-{index}"), policy),
            };
            tree.scopes.push(tree.scopes[parent].clone().narrowed_to(view));
            tree.parents.push(Some(parent));
        }
        tree
    }

    /// Returns `true` if the first scope is the second, or contains it.
    fn is_around(&self, outer: usize, inner: usize) -> bool {
        std::iter::successors(Some(inner), |node| self.parents[*node]).any(|node| node == outer)
    }

    /// Returns the views in which an approval in this one counts: the view itself, and for the session the nearest view
    /// around it that is not of a run.
    fn kept_at(&self, yes: &Yes) -> Vec<usize> {
        let is_run = |node: &usize| self.scopes[*node].view.as_ref().is_some_and(|view| view.is_run);
        let mut around = std::iter::successors(Some(yes.node), |node| self.parents[*node]);
        let beside = around.find(|node| !is_run(node)).unwrap_or(0);
        match yes.holds {
            ApprovalScope::Once => Vec::new(),
            ApprovalScope::Run if is_run(&yes.node) => vec![yes.node],
            ApprovalScope::Run => Vec::new(),
            _ if yes.node == 0 => vec![0],
            _ => vec![yes.node, beside],
        }
    }
}

fn any_access() -> impl Strategy<Value = Access> {
    prop_oneof![
        "/w/(a|b)(/c)?".prop_map(|path| write(&path)),
        Just(Access::ReadPath(AccessPath::plain("/w/a"))),
        Just(write("/else/a")),
        "(ls|git)".prop_map(|program| Access::RunCommand(CommandAccess::program([program]))),
        Just(Access::RunCommand(CommandAccess::opaque("$(x)", "a substitution"))),
        Just(Access::ReachHost("a.org".into())),
        Just(Access::Send("ann@a.org".into())),
        Just(Access::RunAgent("reviewer".into())),
        "(write_file|w[*])".prop_map(|tools| Access::OfferTools(tools.into())),
    ]
}

fn any_policy() -> impl Strategy<Value = PermissionPolicy> {
    let text = prop::sample::select(vec![
        "Write",
        "Write(//w/a)",
        "Write(//w/b/**)",
        "Read",
        "Bash",
        "Bash(git)",
        "WebFetch",
        "Agent(reviewer)",
        "Tools",
        "Tools(write_file)",
        "write_file",
        "read_file",
    ]);
    let effect = prop::sample::select(vec![Effect::Deny, Effect::Ask, Effect::Allow]);
    let rules = prop::collection::vec((effect, text), 0..4);
    let mode = prop::sample::select(vec![
        PermissionMode::Default,
        PermissionMode::Default,
        PermissionMode::Bypass,
        PermissionMode::Bypass,
        PermissionMode::Plan,
        PermissionMode::AcceptEdits,
        PermissionMode::DontAsk,
    ]);
    let chosen = prop::sample::select(vec!["*", "*", "*", "write_file", "read_file", ""]);
    let root = prop::sample::select(vec!["/w", "/w", "/w/a", "/else"]);
    (rules, mode, chosen, root).prop_map(|(rules, mode, chosen, root)| PermissionPolicy {
        mode,
        selection: ToolSelection::only(chosen.split(',').filter(|name| !name.is_empty())),
        roots: WorkspaceRoots { write: vec![root.into()], ..Default::default() },
        ..policy(&rules)
    })
}

fn any_nodes() -> impl Strategy<Value = Vec<Node>> {
    let node = (0..8_usize, any::<bool>(), any_policy());
    prop::collection::vec(node.prop_map(|(parent, is_run, policy)| Node { parent, is_run, policy }), 1..6)
}

fn any_yes() -> impl Strategy<Value = Yes> {
    (0..8_usize, any_access(), prop::sample::select(ApprovalScope::ALL)).prop_map(|(node, access, holds)| Yes {
        node,
        access,
        holds,
    })
}

/// Returns `true` if the approval covers this access, by its rule or exactly.
fn covers(yes: &Yes, tool: &Tool, access: &Access, roots: &WorkspaceRoots) -> bool {
    let rule = rule_to_remember(tool, &yes.access, roots).and_then(|rule| allowing(&rule, RuleOrigin::Session));
    rule.is_some_and(|rule| rule.allows(tool, access, roots)) || yes.access == *access
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_nested_scope_is_allowed_more_than_its_parent_except_by_an_approval_within_it(
        base in any_policy(), nodes in any_nodes(), mut said in prop::collection::vec(any_yes(), 0..8),
    ) {
        let tree = Tree::of(&nodes);
        said.iter_mut().for_each(|yes| yes.node %= tree.scopes.len());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let book = PermissionBook::new(Arc::new(base.clone()), Arc::new(InMemoryRuleStore::new()));
        let tools = [samples::tool("write_file"), samples::tool("read_file")];
        let before: Vec<Arc<PermissionPolicy>> = tree.scopes.iter().map(|scope| book.policy_of(scope)).collect();
        for yes in &said {
            let scope = &tree.scopes[yes.node];
            let rule = rule_to_remember(&tools[0], &yes.access, book.policy_of(scope).workspace());
            let scopes = book.scopes(scope, &yes.access, rule.is_some());
            let is_offered = scopes.contains(&yes.holds);
            let part = ApprovalPart { access: Some(yes.access.clone()), cause: Cause::Default("asked"), rule, scopes };
            let held = runtime.block_on(book.remember(scope, &identity("1"), &part, yes.holds));
            prop_assert_eq!(held, if is_offered { yes.holds } else { ApprovalScope::Once });
            prop_assert!(yes.access.kind() != AccessKind::Send || held == ApprovalScope::Once);
        }
        let after: Vec<Arc<PermissionPolicy>> = tree.scopes.iter().map(|scope| book.policy_of(scope)).collect();
        let accesses = ["/w/a", "/w/a/c", "/w/b", "/else/a"].map(write).into_iter().chain([
            Access::ReadPath(AccessPath::plain("/w/a")),
            Access::RunCommand(CommandAccess::program(["git"])),
            Access::RunCommand(CommandAccess::opaque("$(x)", "a substitution")),
            Access::ReachHost("a.org".into()),
            Access::Send("ann@a.org".into()),
            Access::RunAgent("reviewer".into()),
            Access::OfferTools("write_file".into()),
        ]);
        for (tool, access) in tools.iter().flat_map(|tool| accesses.clone().map(move |access| (tool, access))) {
            let judged = |policy: &PermissionPolicy| policy.judge(tool, &access).verdict;
            let decided = |policy: &PermissionPolicy| {
                policy.decide(tool, &Map::new(), std::slice::from_ref(&access)).verdict
            };
            for (child, scope) in tree.scopes.iter().enumerate() {
                let about = || format!("{access} by {} in {child} of {:?}", tool.name(), tree.parents);
                // An approval makes nothing stricter, and only answers what a default requires.
                prop_assert!(judged(&after[child]) <= judged(&before[child]), "{}", about());
                prop_assert!(judged(&before[child]) != Verdict::Deny || judged(&after[child]) == Verdict::Deny, "{}", about());
                if (judged(&before[child]), judged(&after[child])) == (Verdict::Ask, Verdict::Allow) {
                    let cause = before[child].judge(tool, &access).cause;
                    prop_assert!(matches!(cause, Cause::Default(_)), "{}: {cause}", about());
                    let reaches = |yes: &Yes| tree.kept_at(yes).iter().any(|kept| tree.is_around(*kept, child));
                    let mut all = said.iter().filter(|yes| {
                        // A permanent approval counts for everyone.
                        reaches(yes) || matches!(yes.holds, ApprovalScope::Project | ApprovalScope::Always)
                    });
                    prop_assert!(all.any(|yes| covers(yes, tool, &access, before[child].workspace())), "{}", about());
                }
                let approved = book.is_approved(scope, tool, &identity("1"), Some(&access));
                let exactly = |yes: &Yes| {
                    yes.access == access && tree.kept_at(yes).iter().any(|kept| tree.is_around(*kept, child))
                };
                prop_assert!(!approved || said.iter().any(exactly), "{}", about());
                let Some(parent) = tree.parents[child] else { continue };
                prop_assert!(judged(&before[child]) >= judged(&before[parent]), "{}", about());
                prop_assert!(decided(&before[child]) >= decided(&before[parent]), "{}", about());
                let is_denied = |of: usize| judged(&after[of]) == Verdict::Deny;
                prop_assert!(!is_denied(parent) || is_denied(child), "{}", about());
                // A scope is allowed more than its parent only by an approval in itself or in what it contains.
                let is_within = |yes: &&Yes| tree.is_around(child, yes.node);
                if judged(&after[child]) < judged(&after[parent]) {
                    let mut within = said.iter().filter(is_within);
                    prop_assert!(within.any(|yes| covers(yes, tool, &access, after[parent].workspace())), "{}", about());
                }
                let [shown, shown_around] = [scope, &tree.scopes[parent]].map(|scope| book.advertising(scope).advertises(tool));
                prop_assert!(shown_around || !shown, "{}", about());
            }
        }
    }
}

impl Shelf {
    async fn approve(&self, scope: &RequestScope, access: Access, holds: ApprovalScope) -> ApprovalScope {
        let rule = rule_to_remember(&self.tool, &access, &policy(&[]).roots);
        let scopes = self.book.scopes(scope, &access, rule.is_some());
        let part = ApprovalPart { access: Some(access), cause: Cause::Default("asked"), rule, scopes };
        self.book.remember(scope, &identity("1"), &part, holds).await
    }

    fn verdict_in(&self, scope: &RequestScope) -> Verdict {
        self.book.policy_of(scope).judge(&self.tool, &write("/w/a")).verdict
    }
}

/// A restricted view with an ask rule, and one without.
fn windows() -> [Arc<PermissionPolicy>; 2] {
    [Arc::new(policy(&[])), Arc::new(policy(&[]).window(ToolSelection::all()))]
}

#[tokio::test]
async fn an_approval_does_not_satisfy_the_separate_requirement_of_a_narrower_view() {
    use ApprovalScope::{Run, Session};
    use Verdict::{Allow, Ask};
    let [asking, open] = windows();
    let session = of(&Principal::local(), "s");
    let outer = session.clone().narrowed_to(View::new("outer", open.clone()));
    let run = outer.clone().narrowed_to(View::of_run("run", open));
    let careful = run.clone().narrowed_to(View::of_run("careful", asking));
    for (through, holds, expected) in [
        (&session, Session, [Allow, Allow, Allow, Ask]),
        (&outer, Session, [Ask, Allow, Allow, Ask]),
        (&run, Session, [Ask, Allow, Allow, Ask]),
        (&run, Run, [Ask, Ask, Allow, Ask]),
        (&careful, Session, [Ask, Allow, Allow, Allow]),
        (&careful, Run, [Ask, Ask, Ask, Allow]),
    ] {
        let shelf = Shelf::with(&[], InMemoryRuleStore::new());
        assert_eq!(shelf.approve(through, write("/w/a"), holds).await, holds);
        let verdicts = [&session, &outer, &run, &careful].map(|scope| shelf.verdict_in(scope));
        assert_eq!(verdicts, expected, "{holds:?} through {:?}", through.view.as_ref().map(ToString::to_string));
        // The same applies without a rule.
        let opaque = Access::RunCommand(CommandAccess::opaque("$(a)", "a substitution"));
        shelf.approve(through, opaque.clone(), holds).await;
        let is_approved = |scope| shelf.book.is_approved(scope, &shelf.tool, &identity("1"), Some(&opaque));
        assert_eq!([&session, &outer, &run, &careful].map(is_approved), expected.map(|verdict| verdict == Allow));
        let joined = [&run, &run].map(|scope| shelf.book.policy_of(scope));
        assert!(Arc::ptr_eq(&joined[0], &joined[1]), "it is joined once");
    }
}

#[tokio::test]
async fn an_approval_for_a_run_is_forgotten_when_its_restricted_view_ends() {
    let shelf = Shelf::with(&[], InMemoryRuleStore::new());
    let session = of(&Principal::local(), "s");
    let [_, open] = windows();
    let opaque = Access::RunCommand(CommandAccess::opaque("$(a)", "a substitution"));
    for _ in 0..2 * MAX_SESSIONS {
        let run = session.clone().narrowed_to(View::of_run("run", open.clone()));
        let inner = run.clone().narrowed_to(View::new("inner", open.clone()));
        assert_eq!(shelf.verdict_in(&run), Verdict::Ask, "it is another run");
        shelf.approve(&run, write("/w/a"), ApprovalScope::Run).await;
        shelf.approve(&run, opaque.clone(), ApprovalScope::Run).await;
        shelf.approve(&inner, write("/w/b"), ApprovalScope::Session).await;
        assert_eq!([shelf.verdict_in(&run), shelf.verdict_in(&inner)], [Verdict::Allow; 2]);
        assert!(shelf.book.is_approved(&inner, &shelf.tool, &identity("1"), Some(&opaque)));
        assert!(!shelf.book.is_approved(&session, &shelf.tool, &identity("1"), Some(&opaque)));
        assert_eq!(shelf.verdict_in(&session), Verdict::Ask);
        assert!(shelf.book.lock().by_key.len() <= 2, "those of runs that are over are gone");
    }
}

#[tokio::test]
async fn a_restricted_view_is_identified_by_its_path_of_names_and_its_principal() {
    let [_, open] = windows();
    let through = |principal: Principal, names: &[&str]| {
        let scope = of(&principal, "s");
        names.iter().fold(scope, |scope, name| scope.narrowed_to(View::new(*name, open.clone())))
    };
    let local = Principal::local;
    let shelf = Shelf::with(&[], InMemoryRuleStore::new());
    shelf.approve(&through(local(), &["a", "b"]), write("/w/a"), ApprovalScope::Session).await;
    for (scope, expected) in [
        (through(local(), &["a", "b"]), Verdict::Allow),
        (through(local(), &["a", "b", "c"]), Verdict::Allow),
        (through(local(), &["a"]), Verdict::Ask),
        (through(local(), &["b"]), Verdict::Ask),
        (through(local(), &["a/b"]), Verdict::Ask),
        (through(Principal::token("t"), &["a", "b"]), Verdict::Ask),
    ] {
        assert_eq!(shelf.verdict_in(&scope), expected, "{:?}", scope.view.as_ref().map(ToString::to_string));
    }
}
