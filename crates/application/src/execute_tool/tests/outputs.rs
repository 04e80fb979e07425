//! Outputs that are too large, and stored ones as arguments.

use super::*;

#[tokio::test]
async fn output_over_the_budget_is_truncated_with_a_notice() {
    let house = Plan::default().house(provider()).await;
    let text = house.call("long", json!({})).await;
    assert!(
        text.chars().count() <= 30_000
            && text.contains(" of 50000 characters (within line 1) are left out here; it is not stored"),
        "{}",
        text.len()
    );
    assert_eq!(house.only_row().outcome, ExecutionOutcome::Succeeded);
}

#[tokio::test]
async fn truncated_output_is_stored_whole_and_the_notice_names_its_handle() {
    let outputs = Arc::new(InMemoryOutputStore::new());
    let house = Plan { outputs: outputs.clone(), ..Default::default() }.house(provider()).await;
    assert!(house.call("long", json!({})).await.contains("all of it is `o1`: read {\"path\": \"o1\""));
    assert_eq!(house.call("echo", json!({})).await, "hi");
    assert_eq!(outputs.len(), 1);
}

/// Returns a tool with a text as its only parameter.
fn keep_text() -> ScriptedTool {
    let schema = json!({"type": "object", "required": ["text"], "additionalProperties": false,
                        "properties": {"text": {"type": "string"}}});
    let mut tool = tool_with_schema("keep", schema);
    tool.aliases = vec![Alias::new("Keep", Dialect("other"), &[Rewrite::Rename("body", "text")])];
    ScriptedTool::of(tool).touches(write("/w/a")).answers(ToolResult::text("kept"))
}

#[tokio::test]
async fn a_reference_passes_a_stored_output_as_an_argument_and_is_recorded_unresolved() {
    let outputs: Arc<dyn OutputStore> = Arc::new(InMemoryOutputStore::new());
    let rules = vec![(Effect::Allow, "Write")];
    let house = Plan { outputs, rules, ..Default::default() }.house(provider().with(keep_text())).await;
    assert!(house.call("long", json!({})).await.contains("`o1`"));
    // Also under an alias.
    let arguments = json!({"body": {"$ref": "o1"}});
    assert_eq!(house.call("Keep", arguments.clone()).await, "kept");
    assert_eq!(house.provider.calls()[1].arguments["text"], "x".repeat(50_000));
    let row = house.log.rows().pop().unwrap();
    assert_eq!(row.arguments, arguments);
    assert_eq!(house.call("Keep", json!({"body": "x".repeat(50_000)})).await, "kept");
    assert_eq!(
        house.log.rows().pop().unwrap().arguments_digest,
        row.arguments_digest,
        "the digest is that of the values"
    );
    // The stored output is validated like any other value.
    assert!(house.call("read", json!({"path": {"$ref": "o1", "select": "/a"}})).await.contains("it is not JSON"));
    assert!(house.call("keep", json!({"text": {"$ref": "o7"}})).await.contains("`o7` names no stored output"));
    assert!(house.call("keep", json!({"text": {"$ref": "o1", "x": 1}})).await.contains("/text: expected a string"));
    let mut others = command("keep", json!({"text": {"$ref": "o1"}}));
    others.scope.principal = Principal::token("other");
    assert!(house.handler.handle(others).await.unwrap_err().to_string().contains("`o1` names no stored output"));
    assert_eq!(house.provider.calls().len(), 3, "none of these ran");
}

#[tokio::test]
async fn a_stored_json_value_becomes_text_where_the_schema_requires_a_string() {
    let outputs = Arc::new(InMemoryOutputStore::new());
    let json = r#"{"rows": [1, 2], "name": "x"}"#;
    let stored = outputs.store(&Principal::local(), samples::call_id(1), "application/json", json.as_bytes()).await;
    assert_eq!(stored.unwrap().handle.to_string(), "o1");
    let rules = vec![(Effect::Allow, "Write")];
    let house = Plan { outputs, rules, ..Default::default() }.house(provider().with(keep_text())).await;
    for (select, text) in [(None, json), (Some("/rows"), "[1, 2]"), (Some("/name"), "x")] {
        let mut reference = json!({"$ref": "o1"});
        if let Some(select) = select {
            reference["select"] = select.into();
        }
        assert_eq!(house.call("keep", json!({"text": reference})).await, "kept");
        assert_eq!(house.provider.calls().last().unwrap().arguments["text"], text);
    }
    house.call("echo", json!({"any": {"$ref": "o1", "select": "/rows"}})).await;
    assert_eq!(house.provider.calls().last().unwrap().arguments["any"], json!([1, 2]));
}

#[tokio::test]
async fn stored_values_become_text_only_where_the_schema_requires_a_string() {
    let outputs = Arc::new(InMemoryOutputStore::new());
    let huge = format!("{{\"n\":[\"{}\"]}}", "\\\"".repeat(5 << 20));
    let many = format!("{{\"n\":[{}0]}}", "0,".repeat(1 << 20));
    for content in [r#"{"n": [1, 2]}"#.to_owned(), huge, many.clone()] {
        outputs.store(&Principal::local(), samples::call_id(1), "application/json", content.as_bytes()).await.unwrap();
    }
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "text": {"type": "string"}, "value": {"type": "object"}, "texts": {"type": "array", "items": {"type": "string"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}});
    let mut tool = tool_with_schema("both", schema);
    tool.aliases = vec![Alias::new("Both", Dialect("other"), &[Rewrite::Rename("body", "text")])];
    let both = ScriptedTool::of(tool).touches(write("/w/a")).answers(ToolResult::text("kept"));
    let rules = vec![(Effect::Allow, "Write")];
    let house = Plan { outputs, rules, ..Default::default() }.house(provider().with(both)).await;
    let check = async |tool: &str, given: Value, expected: Value| {
        assert_eq!(house.call(tool, given).await, "kept");
        assert_eq!(Value::Object(house.provider.calls().last().unwrap().arguments.clone()), expected);
    };
    let (all, text, value) = (json!({"$ref": "o1"}), r#"{"n": [1, 2]}"#, json!({"n": [1, 2]}));
    check("both", json!({"text": all, "value": all}), json!({"text": text, "value": value})).await;
    check("Both", json!({"body": all, "value": all}), json!({"value": value, "text": text})).await;
    check("both", json!({"texts": [all], "value": all}), json!({"texts": [text], "value": value})).await;
    check("both", json!({"either": all}), json!({"either": text})).await;
    let refused = house.call("both", json!({"text": all, "value": {"$ref": "o1", "select": "/n"}})).await;
    assert!(refused.contains("/value: expected an object"), "{refused}");
    // As a text, each of its quotes takes one more byte.
    assert_eq!(house.call("both", json!({"value": {"$ref": "o2"}})).await, "kept");
    let refused = house.call("both", json!({"text": {"$ref": "o2"}})).await;
    assert!(refused.contains("with the stored outputs as texts the arguments are larger than 16777216"), "{refused}");
    // As values it would take many times its size, so it remains a text.
    check("both", json!({"text": {"$ref": "o3"}}), json!({"text": many})).await;
    let refused = house.call("both", json!({"value": {"$ref": "o3", "select": "/n"}})).await;
    assert!(refused.contains("it contains too many values"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn resolving_references_stops_on_cancellation_and_at_the_timeout() {
    /// Store that never answers. With `true`, a lookup cancels the call.
    struct Silent(CancelSignal, bool);
    #[async_trait]
    impl OutputStore for Silent {
        async fn store(&self, _: &Principal, _: CallId, _: &str, _: &[u8]) -> Result<StoredOutput, StoreError> {
            std::future::pending().await
        }
        async fn find(&self, _: &Principal, _: OutputHandle) -> Result<Option<StoredOutput>, StoreError> {
            if self.1 {
                self.0.cancel(CancelReason::Client);
            }
            std::future::pending().await
        }
        async fn open(&self, _: &Principal, _: OutputHandle) -> Result<Option<Box<dyn StoredContent>>, StoreError> {
            std::future::pending().await
        }
        async fn latest(&self, _: &Principal, _: usize) -> Result<Vec<StoredOutput>, StoreError> {
            std::future::pending().await
        }
    }
    for (cancels, expected) in [(true, ErrorKind::Cancelled), (false, ErrorKind::Timeout)] {
        let cancel = CancelSignal::new();
        let plan = Plan { outputs: Arc::new(Silent(cancel.clone(), cancels)), ..Default::default() };
        let house = plan.house(provider().with(keep_text())).await;
        let call = ExecuteToolCommand { cancel, ..command("keep", json!({"text": {"$ref": "o1"}})) };
        assert_eq!(house.handler.handle(call).await.unwrap_err().kind(), expected);
        assert!(house.provider.calls().is_empty());
    }
}

#[tokio::test]
async fn an_approver_receives_the_resolved_arguments_and_a_note_of_each_reference() {
    struct Shown(std::sync::Mutex<Vec<String>>);
    #[async_trait]
    impl Approver for Shown {
        async fn ask(&self, request: ApprovalRequest<'_>) -> ApprovalOutcome {
            assert_eq!(request.call.arguments["text"].as_str().map(str::len), Some(50_000));
            self.0.lock().unwrap().extend(request.references.iter().cloned());
            ApprovalOutcome::once("ann")
        }
    }
    let shown = Arc::new(Shown(Default::default()));
    let plan = Plan { outputs: Arc::new(InMemoryOutputStore::new()), approver: shown.clone(), ..Default::default() };
    let house = plan.house(provider().with(keep_text())).await;
    house.call("long", json!({})).await;
    assert_eq!(house.call("keep", json!({"text": {"$ref": "o1"}})).await, "kept");
    assert_eq!(*shown.0.lock().unwrap(), ["`/text` is the stored output `o1` (50000 bytes of text/plain)"]);
}

#[tokio::test]
async fn a_caller_can_request_less_output_than_the_budget_but_not_more() {
    let plan = Plan { outputs: Arc::new(InMemoryOutputStore::new()), ..Default::default() };
    let house = plan.house(provider().with(keep_text())).await;
    let text = house.call("long", json!({"$max_output": 300})).await;
    assert!(text.chars().count() <= 300 && text.contains("`o1`"), "{text}");
    assert_eq!(house.provider.calls()[0].arguments, Map::new(), "the tool does not hear of it");
    assert_eq!(house.call("long", json!({"$max_output": 1_000_000})).await.chars().count(), 30_000, "and never more");
    assert!(house.call("long", json!({"$max_output": "all"})).await.contains("must be a whole number"));
}

#[tokio::test]
async fn the_message_and_partial_output_of_a_failed_call_are_bounded() {
    let outputs = Arc::new(InMemoryOutputStore::new());
    let fails = |message: String, partial: String| {
        ScriptedTool::named("half").ends_by(move |_| {
            let failure = ToolFailure::new(ErrorKind::Timeout, message.as_str());
            Ending::Failure(failure.with_partial(ToolResult::text(partial.as_str())))
        })
    };
    for (message, partial, outcome) in [
        ("too slow".to_owned(), "y".repeat(90_000), "all of it is `o1`"),
        ("z".repeat(90_000), "short".to_owned(), "60000 more characters are left out and not stored"),
    ] {
        let plan = Plan { outputs: outputs.clone(), ..Default::default() };
        let house = plan.house(provider().with(fails(message, partial))).await;
        let Err(ExecuteToolError::Failed(failure)) = house.handler.handle(command("half", json!({}))).await else {
            panic!("it failed")
        };
        let text = failure.into_result().joined_text();
        assert!(text.chars().count() < 30_200 && text.contains(outcome), "{}", text.chars().count());
    }
}
