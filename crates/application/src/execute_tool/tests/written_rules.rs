//! Rules that a user writes in place of the offered ones.

use super::*;
use toolstead_domain::RuleWideningLimits;

/// Calls a tool that runs `git log -1` three times, the first time with this answer. Returns the offered rule, and the
/// number of approval requests.
async fn answered(rule: &str) -> (Option<String>, usize) {
    let widening = Some(RuleWideningLimits { least: 1, offered: Some(2) });
    let git = CommandAccess { widening, ..CommandAccess::program(["git", "log", "-1"]) };
    let tool = ScriptedTool::named("git_log").touches(vec![Access::RunCommand(git)]).answers(ToolResult::text("ran"));
    let (by, scopes, rules) = ("ann".into(), vec![ApprovalScope::Session], vec![Some(rule.to_owned())]);
    let answer = ApprovalOutcome::GrantedWithRules { by, scopes, rules };
    let approver =
        Arc::new(ScriptedApprover::answering([answer, ApprovalOutcome::once("ann"), ApprovalOutcome::once("ann")]));
    let plan = Plan { approver: approver.clone(), ..Default::default() };
    let house = plan.house(ScriptedProvider::new("built-in").with(tool)).await;
    for _ in 0..3 {
        assert_eq!(house.call("git_log", json!({})).await, "ran", "{rule}");
    }
    let questions = approver.questions();
    (questions[0].parts[0].rule.clone(), questions.len())
}

#[tokio::test]
async fn a_user_written_rule_is_stored_only_if_it_covers_the_call_and_names_the_program() {
    for rule in ["Bash(git *)", "Bash(git log *)", "Bash(git log -1)", " Bash(git log -*) "] {
        assert_eq!(answered(rule).await, (Some("Bash(git log *)".into()), 1), "{rule}");
    }
    for rule in ["Bash", "Bash(*)", "Bash(g*)", "Bash(git push *)", "git_log", "Write", "Bash(git log | *)", ""] {
        assert_eq!(answered(rule).await.1, 3, "{rule} is not stored, and its call was approved once");
    }
}
