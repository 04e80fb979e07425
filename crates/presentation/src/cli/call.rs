//! `toolstead call NAME JSON`.

use super::{
    CommandResult, auth,
    exit::{self, CommandError, Exit},
    global::GlobalFlags,
    message_printer::ToolMessagePrinter,
    output::{StdoutWriter, note, passing},
    terminal::Terminal,
    terminal_questions::TerminalQuestions,
    tools::print_unavailable_servers,
    views::scope_in,
};
use crate::{
    composition_root::{RunningApp, SessionLifetime},
    shutdown::ShutdownListener,
};
use async_trait::async_trait;
use clap::Args;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{io::Read, os::unix::ffi::OsStrExt, path::Path, sync::Arc, time::Duration};
use toolstead_application::{CancelSignal, ExecuteToolCommand, ExecuteToolError};
use toolstead_domain::{
    CallOutcome, Caller, CancelReason, ClientProfile, InputRequest, InputResponse, LogLevel, LogMessage, NotAnswered,
    Principal, Progress, RequestScope, ToolFailure, ToolResult,
    error_kind::ErrorKind,
    json_memory::has_too_many_values,
    suggestion::SUGGESTION,
    tool_result::{NO_OUTPUT, text_block},
};
use toolstead_infrastructure::{
    mcp::wire::{lines::MAX_MESSAGE_BYTES, numbers},
    sandbox::detached_process::DetachedProcessRole,
};

/// Time that a tool has to return a partial result when its call is cancelled.
const LAST_WORDS: Duration = Duration::from_millis(600);

/// Calls a tool and prints its result.
#[derive(Debug, Args)]
pub struct CallCommand {
    /// The tool, by name or alias
    name: String,
    /// The arguments as a JSON object; `-` reads them from standard input, `@FILE` from a file
    #[arg(default_value = "{}", value_name = "JSON|-|@FILE")]
    arguments: String,
    /// Timeout of the call in seconds
    #[arg(long, value_name = "S")]
    timeout: Option<u64>,
    /// The view through which to call, by its name in `[views]`
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
}

impl CallCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let detached = DetachedProcessRole::of_process();
        let is_literal = self.arguments != "-" && !self.arguments.starts_with('@');
        // A pipe can only be read once, and a file may have changed since then, so the second process receives the text
        // that the first one has read.
        let text = read_text(if detached.is_some() && !is_literal { "-" } else { &self.arguments })?;
        let arguments = parse(&text)?;
        if detached.is_none() && asks_to_detach(&arguments) {
            // Run the call in a second process that may outlive this one.
            let input = if is_literal { Vec::new() } else { text.into_bytes() };
            return Ok(Exit::Code(DetachedProcessRole::instead(input).await?));
        }
        let mut shutdown = ShutdownListener::listen()?;
        let session_lifetime =
            if detached.is_some() { SessionLifetime::OutlivesCall } else { SessionLifetime::EndsWithCall };
        let terminal = Terminal::of_process();
        let composing = global.compose_for_call(&self.name, self.view.as_deref(), session_lifetime, terminal.clone());
        let composition = composing.await?;
        let session = session_of(&Principal::local(), composition.config.workspace());
        let scope = scope_in(&composition.app, self.view.as_deref(), session)?;
        let patience = composition.config.permissions.approval_timeout;
        let messages = ToolMessagePrinter::for_terminal(terminal.clone());
        let questions = terminal
            .map(|terminal| TerminalQuestions::new(terminal, patience).opening(auth::browser(&composition.config)));
        let interaction = (questions, messages, global.is_quiet());
        let outcome = self.call(&composition, scope, arguments, interaction, &mut shutdown).await;
        if !global.is_quiet() {
            passing("");
        }
        if !global.is_quiet()
            && let Err(ExecuteToolError::NotCallable(failure)) = &outcome
            && failure.kind == ErrorKind::NotFound
        {
            print_unavailable_servers(&composition);
        }
        let Some(detached) = detached.filter(|_| composition.has_tasks()) else {
            composition.close().await;
            return self.printed(outcome, global, output);
        };
        // The calling process receives only this exit code and what was printed before.
        let code = exit::report_outcome(self.printed(outcome, global, output), global.json);
        if detached.let_command_end(code).is_ok() {
            tokio::select! {
                () = composition.wait_for_tasks() => {}
                () = shutdown.requested() => {}
            }
        }
        composition.close().await;
        Ok(Exit::Code(code))
    }

    fn printed(
        &self,
        outcome: Result<CallOutcome, ExecuteToolError>,
        global: &GlobalFlags,
        output: &mut StdoutWriter,
    ) -> CommandResult {
        if let Err(ExecuteToolError::Failed(failure)) = &outcome
            && let Some(partial) = &failure.partial
            && !global.json
        {
            // The partial result. The failure itself is reported like any other; the JSON form contains both.
            print(partial, false, output)?;
        }
        match outcome.map_err(CommandError::Call)? {
            CallOutcome::Done(result) => print(&result, global.json, output),
            CallOutcome::InputRequired(_) => Err(CommandError::Call(ExecuteToolError::Failed(ToolFailure::new(
                ErrorKind::Unavailable,
                "the tool asks for input, which cannot be given on the command line",
            )))),
        }
    }

    async fn call(
        &self,
        composition: &RunningApp,
        scope: RequestScope,
        arguments: Value,
        (questions, messages, is_quiet): (Option<TerminalQuestions>, ToolMessagePrinter, bool),
        shutdown: &mut ShutdownListener,
    ) -> Result<CallOutcome, ExecuteToolError> {
        // Only this user waits, so the whole connect timeout of the server is acceptable.
        if composition.app.registry.resolve(scope.tool_named(&self.name)).is_err() {
            composition.settled().await;
        }
        let (cancel, hurry) = (CancelSignal::new(), CancelSignal::new());
        let command = ExecuteToolCommand {
            client: Arc::new(ClientProfile {
                log_level: Some(LogLevel::Info),
                capabilities: questions.as_ref().map(|_| TerminalQuestions::capabilities()).unwrap_or_default(),
                ..ClientProfile::without_protocol(concat!("toolstead-cli ", env!("CARGO_PKG_VERSION")))
            }),
            caller: Arc::new(CommandLineCaller { hurry: hurry.clone(), questions, messages, is_quiet }),
            timeout: self.timeout.map(Duration::from_secs),
            cancel: cancel.clone(),
            ..ExecuteToolCommand::new(&*self.name, arguments).within(scope)
        };
        let call = composition.app.execute_tool.handle(command);
        tokio::pin!(call);
        tokio::select! {
            outcome = &mut call => outcome,
            () = shutdown.requested() => {
                // Print the partial result if the tool returns it in time. Otherwise cancel the call.
                hurry.cancel(CancelReason::Client);
                tokio::select! {
                    outcome = &mut call => return outcome,
                    () = tokio::time::sleep(LAST_WORDS) => cancel.cancel(CancelReason::Client),
                    () = shutdown.requested() => cancel.cancel(CancelReason::Client),
                }
                tokio::select! {
                    outcome = &mut call => outcome,
                    // Interrupted twice: do not wait any longer, even if the audit record is lost.
                    () = shutdown.requested() => Err(ExecuteToolError::Cancelled(CancelReason::Client)),
                }
            }
        }
    }
}

/// Returns the session of the command line, which continues across calls in the same workspace.
pub(super) fn session_of(principal: &Principal, workspace: &Path) -> Arc<str> {
    let whose = [principal.id().as_bytes(), b"\0", workspace.as_os_str().as_bytes()].concat();
    let digest: String = Sha256::digest(whose).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("cli-{digest}").into()
}

/// Returns `true` if a call requests a detached task. Other tools may use this argument differently; then the second
/// process simply ends with its call.
fn asks_to_detach(arguments: &Value) -> bool {
    match arguments.get("detach") {
        Some(Value::Bool(detach)) => *detach,
        Some(Value::String(detach)) => detach == "true",
        _ => false,
    }
}

pub(super) fn read_arguments(given: &str) -> Result<Value, CommandError> {
    parse(&read_text(given)?)
}

fn read_text(given: &str) -> Result<String, CommandError> {
    let read = |reader: &mut dyn Read, from: &str| {
        let mut text = String::new();
        let read = reader.take(MAX_MESSAGE_BYTES as u64 + 1).read_to_string(&mut text);
        read.map_err(|error| CommandError::Usage(format!("could not read the arguments from {from}: {error}")))?;
        Ok::<_, CommandError>(text)
    };
    let text = match given.strip_prefix('@') {
        Some(path) => {
            let mut file = std::fs::File::open(Path::new(path));
            let file = file
                .as_mut()
                .map_err(|error| CommandError::Usage(format!("could not read the arguments from `{path}`: {error}")))?;
            read(file, &format!("`{path}`"))?
        }
        None if given == "-" => read(&mut std::io::stdin(), "standard input")?,
        None => given.to_owned(),
    };
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(CommandError::Usage(format!("the arguments are larger than {MAX_MESSAGE_BYTES} bytes")));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Value, CommandError> {
    if has_too_many_values(text.as_bytes()) {
        return Err(CommandError::Usage("the arguments contain too many values; pass fewer at once".into()));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| {
        CommandError::Usage(format!("the arguments are not JSON: {error}; write them as '{{\"name\": \"value\"}}'"))
    })?;
    match numbers::first_inexact(text.as_bytes()) {
        Some(number) => Err(CommandError::Usage(format!("the number {number} {}", numbers::why_inexact(number)))),
        None => Ok(value),
    }
}

/// Prints a result. Text is printed as it is; other content is only named, unless `--json` is set.
fn print(result: &ToolResult, as_json: bool, output: &mut StdoutWriter) -> CommandResult {
    let exit = if result.is_error() { Exit::ToolError } else { Exit::Done };
    if as_json {
        output.json(result.as_object())?;
        return Ok(exit);
    }
    let meta = result.as_object().get("_meta");
    if let Some(suggestion) = meta.and_then(|meta| meta.get(SUGGESTION)?.as_str()) {
        note(suggestion);
    }
    // If an MCP server returns no content, print its structured content or a fixed text.
    let in_place = match (result.content(), result.structured_content()) {
        ([], Some(structured)) => Some(text_block(structured.to_string())),
        ([], None) => Some(text_block(NO_OUTPUT.into())),
        _ => None,
    };
    for block in result.content().iter().chain(&in_place) {
        let text = shown(block);
        // One trailing newline is replaced by the one that `content` adds; blank lines before it belong to the tool.
        output.content(text.strip_suffix('\n').unwrap_or(&text))?;
    }
    Ok(exit)
}

fn shown(block: &Value) -> String {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    match text("type") {
        Some("text") => text("text").unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            let bytes = text("data").map_or(0, |data| data.len() / 4 * 3);
            format!(
                "[{kind} of {}, about {bytes} bytes; `--json` prints it]",
                text("mimeType").unwrap_or("unknown type")
            )
        }
        Some("resource_link") => format!("[{}]({})", text("name").unwrap_or("resource"), text("uri").unwrap_or("")),
        Some("resource") => match block["resource"]["text"].as_str() {
            Some(content) => content.to_owned(),
            None => format!("[resource {}; `--json` prints it]", block["resource"]["uri"].as_str().unwrap_or("")),
        },
        _ => format!("[content of an unknown type; `--json` prints it: {}]", text("type").unwrap_or("no type")),
    }
}

/// Prefixes a message of a tool with a label. Further lines are marked: the message may appear while a question is
/// open, and none of its lines must look like a part of the question.
fn format_message(label: &str, text: &str) -> String {
    format!("{label} {}", text.trim_end_matches('\n').replace('\n', "\n  | "))
}

/// The user at the terminal, who sees progress and messages and answers questions.
struct CommandLineCaller {
    hurry: CancelSignal,
    /// `None` if there is no terminal at which questions can be asked.
    questions: Option<TerminalQuestions>,
    messages: ToolMessagePrinter,
    /// `true` if no progress is shown.
    is_quiet: bool,
}

#[async_trait]
impl Caller for CommandLineCaller {
    async fn hurried(&self) {
        self.hurry.cancelled().await;
    }

    fn progress(&self, progress: Progress) {
        if !self.is_quiet {
            let of = progress.total.map_or(String::new(), |total| format!(" of {total}"));
            let message = progress.message.unwrap_or_default();
            self.messages.show_progress(&format!("{}{of} {message}", progress.progress));
        }
    }

    fn log(&self, message: LogMessage) {
        if message.level >= LogLevel::Info {
            let data = message.data.as_str().map_or_else(|| message.data.to_string(), str::to_owned);
            self.messages.print(format_message(&format!("{}:", message.level.as_str()), &data));
        }
    }

    fn elicitation_completed(&self, _: &str) {
        if self.questions.is_some() {
            self.messages.print("the page is complete".into());
        }
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        match &self.questions {
            Some(questions) => questions.ask(request).await,
            None => Err(NotAnswered::Unsupported),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_tool_message_can_imitate_a_question() {
        assert_eq!(format_message("info:", "done\n"), "info: done");
        let said = "x\nMay the tool `read` run?\n1. [d]eny [o]nce? ";
        assert_eq!(format_message("1 of 2", said), "1 of 2 x\n  | May the tool `read` run?\n  | 1. [d]eny [o]nce? ");
    }
}
