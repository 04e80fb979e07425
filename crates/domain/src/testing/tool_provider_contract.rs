//! Contract of every tool provider, as far as it can be checked without knowledge of its tools.

use super::{recording_caller::RecordingCaller, samples};
use crate::{
    client_profile::ClientProfile,
    permission::{grant::CallPermissions, policy::PermissionPolicy},
    ports::{
        calls::NoCalls,
        output_store::NoOutputs,
        tool_provider::{CallContext, CallOutcome, ToolProvider},
    },
    principal::Principal,
    tool::{Tool, ToolSource},
    tool_call::ToolCall,
    tool_failure::ToolFailure,
    tool_input_schema::{FormatValidation, ToolInputSchema},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

/// Checks each guarantee of [`ToolProvider`] that can be checked on any provider. The provider must be ready, its tools
/// must not change while this runs, and none of them may be called `no_tool_has_this_name`. No tool is called.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn tool_provider_contract(provider: &dyn ToolProvider) {
    let tools = provider.list().await.expect("a provider that is ready lists its tools");
    names_and_definitions_are_sound(provider, &tools);
    asking_changes_nothing(provider, &tools).await;
    an_unknown_tool_is_a_failure(provider).await;
    assert_eq!(provider.list().await.unwrap(), tools, "the list stays as it is");
}

fn names_and_definitions_are_sound(provider: &dyn ToolProvider, tools: &[Tool]) {
    assert!(!provider.name().is_empty(), "a provider has a name");
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name().as_str()).collect();
    assert_eq!(names.len(), tools.len(), "names are unique");
    for tool in tools {
        let name = tool.name();
        assert_eq!(tool.definition().get("name"), Some(&json!(name.as_str())), "a definition bears the tool's name");
        assert!(tool.tags.is_sorted(), "the tags of `{name}` are sorted");
        match tool.source() {
            ToolSource::BuiltIn => {}
            ToolSource::McpServer { server, .. } | ToolSource::Embedded(server) => {
                assert_eq!(server.as_str(), provider.name(), "the source of `{name}` names its provider");
            }
        }
        if provider.owns_schemas() {
            ToolInputSchema::compile(tool.input_schema(), FormatValidation::Asserted)
                .unwrap_or_else(|error| panic!("the schema of `{name}`: {error}"));
            assert!(!tool.description().is_empty(), "`{name}` has a description");
        }
    }
}

async fn asking_changes_nothing(provider: &dyn ToolProvider, tools: &[Tool]) {
    let state = provider.state();
    let listed = provider.list().await.unwrap();
    assert_eq!(listed, tools, "two lists are equal while nothing changed");
    for (number, tool) in (1..).zip(tools) {
        let call = samples::call(number, tool.clone(), json!({}));
        let ask = async || provider.accesses(&call).await.map_err(|failure| (failure.kind, failure.message));
        let accesses = ask().await;
        assert_eq!(ask().await, accesses, "the accesses of `{}` are the same when asked again", tool.name());
        if let Err((_, message)) = accesses {
            assert!(!message.is_empty(), "a failure of `{}` says what is wrong", tool.name());
        }
    }
    assert_eq!(provider.state(), state, "asking does not change the state");
    let mut changed = pin!(provider.changed());
    let polled = changed.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Pending, "asking does not change the list");
}

async fn an_unknown_tool_is_a_failure(provider: &dyn ToolProvider) {
    let call = samples::call(0, samples::tool("no_tool_has_this_name"), json!({}));
    let outcome = call_unasked(provider, &call).await;
    let failed = match outcome {
        Err(failure) => !failure.message.is_empty(),
        Ok(CallOutcome::Done(result)) => result.is_error(),
        Ok(CallOutcome::InputRequired(_)) => false,
    };
    assert!(failed, "a call of an unknown tool fails and says so");
}

async fn call_unasked(provider: &dyn ToolProvider, call: &ToolCall) -> Result<CallOutcome, ToolFailure> {
    let principal = Principal::local();
    let client = ClientProfile::without_protocol("contract suite");
    let grant = CallPermissions::new(Arc::new(PermissionPolicy::default()), call.tool.clone(), Vec::new());
    let caller = RecordingCaller::new();
    let context = CallContext {
        id: call.id,
        principal: &principal,
        session: "contract",
        deadline: Instant::now() + Duration::from_secs(10),
        grant: &grant,
        client: &client,
        forwarded: Default::default(),
        labels: &Default::default(),
        answers: None,
        caller: &caller,
        calls: &NoCalls,
        outputs: &NoOutputs,
        output_characters: 30_000,
    };
    provider.call(call, &context).await
}
