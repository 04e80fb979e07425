//! An approval request as text for the approver. Text of a model, a file or a server is always within one line and
//! between backticks, and every character that could end either is escaped, so that it cannot be mistaken for a line of
//! Toolstead.

mod change;

use change::ShownChange;
use toolstead_domain::{
    Access, AccessKind, AccessPath, ApprovalPart, ApprovalRequest, ApprovalScope, Cause, ParseConfidence, ToolSource,
    invisible_characters::{is_joining, is_removable},
};
use toolstead_infrastructure::shell_analysis::catalogue::READ_ONLY_COMMANDS;

/// Maximum number of parts in one request. A call with more is refused, because the approver could not review them.
const MAX_ROWS: usize = 32;
/// Maximum number of characters of all parts together.
const ROW_CHARACTERS: usize = 12_000;
/// Maximum number of characters of any other text from outside.
const FACT_CHARACTERS: usize = 200;
/// Maximum number of characters of an argument that is shown beside the change.
const SHORT_CHARACTERS: usize = 40;
/// Arguments of the built-in tools whose whole text is in the lines of the change.
const TEXTS_OF_CHANGES: [&str; 3] = ["old_text", "new_text", "content"];
/// Maximum number of arguments, and of accesses that need no approval, that are shown.
const MAX_FACTS: usize = 12;
/// Number of consecutive blanks from which on they are abbreviated. Longer runs could move text to the start of a
/// visual line.
const BLANKS: usize = 3;

/// The text of an approval request.
#[derive(Debug, PartialEq)]
pub(crate) struct ApprovalQuestion {
    /// The request in one line.
    pub(crate) heading: String,
    /// One row for each part, in the order of the request.
    pub(crate) rows: Vec<ApprovalPartRow>,
    /// Further facts, one per line.
    pub(crate) facts: Vec<String>,
    /// Summary and first rows of the change that the call would make. Text from outside follows a mark.
    pub(crate) change: Vec<String>,
    /// All texts in full, if some text is truncated.
    pub(crate) full_text: Option<Vec<String>>,
}

/// A part that is answered separately.
#[derive(Debug, PartialEq)]
pub(crate) struct ApprovalPartRow {
    /// Effect of the part.
    pub(crate) what: String,
    /// Reason why approval is needed.
    pub(crate) why: String,
    /// Subject of an approval that is valid for longer than once; `None` if there is only the scope "once".
    pub(crate) covers: Option<String>,
    /// Scopes that can be approved. Only "once" if the part is not shown in full, and none before a definition that is
    /// too long for the question was read.
    pub(crate) scopes: Vec<ApprovalScope>,
}

impl ApprovalQuestion {
    /// Returns the text; `None` if there are no parts, or more than an approver can review. If a change is truncated,
    /// each part can be approved only once.
    pub(crate) fn of(request: &ApprovalRequest<'_>) -> Option<Self> {
        Self::build(request, false)
    }

    /// Returns the text for an approver who has read it in full.
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
        let pending = request.call.tool.pending.as_ref();
        let change = request.preview.map(match pending {
            Some(_) => ShownChange::of_definition,
            None => ShownChange::of,
        });
        let has = |kind| request.accesses.iter().any(|access| access.kind() == kind);
        let is_incomplete = change.as_ref().is_some_and(|change| !change.is_complete);
        let is_change_cut = match &change {
            Some(change) => change.cut_lines > 0,
            // The approver sees the change only in the arguments. A command is shown in its own part.
            None => are_facts_cut && has(AccessKind::Write) && !has(AccessKind::Run),
        };
        let is_once_only = is_incomplete || (is_change_cut && !has_been_read);
        // An approval of a changed definition is permanent, even if the call is approved once.
        let must_be_read = pending.is_some() && is_change_cut && !has_been_read;
        let mut rows: Vec<ApprovalPartRow> =
            parts.iter().map(|part| row(part, characters, is_once_only, request.preview.is_some())).collect();
        if must_be_read {
            rows.iter_mut().for_each(|row| row.scopes.clear());
        }
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
        if must_be_read {
            let server = request.call.tool.server().map(|server| format!(" {server}")).unwrap_or_default();
            lines.push(format!(
                "(The definition is not shown completely, so it cannot be approved before all of it was viewed. \
                 `toolstead servers diff{server}` shows all of it, and `toolstead servers approve{server}` approves it.)"
            ));
        } else if is_once_only {
            let why = if is_incomplete { "cannot be shown completely" } else { "is not shown completely" };
            lines.push(format!("(The change {why}, so it can only be approved once.)"));
        }
        Some(Self { heading, rows, facts: shown_facts, change: lines, full_text })
    }
}

fn heading(request: &ApprovalRequest<'_>) -> String {
    let tool = quote(request.call.tool.name().as_str(), FACT_CHARACTERS).text;
    let agent = request.agent.map(|agent| format!("agent {}", quote(agent, FACT_CHARACTERS).text));
    let within = request.within.map(|tool| format!("tool {}", quote(tool.name().as_str(), FACT_CHARACTERS).text));
    match agent.or(within) {
        Some(within) => format!("May the tool {tool} run, called by the {within}?"),
        None => format!("May the tool {tool} run?"),
    }
}

/// Returns the scopes that are offered for every row, the narrowest first.
pub(crate) fn common_scopes(rows: &[ApprovalPartRow]) -> Vec<ApprovalScope> {
    let is_common = |scope: &ApprovalScope| rows.iter().all(|row| row.scopes.contains(scope));
    ApprovalScope::ALL.iter().copied().filter(is_common).collect()
}

/// Returns a line with the commands that the scope "commands that only read" allows. If a part does not offer the
/// scope, it removes the scope from all parts and returns `None`.
fn read_only_commands(rows: &mut [ApprovalPartRow]) -> Option<String> {
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

fn row(part: &ApprovalPart, characters: usize, is_once_only: bool, is_change_of_file: bool) -> ApprovalPartRow {
    let what = part.access.as_ref().map_or_else(
        || QuotedText { text: "call the tool at all".into(), is_complete: true },
        |access| describe_access(access, characters),
    );
    let rule = part.rule.as_deref().map(|rule| quote(rule, characters));
    let is_whole = what.is_complete && rule.as_ref().is_none_or(|rule| rule.is_complete);
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
            let beginning = part.rule.as_deref().and_then(any_arguments).map(|it| quote(it, characters).text);
            let more = beginning.map(|it| format!(", which also allows {it} with any other arguments"));
            format!("the rule {}{}", rule.text, more.unwrap_or_default())
        }
        (Some(rule), _) => format!("the rule {}", rule.text),
        (None, _) => "this tool with exactly these arguments".into(),
    });
    ApprovalPartRow { what: what.text, why: reason(&part.cause), covers, scopes }
}

/// Returns the beginning of the commands that a rule allows with any further arguments.
fn any_arguments(rule: &str) -> Option<&str> {
    rule.strip_prefix("Bash(")?.strip_suffix(" *)")
}

/// Returns the reason why approval is needed. Names and origins of rules are texts from outside, too.
fn reason(cause: &Cause) -> String {
    match cause {
        Cause::Default(words) | Cause::Mode(words) => (*words).to_owned(),
        Cause::Rule(rule) => {
            let (text, place) = (quote(&rule.text, FACT_CHARACTERS), rule.origin.to_string());
            let place = quote(&place, FACT_CHARACTERS).text;
            let entry = rule.entry.as_ref().map(|entry| format!(" (the entry {})", quote(entry, FACT_CHARACTERS).text));
            format!("the {} rule {} in {place}{}", rule.effect.as_str(), text.text, entry.unwrap_or_default())
        }
        Cause::Hook { by, reason } => {
            let (by, reason) = (quote(by, FACT_CHARACTERS), quote(reason, FACT_CHARACTERS));
            format!("the hook {} requires approval: {}", by.text, reason.text)
        }
        other => quote(&other.to_string(), 2 * FACT_CHARACTERS).text,
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
    let quoted = |text: &str| quote(text, limits.characters).text;
    let arguments = &request.call.arguments;
    let description = arguments.get("description").and_then(|text| text.as_str());
    let description = description.map(|text| format!("The model says: {}", quoted(text)));
    // A change that is shown includes long arguments. Short ones may contain something that no line of it does, such as
    // permission bits. Arguments equal to their defaults were filled in and are omitted. Arguments are never filled in
    // for an MCP server's tool, so all of them are shown.
    let tool = &request.call.tool;
    let is_filled = !matches!(tool.source(), ToolSource::McpServer { .. });
    let properties = tool.input_schema().get("properties").filter(|_| is_filled);
    let usual = |name: &str| properties.and_then(|all| all.get(name)?.get("default"));
    // The change of a definition contains no arguments.
    let has_change = request.preview.is_some() && tool.pending.is_none();
    let in_change = |name: &str| is_filled && has_change && TEXTS_OF_CHANGES.contains(&name);
    let sent = arguments.iter().filter(|(name, value)| usual(name.as_str()) != Some(*value) && !in_change(name));
    let sent = sent.map(|(name, value)| (name, value.to_string()));
    let sent = sent.filter(|(_, value)| !has_change || value.chars().count() <= SHORT_CHARACTERS);
    let with = sent.map(|(name, value)| format!("With {}: {}", quoted(name), quoted(&value)));
    let referred = request.references.iter().map(|one| format!("Where {}", quoted(one)));
    let is_asked = |access: &&Access| request.parts.iter().any(|part| part.access.as_ref() == Some(*access));
    let allowed = request.accesses.iter().filter(|access| !is_asked(access));
    let allowed = allowed.map(|access| format!("Allowed already: {}", describe_access(access, limits.characters).text));
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

/// Describes the effect of an access.
fn describe_access(access: &Access, characters: usize) -> QuotedText {
    let mut whole = true;
    let mut shown = |text: &str| {
        let quoted = quote(text, characters);
        whole &= quoted.is_complete;
        quoted.text
    };
    let mut path = |path: &AccessPath| {
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
            ParseConfidence::Plain => format!("run {}", shown(&command.text)),
            ParseConfidence::Exact(reason) => format!("run {} (note: {})", shown(&command.text), shown(reason)),
            ParseConfidence::Opaque(reason) => {
                format!("run {} (what this runs is unknown: {})", shown(&command.text), shown(reason))
            }
        },
        Access::ReachHost(host) => format!("connect to {}", shown(host)),
        Access::Send(receiver) => format!("send to {}", shown(receiver)),
        Access::CallUpstream { server, tool } => {
            format!("call {} of the MCP server {}", shown(tool), shown(server.as_str()))
        }
        Access::Undeclared(tool) => format!("run {}, which does not declare what it accesses", shown(tool)),
        Access::ReadResource { server, uri } => {
            format!("read the resource {} of {}", shown(uri), shown(server.as_str()))
        }
        Access::GetPrompt { server, prompt } => {
            format!("get the prompt {} of {}", shown(prompt), shown(server.as_str()))
        }
        Access::RunAgent(agent) => format!("delegate work to the agent {}", shown(agent)),
        Access::OfferTools(tools) => format!("allow the started program to call the tools {}", shown(tools)),
    };
    QuotedText { text, is_complete: whole }
}

/// A text from outside, prepared for display.
#[derive(Debug, PartialEq)]
struct QuotedText {
    text: String,
    /// `true` if the text is not truncated.
    is_complete: bool,
}

/// Returns the first `characters` of the text in one line between backticks, and a note if there are more. Backslashes
/// only occur in escapes, so none can be forged.
fn quote(text: &str, characters: usize) -> QuotedText {
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
    QuotedText { text: shown, is_complete: more == 0 }
}

/// Returns `true` if a character moves, hides or reorders others, or is invisible.
fn hides(c: char) -> bool {
    c.is_control() || c.is_whitespace() || is_removable(c) || is_joining(c) || c == '\u{2800}'
}

#[cfg(test)]
pub(crate) mod tests;
