//! The tool `ask_user`. The client of the call shows the questions to the user; without such a client, they are stored
//! until the user answers.

use crate::builtin::{
    agents::question_form::{QuestionFormReply, elicitation_request, reply},
    tool_kit::{
        answer::answer, built_in_tool::BuiltInTool, schema::output_schema, tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::HashSet, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{
    Category, Choice, DeferredQuestions, NotAnswered, Question, QuestionError, QuestionGroupId, QuestionStore,
    StoreError, ToolAnnotations, ToolFailure, ToolResult, error_kind::ErrorKind, question::waiting_for,
};

/// Tool that asks the user.
pub(crate) struct AskUser;

/// Maximum timeout, in milliseconds. A form of four questions takes about a minute; an hour is enough for a user who
/// was away.
const MAX_TIMEOUT_MS: u64 = 3_600_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The questions.
    #[schemars(length(min = 1, max = 4))]
    #[schemars(extend("x-advertised" = ""))]
    questions: Option<Vec<QuestionInput>>,
    /// Instead of `questions`: the id of pending questions, like "q3".
    #[schemars(length(min = 1, max = 16))]
    #[schemars(extend("x-advertised" = "Instead: a pending id."))]
    resume: Option<String>,
    /// Maximum time to wait for the answers. Default: as long as the client waits.
    #[schemars(range(min = 1_000, max = MAX_TIMEOUT_MS))]
    #[schemars(extend("x-advertised" = false))]
    timeout_ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionInput {
    /// The question.
    #[schemars(length(min = 1, max = 1_000))]
    #[schemars(extend("x-advertised" = ""))]
    question: String,
    /// A label.
    #[schemars(length(min = 1, max = 12))]
    #[schemars(extend("x-advertised" = "At most 12 characters."))]
    header: String,
    /// Answers to choose from; free text is always possible.
    #[schemars(length(min = 2, max = 4))]
    #[schemars(extend("x-advertised" = "2 to 4."))]
    options: Vec<OptionInput>,
    /// Allow several choices.
    #[serde(default)]
    #[schemars(extend("x-advertised" = ""))]
    multi_select: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OptionInput {
    /// The answer, in a few words.
    #[schemars(length(min = 1, max = 100))]
    #[schemars(extend("x-advertised" = ""))]
    label: String,
    /// Its meaning or consequence.
    #[schemars(length(max = 500))]
    #[schemars(extend("x-advertised" = ""))]
    description: String,
    /// A preview of the option, such as a piece of code.
    #[schemars(length(max = 2_000))]
    #[schemars(extend("x-advertised" = false))]
    preview: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The outcome: `answered`, `declined`, `cancelled` or `waiting`.
    outcome: &'static str,
    /// The answer to each answered question; several choices are separated by commas.
    answers: serde_json::Map<String, Value>,
    /// The id of pending questions, for `resume`.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

impl BuiltInTool for AskUser {
    const NAME: &str = "ask_user";
    const TITLE: &str = "Ask the user";
    const DESCRIPTION: &str = "Asks the user one to four questions with answers to choose from; free text is \
         possible, too. Use it for decisions that are the user's and change what you do next; put your \
         recommendation first. If no user is available now, the questions wait, and `resume` fetches the answers.";
    const BRIEF: &str = "Asks the user what only they can decide; put your recommendation first.";
    const CATEGORY: Category = Category::Utility;
    const TAGS: &[&str] = &["question"];
    const KEYWORDS: &str = "choice choose clarify confirm decision dialog human option person preference";
    // A run ends with a pending question, which a batch would hide.
    const STANDS_ALONE: bool = true;
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations::READ_ONLY;
    const EXAMPLE: &str = r#"{"questions": [{"question": "Which database shall it use?", "header": "Database", "options": [{"label": "SQLite", "description": "One file, no server"}, {"label": "Postgres", "description": "For several machines"}]}]}"#;
    type Input = Input;

    fn output_schema(&self) -> Option<Value> {
        Some(output_schema::<Output>())
    }

    async fn run(&self, input: Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        match (input.questions, input.resume) {
            (Some(questions), None) => ask(validate_questions(questions)?, input.timeout_ms, run).await,
            (None, Some(id)) => resumed(&id, run).await,
            _ => {
                let message = "give either `questions`, or `resume` with the id of pending questions";
                Err(ToolFailure::new(ErrorKind::InvalidInput, message))
            }
        }
    }
}

/// Checks the questions, so that the user can distinguish them and their options.
///
/// # Errors
/// `invalid_input` for a question that is empty or repeated, or that has an option twice.
fn validate_questions(questions: Vec<QuestionInput>) -> Result<Vec<Question>, ToolFailure> {
    let invalid = |message: String| ToolFailure::new(ErrorKind::InvalidInput, message);
    let mut known = HashSet::new();
    let mut asked = Vec::with_capacity(questions.len());
    for one in questions {
        if one.question.trim().is_empty() || !known.insert(one.question.clone()) {
            return Err(invalid(format!("the question `{}` is empty or repeated", one.question)));
        }
        let mut labels = HashSet::new();
        if let Some(twice) = one.options.iter().find(|option| !labels.insert(option.label.trim())) {
            return Err(invalid(format!("the question `{}` has the option `{}` twice", one.question, twice.label)));
        }
        let choice = |option: OptionInput| Choice {
            label: option.label.trim().to_owned(),
            description: option.description,
            preview: option.preview,
        };
        asked.push(Question {
            question: one.question,
            header: one.header,
            options: one.options.into_iter().map(choice).collect(),
            multi_select: one.multi_select,
        });
    }
    Ok(asked)
}

async fn ask(
    questions: Vec<Question>,
    patience: Option<u64>,
    run: &ToolContext<'_>,
) -> Result<ToolResult, ToolFailure> {
    let context = run.context();
    let asking = context.caller.ask(elicitation_request(&questions, context.client));
    let said = match patience.map(Duration::from_millis) {
        Some(patience) => timeout(patience, asking).await.unwrap_or(Err(NotAnswered::TimedOut)),
        None => asking.await,
    };
    let response = match said {
        Ok(response) => response,
        Err(NotAnswered::Unsupported) => return deferred(questions, run).await,
        Err(why) => return Err(unanswered_failure(&why)),
    };
    let declined = |outcome: &'static str, text: &str| {
        answer(text, &Output { outcome, answers: serde_json::Map::new(), id: None })
    };
    match reply(&questions, &response.0) {
        QuestionFormReply::Answers(answers) => format_answers(&questions, &answers),
        QuestionFormReply::Declined => {
            declined("declined", "The user declined to answer. Continue without an answer, or ask less.")
        }
        QuestionFormReply::Cancelled => declined("cancelled", "The user closed the questions without an answer."),
        QuestionFormReply::Malformed => Err(ToolFailure::new(
            ErrorKind::UpstreamProtocol,
            "the client's answer is invalid: it has no MCP `action`, or no `content`",
        )),
    }
}

fn unanswered_failure(why: &NotAnswered) -> ToolFailure {
    let kind = match why {
        NotAnswered::TimedOut => ErrorKind::Timeout,
        NotAnswered::Disconnected => ErrorKind::Cancelled,
        NotAnswered::TooMany | NotAnswered::Exhausted => ErrorKind::RateLimited,
        NotAnswered::NotRecorded => ErrorKind::Io,
        NotAnswered::Unsupported | NotAnswered::Refused { .. } | NotAnswered::Unfit(_) => ErrorKind::Unavailable,
    };
    let next = match why {
        NotAnswered::TimedOut => "The user may be away: do what needs no answer, or ask again later.",
        _ => "Do not make up an answer.",
    };
    ToolFailure::new(kind, format!("the questions were not answered: {why}")).next(next)
}

/// Formats the user's answers, question by question.
fn format_answers(questions: &[Question], answers: &[Option<String>]) -> Result<ToolResult, ToolFailure> {
    let mut answers_json = serde_json::Map::new();
    let mut lines = Vec::with_capacity(questions.len());
    for (question, said) in questions.iter().zip(answers) {
        match said {
            Some(said) => {
                lines.push(format!("{}\n-> {said}", question.question));
                answers_json.insert(question.question.clone(), said.as_str().into());
            }
            None => lines.push(format!("{}\n(no answer)", question.question)),
        }
    }
    answer(lines.join("\n"), &Output { outcome: "answered", answers: answers_json, id: None })
}

/// Stores questions for which no user is available now.
async fn deferred(questions: Vec<Question>, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
    let context = run.context();
    let kept =
        store(run.environment())?.keep(context.principal, context.session, run.environment().now(), questions).await;
    let id = kept.map_err(|error| {
        let kind = match &error {
            QuestionError::TooMany(_) => ErrorKind::RateLimited,
            _ => ErrorKind::Io,
        };
        ToolFailure::new(kind, "the questions could not be stored until they are answered").caused_by(error)
    })?;
    pending_result(id, "No user is available now, so the questions are pending")
}

/// Returns the answers to stored questions, or that they are still pending.
async fn resumed(id: &str, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
    let unknown = || {
        ToolFailure::new(ErrorKind::NotFound, format!("you have no questions `{id}`"))
            .next("Use the id that the call with the questions returned, like `q3`, or ask again.")
    };
    let number = QuestionGroupId::parse(id).ok_or_else(unknown)?;
    let failed = |error: StoreError| {
        ToolFailure::new(ErrorKind::Io, format!("the questions `{number}` could not be read")).caused_by(error)
    };
    let found = store(run.environment())?.find(run.context().principal, number).await.map_err(failed)?;
    let DeferredQuestions { questions, answers, .. } = found.ok_or_else(unknown)?;
    match answers {
        Some(answers) => {
            let said = |text: String| Some(text).filter(|text| !text.trim().is_empty());
            format_answers(&questions, &answers.into_iter().map(said).collect::<Vec<_>>())
        }
        None => pending_result(number, "The questions are still pending"),
    }
}

/// Returns the store of pending questions.
///
/// # Errors
/// `unavailable` if there is no store, so that no user could ever answer.
fn store(world: &ToolEnvironment) -> Result<&dyn QuestionStore, ToolFailure> {
    world.agents().questions().map(AsRef::as_ref).ok_or_else(|| {
        ToolFailure::new(ErrorKind::Unavailable, "no user is available here, now or later")
            .next("Do not make up an answer: do what needs none, and say what is open.")
    })
}

fn pending_result(id: QuestionGroupId, why: &str) -> Result<ToolResult, ToolFailure> {
    let text = format!(
        "{why} as {id}. Your user answers them later. Then call this tool with \
         {{\"resume\": \"{id}\"}} to get the answers. Do not make them up; meanwhile do what needs no answer, and say \
         that you are waiting."
    );
    let output = Output { outcome: "waiting", answers: serde_json::Map::new(), id: Some(id.to_string()) };
    Ok(waiting_for(answer(text, &output)?, id))
}

#[cfg(test)]
mod tests;
