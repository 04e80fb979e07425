//! Rules for resources and prompts, beside rules for tools of the same names.

use super::*;
use crate::{
    access::AccessKind,
    permission::decision::{NearMiss, narrowest_rule},
};

/// The tool by which requests to the server `git` are judged.
fn stand_in(kind: AccessKind) -> Tool {
    let own = if kind == AccessKind::Prompt { "get_prompt" } else { "read_resource" };
    let source = ToolSource::McpServer { server: ServerName::parse("git").unwrap(), tool: own.into() };
    Tool::new(ToolName::for_plain_upstream(own), Map::new(), Category::Utility, source).standing_for(kind)
}

/// A tool of the server `git` with plain names that has one of the names of requests.
fn namesake(own: &str) -> Tool {
    let source = ToolSource::McpServer { server: ServerName::parse("git").unwrap(), tool: own.into() };
    Tool::new(ToolName::for_plain_upstream(own), Map::new(), Category::Mcp, source)
}

fn decided(mode: PermissionMode, rules: &[(Effect, &str)], tool: &Tool, touches: &str) -> Decision {
    policy(mode, rules).decide(tool, &Map::new(), &accesses(touches))
}

#[track_caller]
fn check_request(rules: &[(Effect, &str)], touches: &str, expected: Verdict) {
    let kind = accesses(touches)[0].kind();
    let decision = decided(PermissionMode::Default, rules, &stand_in(kind), touches);
    assert_eq!(decision.verdict, expected, "{rules:?} {touches}: {}", decision.reason());
}

#[track_caller]
fn check_namesake(rules: &[(Effect, &str)], name: &str, expected: Verdict) {
    let decision = decided(PermissionMode::Default, rules, &namesake(name), "up");
    assert_eq!(decision.verdict, expected, "{rules:?} {name}: {}", decision.reason());
}

#[test]
fn allow_rules_for_tools_and_for_requests_of_the_same_name_do_not_cover_each_other() {
    for (name, touches, head) in [("read_resource", "resource a://x", "Resource"), ("get_prompt", "prompt p", "Prompt")]
    {
        for rule in [name.to_owned(), format!("mcp__git__{name}"), format!("mcp__git__{}*", &name[..4])] {
            check_request(&[(A, &rule)], touches, Ask);
            check_namesake(&[(A, &rule)], name, Allow);
        }
        check_request(&[(A, &format!("{head}(git:*)"))], touches, Allow);
        check_namesake(&[(A, &format!("{head}(git:*)"))], name, Ask);
        check_request(&[(A, &format!("{head}(other:*)"))], touches, Ask);
        for server in ["mcp__git", "mcp__git__*"] {
            check_request(&[(A, server)], touches, Allow);
            check_namesake(&[(A, server)], name, Allow);
        }
        check_request(&[(A, "mcp__gi__*")], touches, Ask);
        check_request(&[], touches, Ask);
    }
}

#[test]
fn deny_and_ask_rules_for_a_tool_also_apply_to_requests_of_the_same_name() {
    for (name, touches) in [("read_resource", "resource a://x"), ("get_prompt", "prompt p")] {
        for rule in [name, &format!("mcp__git__{name}"), "mcp__git", "mcp__*", &format!("mcp__*__{name}")] {
            for (effect, verdict) in [(D, Deny), (Q, Ask)] {
                let rules = [(A, "mcp__git"), (effect, rule)];
                check_request(&rules, touches, verdict);
                check_namesake(&rules, name, verdict);
            }
        }
    }
}

#[test]
fn a_rule_for_a_resource_compares_server_and_uri() {
    for (rule, uri, is_met) in [
        ("Resource(git:a://x)", "a://x", true),
        ("Resource(git:a://x)", "a://xy", false),
        ("Resource(git:a://x/*)", "a://x/y/z", true),
        ("Resource(git:*/y)", "a://x/y", true),
        ("Resource( git : a://x )", "a://x", true),
        ("Resource(hg:a://x)", "a://x", false),
        ("Prompt(git:a://x)", "a://x", false),
        // Each URI of the template fits the pattern.
        ("Resource(git:a://x/*)", "a://x/{id}", true),
    ] {
        let touches = format!("resource {uri}");
        check_request(&[(A, rule)], &touches, if is_met { Allow } else { Ask });
        check_request(&[(A, "mcp__git"), (D, rule)], &touches, if is_met { Deny } else { Allow });
    }
    for (rule, prompt, is_met) in
        [("Prompt(git:re*)", "review", true), ("Prompt(git:re*)", "log", false), ("Resource(git:*)", "log", false)]
    {
        check_request(&[(A, rule)], &format!("prompt {prompt}"), if is_met { Allow } else { Ask });
    }
}

#[test]
fn an_ambiguous_resource_uri_is_not_covered_by_allow_and_is_caught_by_deny() {
    for uri in ["a://%78", "a://%2578", "A://X", "a://{id}", "{+all}", "a://{"] {
        check_request(&[(A, "Resource(git:a://x)")], &format!("resource {uri}"), Ask);
    }
    for uri in ["a://%78", "A://X", "a://{id}", "{+all}", "a://{", "{a}{b}{c}"] {
        for rule in ["Resource(git:a://x)", "Resource(g*:a://*)", "Resource(*:A://%58)", "Resource", "Resource(*)"] {
            check_request(&[(A, "mcp__git"), (D, rule)], &format!("resource {uri}"), Deny);
        }
    }
    check_request(&[(A, "mcp__git"), (D, "Resource(git:b://*)")], "resource a://{id}", Allow);
}

#[test]
fn a_prefix_allow_rule_does_not_cover_dot_segments_and_a_deny_rule_catches_them() {
    for uri in ["a://x/../y", "a://x/%2e%2E/y", "a://x/%252e./y", "a://x/./y", "a://x/.."] {
        let touches = format!("resource {uri}");
        check_request(&[(A, "Resource(git:a://x/*)")], &touches, Ask);
        check_request(&[(A, "Resource(git:*)")], &touches, Allow);
        check_request(&[(A, &format!("Resource(git:{uri})"))], &touches, Allow);
        check_request(&[(A, "mcp__git"), (D, "Resource(git:a://y)")], &touches, Deny);
        check_request(&[(A, "mcp__git"), (D, "Resource(hg:a://y)")], &touches, Allow);
    }
    check_request(&[(A, "Resource(git:a://x/*)")], "resource a://x/..y/z.", Allow);
}

#[test]
fn only_a_rule_that_denies_all_requests_of_a_kind_closes_that_kind_for_a_server() {
    for (rule, resources, prompts) in [
        ("Resource", true, false),
        ("Resource(*:*)", true, false),
        ("Resource(git:*)", true, false),
        ("Resource(git:a://*)", false, false),
        ("Resource(hg:*)", false, false),
        ("Prompt(g*:**)", false, true),
        ("mcp__git", true, true),
        ("mcp__git__get_prompt", false, true),
    ] {
        let policy = policy(PermissionMode::Default, &[(D, rule)]);
        let is_closed = |kind| policy.refusal_of_every_call(&stand_in(kind)).is_some();
        assert_eq!((is_closed(AccessKind::Resource), is_closed(AccessKind::Prompt)), (resources, prompts), "{rule}");
    }
    let policy = policy(PermissionMode::Default, &[(D, "Resource(git:*)"), (D, "Prompt")]);
    for name in ["read_resource", "get_prompt"] {
        assert!(policy.refusal_of_every_call(&namesake(name)).is_none(), "{name}");
    }
}

#[test]
fn requests_to_own_resources_are_allowed_in_every_mode_unless_a_rule_applies() {
    let provider = ToolSource::Embedded(ServerName::parse("git").unwrap());
    for source in [ToolSource::BuiltIn, provider] {
        let name = ToolName::for_plain_upstream("read_resource");
        let own = Tool::new(name, Map::new(), Category::Utility, source).standing_for(AccessKind::Resource);
        for mode in PermissionMode::ALL {
            assert_eq!(decided(*mode, &[], &own, "resource a://x").verdict, Allow, "{mode:?}");
        }
        assert_eq!(decided(PermissionMode::Bypass, &[(D, "Resource(git:a:*)")], &own, "resource a://x").verdict, Deny);
        assert_eq!(decided(PermissionMode::Default, &[(Q, "Resource")], &own, "resource a://x").verdict, Ask);
    }
    let of_server = stand_in(AccessKind::Resource);
    for (mode, expected) in [
        (PermissionMode::Plan, Deny),
        (PermissionMode::DontAsk, Deny),
        (PermissionMode::AcceptEdits, Ask),
        (PermissionMode::Bypass, Allow),
    ] {
        assert_eq!(decided(mode, &[], &of_server, "resource a://x").verdict, expected, "{mode:?}");
    }
}

#[test]
fn a_refused_request_suggests_an_exact_rule_and_names_a_tool_rule_that_does_not_apply() {
    for (touches, suggested) in [
        ("resource a://x(1)", Some("Resource(git:a://x(1))")),
        ("resource a://{id}", None),
        ("resource a://*", None),
        ("prompt review", Some("Prompt(git:review)")),
        ("prompt *", None),
    ] {
        assert_eq!(narrowest_rule(&accesses(touches)[0], "t").as_deref(), suggested, "{touches}");
    }
    let decision =
        decided(PermissionMode::Default, &[(A, "read_resource")], &stand_in(AccessKind::Resource), "resource a://x");
    assert!(matches!(&decision.decisive.near_miss, Some(NearMiss::OfTools(rule)) if rule.text == "read_resource"));
    assert_eq!(decision.suggestions("mcp__git__read_resource"), ["Resource(git:a://x)"]);
}
