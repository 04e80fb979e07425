//! Schemas that are too costly to evaluate in this process.

use super::*;

/// Returns a schema whose evaluation of a deep value takes practically forever.
fn endless_schema() -> Value {
    json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "required": ["b"]})
}

fn deep_value() -> Value {
    (0..40).fold(json!({}), |inner, _| json!({"a": inner}))
}

#[tokio::test]
async fn an_unbounded_schema_is_validated_in_a_separate_process_or_the_call_is_refused() {
    async fn check(schemas: InProcessSchemaValidator, arguments: Value, expected: &str) {
        let schemas = Arc::new(schemas);
        let provider = ScriptedProvider::new("p").with(ScriptedTool::of(tool_with_schema("t", endless_schema())));
        let house = Plan { schemas: schemas.clone(), ..Plan::default() }.house(provider).await;
        let answer = house.call("t", arguments.clone()).await;
        assert!(answer.contains(expected), "{answer}");
        assert_eq!(schemas.received_values(), [arguments]);
        assert_eq!(house.log.rows().len(), 1);
    }
    check(InProcessSchemaValidator::new(), json!({"b": 1}), "(no output)").await;
    check(InProcessSchemaValidator::new(), json!({"a": 1}), "refused invalid_input: The arguments do not fit").await;
    let why = "(a separate process was needed because of the schema: it contains itself, and refers twice to one place of what it describes)";
    for (failure, kind) in [
        (SchemaValidationError::OutOfProcessorTime("1 second".into()), "refused timeout"),
        (SchemaValidationError::Late, "refused timeout"),
        (SchemaValidationError::OutOfMemory, "refused too_large"),
        (SchemaValidationError::Unavailable("there is no other process".into()), "refused unavailable"),
        (SchemaValidationError::Ended("killed".into()), "refused unavailable"),
    ] {
        check(InProcessSchemaValidator::failing(failure.clone()), deep_value(), kind).await;
        check(InProcessSchemaValidator::failing(failure), deep_value(), why).await;
    }
    let broken = SchemaValidationError::Schema(toolstead_domain::tool_input_schema::InvalidSchema::new("it is none"));
    check(
        InProcessSchemaValidator::failing(broken),
        json!({}),
        "not callable unavailable: the tool `t` cannot be called",
    )
    .await;
}

#[tokio::test]
async fn a_denied_call_is_refused_before_its_arguments_are_validated() {
    let schemas = Arc::new(InProcessSchemaValidator::new());
    let provider = ScriptedProvider::new("p").with(ScriptedTool::of(tool_with_schema("t", endless_schema())));
    let plan = Plan { rules: vec![(Effect::Deny, "t")], schemas: schemas.clone(), ..Plan::default() };
    let house = plan.house(provider).await;
    let answer = house.call("t", deep_value()).await;
    assert!(
        answer.starts_with("refused permission_denied: The call of `t` is not permitted: the deny rule `t`"),
        "{answer}"
    );
    assert!(schemas.received_values().is_empty());
    let row = house.only_row();
    assert!(matches!(row.outcome, ExecutionOutcome::Refused(ErrorKind::PermissionDenied, _)), "{row:?}");
    assert_eq!(row.decision.map(|decision| decision.verdict).as_deref(), Some("deny"));
}

#[tokio::test]
async fn defaults_of_own_schemas_are_filled_in_and_defaults_of_server_schemas_are_not() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "default": 10}, "o": {"properties": {"deep": {"default": "x"}}}},
    });
    for (is_ours, given, expected) in [
        (true, json!({}), json!({"n": 10})),
        (true, json!({"n": null}), json!({"n": 10})),
        (true, json!({"n": "3", "o": {}}), json!({"n": 3, "o": {"deep": "x"}})),
        (false, json!({}), json!({})),
    ] {
        let tool = ScriptedTool::of(tool_with_schema("t", schema.clone()))
            .ends_by(|moment| Ending::Done(ToolResult::json(moment.call.arguments.clone().into())));
        let provider = ScriptedProvider::new("p").with(tool);
        let provider = if is_ours { provider } else { provider.with_foreign_schemas() };
        let house = Plan::default().house(provider).await;
        house.call("t", given.clone()).await;
        assert_eq!(Value::Object(house.provider.calls()[0].arguments.clone()), expected, "{given}");
    }
}

#[tokio::test]
async fn a_default_that_its_own_schema_forbids_reaches_no_provider() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "default": "many"}}});
    let provider = ScriptedProvider::new("p").with(ScriptedTool::of(tool_with_schema("t", schema)));
    let house = Plan::default().house(provider).await;
    let answer = house.call("t", json!({})).await;
    assert!(answer.starts_with("refused invalid_input"), "{answer}");
    assert!(house.provider.calls().is_empty());
}

#[tokio::test]
async fn a_result_that_violates_the_output_schema_is_a_failure_unless_the_tool_is_foreign() {
    let promising = || {
        let mut definition = samples::tool("t").definition().clone();
        definition.insert("outputSchema".into(), json!({"type": "object", "required": ["a"]}));
        Tool::new(samples::tool("t").name().clone(), definition, Category::Utility, ToolSource::BuiltIn)
    };
    let (kept, broken) = (ToolResult::json(json!({"a": 1})), ToolResult::json(json!({"b": 1})));
    for (result, is_ours, expected) in [
        (kept.clone(), true, None),
        (broken.clone(), true, Some("does not fit its own output schema")),
        (ToolResult::text("plain"), true, Some("there is no structured content")),
        (ToolResult::error(ErrorKind::NotFound, "nothing"), true, None),
        (broken, false, None),
    ] {
        let provider = ScriptedProvider::new("p").with(ScriptedTool::of(promising()).answers(result));
        let provider = if is_ours { provider } else { provider.with_foreign_schemas() };
        let house = Plan::default().house(provider).await;
        let answer = house.call("t", json!({})).await;
        match expected {
            Some(expected) => assert!(answer.starts_with("failed internal") && answer.contains(expected), "{answer}"),
            None => assert!(!answer.contains("internal"), "{answer}"),
        }
        assert_eq!(house.log.rows().len(), 1);
    }
}

/// Hook that stores the arguments and accesses that it receives.
#[derive(Default)]
struct Listener(std::sync::Mutex<Vec<(Value, Vec<Access>)>>);

#[async_trait]
impl ToolHook for Listener {
    fn name(&self) -> &str {
        "listener"
    }

    async fn before(&self, call: &ToolCall, accesses: Option<&[Access]>) -> BeforeCallResponse {
        let heard = (call.arguments.clone().into(), accesses.unwrap_or_default().to_vec());
        self.0.lock().unwrap().push(heard);
        BeforeCallResponse::proceed()
    }

    async fn after(&self, _: EndedCall<'_>) -> AfterCallResponse {
        AfterCallResponse::default()
    }
}

#[tokio::test]
async fn hooks_receive_the_arguments_as_given_and_the_accesses_including_defaults() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string", "default": "/w/usual"}}});
    let tool = ScriptedTool::of(tool_with_schema("t", schema)).touches_by(|call| {
        let path = call.arguments.get("path").and_then(Value::as_str).unwrap_or("/w/none");
        Ok(vec![Access::ReadPath(AccessPath::plain(path))])
    });
    let listener = Arc::new(Listener::default());
    let house =
        Plan { hooks: vec![listener.clone()], ..Plan::default() }.house(ScriptedProvider::new("p").with(tool)).await;
    house.call("t", json!({})).await;
    let touched = vec![Access::ReadPath(AccessPath::plain("/w/usual"))];
    assert_eq!(*listener.0.lock().unwrap(), [(json!({}), touched)]);
    assert_eq!(house.only_row().accesses, ["read /w/usual"]);
}
