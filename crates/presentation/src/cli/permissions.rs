//! `toolstead permissions explain|test|allow|list`.

use super::{
    CommandResult,
    call::read_arguments,
    exit::{CommandError, Exit, chain},
    global::GlobalFlags,
    output::{StdoutWriter, note, visible},
};
use crate::{
    composition_root::RunningApp,
    config::{
        Config,
        rule_files::add_allow_rules,
        sections::{
            decision_table::{self, ExpectedCall},
            idle_rules,
        },
        tree::{origin::Origin, problem::Problem},
    },
    suggestions::CliSuggestionFormatter,
};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use toolstead_application::{ExecuteToolError, ExplainCallQuery, ExplainedCall, ForwardContextRequestCommand};
use toolstead_domain::{
    AuditedRequestKind, Cause, ContextRequest, Effect, Principal, SuggestionFormatter, ToolFailure, Verdict,
    context::{self, server_uri},
};

/// Shows, explains, tests and writes permission rules.
#[derive(Debug, Args)]
pub struct PermissionsCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Explains the decision on a call; exits with 0 for allow, 1 for ask and 3 for deny
    Explain {
        /// The tool, by name or alias; `read_resource` and `get_prompt` for resources and prompts
        name: String,
        /// The arguments as a JSON object; `-` reads them from standard input, `@FILE` from a file
        #[arg(default_value = "{}", value_name = "JSON|-|@FILE")]
        arguments: String,
    },
    /// Decides every call of a table and prints unexpected decisions; exits with 1 if there are any
    Test {
        /// TOML, JSON or YAML: a list `calls`, each with `tool`, `arguments`, `expect` and perhaps `rule`
        file: PathBuf,
    },
    /// Writes rules to `[permissions] allow` of your configuration, or of the file of `--config`
    Allow {
        /// The rules, as a refusal suggests them
        #[arg(required = true, value_name = "RULE")]
        rules: Vec<String>,
    },
    /// Lists the rules in force in their order of evaluation, each with its origin
    List,
}

impl PermissionsCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        match self.command {
            Command::Explain { name, arguments } => {
                let arguments = read_arguments(&arguments)?;
                let composition = global.compose_for_calls(std::iter::once(&*name)).await?;
                let explained = explain(&composition, &name, arguments).await;
                let waiting = composition.config.waiting_permissions();
                let idle = idle_rules::of_commands(&composition.config);
                composition.close().await;
                if !global.json {
                    idle.iter().for_each(|problem| note(&format!("note: {problem}")));
                }
                show(&explained.map_err(CommandError::Call)?, &waiting, global.json, output)
            }
            Command::Test { file } => {
                let calls = decision_table::read(&file).map_err(|error| CommandError::Usage(error.to_string()))?;
                let composition = global.compose_for_calls(calls.iter().map(|call| call.tool.as_str())).await?;
                let tested = test(&composition, &calls, global.json, output).await;
                composition.close().await;
                tested
            }
            Command::Allow { rules } => allow(global, &rules, output),
            Command::List => list(&global.load_and_print_notes()?, global.json, output),
        }
    }
}

async fn explain(composition: &RunningApp, name: &str, arguments: Value) -> Result<ExplainedCall, ExecuteToolError> {
    let is_tool = || composition.app.registry.snapshot().resolve(name).is_ok();
    if !is_tool() {
        composition.settled().await;
    }
    let scope = composition.app.scope(Principal::local(), "cli");
    if !is_tool()
        && let Some(request) = requested(composition, name, &arguments).await
    {
        let command = ForwardContextRequestCommand::new(request.map_err(ExecuteToolError::NotCallable)?);
        let call = command.call.within(scope);
        return composition.app.forward_request.explain(ForwardContextRequestCommand { call, ..command }).await;
    }
    composition.app.execute_tool.explain(ExplainCallQuery { tool: name.into(), arguments, scope }).await
}

/// Returns the request for a resource or prompt that a tool name of rules means (`read_resource`, `get_prompt`, also
/// with `mcp__SERVER__` before it); `None` for any other name.
async fn requested(
    composition: &RunningApp,
    name: &str,
    arguments: &Value,
) -> Option<Result<ContextRequest, ToolFailure>> {
    let (server, name) = match name.strip_prefix("mcp__").and_then(|name| name.split_once("__")) {
        Some((server, name)) => (Some(server), name),
        None => (None, name),
    };
    let kind = match name {
        context::READ_RESOURCE => AuditedRequestKind::Resource,
        context::GET_PROMPT => AuditedRequestKind::Prompt,
        _ => return None,
    };
    let none = Map::new();
    let mut request = ContextRequest::parse(kind, arguments.as_object().unwrap_or(&none));
    match (&mut request, server) {
        (Ok(ContextRequest::Read { uri }), Some(server)) if !server_uri::has_distinct_prefix(uri) => {
            *uri = server_uri::of_server(server, uri);
        }
        (Ok(ContextRequest::Get { name, .. }), Some(server)) => {
            composition.app.context.settled(composition.config.connect_timeout()).await;
            let snapshot = composition.app.context.snapshot();
            if !snapshot.prompts().iter().any(|one| one.definition.name() == name) {
                *name = format!("mcp__{server}__{name}");
            }
        }
        _ => {}
    }
    Some(request)
}

fn show(explained: &ExplainedCall, waiting: &[String], as_json: bool, output: &mut StdoutWriter) -> CommandResult {
    let ExplainedCall { tool, arguments, decision } = explained;
    let rule_name = tool.rule_name().as_str();
    let exit = match decision.verdict {
        Verdict::Allow => Exit::Done,
        Verdict::Ask => Exit::Unmet,
        Verdict::Deny => Exit::Denied,
    };
    if as_json {
        output.json(&json!({
            "tool": tool.name().as_str(),
            "arguments": arguments,
            "verdict": decision.verdict.as_str(),
            "reason": decision.reason(),
            "trace": decision.trace_json(),
            "suggestions": decision.suggestions(rule_name),
        }))?;
        return Ok(exit);
    }
    for finding in &decision.trace {
        let part = finding.part.as_ref().map_or("the call as a whole".to_owned(), ToString::to_string);
        output.line(&visible(&format!("{:<5}  {}", finding.verdict.as_str(), one_line(&part))))?;
        let why = std::iter::once(finding.cause.to_string()).chain(finding.missed());
        for line in why {
            output.line(&visible(&format!("       {}", one_line(&line))))?;
        }
    }
    let verdict = decision.verdict.as_str();
    output.line(&visible(&format!("{verdict}: {}", one_line(&decision.reason()))))?;
    if decision.verdict != Verdict::Allow
        && let Some(suggestion) =
            decision.suggestion(rule_name).and_then(|suggestion| CliSuggestionFormatter.format(&suggestion))
    {
        note(&suggestion);
    }
    if decision.verdict != Verdict::Allow {
        waiting.iter().for_each(|waiting| note(&format!("note: {waiting}")));
    }
    Ok(exit)
}

/// Runs a table of calls and prints the failures and the number of calls.
async fn test(
    composition: &RunningApp,
    calls: &[ExpectedCall],
    as_json: bool,
    output: &mut StdoutWriter,
) -> CommandResult {
    let mut failures = Vec::new();
    for call in calls {
        let got = explain(composition, &call.tool, call.arguments.clone()).await;
        let failure = match got {
            Err(error) => {
                format!(
                    "expected {}, but it cannot be called: {}",
                    call.expect.as_str(),
                    chain(&CommandError::Call(error))
                )
            }
            Ok(ExplainedCall { decision, .. }) if decision.verdict != call.expect => {
                format!("expected {}, got {}: {}", call.expect.as_str(), decision.verdict.as_str(), decision.reason())
            }
            Ok(ExplainedCall { decision, .. }) => match (&call.rule, &decision.decisive.cause) {
                (None, _) => continue,
                (Some(expected), Cause::Rule(rule)) if rule.text == *expected => continue,
                (Some(expected), _) => format!("expected the rule `{expected}` to decide, got {}", decision.reason()),
            },
        };
        failures.push((call, failure));
    }
    let passed = calls.len() - failures.len();
    if as_json {
        let failed = |(call, failure): &(&ExpectedCall, String)| json!({"origin": call.origin.to_string(), "tool": call.tool, "arguments": call.arguments, "failure": failure});
        output.json(&json!({"passed": passed, "failures": failures.iter().map(failed).collect::<Vec<_>>()}))?;
    } else {
        for (call, failure) in &failures {
            output.line(&visible(&format!(
                "{}: `{}` {}: {}",
                call.origin,
                call.tool,
                call.arguments,
                one_line(failure)
            )))?;
        }
        output.line(&format!("{passed} of {} calls are decided as expected", calls.len()))?;
    }
    Ok(if failures.is_empty() { Exit::Done } else { Exit::Unmet })
}

fn allow(global: &GlobalFlags, rules: &[String], output: &mut StdoutWriter) -> CommandResult {
    let config = global.load()?;
    let wrong = |problem: Problem| match problem.origin {
        // The error is in the arguments, which have no origin.
        Origin::Default => CommandError::Usage(problem.message),
        _ => CommandError::Usage(problem.to_string()),
    };
    let written = add_allow_rules(&config, rules).map_err(wrong)?;
    if global.json {
        let one = |(rule, written): (&String, &crate::config::rule_files::RuleWriteResult)| json!({"rule": rule, "path": written.path, "new": written.is_new});
        output.json(&json!({"written": rules.iter().zip(&written).map(one).collect::<Vec<_>>()}))?;
        return Ok(Exit::Done);
    }
    for (rule, written) in rules.iter().zip(written) {
        let path = written.path.display();
        match written.is_new {
            true => note(&format!("`{rule}` is written to {path} and takes effect at the next start")),
            false => note(&format!("`{rule}` is already in {path}")),
        }
    }
    Ok(Exit::Done)
}

fn list(config: &Config, as_json: bool, output: &mut StdoutWriter) -> CommandResult {
    let order = [Effect::Deny, Effect::Ask, Effect::Allow];
    let rules =
        order.iter().flat_map(|effect| config.permissions.rules.iter().filter(move |rule| rule.effect == *effect));
    let waiting: Vec<(String, String, String)> = config
        .resolved
        .all()
        .iter()
        .filter(|setting| setting.path.first().is_some_and(|section| section == "permissions"))
        .flat_map(|setting| {
            let one = |waiting: &crate::config::layers::UntrustedValue| {
                (setting.name(), waiting.value.to_string(), waiting.origin.to_string())
            };
            setting.waiting.iter().map(one).collect::<Vec<_>>()
        })
        .collect();
    if as_json {
        let rules: Vec<Value> = rules
            .map(|rule| {
                let origin = rule.origin.to_string();
                let mut shown = json!({"effect": rule.effect.as_str(), "rule": rule.text, "origin": origin});
                if let Some(entry) = &rule.entry {
                    shown["entry"] = entry.as_str().into();
                }
                shown
            })
            .collect();
        let waiting: Vec<Value> =
            waiting.iter().map(|(key, value, origin)| json!({"key": key, "value": value, "origin": origin})).collect();
        output.json(&json!({"mode": config.permissions.mode.as_str(), "rules": rules, "waiting": waiting}))?;
        return Ok(Exit::Done);
    }
    output.line(&format!("mode   {}", config.permissions.mode.as_str()))?;
    for rule in rules {
        let entry = rule.entry.as_ref().map(|entry| format!(" (the entry {})", one_line(entry))).unwrap_or_default();
        let (effect, text, origin) = (rule.effect.as_str(), one_line(&rule.text), &rule.origin);
        output.line(&visible(&format!("{effect:<5}  {text}  # {origin}{entry}")))?;
    }
    for (key, value, origin) in waiting {
        output.line(&visible(&one_line(&format!("# waits for trust: {key} = {value}, {origin}"))))?;
    }
    let idle = idle_rules::of_commands(config).into_iter().chain(idle_rules::outside_of_roots(config));
    for notice in config.waiting_permissions().into_iter().chain(idle.map(|problem| problem.to_string())) {
        output.line(&visible(&one_line(&format!("# {notice}"))))?;
    }
    Ok(Exit::Done)
}

/// Escapes line breaks, so that no part of a command can be mistaken for a line of Toolstead.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\t', "\\t")
}
