//! A question about a call, as a person reads it. Whatever a model, a file or a server wrote stands in one line, between
//! backticks, with everything escaped that could end either: it cannot pass for a line of ours.

mod change;

use change::ShownChange;
use toolstead_domain::{
    access::{Access, AccessKind, Clarity, PathAccess},
    permission::decision::Cause,
    ports::approver::{ApprovalPart, ApprovalRequest, ApprovalScope},
    tool::ToolSource,
    unseen::{is_unseen, joins},
};
use toolstead_infrastructure::shell_analysis::catalogue::READ_ONLY_COMMANDS;

/// Parts that one person is asked about at once. A call with more is refused: nobody would read them.
const MAX_ROWS: usize = 32;
/// Characters of all parts together.
const ROW_CHARACTERS: usize = 12_000;
/// Characters of anything else from outside.
const FACT_CHARACTERS: usize = 200;
/// Characters of an argument that is shown beside the change.
const SHORT_CHARACTERS: usize = 40;
/// Arguments of the built-in tools whose whole text is in the lines of the change.
const TEXTS_OF_CHANGES: [&str; 3] = ["old_text", "new_text", "content"];
/// Arguments, and accesses that need no yes, that are shown.
const MAX_FACTS: usize = 12;
/// A row of blanks as long as this could move text to where a line of ours might stand.
const BLANKS: usize = 3;

/// The question.
#[derive(Debug, PartialEq)]
pub(crate) struct ApprovalQuestion {
    /// What is asked, in one line.
    pub(crate) heading: String,
    /// One for each part, in the order of the request.
    pub(crate) rows: Vec<Row>,
    /// What else is worth knowing, a line each.
    pub(crate) facts: Vec<String>,
    /// A summary and the first rows of the change that the call would make. Text from outside follows a mark.
    pub(crate) change: Vec<String>,
    /// All texts without cuts, where the question cuts something.
    pub(crate) full_text: Option<Vec<String>>,
}

/// One part, to be answered for itself.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    /// What it would do.
    pub(crate) what: String,
    /// Why it is asked about.
    pub(crate) why: String,
    /// What a yes for longer than once covers.
    pub(crate) covers: Option<String>,
    /// For how long a yes may hold. Once alone where not all of it is shown.
    pub(crate) scopes: Vec<ApprovalScope>,
}

impl ApprovalQuestion {
    /// Returns the question; `None` where it has more parts than a person can answer for. Where a change is cut, each part
    /// can be approved only once.
    pub(crate) fn of(request: &ApprovalRequest<'_>) -> Option<Self> {
        Self::build(request, false)
    }

    /// Returns the question for an approver who has read its full text.
    pub(crate) fn after_reading(request: &ApprovalRequest<'_>) -> Option<Self> {
        Self::build(request, true)
    }

    fn build(request: &ApprovalRequest<'_>, has_been_read: bool) -> Option<Self> {
        let parts = request.parts;
        if parts.is_empty() || parts.len() > MAX_ROWS {
            return None;
        }
        let characters = (ROW_CHARACTERS / parts.len()).clamp(FACT_CHARACTERS, 2_000);
        let (mut shown_facts, all_facts) = (facts(request, BRIEF), facts(request, UNCUT));
        let are_facts_cut = shown_facts != all_facts;
        let change = request.preview.map(ShownChange::of);
        let has = |kind| request.accesses.iter().any(|access| access.kind() == kind);
        let is_incomplete = change.as_ref().is_some_and(|change| !change.is_complete);
        let is_change_cut = match &change {
            Some(change) => change.cut_lines > 0,
            // The approver sees the change only in the arguments. A command is shown in its own part.
            None => are_facts_cut && has(AccessKind::Write) && !has(AccessKind::Run),
        };
        let is_once_only = is_incomplete || (is_change_cut && !has_been_read);
        let mut rows: Vec<Row> =
            parts.iter().map(|part| row(part, characters, is_once_only, request.preview.is_some())).collect();
        let uncut_rows =
            || parts.iter().map(|part| row(part, UNCUT.characters, is_once_only, request.preview.is_some()));
        let is_cut =
            are_facts_cut || is_change_cut || uncut_rows().zip(&rows).any(|(uncut, row)| uncut.what != row.what);
        shown_facts.extend(read_only_commands(&mut rows));
        let heading = heading(request);
        let full_text = is_cut.then(|| {
            let mut lines = vec![heading.clone()];
            lines.extend(uncut_rows().enumerate().map(|(index, row)| format!("{}. {}", index + 1, row.what)));
            lines.extend(all_facts);
            lines.extend(change.iter().flat_map(|change| change.summary.iter().chain(&change.lines).cloned()));
            lines
        });
        let mut lines = Vec::new();
        if let Some(change) = change {
            let total = change.lines.len();
            lines.extend(change.summary);
            if !has_been_read {
                lines.extend(change.excerpt);
            }
            if change.cut_lines > 0 && !has_been_read {
                lines.push(format!("(cut: {} of {total} lines are not shown)", change.cut_lines));
            }
        }
        if is_once_only {
            let why = if is_incomplete { "cannot all be shown" } else { "is not shown whole" };
            lines.push(format!("(The change {why}, so only this one call can be approved.)"));
        }
        Some(Self { heading, rows, facts: shown_facts, change: lines, full_text })
    }
}

fn heading(request: &ApprovalRequest<'_>) -> String {
    let tool = quoted(request.call.tool.name().as_str(), FACT_CHARACTERS).text;
    let agent = request.agent.map(|agent| format!("agent {}", quoted(agent, FACT_CHARACTERS).text));
    let within = request.within.map(|tool| format!("tool {}", quoted(tool.name().as_str(), FACT_CHARACTERS).text));
    match agent.or(within) {
        Some(within) => format!("May the tool {tool} run, called by the {within}?"),
        None => format!("May the tool {tool} run?"),
    }
}

/// Returns the scopes that are offered for every row, the narrowest first.
pub(crate) fn common_scopes(rows: &[Row]) -> Vec<ApprovalScope> {
    let is_common = |scope: &ApprovalScope| rows.iter().all(|row| row.scopes.contains(scope));
    ApprovalScope::ALL.iter().copied().filter(is_common).collect()
}

/// Returns the commands that the choice "commands that only read" allows. Removes the choice where a part is not shown
/// whole.
fn read_only_commands(rows: &mut [Row]) -> Option<String> {
    if !common_scopes(rows).contains(&ApprovalScope::ReadOnlyCommands) {
        rows.iter_mut().for_each(|row| row.scopes.retain(|scope| *scope != ApprovalScope::ReadOnlyCommands));
        return None;
    }
    let (mut open, mut exact) = (Vec::new(), Vec::new());
    for pattern in READ_ONLY_COMMANDS {
        match pattern.strip_suffix(" *") {
            Some(command) => open.push(format!("`{command}`")),
            None => exact.push(format!("`{pattern}`")),
        }
    }
    let (open, exact) = (open.join(", "), exact.join(", "));
    Some(format!(
        "Commands that only read, for this session: the rules above; on any file or variable, with any arguments that \
         only read: {open}; without other arguments: {exact}"
    ))
}

fn row(part: &ApprovalPart, characters: usize, is_once_only: bool, is_change_of_file: bool) -> Row {
    let what = part.access.as_ref().map_or_else(
        || Quoted { text: "call the tool at all".into(), whole: true },
        |access| touched(access, characters),
    );
    let rule = part.rule.as_deref().map(|rule| quoted(rule, characters));
    let is_whole = what.whole && rule.as_ref().is_none_or(|rule| rule.whole);
    let scopes = if is_whole && !is_once_only { part.scopes.clone() } else { vec![ApprovalScope::Once] };
    let covers = (scopes.len() > 1).then(|| match (&rule, &part.access) {
        // Only a folder has anything below it.
        (Some(rule), Some(Access::ReadPath(path) | Access::WritePath(path)))
            if path.tree || !is_change_of_file && !path.real.is_file() =>
        {
            format!("the rule {}, and everything below it", rule.text)
        }
        (Some(rule), Some(Access::CallUpstream { .. } | Access::Undeclared(_))) => {
            format!("the rule {}, whatever the arguments", rule.text)
        }
        (Some(rule), Some(Access::RunCommand(_))) => {
            let beginning = part.rule.as_deref().and_then(any_arguments).map(|it| quoted(it, characters).text);
            let more = beginning.map(|it| format!(", which also allows {it} with any other arguments"));
            format!("the rule {}{}", rule.text, more.unwrap_or_default())
        }
        (Some(rule), _) => format!("the rule {}", rule.text),
        (None, _) => "this tool with exactly these arguments".into(),
    });
    Row { what: what.text, why: reason(&part.cause), covers, scopes }
}

/// Returns the beginning of the commands that a rule allows with any arguments behind it.
fn any_arguments(rule: &str) -> Option<&str> {
    rule.strip_prefix("Bash(")?.strip_suffix(" *)")
}

/// Why somebody is asked. Names and places of rules are texts from outside, too.
fn reason(cause: &Cause) -> String {
    match cause {
        Cause::Default(words) | Cause::Mode(words) => (*words).to_owned(),
        Cause::Rule(rule) => {
            let (text, place) = (quoted(&rule.text, FACT_CHARACTERS), rule.origin.to_string());
            let place = quoted(&place, FACT_CHARACTERS).text;
            let entry =
                rule.entry.as_ref().map(|entry| format!(" (the entry {})", quoted(entry, FACT_CHARACTERS).text));
            format!("the {} rule {} in {place}{}", rule.effect.as_str(), text.text, entry.unwrap_or_default())
        }
        Cause::Hook { by, reason } => {
            let (by, reason) = (quoted(by, FACT_CHARACTERS), quoted(reason, FACT_CHARACTERS));
            format!("the hook {} wants somebody to be asked: {}", by.text, reason.text)
        }
        other => quoted(&other.to_string(), 2 * FACT_CHARACTERS).text,
    }
}

/// Limits of the facts in a question.
#[derive(Clone, Copy)]
struct FactLimits {
    characters: usize,
    number: usize,
}

const BRIEF: FactLimits = FactLimits { characters: FACT_CHARACTERS, number: MAX_FACTS };
const UNCUT: FactLimits = FactLimits { characters: usize::MAX, number: usize::MAX };

fn facts(request: &ApprovalRequest<'_>, limits: FactLimits) -> Vec<String> {
    let quoted = |text: &str| quoted(text, limits.characters).text;
    let arguments = &request.call.arguments;
    let description = arguments.get("description").and_then(|text| text.as_str());
    let description = description.map(|text| format!("The model says: {}", quoted(text)));
    // A change that is shown includes long arguments. Short ones may say what no line of it does: permission bits.
    // Defaults were filled in, and say nothing of this call. Of an MCP server's schema none are: what is there was sent.
    let tool = &request.call.tool;
    let is_filled = !matches!(tool.source(), ToolSource::McpServer { .. });
    let properties = tool.input_schema().get("properties").filter(|_| is_filled);
    let usual = |name: &str| properties.and_then(|all| all.get(name)?.get("default"));
    let in_change = |name: &str| is_filled && request.preview.is_some() && TEXTS_OF_CHANGES.contains(&name);
    let sent = arguments.iter().filter(|(name, value)| usual(name.as_str()) != Some(*value) && !in_change(name));
    let sent = sent.map(|(name, value)| (name, value.to_string()));
    let sent = sent.filter(|(_, value)| request.preview.is_none() || value.chars().count() <= SHORT_CHARACTERS);
    let with = sent.map(|(name, value)| format!("With {}: {}", quoted(name), quoted(&value)));
    let referred = request.references.iter().map(|one| format!("Where {}", quoted(one)));
    let is_asked = |access: &&Access| request.parts.iter().any(|part| part.access.as_ref() == Some(*access));
    let allowed = request.accesses.iter().filter(|access| !is_asked(access));
    let allowed = allowed.map(|access| format!("Allowed already: {}", touched(access, limits.characters).text));
    let mut facts: Vec<String> = description.into_iter().collect();
    facts.extend(first_facts(with.collect(), limits.number, "arguments"));
    facts.extend(first_facts(referred.collect(), limits.number, "stored outputs"));
    facts.extend(first_facts(allowed.collect(), limits.number, "accesses that are allowed already"));
    facts
}

fn first_facts(mut facts: Vec<String>, number: usize, noun: &str) -> Vec<String> {
    let more = facts.len().saturating_sub(number);
    if more > 0 {
        facts.truncate(number);
        facts.push(format!("And {more} more {noun}"));
    }
    facts
}

/// What an access does, in our words around its own.
fn touched(access: &Access, characters: usize) -> Quoted {
    let mut whole = true;
    let mut shown = |text: &str| {
        let quoted = quoted(text, characters);
        whole &= quoted.whole;
        quoted.text
    };
    let mut path = |path: &PathAccess| {
        let below = if path.tree { " and everything below" } else { "" };
        let name = shown(&path.lexical.to_string_lossy());
        match path.real == path.lexical {
            true => format!("{name}{below}"),
            false => format!("{name}{below} (which is {})", shown(&path.real.to_string_lossy())),
        }
    };
    let text = match access {
        Access::ReadPath(read) => format!("read {}", path(read)),
        Access::WritePath(written) => format!("write {}", path(written)),
        Access::RunCommand(command) => match &command.clarity {
            Clarity::Plain => format!("run {}", shown(&command.text)),
            Clarity::Exact(reason) => format!("run {} (note: {})", shown(&command.text), shown(reason)),
            Clarity::Opaque(reason) => {
                format!("run {} (what this runs cannot be told: {})", shown(&command.text), shown(reason))
            }
        },
        Access::ReachHost(host) => format!("connect to {}", shown(host)),
        Access::Send(receiver) => format!("send to {}", shown(receiver)),
        Access::CallUpstream { server, tool } => {
            format!("call {} of the MCP server {}", shown(tool), shown(server.as_str()))
        }
        Access::Undeclared(tool) => format!("run {}, which does not declare what it touches", shown(tool)),
        Access::ReadResource { server, uri } => {
            format!("read the resource {} of {}", shown(uri), shown(server.as_str()))
        }
        Access::GetPrompt { server, prompt } => {
            format!("get the prompt {} of {}", shown(prompt), shown(server.as_str()))
        }
        Access::RunAgent(agent) => format!("hand work to the agent {}", shown(agent)),
        Access::OfferTools(tools) => format!("let the program that runs call the tools {}", shown(tools)),
    };
    Quoted { text, whole }
}

/// A text from outside as it may be shown.
#[derive(Debug, PartialEq)]
struct Quoted {
    text: String,
    /// Whether nothing of it is missing.
    whole: bool,
}

/// The text in one line between backticks. Backslashes begin escapes and nothing else, so none can be forged.
fn quoted(text: &str, characters: usize) -> Quoted {
    let mut shown = String::from("`");
    let mut rest = text.chars().peekable();
    for _ in 0..characters {
        let Some(c) = rest.next() else { break };
        if c == ' ' {
            let mut blanks = 1;
            while rest.next_if_eq(&' ').is_some() {
                blanks += 1;
            }
            match blanks < BLANKS {
                true => shown.extend(std::iter::repeat_n(' ', blanks)),
                false => shown.push_str(&format!("\\u{{20}}×{blanks}")),
            }
            continue;
        }
        match c {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '`' => shown.push_str("\\u{60}"),
            c if hides(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    let more = rest.count();
    shown.push('`');
    if more > 0 {
        shown.push_str(&format!(" (cut: {more} more characters)"));
    }
    Quoted { text: shown, whole: more == 0 }
}

/// Tells whether a character moves, hides or reorders others, or looks like nothing.
fn hides(c: char) -> bool {
    c.is_control() || c.is_whitespace() || is_unseen(c) || joins(c) || c == '\u{2800}'
}

#[cfg(test)]
pub(crate) mod tests;
