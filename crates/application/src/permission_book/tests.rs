//! Stored approvals: their content, owner, duration and extent.

mod restricted_views;

use super::*;
use proptest::prelude::*;
use serde_json::Map;
use toolstead_domain::{
    AccessPath, Cause, CommandAccess, PermissionMode, ReadOnlyCommands, ServerName, Verdict,
    testing::{in_memory_rule_store::InMemoryRuleStore, samples},
};

fn policy(rules: &[(Effect, &str)]) -> PermissionPolicy {
    let parse = |(effect, text): &(Effect, &str)| {
        Arc::new(PermissionRule::parse(*effect, text, RuleOrigin::CommandLine, &PatternContext::default()).unwrap())
    };
    let roots = WorkspaceRoots { write: vec!["/w".into()], ..Default::default() };
    PermissionPolicy { rules: rules.iter().map(parse).collect(), roots, ..Default::default() }
}

fn write(path: &str) -> Access {
    Access::WritePath(AccessPath::plain(path))
}

fn identity(digest: &str) -> CallFingerprint {
    CallFingerprint { tool: ToolName::parse("write_file").unwrap(), digest: digest.into() }
}

/// Some of the read-only commands.
const READ_ONLY: ReadOnlyCommands =
    ReadOnlyCommands::new(&["ls *", "cat *", "find *", "git branch", "git diff *", "git log *"]);

struct Shelf {
    book: PermissionBook,
    store: Arc<InMemoryRuleStore>,
    tool: Tool,
}

fn of(principal: &Principal, session: &str) -> RequestScope {
    RequestScope::of(principal.clone(), session)
}

impl Shelf {
    fn with(rules: &[(Effect, &str)], store: InMemoryRuleStore) -> Self {
        let store = Arc::new(store);
        let book = PermissionBook::new(Arc::new(policy(rules)), store.clone()).with_read_only_commands(READ_ONLY);
        Self { book, store, tool: samples::tool("write_file") }
    }

    fn part(&self, access: Access) -> ApprovalPart {
        let rule = rule_to_remember(&self.tool, &access, &policy(&[]).roots);
        let scopes = self.book.scopes(&of(&Principal::local(), "s"), &access, rule.is_some());
        ApprovalPart { access: Some(access), cause: Cause::Default("asked"), rule, scopes }
    }

    async fn remember(&self, session: &str, access: Access, scope: ApprovalScope) -> ApprovalScope {
        self.book.remember(&of(&Principal::local(), session), &identity("1"), &self.part(access), scope).await
    }

    fn verdict(&self, principal: &Principal, session: &str, access: &Access) -> Verdict {
        let policy = self.book.policy_of(&of(principal, session));
        policy.decide(&self.tool, &Map::new(), std::slice::from_ref(access)).verdict
    }
}

#[tokio::test]
async fn a_session_approval_applies_only_to_its_session_and_until_the_session_ends() {
    let shelf = Shelf::with(&[], InMemoryRuleStore::new());
    let (local, other) = (Principal::local(), Principal::token("other"));
    assert_eq!(shelf.remember("s", write("/w/a"), ApprovalScope::Session).await, ApprovalScope::Session);
    assert_eq!(shelf.verdict(&local, "s", &write("/w/a")), Verdict::Allow);
    assert_eq!(shelf.verdict(&local, "s", &write("/w/b")), Verdict::Ask);
    assert_eq!(shelf.verdict(&local, "t", &write("/w/a")), Verdict::Ask);
    assert_eq!(shelf.verdict(&other, "s", &write("/w/a")), Verdict::Ask);
    let policy = shelf.book.policy_of(&of(&local, "s"));
    let reason = policy.decide(&shelf.tool, &Map::new(), &[write("/w/a")]).reason();
    assert_eq!(reason, "the allow rule `Write(//w/a)` in the approvals of this session: to write /w/a");
    assert!(Arc::ptr_eq(&policy, &shelf.book.policy_of(&of(&local, "s"))), "it is joined once");
    shelf.book.forget(&local, &"s".into());
    assert_eq!(shelf.verdict(&local, "s", &write("/w/a")), Verdict::Ask);
}

#[tokio::test]
async fn a_stored_approval_applies_immediately_to_every_session() {
    let shelf = Shelf::with(&[], InMemoryRuleStore::new());
    for (scope, path) in [(ApprovalScope::Project, "/w/p"), (ApprovalScope::Always, "/w/a")] {
        assert_eq!(shelf.remember("s", write(path), scope).await, scope);
        assert_eq!(shelf.verdict(&Principal::local(), "t", &write(path)), Verdict::Allow);
    }
    let kept = [(ApprovalScope::Project, "Write(//w/p)".to_owned()), (ApprovalScope::Always, "Write(//w/a)".into())];
    assert_eq!(shelf.store.stored_rules(), kept);
    let policy = shelf.book.policy_of(&of(&Principal::local(), "t"));
    let reason = policy.decide(&shelf.tool, &Map::new(), &[write("/w/a")]).reason();
    assert!(reason.contains("/memory/always.toml:2"), "{reason}");
}

#[tokio::test]
async fn an_approval_rule_that_cannot_be_stored_applies_for_the_session() {
    let shelf = Shelf::with(&[], InMemoryRuleStore::broken());
    assert_eq!(shelf.remember("s", write("/w/a"), ApprovalScope::Always).await, ApprovalScope::Session);
    assert_eq!(shelf.verdict(&Principal::local(), "s", &write("/w/a")), Verdict::Allow);
    assert_eq!(shelf.verdict(&Principal::local(), "t", &write("/w/a")), Verdict::Ask);
}

#[tokio::test]
async fn an_approval_with_a_scope_that_was_not_offered_applies_once() {
    let shelf = Shelf::with(&[], InMemoryRuleStore::new());
    let mut part = shelf.part(write("/w/a"));
    part.scopes = vec![ApprovalScope::Once];
    for scope in [ApprovalScope::Session, ApprovalScope::Project, ApprovalScope::Always] {
        let held = shelf.book.remember(&of(&Principal::local(), "s"), &identity("1"), &part, scope).await;
        assert_eq!(held, ApprovalScope::Once);
    }
    assert_eq!(shelf.verdict(&Principal::local(), "s", &write("/w/a")), Verdict::Ask);
    assert_eq!(shelf.store.stored_rules(), []);
}

#[test]
fn permanent_approval_is_offered_only_to_the_local_principal_and_only_with_a_rule() {
    let shelf = Shelf::with(&[], InMemoryRuleStore::new());
    let scopes = |principal: &Principal, has_rule| shelf.book.scopes(&of(principal, "s"), &write("/w/a"), has_rule);
    let all = [ApprovalScope::Once, ApprovalScope::Session, ApprovalScope::Project, ApprovalScope::Always];
    assert_eq!(scopes(&Principal::local(), true), all);
    for (principal, has_rule) in [(Principal::local(), false), (Principal::token("t"), true)] {
        assert_eq!(scopes(&principal, has_rule), [ApprovalScope::Once, ApprovalScope::Session]);
    }
}

#[tokio::test]
async fn deny_and_ask_rules_win_over_what_was_approved() {
    let rules = [(Effect::Deny, "Write(secret)"), (Effect::Ask, "Write(careful)")];
    let shelf = Shelf::with(&rules, InMemoryRuleStore::new());
    for (path, verdict) in [("/w/secret", Verdict::Deny), ("/w/careful", Verdict::Ask), ("/etc/a", Verdict::Deny)] {
        for scope in [ApprovalScope::Session, ApprovalScope::Always] {
            shelf.remember("s", write(path), scope).await;
        }
        assert_eq!(shelf.verdict(&Principal::local(), "s", &write(path)), verdict, "{path}");
    }
    let planning = PermissionPolicy { mode: PermissionMode::Plan, ..policy(&[]) };
    let book = PermissionBook::new(Arc::new(planning), Arc::new(InMemoryRuleStore::new()));
    let rule =
        PermissionRule::parse(Effect::Allow, "Write(//w/a)", RuleOrigin::Session, &PatternContext::default()).unwrap();
    book.allow_in_session(&of(&Principal::local(), "s"), [rule]);
    let decided = book.policy_of(&of(&Principal::local(), "s")).decide(&shelf.tool, &Map::new(), &[write("/w/a")]);
    assert_eq!(decided.verdict, Verdict::Deny);
}

#[tokio::test]
async fn approving_read_only_commands_allows_the_part_and_reading_commands_in_one_session() {
    let rules = [(Effect::Deny, "Bash(cat secret)"), (Effect::Ask, "Bash(git log *)"), (Effect::Deny, "Read(//w/key)")];
    let mut shelf = Shelf::with(&rules, InMemoryRuleStore::new());
    shelf.tool.takes_command_lines = true;
    let run = |line: &str| Access::RunCommand(CommandAccess::program(line.split(' ')));
    let mut part = shelf.part(run("make lint"));
    let local = Principal::local();
    let remember = async |part: &ApprovalPart| {
        let scope = ApprovalScope::ReadOnlyCommands;
        shelf.book.remember(&of(&local, "s"), &identity("1"), part, scope).await
    };
    assert!(!part.scopes.contains(&ApprovalScope::ReadOnlyCommands), "a part alone does not offer it");
    assert_eq!(remember(&part).await, ApprovalScope::Once);
    assert_eq!(shelf.verdict(&local, "s", &run("ls")), Verdict::Ask);
    part.scopes.push(ApprovalScope::ReadOnlyCommands);
    assert_eq!(remember(&part).await, ApprovalScope::ReadOnlyCommands);
    let reads_key = CommandAccess {
        operands: [Access::ReadPath(AccessPath::plain("/w/key"))].into(),
        ..CommandAccess::program(["cat", "key"])
    };
    let exact =
        CommandAccess { clarity: ParseConfidence::Exact("it deletes".into()), ..CommandAccess::program(["find"]) };
    for (access, expected) in [
        (run("make lint"), Verdict::Allow),
        (run("ls -la src"), Verdict::Allow),
        (run("git diff HEAD"), Verdict::Allow),
        (run("git branch"), Verdict::Allow),
        (run("git branch new"), Verdict::Ask),
        (run("make test"), Verdict::Ask),
        (Access::RunCommand(exact), Verdict::Ask),
        (write("/w/a"), Verdict::Ask),
        (run("git log -1"), Verdict::Ask),
        (run("cat secret"), Verdict::Deny),
        (Access::RunCommand(reads_key), Verdict::Deny),
    ] {
        assert_eq!(shelf.verdict(&local, "s", &access), expected, "{access}");
        assert_ne!(shelf.verdict(&local, "t", &access), Verdict::Allow, "{access} in another session");
    }
    assert_eq!(shelf.store.stored_rules(), []);
}

#[tokio::test]
async fn an_access_that_no_rule_can_express_is_approved_only_for_the_identical_call() {
    let shelf = Shelf::with(&[], InMemoryRuleStore::new());
    let opaque = |line: &str| Access::RunCommand(CommandAccess::opaque(line, "a substitution"));
    let shown = opaque("$(a)");
    let part = shelf.part(shown.clone());
    assert_eq!((&part.rule, part.scopes.as_slice()), (&None, &[ApprovalScope::Once, ApprovalScope::Session][..]));
    let (local, session) = (Principal::local(), Arc::from("s"));
    let held = shelf.book.remember(&of(&local, &session), &identity("1"), &part, ApprovalScope::Session).await;
    assert_eq!(held, ApprovalScope::Session);
    let approved = |session: &str, digest: &str, access: Option<&Access>| {
        shelf.book.is_approved(&of(&local, session), &shelf.tool, &identity(digest), access)
    };
    assert!(approved("s", "1", Some(&shown)));
    assert!(!approved("s", "2", Some(&shown)) && !approved("s", "1", Some(&opaque("$(b)"))));
    assert!(!approved("t", "1", Some(&shown)) && !approved("s", "1", None));
}

#[tokio::test]
async fn remembered_approvals_and_sessions_are_limited_and_the_oldest_are_forgotten() {
    let shelf = Shelf::with(&[], InMemoryRuleStore::new());
    let local = Principal::local();
    let line = |number: usize| Access::RunCommand(CommandAccess::opaque(number.to_string(), "a substitution"));
    let is_approved = |session: &str, number: usize| {
        shelf.book.is_approved(&of(&local, session), &shelf.tool, &identity("1"), Some(&line(number)))
    };
    for number in 0..=MAX_APPROVALS {
        shelf.remember("s", line(number), ApprovalScope::Session).await;
    }
    assert!(!is_approved("s", 0) && is_approved("s", 1));
    for number in 1..MAX_SESSIONS {
        shelf.remember(&format!("s{number}"), line(7), ApprovalScope::Session).await;
    }
    assert!(is_approved("s", 1), "it was used just now");
    shelf.remember("one more", line(7), ApprovalScope::Session).await;
    assert_eq!(shelf.book.lock().by_key.len(), MAX_SESSIONS);
    assert!(is_approved("one more", 7) && !is_approved("s1", 7) && is_approved("s2", 7));
}

#[test]
fn an_access_yields_the_narrowest_rule_that_covers_it_or_no_rule() {
    let rule = |access: &Access| rule_to_remember(&samples::tool("write_file"), access, &policy(&[]).roots);
    let linked = AccessPath { lexical: "/w/a".into(), real: "/w/b".into(), tree: false };
    for (access, expected) in [
        (write("/w/a b"), Some("Write(//w/a b)")),
        (Access::ReadPath(AccessPath::plain("/w/d").whole_tree()), Some("Read(//w/d/**)")),
        (write("/w/[ab]"), Some(r"Write(//w/\[ab\])")),
        (write("/w/*"), Some(r"Write(//w/\*)")),
        (write("/w/a\u{1b}b"), None),
        (write("/w/a "), None),
        (write("/w/ "), None),
        (Access::WritePath(linked), Some("Write(//{w/a,w/b})")),
        (Access::ReachHost("example.com".into()), Some("WebFetch(domain:example.com)")),
        (Access::ReachHost("*.com".into()), None),
        (Access::Send("a".into()), None),
        (Access::RunCommand(CommandAccess::opaque("$(x)", "a substitution")), None),
        (Access::RunCommand(CommandAccess::program(["git", "status"])), Some("Bash(git status)")),
        (Access::RunCommand(CommandAccess::program(["ls", "*"])), Some(r"Bash(ls \*)")),
        (Access::RunCommand(CommandAccess::program(["ls", "a b", ";"])), Some("Bash(ls 'a b' ';')")),
    ] {
        assert_eq!(rule(&access).as_deref(), expected, "{access}");
    }
    let server = ServerName::parse("git").unwrap();
    let name = ToolName::for_upstream(&server, "log");
    let source = toolstead_domain::tool::ToolSource::McpServer { server: server.clone(), tool: "log".into() };
    let tool = Tool::new(name, Map::new(), toolstead_domain::category::Category::Mcp, source);
    let call = Access::CallUpstream { server, tool: "log".into() };
    assert_eq!(rule_to_remember(&tool, &call, &policy(&[]).roots).as_deref(), Some("mcp__git__log"));
}

fn accesses() -> impl Strategy<Value = Access> {
    let path = "/w(/(a|b|[*]|[?]|[\\[]a[\\]]|\\{a,b\\}|\\\\|a b| |\\)|[(]|[.]\\w)){1,3}";
    let words = prop::collection::vec("(ls|git|-a|[*]|a:[*]|;|\\)|x y)", 1..4);
    prop_oneof![
        3 => path.prop_map(|path| write(&path)),
        1 => path.prop_map(|path| Access::WritePath(AccessPath::plain(path).whole_tree())),
        1 => path.prop_map(|path| Access::ReadPath(AccessPath::plain(path))),
        1 => (path, path).prop_map(|(lexical, real)| {
            Access::WritePath(AccessPath { lexical: lexical.into(), real: real.into(), tree: false })
        }),
        4 => (words, 0..3_u8).prop_map(|(words, clarity)| {
            let command = CommandAccess::program(words);
            Access::RunCommand(match clarity {
                0 => command,
                1 => CommandAccess { clarity: ParseConfidence::Exact("it runs something".into()), ..command },
                _ => CommandAccess::opaque(command.text, "a substitution"),
            })
        }),
        1 => "([*]|a|b)[.](com|[*])".prop_map(|host| Access::ReachHost(host.into())),
        1 => "(a|b)@x".prop_map(|to| Access::Send(to.into())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_remembered_rule_allows_only_the_access_that_was_shown(shown in accesses(), other in accesses()) {
        let tool = samples::tool("write_file");
        let Some(rule) = rule_to_remember(&tool, &shown, &policy(&[]).roots) else { return Ok(()) };
        let rule = allowing(&rule, RuleOrigin::Session).unwrap();
        let roots = policy(&[]).roots;
        prop_assert!(rule.allows(&tool, &shown, &roots));
        if rule.allows(&tool, &other, &roots) {
            let is_below = match (&shown, &other) {
                (Access::WritePath(shown), Access::WritePath(other)) | (Access::ReadPath(shown), Access::ReadPath(other)) => {
                    other.forms().all(|other| shown.forms().any(|shown| other.starts_with(shown)))
                }
                // The same words, with any parse confidence.
                (Access::RunCommand(shown), Access::RunCommand(other)) => shown.whole == other.whole,
                (shown, other) => shown == other,
            };
            prop_assert!(is_below, "`{}` allows {other}", rule.text);
        }
    }
}
