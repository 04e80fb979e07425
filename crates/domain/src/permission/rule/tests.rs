//! Texts that are rules, and texts that are none.

use super::*;
use crate::{access::CommandAccess, server_name::ServerName};
use proptest::prelude::*;

fn parse(effect: Effect, text: &str) -> Result<PermissionRule, InvalidRule> {
    PermissionRule::parse(effect, text, RuleOrigin::CommandLine, &PatternContext::default())
}

#[test]
fn rejects_a_malformed_rule_with_a_correction() {
    for (effect, text, reason) in [
        (Effect::Deny, "Bash(ls", "closing parenthesis"),
        (Effect::Deny, "Read()", "empty"),
        (Effect::Allow, "mcp__*", "name the server"),
        (Effect::Allow, "mcp__g*__x", "without `*`"),
        (Effect::Allow, "*", "name the tool"),
        (Effect::Allow, "mcp__git__", "missing after"),
        (Effect::Deny, "a b", "not a tool name"),
        (Effect::Deny, "", "not a tool name"),
        (Effect::Allow, "WebFetch(https://x)", "domain:"),
        (Effect::Deny, "WebFetch(domain:bäd.test)", "`xn--`"),
        (Effect::Deny, "WebFetch(domain:*.bäd.test)", "`xn--`"),
        (Effect::Deny, "website_text(domain:bäd.test)", "`xn--`"),
        (Effect::Deny, "WebFetch(domain:.bad.test)", "write `*.bad.test`"),
        (Effect::Deny, "WebFetch(domain:bad..test)", "not a host name"),
        (Effect::Deny, "WebFetch(domain:bad.test:80)", "without scheme, port and path"),
        (Effect::Deny, "WebFetch(domain:0x7f.1)", "four decimal numbers"),
        (Effect::Deny, "WebFetch(domain:2130706433)", "four decimal numbers"),
        (Effect::Deny, "WebFetch(domain:.)", "not a host name"),
        (Effect::Allow, "git(range:a)", "deny and ask rules only"),
        (Effect::Deny, "Read(a/../b)", "`..`"),
        (Effect::Allow, "Resource", "name the server: write `Resource(SERVER:*)`"),
        (Effect::Allow, "Prompt(*)", "name the server: write `Prompt(SERVER:*)`"),
        (Effect::Allow, "Resource(*:a://x)", "without `*`"),
        (Effect::Deny, "Resource(up)", "names no server"),
        (Effect::Deny, "Resource(up:)", "nothing follows"),
        (Effect::Deny, "Resource(https://x)", "write `Resource(SERVER:https://x)`"),
        (Effect::Deny, "Resource(file:///x)", "write `Resource(SERVER:file:///x)`"),
        (Effect::Deny, "Prompt(a b:x)", "not the name of a server"),
    ] {
        let error = parse(effect, text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn a_host_rule_matches_regardless_of_case_trailing_dot_and_spaces() {
    for rule in ["domain:bad.test", "domain:bad.test.", "domain:BAD.test.", "domain:*.test.", "domain: bad.test"] {
        let reached = [Access::ReachHost("bad.test".into())];
        for name in ["WebFetch", "web_fetch"] {
            let rule = parse(Effect::Deny, &format!("{name}({rule})")).unwrap();
            assert!(rule.meets(&reached, &WorkspaceRoots::default()), "{}", rule.text);
        }
    }
}

#[test]
fn deny_rules_may_contain_stars_anywhere() {
    for text in ["*", "mcp__*", "mcp__*__delete_*", "g*b", "mcp__git"] {
        assert!(parse(Effect::Deny, text).is_ok(), "{text}");
    }
}

proptest! {
    #[test]
    fn arbitrary_rule_texts_do_not_panic_and_valid_rules_reparse(
        head in "(Read|Bash|bash|WebFetch|Resource|Prompt|mcp__a__|[a-z_*]{0,6})", spec in any::<String>(), raw in any::<String>(),
    ) {
        for effect in [Effect::Allow, Effect::Ask, Effect::Deny] {
            for text in [format!("{head}({spec})"), raw.clone()] {
                if let Ok(rule) = parse(effect, &text) {
                    let command = Access::RunCommand(CommandAccess::program([spec.as_str(), "x"]));
                    let path = Access::ReadPath(AccessPath::plain(format!("/w/{spec}")));
                    let server = ServerName::parse("up").unwrap();
                    let resource = Access::ReadResource { server, uri: spec.as_str().into() };
                    let _ = (rule.subject(), rule.meets(&[command, path, resource], &WorkspaceRoots::default()));
                    // Written down and read again, it is the same rule.
                    prop_assert!(parse(effect, &rule.text).is_ok());
                }
            }
        }
    }
}

#[test]
fn an_allow_rule_whose_path_pattern_reaches_no_root_counts_as_outside() {
    let roots =
        WorkspaceRoots { write: vec!["/w".into()], read_only: vec!["/ro/x".into()], ..WorkspaceRoots::default() };
    for (text, expected) in [
        ("Edit(//outside/**)", true),
        ("Edit(//outside)", true),
        ("Write(//wx/a)", true),
        ("Read(//w)", false),
        ("Read(//w/a/b.rs)", false),
        ("Read(//**/b.rs)", false),
        ("Read(//{w,x}/b.rs)", false),
        ("Read(//ro/**)", false),
        ("Read(//ro/y)", true),
        ("Read(src/**)", false),
        ("Read", false),
        ("Bash(ls *)", false),
    ] {
        let rule = PermissionRule::parse(Effect::Allow, text, RuleOrigin::CommandLine, &PatternContext::default());
        assert_eq!(rule.unwrap().is_outside(&roots), expected, "{text}");
    }
}
