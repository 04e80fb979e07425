//! `toolstead hooks list|test`.

use super::{
    CommandResult,
    call::read_arguments,
    exit::{CommandError, Exit},
    global::{GlobalFlags, builder, needed_for},
    output::{StdoutWriter, table, visible},
};
use crate::composition_root::{RunningApp, ServerSelection};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use toolstead_domain::{
    Access, AgentHookEvent, AuditedRequestKind, CallId, CallLabels, ConversationId, Delegation, EndedCall,
    ExecutionOutcome as Ended, HookVerdict, Principal, RecordedDecision, Timestamp, ToolCall, ToolExecution,
    ToolResult, error_kind::ErrorKind,
};
use toolstead_infrastructure::hooks::{
    command_hooks::{HookOutcome, HookRehearsalReport, HookWithOutcome},
    definition::HookEvent,
};
use uuid::Uuid;

/// Shows the hooks, or tries them out.
#[derive(Debug, Args)]
pub struct HooksCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the hooks, including those that never run here
    List,
    /// Runs the hooks of an event without the call or the agent, and shows their answers; exits with 3 if they deny,
    /// with 1 if they ask or defer
    Test {
        /// The event, such as PreToolUse
        event: String,
        /// The tool, by name or alias (default: write_file); of an event of agents the prompt, the last words, `auto` or
        /// `manual`, or the notification
        tool: Option<String>,
        /// The arguments as a JSON object; `-` reads them from standard input, `@FILE` from a file
        #[arg(default_value = r#"{"path": "example.txt", "content": "example"}"#, value_name = "JSON|-|@FILE")]
        arguments: String,
    },
}

impl HooksCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        match self.command {
            Command::List => list(global, output),
            Command::Test { event, tool, arguments } => {
                let event = HookEvent::parse(&event).ok_or_else(|| {
                    let known: Vec<&str> = HookEvent::ALL.iter().map(|event| event.as_str()).collect();
                    CommandError::Usage(format!("`{event}` never occurs here; use one of {}", known.join(", ")))
                })?;
                if event.is_of_agent() {
                    let composition = builder(global.load()?).servers(ServerSelection::None).build().await?;
                    let outcome = test_moment(&composition, event, tool.as_deref(), global.json, output).await;
                    composition.close().await;
                    return outcome;
                }
                let tool = tool.unwrap_or_else(|| "write_file".to_owned());
                let arguments = read_arguments(&arguments)?;
                let config = global.load()?;
                let servers = needed_for(&tool, &config);
                let composition = builder(config).servers(servers).build().await?;
                let outcome = test(&composition, event, &tool, arguments, global.json, output).await;
                composition.close().await;
                outcome
            }
        }
    }
}

fn list(global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
    let config = global.load_and_print_notes()?;
    let hooks = &config.hooks;
    if global.json {
        let runs = hooks.definitions.iter().map(|hook| {
            json!({
                "name": hook.name, "event": hook.event.as_str(), "matcher": hook.matcher.to_string(),
                "if": hook.filter.as_ref().map(ToString::to_string), "runs": hook.program.to_string(),
                "timeout_seconds": hook.timeout.as_secs(), "gate": hook.gate, "on_error": hook.on_error.as_str(),
                "background": hook.in_background, "origin": hook.origin,
            })
        });
        let idle = hooks
            .idle
            .iter()
            .map(|hook| json!({"event": hook.event, "origin": hook.origin.to_string(), "reason": hook.reason}));
        output.json(&json!({"hooks": runs.collect::<Vec<_>>(), "idle": idle.collect::<Vec<_>>()}))?;
        return Ok(Exit::Done);
    }
    let rows = hooks.definitions.iter().map(|hook| {
        let filter = hook.filter.as_ref().map_or(String::new(), |filter| format!(" if {filter}"));
        let gate = if hook.gate { "gate" } else { "" };
        vec![
            hook.name.clone(),
            hook.event.as_str().into(),
            format!("{}{filter}", hook.matcher),
            gate.into(),
            hook.program.to_string(),
        ]
    });
    if hooks.definitions.is_empty() {
        output.line("no hooks run here")?;
    } else {
        output.line(&table(&["hook", "event", "matcher", "", "runs"], rows))?;
    }
    for hook in &hooks.idle {
        output.line(&visible(&format!("# {}: a hook of `{}` never runs: {}", hook.origin, hook.event, hook.reason)))?;
    }
    Ok(Exit::Done)
}

async fn test(
    composition: &RunningApp,
    event: HookEvent,
    tool: &str,
    arguments: Value,
    as_json: bool,
    output: &mut StdoutWriter,
) -> CommandResult {
    let Some(hooks) = &composition.hooks else { return show_none(event, as_json, output) };
    let (call, accesses) = made_up(composition, tool, arguments).await?;
    let (execution, result) = (row(event, &call), ToolResult::text("(the call was not made)"));
    let ended =
        EndedCall { call: Some(&call), accesses: accesses.as_deref(), execution: &execution, result: Some(&result) };
    let HookRehearsalReport { reports, verdict, together } = hooks.rehearse(event, &call, ended).await;
    let exit = match verdict {
        HookVerdict::Continue => Exit::Done,
        HookVerdict::Ask(_) | HookVerdict::Defer(_) => Exit::Unmet,
        HookVerdict::Deny(_) => Exit::Denied,
    };
    show_reports(event, &reports, &together, as_json, output)?;
    Ok(exit)
}

/// Runs the hooks of an agent event for an imaginary conversation and prints their reports. The exit is
/// [`Exit::Denied`] if they block or end the run.
async fn test_moment(
    composition: &RunningApp,
    event: HookEvent,
    text: Option<&str>,
    as_json: bool,
    output: &mut StdoutWriter,
) -> CommandResult {
    let Some(hooks) = &composition.hooks else { return show_none(event, as_json, output) };
    let text = text.unwrap_or(match event {
        HookEvent::PreCompact => "auto",
        HookEvent::Notification => "`bash` waits for your approval (a test)",
        _ => "(a test)",
    });
    let principal = Principal::local();
    let conversation = ConversationId(Uuid::now_v7());
    let handed_over =
        Delegation { session: conversation.session(), call: CallId(conversation.0), agent: "general".into() };
    let handed_over = event.is_of_subagent().then_some(&handed_over);
    let moment =
        AgentHookEvent { conversation, principal: &principal, delegated_by: handed_over, text, goes_on_by_hook: false };
    let (reports, word) = hooks.rehearse_agent_event(event, moment).await;
    let is_notice = matches!(event, HookEvent::Notification | HookEvent::SubagentStart);
    let exit = if word.stop.is_some() || (word.block.is_some() && !is_notice) { Exit::Denied } else { Exit::Done };
    let said = match (word.stop, word.block) {
        (Some(reason), _) => format!("the run ends: {reason}"),
        (None, Some(reason)) if !is_notice => format!("block: {reason}"),
        _ => "continue".to_owned(),
    };
    let context = word.context.iter().map(|text| format!("context: {text}"));
    let messages = word.messages.iter().map(|text| format!("message: {text}"));
    let together = std::iter::once(said).chain(context).chain(messages).collect::<Vec<_>>().join("\n");
    show_reports(event, &reports, &together, as_json, output)?;
    Ok(exit)
}

fn show_none(event: HookEvent, as_json: bool, output: &mut StdoutWriter) -> CommandResult {
    match as_json {
        true => output.json(&json!({"event": event.as_str(), "hooks": [], "together": "nothing"}))?,
        false => output.line("no hooks run here")?,
    }
    Ok(Exit::Done)
}

fn show_reports(
    event: HookEvent,
    reports: &[HookWithOutcome],
    together: &str,
    as_json: bool,
    output: &mut StdoutWriter,
) -> Result<(), CommandError> {
    if as_json {
        let reports: Vec<Value> = reports.iter().map(report_json).collect();
        return Ok(output.json(&json!({"event": event.as_str(), "hooks": reports, "together": together}))?);
    }
    for report in reports {
        output.line(&visible(&format!("{} ({})", report.hook.name, report.hook.program)))?;
        for line in report_lines(report) {
            output.line(&visible(&format!("  {line}")))?;
        }
    }
    if reports.is_empty() {
        output.line(&format!("no hook of `{}` is configured", event.as_str()))?;
    }
    Ok(output.line(&visible(&format!("together: {together}")))?)
}

/// Returns an invented call as hooks would receive it, with canonical parameter names, and its accesses; `None` if the
/// provider cannot determine them.
async fn made_up(
    composition: &RunningApp,
    name: &str,
    arguments: Value,
) -> Result<(ToolCall, Option<Vec<Access>>), CommandError> {
    let registry = &composition.app.registry;
    if registry.snapshot().resolve(name).is_err() {
        composition.settled().await;
    }
    let snapshot = registry.snapshot();
    let registered = snapshot
        .resolve(name)
        .map_err(|_| CommandError::Usage(format!("there is no tool `{name}`; `toolstead tools --all` lists them")))?;
    let tool = registered.tool.clone();
    let Value::Object(mut arguments) = arguments else {
        return Err(CommandError::Usage("the arguments must be a JSON object".into()));
    };
    let canonical = tool.name().as_str();
    for alias in tool.aliases.iter().filter(|alias| alias.name == name || alias.name == canonical) {
        alias.rewrite(&mut arguments).map_err(|failure| CommandError::Usage(failure.text()))?;
    }
    let call = ToolCall {
        id: CallId(Uuid::now_v7()),
        principal: Principal::local(),
        session: "hooks-test".into(),
        called_as: name.to_owned(),
        tool,
        arguments,
        meta: Map::new(),
    };
    let accesses = registered.provider.accesses(&call).await.ok();
    Ok((call, accesses))
}

/// Returns an audit record of a call that ended as the event requires.
fn row(event: HookEvent, call: &ToolCall) -> ToolExecution {
    let outcome = match event {
        HookEvent::PostToolUseFailure => Ended::Failed(ErrorKind::ExecutionFailed, "(a made-up failure)".into()),
        HookEvent::PermissionDenied => Ended::Refused(ErrorKind::PermissionDenied, "(a made-up refusal)".into()),
        _ => Ended::Succeeded,
    };
    ToolExecution {
        id: call.id,
        parent: None,
        kind: AuditedRequestKind::Tool,
        tool: call.tool.name().to_string(),
        called_as: call.called_as.clone(),
        source: call.tool.source().label(),
        principal: call.principal.id().to_owned(),
        session: call.session.to_string(),
        client: String::new(),
        arguments: Value::Null,
        arguments_digest: String::new(),
        accesses: Vec::new(),
        decision: Some(RecordedDecision {
            verdict: "allow".into(),
            reason: "a test".into(),
            approved_by: None,
            trace: Value::Null,
        }),
        started: Timestamp(0),
        ended: Some(Timestamp(0)),
        outcome,
        result_bytes: 0,
        result_digest: None,
        metadata: Value::Null,
        labels: CallLabels::default(),
    }
}

fn report_lines(report: &HookWithOutcome) -> Vec<String> {
    match &report.outcome {
        HookOutcome::NotMatched => {
            vec![format!(
                "did not run: the matcher `{}` is for {}",
                report.hook.matcher,
                match report.hook.event.is_of_tool() {
                    true => "other tools",
                    false => "other moments",
                }
            )]
        }
        HookOutcome::NotFiltered => {
            let filter = report.hook.filter.as_ref().map(ToString::to_string).unwrap_or_default();
            vec![format!("did not run: its `if` `{filter}` leaves this call out")]
        }
        HookOutcome::InBackground => vec!["runs in the background; its answer is ignored".into()],
        HookOutcome::Ran { end, took, stdout, stderr, answer } => {
            let mut lines = vec![format!("{end}, after {} ms", took.as_millis())];
            for (what, text) in [("stdout", stdout), ("stderr", stderr)] {
                lines.extend(text.lines().take(20).map(|line| format!("{what}: {line}")));
            }
            match &answer.fault {
                Some(fault) => lines.push(format!("broken: {fault}")),
                None => lines.push(format!(
                    "answers: {}",
                    answer.decision.as_ref().map_or("nothing".into(), ToString::to_string)
                )),
            }
            if let Some(updated) = &answer.updated_input {
                lines.push(format!("other arguments: {}", Value::Object(updated.clone())));
            }
            lines
        }
    }
}

fn report_json(report: &HookWithOutcome) -> Value {
    let mut object =
        json!({"name": report.hook.name, "origin": report.hook.origin, "runs": report.hook.program.to_string()});
    let (outcome, more) = match &report.outcome {
        HookOutcome::NotMatched => ("not_matched", Value::Null),
        HookOutcome::NotFiltered => ("not_filtered", Value::Null),
        HookOutcome::InBackground => ("in_background", Value::Null),
        HookOutcome::Ran { end, took, stdout, stderr, answer } => (
            "ran",
            json!({
                "end": end, "milliseconds": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                "stdout": stdout, "stderr": stderr, "fault": answer.fault,
                "decision": answer.decision.as_ref().map(ToString::to_string),
                "updated_input": answer.updated_input, "context": answer.context,
            }),
        ),
    };
    object["outcome"] = outcome.into();
    if !more.is_null() {
        object["run"] = more;
    }
    object
}
