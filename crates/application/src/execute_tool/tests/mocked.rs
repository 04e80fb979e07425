//! Ports of an embedding application, mocked with `mockall`. Their signatures are copied from the traits.

use super::*;
use mockall::mock;
use std::sync::Mutex;
use toolstead_domain::{CallContext, ProviderListError, ToolCall, ToolFailure};

mock! {
    Asker {}
    #[async_trait]
    impl Approver for Asker {
        async fn ask<'s, 'r>(&'s self, request: ApprovalRequest<'r>) -> ApprovalOutcome;
    }
}

mock! {
    Guard {}
    #[async_trait]
    impl ToolHook for Guard {
        fn name(&self) -> &str;
        async fn before<'s, 'c, 'a>(&'s self, call: &'c ToolCall, accesses: Option<&'a [Access]>) -> BeforeCallResponse;
        async fn after<'s, 'e>(&'s self, ended: EndedCall<'e>) -> AfterCallResponse;
    }
}

mock! {
    Tools {}
    #[async_trait]
    impl ToolProvider for Tools {
        fn name(&self) -> &str;
        async fn list(&self) -> Result<Vec<Tool>, ProviderListError>;
        async fn accesses(&self, call: &ToolCall) -> Result<Vec<Access>, ToolFailure>;
        async fn preview<'s, 'c, 'r, 'x>(
            &'s self,
            call: &'c ToolCall,
            context: &'r CallContext<'x>,
        ) -> Result<Option<String>, ToolFailure>;
        async fn call<'s, 'c, 'r, 'x>(
            &'s self,
            call: &'c ToolCall,
            context: &'r CallContext<'x>,
        ) -> Result<CallOutcome, ToolFailure>;
    }
}

#[tokio::test]
async fn a_call_passes_a_mocked_hook_a_mocked_approver_and_a_mocked_provider() {
    let mut hook = MockGuard::new();
    hook.expect_name().return_const("guard".to_owned());
    hook.expect_before()
        .once()
        .withf(|call, accesses| call.tool.name().as_str() == "publish" && *accesses == Some(&write("/w/site")[..]))
        .returning(|_, _| BeforeCallResponse::proceed());
    hook.expect_after()
        .once()
        .withf(|ended| ended.execution.outcome == ExecutionOutcome::Succeeded)
        .returning(|_| AfterCallResponse::default());

    let mut approver = MockAsker::new();
    approver
        .expect_ask()
        .once()
        .withf(|request| request.preview == Some("+new") && request.parts.len() == 1)
        .returning(|_| ApprovalOutcome::once("Ada"));

    let mut tools = MockTools::new();
    tools.expect_name().return_const("pages".to_owned());
    tools.expect_list().returning(|| Ok(vec![samples::tool("publish")]));
    tools.expect_accesses().returning(|_| Ok(write("/w/site")));
    tools.expect_preview().times(2).returning(|_, _| Ok(Some("+new".to_owned())));
    tools
        .expect_call()
        .once()
        .withf(|call, context| call.id == context.id)
        .returning(|_, context| Ok(CallOutcome::Done(ToolResult::text(context.session))));

    let plan = Plan { approver: Arc::new(approver), hooks: vec![Arc::new(hook)], ..Default::default() };
    let built = plan.built(Arc::new(tools), Arc::new(InMemoryExecutionLog::new())).await;
    let CallOutcome::Done(result) = built.handler.handle(command("publish", json!({}))).await.unwrap() else {
        panic!("the call is done")
    };
    assert_eq!(result.joined_text(), "s");
}

#[tokio::test]
async fn a_change_that_differs_after_the_approval_requires_approval_again() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let (mut approver, log) = (MockAsker::new(), shown.clone());
    approver.expect_ask().times(2).returning(move |request| {
        log.lock().unwrap().push(request.preview.unwrap_or_default().to_owned());
        ApprovalOutcome::once("Ada")
    });

    let mut tools = MockTools::new();
    tools.expect_name().return_const("pages".to_owned());
    tools.expect_list().returning(|| Ok(vec![samples::tool("publish")]));
    tools.expect_accesses().returning(|_| Ok(write("/w/site")));
    // Another program writes the file while the first question is open.
    let mut previews = ["-one\n+new", "-two\n+new", "-two\n+new", "-two\n+new"].into_iter();
    tools.expect_preview().times(4).returning(move |_, _| Ok(previews.next().map(str::to_owned)));
    tools.expect_call().once().returning(|_, _| Ok(CallOutcome::Done(ToolResult::text("published"))));

    let plan = Plan { approver: Arc::new(approver), ..Default::default() };
    let built = plan.built(Arc::new(tools), Arc::new(InMemoryExecutionLog::new())).await;
    built.handler.handle(command("publish", json!({}))).await.unwrap();
    assert_eq!(*shown.lock().unwrap(), ["-one\n+new", "-two\n+new"]);
}
