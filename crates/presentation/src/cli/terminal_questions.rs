//! Shows the questions of tools to the user at the terminal: forms, field by field, and pages.

mod form;

use super::terminal::{
    CTRL_C, CTRL_D, InputMode, Terminal, TerminalQuestionError, bell, fitted, forget_typed, key, line, wrapped,
};
use crate::{cli::output::visible, escaping_writer::EscapingWriter};
use form::{FormField, QuestionForm};
use serde_json::{Map, Value, json};
use std::{
    fs::File,
    io::{self, Write},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use toolstead_domain::{ClientCapability, InputRequest, InputResponse, NotAnswered};
use toolstead_infrastructure::{builtin::question_form::INTRODUCTION, sandbox::browser::UserBrowserOpener};

/// Maximum number of characters shown of any text in a question.
const SHOWN: usize = 4_000;
/// Word that the user types instead of a value to decline the question.
const DECLINE: &str = "/decline";
/// Word that the user types instead of a value to cancel the question.
const CANCEL: &str = "/cancel";

/// Access to the terminal for questions of tools.
#[derive(Debug, Clone)]
pub(super) struct TerminalQuestions {
    terminal: Arc<Terminal>,
    patience: Duration,
    /// Browser that opens the pages of built-in tools.
    browser: Option<Arc<UserBrowserOpener>>,
}

/// Response of the user to a question (MCP's `ElicitResult`).
#[derive(Debug, PartialEq)]
enum ElicitationAnswer {
    Accept(Map<String, Value>),
    Opened,
    Decline,
    Cancel,
}

impl TerminalQuestions {
    /// Creates the access to this terminal, with this maximum time for an answer and without a browser.
    pub(super) fn new(terminal: Arc<Terminal>, patience: Duration) -> Self {
        Self { terminal, patience, browser: None }
    }

    /// Sets the browser in which pages that are not from a server may be opened, after confirmation.
    pub(super) fn opening(self, browser: Option<UserBrowserOpener>) -> Self {
        Self { browser: browser.map(Arc::new), ..self }
    }

    /// Returns the supported kinds of questions (MCP's `ClientCapabilities`).
    pub(super) fn capabilities() -> Map<String, Value> {
        Map::from_iter([("elicitation".to_owned(), json!({"form": {}, "url": {}}))])
    }

    /// Asks, and waits for the answer. Dropping the future cancels the question.
    ///
    /// # Errors
    /// [`NotAnswered`] if the request is not a question for the user, cannot be shown, or is not answered.
    pub(super) async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        let lines = asked_by(&request.params);
        let answer = match ClientCapability::of(&request) {
            Some(ClientCapability::UrlElicitation) => {
                let url = request.params["url"].as_str().unwrap_or_default().to_owned();
                let is_ours = request.params["_meta"]["toolstead/server"].is_null();
                let browser = self.browser.clone().filter(|_| is_ours);
                let put = move |terminal: &File, given_up: &AtomicBool| {
                    page(terminal, &lines, &url, browser.as_deref(), given_up)
                };
                self.terminal.ask(InputMode::Keys, self.patience, put).await
            }
            Some(ClientCapability::Elicitation) => {
                let form = QuestionForm::read(&request.params["requestedSchema"]).map_err(NotAnswered::Unfit)?;
                let input = if form.fields.is_empty() { InputMode::Keys } else { InputMode::Lines };
                let put = move |terminal: &File, given_up: &AtomicBool| match form.fields.is_empty() {
                    true => plain(terminal, &lines, given_up),
                    false => fields(terminal, &lines, &form, given_up),
                };
                self.terminal.ask(input, self.patience, put).await
            }
            Some(ClientCapability::Sampling | ClientCapability::SamplingWithTools | ClientCapability::Roots) | None => {
                return Err(NotAnswered::Unsupported);
            }
        };
        match answer {
            Ok(ElicitationAnswer::Accept(content)) => {
                Ok(InputResponse(json!({"action": "accept", "content": content})))
            }
            Ok(ElicitationAnswer::Opened) => Ok(InputResponse(json!({"action": "accept"}))),
            Ok(ElicitationAnswer::Decline) => Ok(InputResponse(json!({"action": "decline"}))),
            Ok(ElicitationAnswer::Cancel) => Ok(InputResponse(json!({"action": "cancel"}))),
            Err(TerminalQuestionError::Unavailable) => Err(NotAnswered::Unsupported),
            Err(TerminalQuestionError::Late) => Err(NotAnswered::TimedOut),
        }
    }
}

/// Returns the question and its author. Only lines of Toolstead begin at the left edge, and they contain no text of a
/// server.
fn asked_by(params: &Value) -> String {
    let message = cut(params["message"].as_str().unwrap_or_default());
    let heading = match params["_meta"]["toolstead/server"].as_str() {
        Some(server) => {
            let asks = format!("The MCP server `{server}` asks");
            let with_page = page_host(params).map(|host| format!("{asks} you to open a page at `{host}`:"));
            with_page.filter(|heading| message.starts_with(heading)).unwrap_or_else(|| format!("{asks}:"))
        }
        None if message.starts_with(INTRODUCTION) => INTRODUCTION.to_owned(),
        None => "The tool asks:".to_owned(),
    };
    let mut text = String::from("\n");
    wrapped(&mut text, "", &heading);
    for line in message.strip_prefix(&heading).map_or(message.as_str(), str::trim_start).lines() {
        wrapped(&mut text, "  | ", line.strip_prefix("| ").unwrap_or(line));
    }
    text
}

/// Returns the host of the page that the question asks the user to open; `None` for other questions.
fn page_host(params: &Value) -> Option<String> {
    let url = params["url"].as_str().filter(|_| params["mode"] == "url")?;
    let url = url::Url::parse(url).ok()?;
    Some(url.host_str()?.trim_matches(['[', ']']).to_owned())
}

/// Asks the user to open a page, or to let Toolstead open it in `browser`. Toolstead itself never fetches the page.
fn page(
    terminal: &File,
    lines: &str,
    url: &str,
    browser: Option<&UserBrowserOpener>,
    given_up: &AtomicBool,
) -> io::Result<ElicitationAnswer> {
    let mut output = EscapingWriter(terminal);
    // On a line of its own and in full, so that it can be copied.
    output.write_all(fitted(terminal, lines).as_bytes())?;
    write!(output, "Open this page in your browser, if you trust it:\n\n{}\n\n", visible(url))?;
    forget_typed(terminal)?;
    if let Some((browser, page)) = browser.zip(url::Url::parse(url).ok()) {
        match chosen(terminal, "Open it here? [y]es [d]ecline [c]ancel? ", ElicitationAnswer::Opened, "yes", given_up)?
        {
            ElicitationAnswer::Opened => match browser.open(&page) {
                Ok(()) => return Ok(ElicitationAnswer::Opened),
                Err(why) => writeln!(output, "{}", visible(&format!("The page was not opened: {why}.")))?,
            },
            other => return Ok(other),
        }
    }
    chosen(terminal, "Was it opened? [y]es [d]ecline [c]ancel? ", ElicitationAnswer::Opened, "yes", given_up)
}

/// Asks a question without fields.
fn plain(terminal: &File, lines: &str, given_up: &AtomicBool) -> io::Result<ElicitationAnswer> {
    let mut output = EscapingWriter(terminal);
    output.write_all(fitted(terminal, lines).as_bytes())?;
    forget_typed(terminal)?;
    chosen(terminal, "[y]es [d]ecline [c]ancel? ", ElicitationAnswer::Accept(Map::new()), "yes", given_up)
}

/// Shows the prompt and reads keys until one has a meaning. Only `y` returns `yes`, and `word` is printed for it.
fn chosen(
    terminal: &File,
    prompt: &str,
    yes: ElicitationAnswer,
    word: &str,
    given_up: &AtomicBool,
) -> io::Result<ElicitationAnswer> {
    let mut output = EscapingWriter(terminal);
    output.write_all(prompt.as_bytes())?;
    output.flush()?;
    let (word, answer) = loop {
        match key(terminal, given_up)?.map(|key| key.to_ascii_lowercase()) {
            Some(b'y') => break (word, yes),
            Some(b'd' | b'n') => break ("decline", ElicitationAnswer::Decline),
            Some(b'c' | CTRL_C | CTRL_D) => break ("cancel", ElicitationAnswer::Cancel),
            _ => bell(terminal)?,
        }
    };
    writeln!(output, "{word}")?;
    Ok(answer)
}

/// Asks for the fields of a form, one line each. An invalid value is asked for again.
fn fields(terminal: &File, lines: &str, form: &QuestionForm, given_up: &AtomicBool) -> io::Result<ElicitationAnswer> {
    let mut output = EscapingWriter(terminal);
    let mut text = lines.to_owned();
    wrapped(
        &mut text,
        "",
        &format!("({DECLINE} declines, {CANCEL} or Ctrl-C cancels; Enter accepts the value in brackets.)"),
    );
    output.write_all(fitted(terminal, &text).as_bytes())?;
    forget_typed(terminal)?;
    let mut content = Map::new();
    for (index, field) in form.fields.iter().enumerate() {
        output.write_all(fitted(terminal, &shown(index, field)).as_bytes())?;
        loop {
            write!(output, "   > ")?;
            output.flush()?;
            let Some(typed) = line(terminal, given_up)? else {
                writeln!(output)?;
                return Ok(ElicitationAnswer::Cancel);
            };
            match typed.trim() {
                DECLINE => return Ok(ElicitationAnswer::Decline),
                CANCEL => return Ok(ElicitationAnswer::Cancel),
                typed => match field.values(typed) {
                    Ok(values) => {
                        content.extend(values);
                        break;
                    }
                    Err(why) => {
                        let mut text = String::new();
                        wrapped(&mut text, "   ", &why);
                        output.write_all(fitted(terminal, &text).as_bytes())?;
                    }
                },
            }
        }
    }
    Ok(ElicitationAnswer::Accept(content))
}

/// Returns the description of a field, with its choices and its default.
fn shown(index: usize, field: &FormField) -> String {
    let mut text = String::new();
    let title = cut(&field.title);
    let optional = if field.is_required { "" } else { ", may be left out" };
    let default = field.default_text().map(|default| format!(" [{}]", cut(&default))).unwrap_or_default();
    wrapped(
        &mut text,
        &format!("{}. ", index + 1),
        &format!("{title} ({}{optional}){default}", field.describe_expected()),
    );
    if let Some(description) = &field.description {
        wrapped(&mut text, "   ", &cut(description));
    }
    for (number, choice) in field.choices().iter().enumerate() {
        // The title already starts with the value.
        let rest = choice.title.strip_prefix(&choice.value);
        let line = match rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(": ")) {
            true => cut(&choice.title),
            false => format!("{} ({})", cut(&choice.value), cut(&choice.title)),
        };
        wrapped(&mut text, &format!("   {}) ", number + 1), &line);
    }
    text
}

/// Truncates and escapes the text of a server for the terminal. Line breaks are preserved.
fn cut(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    visible(&shown)
}

#[cfg(test)]
mod tests;
