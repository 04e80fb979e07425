use super::*;
use crate::{
    access::{Access, AccessPath, BuiltInAllowRule, CommandAccess, ParseConfidence, RuleWideningLimits},
    permission::decision::Verdict,
    ports::{
        approver::ApprovalScope,
        clock::Timestamp,
        tool_repository::{DefinitionChange, StoredToolCatalogue},
    },
    principal::Principal,
    provider_identity::ProviderIdentity,
    testing::samples,
    tool_execution::{ExecutionOutcome, RecordedDecision, ToolExecution},
};
use proptest::{
    collection::vec,
    option,
    prelude::{Just, Strategy, any, prop, prop_oneof, proptest},
    sample::select,
};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::{fmt::Debug, sync::Arc};

fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
    assert_eq!(&serde_json::from_value::<T>(serde_json::to_value(value).unwrap()).unwrap(), value, "{text}");
}

fn shared() -> impl Strategy<Value = Arc<str>> {
    any::<String>().prop_map(Into::into)
}

fn path() -> impl Strategy<Value = AccessPath> {
    (any::<String>(), any::<String>(), any::<bool>()).prop_map(|(lexical, real, tree)| AccessPath {
        lexical: lexical.into(),
        real: real.into(),
        tree,
    })
}

fn access() -> impl Strategy<Value = Access> {
    let server = || ServerName::parse("git").unwrap();
    let leaf = prop_oneof![
        path().prop_map(Access::ReadPath),
        path().prop_map(Access::WritePath),
        shared().prop_map(Access::ReachHost),
        shared().prop_map(Access::Send),
        shared().prop_map(Access::Undeclared),
        shared().prop_map(Access::RunAgent),
        shared().prop_map(Access::OfferTools),
        shared().prop_map(move |tool| Access::CallUpstream { server: server(), tool }),
        shared().prop_map(move |uri| Access::ReadResource { server: server(), uri }),
        shared().prop_map(move |prompt| Access::GetPrompt { server: server(), prompt }),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        let clarity = prop_oneof![
            Just(ParseConfidence::Plain),
            shared().prop_map(ParseConfidence::Exact),
            shared().prop_map(ParseConfidence::Opaque)
        ];
        let built_in_rule = option::of(select(BuiltInAllowRule::ALL));
        let widening = option::of((1..4_u8, option::of(1..4_u8)));
        let widening = widening.prop_map(|of| of.map(|(least, offered)| RuleWideningLimits { least, offered }));
        (shared(), vec(shared(), 0..3), vec(inner, 0..3), any::<bool>(), clarity, built_in_rule, widening).prop_map(
            |(whole, words, operands, only_changes_files, clarity, built_in_rule, widening)| {
                let words: Arc<[Arc<str>]> = words.into();
                Access::RunCommand(CommandAccess {
                    text: whole.clone(),
                    whole,
                    readings: [words.clone()].into(),
                    words,
                    free: operands.clone().into(),
                    operands: operands.into(),
                    only_changes_files,
                    clarity,
                    built_in_rule,
                    widening,
                })
            },
        )
    })
}

fn outcome() -> impl Strategy<Value = ExecutionOutcome> {
    let kind = || select(ErrorKind::ALL);
    prop_oneof![
        Just(ExecutionOutcome::Running),
        Just(ExecutionOutcome::Succeeded),
        (kind(), any::<String>()).prop_map(|(kind, why)| ExecutionOutcome::Failed(kind, why)),
        (kind(), any::<String>()).prop_map(|(kind, why)| ExecutionOutcome::Refused(kind, why)),
        select(vec![CancelReason::Client, CancelReason::Deadline, CancelReason::Shutdown])
            .prop_map(ExecutionOutcome::Cancelled),
        Just(ExecutionOutcome::InputRequired),
        Just(ExecutionOutcome::Interrupted),
    ]
}

fn execution() -> impl Strategy<Value = ToolExecution> {
    let decision = (any::<String>(), option::of(any::<String>())).prop_map(|(reason, approved_by)| RecordedDecision {
        verdict: "ask".into(),
        trace: json!([reason.clone()]),
        reason,
        approved_by,
    });
    let number = 0..1000_u32;
    (number, outcome(), option::of(decision), vec(any::<String>(), 0..3), option::of(any::<i64>()), any::<u64>())
        .prop_map(|(number, outcome, decision, accesses, ended, result_bytes)| ToolExecution {
            outcome,
            decision,
            accesses,
            ended: ended.map(Timestamp),
            result_bytes,
            parent: ended.map(|_| samples::call_id(number + 1)),
            labels: CallLabels::default().with("ticket", number.to_string()).unwrap(),
            ..samples::execution(number)
        })
}

fn source() -> impl Strategy<Value = ToolSource> {
    prop_oneof![
        Just(ToolSource::BuiltIn),
        shared().prop_map(|tool| ToolSource::McpServer { server: ServerName::parse("s").unwrap(), tool }),
        Just(ToolSource::Embedded(ServerName::parse("p").unwrap())),
    ]
}

fn tool() -> impl Strategy<Value = Tool> {
    let texts = (any::<String>(), vec(any::<String>(), 0..3), option::of(any::<String>()));
    ("[a-z_]{1,20}", texts, source(), select(Category::ALL), any::<bool>()).prop_map(
        |(name, (description, tags, missing), source, category, enabled)| {
            let definition = json!({"description": description, "inputSchema": {"type": "object"}, "x": [1.0, null]});
            let definition = definition.as_object().cloned().unwrap();
            let mut tool = Tool::new(ToolName::parse(&name).unwrap(), definition, category, source);
            tool.tags = tags;
            tool.enabled = enabled;
            tool.takes_command_lines = !enabled;
            (tool.passes_references_on, tool.stands_alone) = (enabled, !enabled);
            tool.reads_outputs = enabled.then(|| OutputReaderParameters::lines("path", "offset"));
            let short = json!({"description": "short"}).as_object().cloned().unwrap();
            tool = if enabled { tool.advertised_as(short) } else { tool };
            if let Some(missing) = missing.filter(|_| tool.availability == Availability::Available) {
                tool.availability = Availability::Unavailable(missing);
            }
            tool
        },
    )
}

proptest! {
    #[test]
    fn serialized_values_are_read_back_unchanged(
        access in access(),
        execution in execution(),
        tool in tool(),
        text in any::<String>(),
        verdict in select(vec![Verdict::Allow, Verdict::Ask, Verdict::Deny]),
        scope in select(ApprovalScope::ALL),
        kind in select(OutcomeKind::ALL),
        is_error in prop::bool::ANY,
    ) {
        comes_back(&access);
        comes_back(&execution);
        comes_back(&StoredToolCatalogue {
            changes: vec![DefinitionChange {
                tool: tool.name().to_string(),
                parts: DefinitionPart::ALL.to_vec(),
                at: Timestamp(7),
            }],
            tools: vec![tool.clone()],
        });
        comes_back(&ProviderIdentity { configured_in: text.clone(), name: text.clone(), start: text.clone() });
        comes_back(&tool);
        comes_back(&verdict);
        comes_back(&scope);
        comes_back(&kind);
        comes_back(&Principal::new("user", &text));
        comes_back(&match is_error {
            true => ToolResult::error(ErrorKind::ExecutionFailed, text),
            false => ToolResult::text(text).with_structured_content(json!({"n": 1.0})),
        });
    }
}

#[test]
fn serialized_values_use_the_usual_names_of_outcomes_errors_and_accesses() {
    let row = serde_json::to_value(samples::execution(1)).unwrap();
    assert_eq!((&row["outcome"], &row["id"]), (&json!("succeeded"), &json!(samples::call_id(1).to_string())));
    let failed = serde_json::to_value(ExecutionOutcome::Failed(ErrorKind::StaleFile, "changed".into())).unwrap();
    assert_eq!(failed, json!({"failed": ["stale_file", "changed"]}));
    let written = serde_json::to_value(Access::WritePath(AccessPath::plain("/w/a"))).unwrap();
    assert_eq!(written, json!({"write_path": {"lexical": "/w/a", "real": "/w/a", "tree": false}}));
}

#[test]
fn deserialization_rejects_invalid_values_and_rechecks_hidden_text() {
    assert!(serde_json::from_value::<ToolName>(json!("no name")).is_err());
    assert!(serde_json::from_value::<ServerName>(json!("a__b")).is_err());
    assert!(serde_json::from_value::<ErrorKind>(json!("bad luck")).is_err());
    assert!(serde_json::from_value::<CallId>(json!("o17")).is_err());
    assert!(serde_json::from_value::<CallLabels>(json!({"no name": "x"})).is_err());
    assert!(serde_json::from_value::<ToolResult>(json!({"content": "text"})).is_err());
    let mut hidden = serde_json::to_value(samples::tool("echo")).unwrap();
    hidden["definition"]["description"] = json!("reads \u{202e}txt.exe");
    let tool: Tool = serde_json::from_value(hidden).unwrap();
    assert!(matches!(tool.availability, Availability::Unavailable(_)), "what is hidden is found again");
    let mut hidden = serde_json::to_value(samples::tool("echo")).unwrap();
    hidden["advertised"] = json!({"description": "reads \u{202e}txt.exe"});
    let tool: Tool = serde_json::from_value(hidden).unwrap();
    assert!(matches!(tool.availability, Availability::Unavailable(_)), "also in what models get");
}
