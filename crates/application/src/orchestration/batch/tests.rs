use super::*;
use crate::orchestration::{OrchestrationToolExamples, OrchestrationTools};
use proptest::prelude::*;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::yield_now;
use toolstead_domain::{
    Access, AccessPath, CallOutcome, CallPermissions, Calls, ClientProfile, FormatValidation, NoCalls, NoOutputs,
    Principal, SilentCaller, ToolInputSchema, ToolProvider, ToolSelection, View, testing::samples,
};

/// Tools by name: `read /path`, `write /path` and `fail /path` touch the path, `batch` is a batch, all others are unknown.
/// Each call takes as many turns as its argument `turns` says.
#[derive(Default)]
struct Tools {
    calls: Mutex<Vec<String>>,
}

impl Tools {
    fn tell(&self, what: &str, call: &NestedCall) {
        self.calls.lock().unwrap().push(format!("{what} {} {}", call.tool, call.arguments["n"]));
    }

    /// Returns the largest number of calls that ran at once, of the tools whose names begin with this.
    fn at_once(&self, tool: &str) -> usize {
        let (mut now, mut most) = (0_usize, 0);
        for outcome in self.calls.lock().unwrap().iter() {
            if outcome.starts_with(&format!("begin {tool}")) {
                now += 1;
            } else if outcome.starts_with(&format!("end {tool}")) {
                now -= 1;
            }
            most = most.max(now);
        }
        most
    }
}

#[async_trait]
impl Calls for Tools {
    fn list(&self) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn search(&self, _: &str) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn through<'a>(&'a self, _: Arc<View>) -> Box<dyn Calls + 'a> {
        Box::new(NoCalls)
    }

    fn window<'a>(&'a self, _: &str, _: ToolSelection) -> Box<dyn Calls + 'a> {
        Box::new(NoCalls)
    }

    async fn preview(&self, call: NestedCall) -> Result<CallPreview, ToolFailure> {
        let access = match call.tool.split_once(' ') {
            Some(("read", path)) => Access::ReadPath(AccessPath::plain(path)),
            Some(("write" | "fail", path)) => Access::WritePath(AccessPath::plain(path)),
            _ if call.tool == "alone" => {
                let mut tool = samples::tool("alone");
                tool.stands_alone = true;
                return Ok(CallPreview::new(Arc::new(tool), Some(Vec::new())));
            }
            _ if call.tool == NAME => return Ok(CallPreview::new(Arc::new(samples::tool(NAME)), None)),
            _ => return Err(ToolFailure::new(ErrorKind::NotFound, format!("Unknown tool: {}", call.tool))),
        };
        Ok(CallPreview::new(Arc::new(samples::tool("t")), Some(vec![access])))
    }

    async fn call(&self, call: NestedCall) -> Result<ToolResult, ToolFailure> {
        self.tell("begin", &call);
        for _ in 0..call.arguments["turns"].as_u64().unwrap_or(0) {
            yield_now().await;
        }
        self.tell("end", &call);
        match call.tool.starts_with("fail") {
            true => Err(ToolFailure::new(ErrorKind::Io, "the disk is gone")),
            false => Ok(ToolResult::text(format!("{} of {:?}", call.arguments["n"], call.output_characters))),
        }
    }
}

fn batches() -> OrchestrationTools {
    let examples = OrchestrationToolExamples {
        batch: r#"{"invocations": [{"tool_name": "one"}]}"#,
        subagent: r#"{"prompt": "p"}"#,
        tool_search: r#"{"query": "q"}"#,
        call_tool: r#"{"name": "one"}"#,
    };
    OrchestrationTools::new(examples, |_| Vec::new(), None)
}

async fn run(tools: &Tools, arguments: Value) -> Result<ToolResult, ToolFailure> {
    run_until(tools, arguments, Instant::now() + Duration::from_secs(60)).await
}

async fn run_until(tools: &Tools, arguments: Value, deadline: Instant) -> Result<ToolResult, ToolFailure> {
    let batches = batches();
    let call = samples::call(1, batches.definitions()[0].clone(), arguments);
    let context = CallContext {
        id: call.id,
        principal: &Principal::local(),
        session: "s",
        deadline,
        grant: &CallPermissions::new(Arc::default(), call.tool.clone(), Vec::new()),
        client: &ClientProfile::without_protocol("test"),
        forwarded: Default::default(),
        labels: &Default::default(),
        answers: None,
        caller: &SilentCaller,
        calls: tools,
        outputs: &NoOutputs,
        output_characters: 30_000,
    };
    match batches.call(&call, &context).await? {
        CallOutcome::Done(result) => Ok(result),
        CallOutcome::InputRequired(_) => panic!("a batch asks nothing"),
    }
}

fn invocation(number: usize, tool: &str, turns: u64) -> Value {
    json!({"tool_name": tool, "parameters": {"n": number, "turns": turns}})
}

#[tokio::test]
async fn reading_calls_run_concurrently_up_to_the_limit() {
    let tools = Tools::default();
    let calls: Vec<Value> = (0..25).map(|number| invocation(number, "read /w/a", 5)).collect();
    let result = run(&tools, json!({"invocations": calls})).await.unwrap();
    assert_eq!((tools.at_once("read"), result.is_error()), (AT_ONCE, false));
    // Each has its share of the whole.
    assert!(result.joined_text().contains("[24] read /w/a\n24 of Some(1000)"), "{}", result.joined_text());
}

#[tokio::test]
async fn calls_that_change_the_same_path_run_in_order_and_others_run_concurrently() {
    let tools = Tools::default();
    let calls = [("write /w/a", 9), ("write /w/b", 9), ("read /w/a", 0), ("write /w/a", 0)];
    let calls: Vec<Value> = calls.iter().enumerate().map(|(n, (tool, turns))| invocation(n, tool, *turns)).collect();
    run(&tools, json!({"invocations": calls})).await.unwrap();
    let outcome = tools.calls.lock().unwrap().clone();
    let at = |what: &str| outcome.iter().position(|outcome| outcome == what).unwrap();
    assert!(at("begin write /w/b 1") < at("end write /w/a 0"), "{outcome:?}");
    assert!(at("end write /w/a 0") < at("begin read /w/a 2"), "{outcome:?}");
    assert!(at("end read /w/a 2") < at("begin write /w/a 3"), "{outcome:?}");
}

#[tokio::test]
async fn an_invalid_call_prevents_the_whole_batch_and_every_problem_is_reported() {
    let tools = Tools::default();
    let calls = ["read /w/a", "nowhere", NAME, "alone"];
    let calls: Vec<Value> = (0..).zip(calls).map(|(number, tool)| invocation(number, tool, 0)).collect();
    let failure = run(&tools, json!({"invocations": calls})).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::InvalidInput);
    assert_eq!(
        failure.text(),
        "None of the 4 calls was run, since 3 cannot be:\n\
         invocations[1] (`nowhere`): Unknown tool: nowhere\n\
         invocations[2] (`batch`): batches cannot be nested\n\
         invocations[3] (`alone`): it must be called on its own\n\
         Correct them and call again."
    );
    assert_eq!(tools.calls.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn the_calls_after_a_failure_run_unless_fail_fast_is_set() {
    for (fail_fast, successes) in [(false, 1), (true, 0)] {
        let tools = Tools::default();
        let calls = [invocation(0, "fail /w/a", 0), invocation(1, "write /w/a", 0)];
        let result = run(&tools, json!({"invocations": calls, "fail_fast": fail_fast})).await.unwrap();
        let content = result.structured_content().unwrap();
        assert_eq!((&content["success_count"], result.is_error()), (&json!(successes), true), "{content}");
        assert_eq!(content["results"][0]["error_kind"], "io");
        let text = content["results"][1]["text"].as_str().unwrap();
        assert_eq!(text.starts_with("Not run: call 0 failed"), fail_fast, "{text}");
    }
}

#[tokio::test]
async fn no_call_begins_after_the_deadline() {
    let tools = Tools::default();
    let result =
        run_until(&tools, json!({"invocations": [invocation(0, "read /w/a", 0)]}), Instant::now()).await.unwrap();
    assert_eq!(result.structured_content().unwrap()["results"][0]["error_kind"], "timeout");
    assert_eq!(tools.calls.lock().unwrap().len(), 0);
}

#[test]
fn the_batch_schema_accepts_its_example_and_limits_the_number_of_calls() {
    let batch = &batches().definitions()[0].clone();
    let schema = ToolInputSchema::compile(batch.input_schema(), FormatValidation::Asserted).unwrap();
    let call = || json!({"tool_name": "one", "parameters": {}});
    let many = |count| json!({"description": "d", "invocations": vec![call(); count]});
    for (arguments, fits) in [
        (batch.input_schema()["examples"][0].clone(), true),
        (many(25), true),
        (many(26), false),
        (many(0), false),
        (json!({"invocations": [{"parameters": {}}]}), false),
        (json!({"invocations": [{"tool_name": "one", "parameters": []}]}), false),
    ] {
        assert_eq!(schema.validate(&arguments).is_ok(), fits, "{arguments}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn results_are_in_the_order_of_the_calls_regardless_of_which_ends_first(
        calls in prop::collection::vec((prop::sample::select(vec!["read /a", "write /a", "write /b", "fail /c"]), 0_u64..6), 1..25)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let tools = Tools::default();
        let given: Vec<Value> = calls.iter().enumerate().map(|(n, (tool, turns))| invocation(n, tool, *turns)).collect();
        let result = runtime.block_on(run(&tools, json!({"invocations": given}))).unwrap();
        let content = result.structured_content().unwrap();
        let schema = batches().definitions()[0].output_schema().unwrap().clone();
        prop_assert!(ToolInputSchema::compile(&schema, FormatValidation::Asserted).unwrap().validate(content).is_ok());
        let rows = content["results"].as_array().unwrap();
        prop_assert_eq!(rows.len(), calls.len());
        for (index, (row, (tool, _))) in rows.iter().zip(&calls).enumerate() {
            prop_assert_eq!((&row["index"], &row["tool_name"]), (&json!(index), &json!(tool)));
            let own = row["text"].as_str().unwrap().starts_with(&format!("{index} of"));
            prop_assert!(own || row["is_error"] == true);
        }
        let failures = calls.iter().filter(|(tool, _)| tool.starts_with("fail")).count();
        prop_assert_eq!(&content["failure_count"], &json!(failures));
    }
}
