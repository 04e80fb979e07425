//! Delegated work: its permissions, its budgets, its ends, and its events.

use super::{surroundings::Desk, *};
use crate::orchestration::{OrchestrationToolExamples, OrchestrationTools, SubagentPorts};
use async_trait::async_trait;
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Mutex};
use toolstead_domain::{
    AgentDefinition, AgentHookEvent, AgentHookResponse, Budgets, Conversation, ExecutionOutcome, Models, NewTask,
    NoAgents, TaskOutputSink, TaskStarter, TaskWork, TokenPrices, ToolExecution, ToolFailure,
    testing::scripted_approver::ScriptedApprover,
};

const EXAMPLES: OrchestrationToolExamples = OrchestrationToolExamples {
    batch: r#"{"invocations": [{"tool_name": "echo"}]}"#,
    subagent: r#"{"prompt": "p"}"#,
    tool_search: r#"{"query": "q"}"#,
    call_tool: r#"{"name": "echo"}"#,
};

/// Models by name.
#[derive(Default)]
struct Cast(BTreeMap<&'static str, Arc<ScriptedModel>>);

impl Models for Cast {
    fn model(&self, name: Option<&str>) -> Result<Arc<dyn ModelProvider>, String> {
        let name = name.unwrap_or("usual");
        let model = self.0.get(name).ok_or_else(|| format!("no model is called `{name}`"))?;
        Ok(model.clone())
    }
}

/// Runs a task to its end before it is reported.
struct AtOnce;

/// Receives nothing.
struct Deaf;

impl TaskOutputSink for Deaf {
    fn write(&self, _: &str) {}
}

#[async_trait]
impl TaskStarter for AtOnce {
    async fn begin(&self, _: NewTask, work: Box<dyn TaskWork>) -> Result<String, ToolFailure> {
        work.run(Arc::new(Deaf)).await;
        Ok("task_1".into())
    }
}

/// A setup with the agents `general`, which has all tools, and `reader`, which has the given ones. The policy allows
/// everything that the plan does not forbid.
async fn house_of(
    plan: Plan,
    provider: Arc<ScriptedProvider>,
    models: impl IntoIterator<Item = (&'static str, Arc<ScriptedModel>)>,
    readers: ToolSelection,
) -> House {
    let mut rules = plan.rules;
    rules.push((Effect::Allow, "Agent"));
    let desk = Desk { is_bare: true, ..Desk::default() };
    let surroundings = Some(Arc::new(desk) as Arc<dyn AgentSurroundings>);
    let house = Plan { rules, surroundings, ..plan }.house(provider).await;
    let mut reader = AgentDefinition::new("reader", "Reads.", "You read.");
    reader.tools = readers;
    let agents = SubagentPorts {
        run_agent: house.handler.clone(),
        models: Arc::new(Cast(models.into_iter().chain([("usual", model([]))]).collect())),
        own: vec![Arc::new(AgentDefinition::new("general", "Does anything.", "You do.")), Arc::new(reader)],
        catalogue: Arc::new(NoAgents),
        tasks: Arc::new(AtOnce),
        budgets: Budgets::default(),
        compaction: CompactionThreshold::default(),
        summarizer: None,
    };
    house.registry.register(Arc::new(OrchestrationTools::new(EXAMPLES, |_| Vec::new(), Some(agents)))).await.unwrap();
    house
}

async fn house_with(models: impl IntoIterator<Item = (&'static str, Arc<ScriptedModel>)>) -> House {
    house_of(Plan::default(), Arc::new(provider()), models, ToolSelection::only(["read"])).await
}

/// Work for this agent, done by this model.
fn work(agent: &str, model: &str) -> Value {
    json!({"prompt": "do it", "agent": agent, "model": model})
}

fn handing(id: &str, arguments: Value) -> ScriptedAnswer {
    ScriptedAnswer::call(id, "subagent", arguments)
}

impl House {
    fn rows(&self, tool: &str) -> Vec<ToolExecution> {
        self.log.rows().into_iter().filter(|row| row.tool == tool).collect()
    }

    async fn children(&self) -> Vec<Conversation> {
        self.store.delegated_in(&Principal::local(), &self.conversation.session(), 100).await.unwrap()
    }

    /// The results of the calls, a line each.
    async fn results(&self) -> Vec<String> {
        let history = self.history().await;
        history.into_iter().filter(|line| line.starts_with("result ") || line.starts_with("error ")).collect()
    }

    #[track_caller]
    fn check_all_is_over(&self) {
        let rows = self.log.rows();
        assert!(rows.iter().all(|row| row.outcome.is_final()), "{rows:#?}");
        assert!(self.open_calls.admit(samples::call_id(900), Principal::local(), CancelSignal::new()).is_ok());
    }
}

/// The kinds of events of subagents, each with the name of the agent.
fn told_of_agents(ran: &Ran) -> Vec<String> {
    let message = ran.events.iter().map(AgentEvent::to_json).filter(|event| event["agent_id"].is_string());
    message.map(|event| format!("{} {}", event["agent"].as_str().unwrap(), event["type"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_subagent_works_in_its_own_conversation_and_returns_its_report_to_the_parent() {
    let usage = TokenUsage { input_tokens: 100, output_tokens: 10, ..TokenUsage::default() };
    let child = model([call("k1", "echo").uses(usage), text("found it").uses(usage)]);
    let house = house_with([("child", child.clone())]).await;
    let parent = model([handing("c1", work("general", "child")).uses(usage), text("done").uses(usage)]);
    let ran = house.run(&parent, "go").await;
    assert_eq!((ran.end().as_str(), ran.text()), ("finished", "done"));

    let children = house.children().await;
    let [own] = &children[..] else { panic!("{children:?}") };
    let (by, subagent, echo) = (own.delegated_by.clone().unwrap(), house.rows("subagent"), house.rows("echo"));
    assert_eq!((&*by.agent, by.call, &by.session), ("general", subagent[0].id, &house.conversation.session()));
    assert_eq!((echo[0].parent, &echo[0].session), (Some(subagent[0].id), &own.id.to_string()));
    assert_eq!(subagent[0].accesses, ["hand work to the agent general"]);
    let latest = house.store.latest(&Principal::local(), 10).await.unwrap();
    assert_eq!(latest.iter().map(|one| one.id).collect::<Vec<_>>(), [house.conversation], "a person began one");

    let result = &house.results().await[0];
    assert!(result.starts_with(&format!("result c1: found it\n\n[agent_id: {}; tool calls: 1, tokens: 220", own.id)));
    let asked = child.requests();
    assert_eq!(asked[0].system, "You do.\n\nYou are at home.");
    assert_eq!(words(&asked[0].messages[0].blocks), "do it", "it knows nothing of what came before");
    let Some(AgentEvent::Ended { usage: total, calls, turns, .. }) = ran.events.last() else { panic!() };
    assert_eq!((total.total(), *calls, *turns), (440, 2, 2), "what it used up is the run's as well");
    assert_eq!(
        told_of_agents(&ran),
        ["started", "answered", "call_started", "call_ended", "answered", "ended"]
            .map(|kind| format!("general subagent_{kind}"))
    );
    house.check_all_is_over();
}

#[tokio::test]
async fn delegation_to_an_unknown_agent_or_model_is_refused_with_an_explanation() {
    let house = house_with([]).await;
    let parent = model([
        handing("c1", json!({"prompt": "p", "agent": "readr"})).and_call("c2", "subagent", work("general", "huge")),
        text("done"),
    ]);
    house.run(&parent, "go").await;
    let results = house.results().await;
    assert_eq!(
        results,
        [
            "error c1: There is no agent `readr`. Did you mean `reader`? There are: general, reader.",
            "error c2: The agent has no model: no model is called `huge`."
        ]
    );
    assert_eq!(house.children().await, []);
}

#[tokio::test]
async fn a_subagent_is_offered_and_can_call_only_its_own_tools() {
    let child = model([call("k1", "write").and_call("k2", "read", json!({})), text("tried")]);
    let house = house_with([("child", child.clone())]).await;
    let parent = model([handing("c1", work("reader", "child")), text("done")]);
    house.run(&parent, "go").await;
    let offered: Vec<String> = child.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(offered, ["read"]);
    assert_eq!((house.rows("read").len(), house.rows("read")[0].outcome.clone()), (1, ExecutionOutcome::Succeeded));
    assert!(house.rows("write").iter().all(|row| matches!(row.outcome, ExecutionOutcome::Refused(..))));
}

#[tokio::test]
async fn delegation_is_limited_to_two_levels_of_subagents() {
    let third = model([handing("g1", work("general", "fourth")), text("could not")]);
    let second = model([handing("k1", work("general", "third")), text("handed on")]);
    let fourth = model([text("never")]);
    let models = [("second", second.clone()), ("third", third.clone()), ("fourth", fourth.clone())];
    let house = house_with(models).await;
    let parent = model([handing("c1", work("general", "second")), text("done")]);
    let ran = house.run(&parent, "go").await;
    assert_eq!((ran.end().as_str(), fourth.left()), ("finished", 1));
    let offers = |model: &Arc<ScriptedModel>| model.requests()[0].tools.iter().any(|tool| tool.name == "subagent");
    assert_eq!((offers(&parent), offers(&second), offers(&third)), (true, true, false));
    let rows = house.rows("subagent");
    assert_eq!(rows.iter().filter(|row| row.outcome == ExecutionOutcome::Succeeded).count(), 2, "{rows:#?}");
    house.check_all_is_over();
}

#[tokio::test]
async fn a_subagent_shares_the_remaining_budgets_of_its_parent_run() {
    let usage = TokenUsage { input_tokens: 1_000, ..TokenUsage::default() };
    let restless =
        || model((0..9).map(|n| ScriptedAnswer::call(&format!("k{n}"), "echo", json!({"n": n})).uses(usage)));
    let check = async |budgets: fn(&mut Budgets), echoes: usize, childs: u64, end: &str| {
        let child = restless();
        let house = house_with([("child", child.clone())]).await;
        let parent = model([handing("c1", work("general", "child")).uses(usage), text("done").uses(usage)]);
        let mut command = house.command(&parent, "go");
        budgets(&mut command.budgets);
        let ran = house.ran(command).await;
        assert_eq!((house.rows("echo").len(), child.requests().len() as u64), (echoes, childs), "{end}");
        assert_eq!(ran.end(), end);
        house.check_all_is_over();
    };
    // The delegating call counts, too; then the subagent writes a last text.
    check(|budgets| budgets.calls = Some(3), 2, 4, "finished").await;
    check(|budgets| budgets.tokens = Some(5_000), 2, 3, "budget_exhausted tokens").await;
}

#[tokio::test]
async fn a_run_with_a_cost_budget_refuses_a_subagent_model_without_known_prices() {
    let usage = TokenUsage { input_tokens: 1_000, ..TokenUsage::default() };
    let priced = |answers: Vec<ScriptedAnswer>| {
        let prices = TokenPrices { input: 1.0, cache_read: 1.0, cache_write: 1.0, output: 1.0 };
        Arc::new(ScriptedModel::answering(answers).with_prices(prices).named("priced"))
    };
    for (bound, asked) in [(Some(1.0), 0), (None, 1)] {
        let child = Arc::new(ScriptedModel::answering([text("free")]).named("child"));
        let house = house_with([("child", child.clone())]).await;
        let parent = priced(vec![handing("c1", work("general", "child")).uses(usage), text("done").uses(usage)]);
        let mut command = house.command(&parent, "go");
        command.budgets.cost = bound;
        assert_eq!(house.ran(command).await.end(), "finished");
        assert_eq!(child.requests().len(), asked, "{bound:?}");
        let is_told = house.results().await[0].contains("the prices of the model `child` are unknown");
        assert_eq!(is_told, bound.is_some());
    }
}

#[tokio::test]
async fn records_of_a_background_subagent_name_its_own_restricted_view() {
    let child = model([call("k1", "echo"), text("found it")]);
    let house = house_with([("child", child)]).await;
    let mut arguments = work("general", "child");
    arguments["background"] = true.into();
    let parent = model([handing("c1", arguments), text("done")]);
    assert_eq!(house.run(&parent, "go").await.end(), "finished");
    let (subagent, echo) = (house.rows("subagent"), house.rows("echo"));
    assert_eq!((echo[0].parent, echo[0].labels.get("toolstead/window")), (Some(subagent[0].id), Some("general")));
}

#[tokio::test]
async fn a_subagent_ends_at_its_turn_limit_and_returns_its_partial_result() {
    let child = model([call("k1", "echo").and_text("so far"), call("k2", "echo"), text("never")]);
    let house = house_with([("child", child.clone())]).await;
    let mut arguments = work("general", "child");
    arguments["max_turns"] = 2.into();
    let parent = model([handing("c1", arguments), text("done")]);
    assert_eq!(house.run(&parent, "go").await.end(), "finished");
    let result = &house.results().await[0];
    assert!(result.starts_with("result c1: so far\n\n[stopped, since its budget of turns is used up; "), "{result}");
    assert_eq!(child.left(), 1);
}

#[tokio::test]
async fn cancelling_a_run_cancels_its_tree_of_subagents_and_all_of_their_calls() {
    let provider = Arc::new(provider());
    let third = model([call("g1", "endless")]);
    let second = model([handing("k1", work("general", "third")).and_call("k2", "subagent", work("general", "fourth"))]);
    let fourth = model([text("thinking").never_ends()]);
    let models = [("second", second), ("third", third.clone()), ("fourth", fourth.clone())];
    let house = house_of(Plan::default(), provider.clone(), models, ToolSelection::all()).await;
    let parent = model([handing("c1", work("general", "second"))]);
    let mut run = house.handler.start(house.command(&parent, "go"));
    provider.began(1).await;
    fourth.stuck(1).await;
    run.cancel.cancel(CancelReason::Client);
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    let ran = Ran { events };
    assert_eq!(ran.end(), "cancelled");
    provider.ended(1).await;
    assert_eq!(fourth.dropped_answers(), 1, "the request is taken back");
    let rows = house.log.rows();
    assert_eq!(rows.len(), 4, "{rows:#?}");
    assert!(rows.iter().all(|row| matches!(row.outcome, ExecutionOutcome::Cancelled(_))), "{rows:#?}");
    let ends = told_of_agents(&ran).into_iter().filter(|one| one.ends_with("subagent_ended")).count();
    assert_eq!(ends, 3, "{:?}", told_of_agents(&ran));
    house.check_all_is_over();
}

#[tokio::test]
async fn agents_that_are_called_in_one_answer_work_side_by_side() {
    let (one, other) = (model([text("one").waits()]), model([text("other").waits()]));
    let house = house_with([("one", one.clone()), ("other", other.clone())]).await;
    let both = handing("c1", work("general", "one")).and_call("c2", "subagent", work("general", "other"));
    let parent = model([both, text("done")]);
    let run = house.run(&parent, "go");
    let release = async {
        one.stuck(1).await;
        other.stuck(1).await;
        one.release();
        other.release();
    };
    let (ran, ()) = tokio::join!(run, release);
    assert_eq!(ran.end(), "finished");
    let results = house.results().await;
    assert!(results[0].starts_with("result c1: one\n") && results[1].starts_with("result c2: other\n"), "{results:?}");
}

#[tokio::test]
async fn a_subagent_can_be_resumed_only_in_its_own_session() {
    let child = model([text("first"), text("second")]);
    let house = house_with([("child", child.clone())]).await;
    let begins = model([handing("c1", work("general", "child")), text("done")]);
    house.run(&begins, "go").await;
    let id = house.children().await[0].id.to_string();
    let resume = |agent: &str| json!({"prompt": "and now?", "agent": agent, "model": "child", "resume": id});
    let goes_on = model([
        handing("c2", json!({"prompt": "and now?", "model": "child", "resume": id})),
        handing("c3", resume("reader")),
        handing("c4", json!({"prompt": "p", "resume": "nobody"})),
        text("done"),
    ]);
    house.run(&goes_on, "go on").await;
    let results = house.results().await;
    assert!(results[1].starts_with("result c2: second\n"), "{results:?}");
    assert_eq!(results[2], format!("error c3: The agent {id} is `general`, not `reader`. Leave `agent` out."));
    assert!(results[3].starts_with("error c4: No agent `nobody` worked in this session."), "{results:?}");
    let said: Vec<String> = child.requests()[1].messages.iter().map(|message| words(&message.blocks)).collect();
    assert_eq!(said, ["do it", "first", "and now?"]);

    for (principal, conversation) in
        [(Principal::local(), ConversationId(Uuid::now_v7())), (Principal::token("other"), house.conversation)]
    {
        let other = model([handing("o1", resume("general")), text("done")]);
        let scope = RequestScope::of(principal.clone(), conversation.session());
        house.ran(RunAgentCommand { scope, conversation, ..house.command(&other, "go") }).await;
        let events = house.store.events(&principal, conversation).await.unwrap();
        let results: Vec<String> = events.iter().map(|event| summary(&event.kind)).collect();
        assert!(results[2].starts_with(&format!("error o1: No agent `{id}` worked")), "{results:?}");
    }
}

/// Makes an agent continue once, and adds a text to its context.
#[derive(Default)]
struct Supervisor(Mutex<Vec<String>>);

impl Supervisor {
    fn tell(&self, what: &str, moment: AgentHookEvent<'_>) {
        let agent = moment.delegated_by.map_or("-", |by| &*by.agent);
        self.0.lock().unwrap().push(format!("{what} {agent}: {}", moment.text));
    }
}

#[async_trait]
impl AgentHook for Supervisor {
    async fn prompt_submitted<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.tell("prompt", moment);
        AgentHookResponse::default()
    }

    async fn stopping<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.tell("stop", moment);
        AgentHookResponse::default()
    }

    async fn subagent_started<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.tell("start", moment);
        AgentHookResponse { block: Some("no".into()), context: vec!["it rains".into()], ..AgentHookResponse::default() }
    }

    async fn subagent_stopping<'m>(&self, moment: AgentHookEvent<'m>) -> AgentHookResponse {
        self.tell("end", moment);
        AgentHookResponse { block: Some("look again".into()), ..AgentHookResponse::default() }
    }
}

#[tokio::test]
async fn hooks_receive_subagent_starts_and_ends_and_can_continue_a_subagent_three_times() {
    let hook = Arc::new(Supervisor::default());
    let child = model(["a", "b", "c", "d"].map(text));
    let plan = Plan { hooks: vec![hook.clone()], ..Plan::default() };
    let house = house_of(plan, Arc::new(provider()), [("child", child.clone())], ToolSelection::all()).await;
    let parent = model([handing("c1", work("general", "child")), text("done")]);
    assert_eq!(house.run(&parent, "go").await.end(), "finished");
    assert_eq!(words(&child.requests()[0].messages[0].blocks), "do it it rains");
    assert_eq!(
        *hook.0.lock().unwrap(),
        [
            "prompt -: go",
            "start general: general",
            "end general: a",
            "end general: b",
            "end general: c",
            "end general: d",
            "stop -: done"
        ]
    );
}

#[tokio::test]
async fn an_approval_request_for_a_call_of_a_subagent_names_the_subagent() {
    let approver = Arc::new(ScriptedApprover::granting(1));
    let child = model([call("k1", "other"), text("done")]);
    let plan = Plan { rules: vec![(Effect::Ask, "other")], approver: approver.clone(), ..Plan::default() };
    let house = house_of(plan, Arc::new(provider()), [("child", child)], ToolSelection::all()).await;
    let parent = model([handing("c1", work("general", "child")), text("done")]);
    house.run(&parent, "go").await;
    let asked = approver.questions();
    assert_eq!(asked.iter().map(|one| one.agent.as_deref()).collect::<Vec<_>>(), [Some("general")]);
    assert_eq!(house.rows("other")[0].outcome, ExecutionOutcome::Succeeded);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A subagent, or one that it delegates to, can do nothing that the delegating run could not do itself.
    #[test]
    fn a_subagent_can_do_nothing_that_its_parent_run_could_not_do(
        denied in prop::collection::btree_set(prop::sample::select(vec!["echo", "other", "read", "write"]), 0..4),
        offered in prop::collection::btree_set(prop::sample::select(vec!["echo", "other", "read", "subagent"]), 1..5),
        tools in prop::collection::btree_set(prop::sample::select(vec!["echo", "other", "write", "subagent"]), 0..5),
        goes_deeper in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let all = ["echo", "other", "read", "write", "broken"];
            let tries = |id: &str| {
                let calls = all.iter().enumerate();
                calls.fold(ScriptedAnswer::empty(), |answer, (n, tool)| answer.and_call(&format!("{id}{n}"), tool, json!({})))
            };
            let rules = denied.iter().map(|tool| (Effect::Deny, *tool)).collect();
            let second = match goes_deeper {
                true => model([handing("k", work("general", "third")), tries("x"), text("t")]),
                false => model([tries("x"), text("t")]),
            };
            let third = model([tries("y"), text("t")]);
            let plan = Plan { rules, ..Plan::default() };
            let selection = ToolSelection::only(tools.iter().copied());
            let house = house_of(plan, Arc::new(provider()), [("second", second), ("third", third)], selection).await;
            let parent = model([handing("c", work("reader", "second")), text("done")]);
            let view = PermissionPolicy {
                mode: toolstead_domain::permission::policy::PermissionMode::Bypass,
                selection: ToolSelection::only(offered.iter().copied()),
                roots: WorkspaceRoots { write: vec!["/w".into()], ..Default::default() },
                ..PermissionPolicy::default()
            };
            let scope = RequestScope::default().through(toolstead_domain::scope::View::new("v", Arc::new(view)));
            let ran = house.ran(RunAgentCommand { scope, ..house.command(&parent, "go") }).await;
            prop_assert_eq!(ran.end(), "finished");
            let own = house.conversation.to_string();
            for row in house.log.rows() {
                let ran = !matches!(row.outcome, ExecutionOutcome::Refused(..));
                let tool = row.tool.as_str();
                if ran && row.session != own {
                    prop_assert!(offered.contains(tool) && tools.contains(tool) && !denied.contains(tool), "{:?}", row);
                }
                prop_assert!(row.outcome.is_final());
            }
            Ok(())
        })?;
    }
}
