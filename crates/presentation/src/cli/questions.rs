//! `toolstead questions list|show|answer`: questions of agents that were deferred because no one was available.

use super::{
    CommandResult,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    named_principal::principal,
    output::{StdoutWriter, cut, table, visible},
    terminal::Terminal,
    terminal_questions::TerminalQuestions,
};
use crate::composition_root::ServerSelection;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::time::Duration;
use toolstead_domain::{
    DeferredQuestions, NotAnswered, Principal, Question, QuestionError, QuestionGroupId, QuestionStore,
};
use toolstead_infrastructure::builtin::question_form::{QuestionFormReply, elicitation_request, reply};

/// Maximum length in characters of a question in a list on a terminal.
const SHOWN: usize = 60;
/// Maximum time to answer. It is long, because the user started the command in order to answer.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Shows the questions that wait for an answer, or answers one.
#[derive(Debug, Args)]
pub struct QuestionsCommand {
    #[command(subcommand)]
    command: Option<Command>,
    /// The principal of the questions: `token:NAME` for the client of a server token. Default: the local user
    #[arg(long, value_name = "PRINCIPAL", global = true)]
    principal: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the pending questions of this workspace, the oldest first
    List,
    /// Shows questions with their choices and answers
    Show {
        /// Their id, such as q3
        id: String,
    },
    /// Answers questions: at the terminal, or with one ANSWER for each
    Answer {
        /// Their id, such as q3
        id: String,
        /// For each question the number of an option, several with commas between where these may be chosen, or own words
        answers: Vec<String>,
    },
}

impl QuestionsCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let principal = principal(self.principal.as_deref())?;
        let composition = global.compose(ServerSelection::None).await?;
        let outcome = match composition.questions.0.as_deref() {
            Some(store) => self.command.unwrap_or(Command::List).run(store, &principal, global.json, output).await,
            None => Err(CommandError::NotFound("no questions are stored here".into())),
        };
        composition.close().await;
        outcome.map(|()| Exit::Done)
    }
}

impl Command {
    async fn run(
        self,
        store: &dyn QuestionStore,
        principal: &Principal,
        as_json: bool,
        output: &mut StdoutWriter,
    ) -> Result<(), CommandError> {
        match self {
            Self::List => {
                let waiting = store.waiting(principal).await?;
                if as_json {
                    let all: Vec<Value> = waiting.iter().map(to_json).collect();
                    return Ok(output.json(&json!({"questions": all}))?);
                }
                let rows = waiting.iter().map(|one| {
                    let texts: Vec<&str> = one.questions.iter().map(|question| question.question.as_str()).collect();
                    let text = visible(&texts.join(" / ").replace(['\n', '\t'], " "));
                    vec![one.id.to_string(), one.asked.to_string(), cut(&text, output.width().map(|_| SHOWN))]
                });
                let rows: Vec<Vec<String>> = rows.collect();
                Ok(output.line(&table(&["ID", "ASKED", "QUESTION"], rows))?)
            }
            Self::Show { id } => {
                let found = found(store, principal, &id).await?;
                match as_json {
                    true => output.json(&to_json(&found))?,
                    false => output.line(&shown(&found))?,
                }
                Ok(())
            }
            Self::Answer { id, answers } => {
                let found = found(store, principal, &id).await?;
                if found.answers.is_some() {
                    return Err(refused(QuestionError::Answered(found.id)));
                }
                let answers = match answers.is_empty() {
                    true => ask_user(&found.questions).await?,
                    false => parse_answers(&found.questions, &answers)?,
                };
                store.answer(principal, found.id, answers).await.map_err(refused)?;
                let found = store.find(principal, found.id).await?.unwrap_or(found);
                match as_json {
                    true => output.json(&to_json(&found))?,
                    false => output.line(&format!("{} is answered.", found.id))?,
                }
                Ok(())
            }
        }
    }
}

async fn found(store: &dyn QuestionStore, principal: &Principal, id: &str) -> Result<DeferredQuestions, CommandError> {
    let unknown = || {
        CommandError::NotFound(format!("there are no questions `{id}`: `toolstead questions` lists the pending ones"))
    };
    let number = QuestionGroupId::parse(id).ok_or_else(unknown)?;
    store.find(principal, number).await?.ok_or_else(unknown)
}

fn refused(error: QuestionError) -> CommandError {
    match error {
        QuestionError::Store(error) => CommandError::Store(error),
        QuestionError::NotFound(_) => CommandError::NotFound(error.to_string()),
        other => CommandError::Usage(other.to_string()),
    }
}

/// Asks the user at the terminal and returns one answer per question, empty for those without an answer. Fails if no
/// question was answered.
async fn ask_user(questions: &[Question]) -> Result<Vec<String>, CommandError> {
    let usage = |message: &str| CommandError::Usage(message.into());
    let terminal = Terminal::of_process();
    let terminal = terminal.ok_or_else(|| usage("no terminal is available: give one answer for each question"))?;
    let client = toolstead_domain::client_profile::ClientProfile::without_protocol("toolstead-cli");
    let said = TerminalQuestions::new(terminal, PATIENCE).ask(elicitation_request(questions, &client)).await;
    let said = said.map_err(|why: NotAnswered| CommandError::Usage(format!("the questions have no answer: {why}")))?;
    match reply(questions, &said.0) {
        QuestionFormReply::Answers(answers) if answers.iter().any(Option::is_some) => {
            Ok(answers.into_iter().map(Option::unwrap_or_default).collect())
        }
        _ => Err(usage("no question was answered, and all stay pending")),
    }
}

/// Returns the typed answers, one for each question. Numbers of options are replaced by the labels of the options.
fn parse_answers(questions: &[Question], answers: &[String]) -> Result<Vec<String>, CommandError> {
    if questions.len() != answers.len() {
        let mismatch = QuestionError::Mismatch { questions: questions.len(), answers: answers.len() };
        return Err(CommandError::Usage(format!("{mismatch}: give one for each")));
    }
    if answers.iter().all(|answer| answer.trim().is_empty()) {
        return Err(CommandError::Usage("the answer is empty".into()));
    }
    Ok(questions.iter().zip(answers).map(|(question, typed)| parse_answer(question, typed.trim())).collect())
}

fn parse_answer(question: &Question, typed: &str) -> String {
    let option = |number: &str| {
        let index = number.trim().parse::<usize>().ok()?.checked_sub(1)?;
        question.options.get(index).map(|option| option.label.clone())
    };
    let several = || typed.split(',').map(option).collect::<Option<Vec<_>>>();
    let chosen = if question.multi_select { several().map(|all| all.join(", ")) } else { option(typed) };
    chosen.unwrap_or_else(|| typed.to_owned())
}

fn shown(found: &DeferredQuestions) -> String {
    let mut lines = vec![format!("{}, asked at {}", found.id, found.asked)];
    for (index, question) in found.questions.iter().enumerate() {
        lines.push(String::new());
        let several = if question.multi_select { " (several)" } else { "" };
        lines.push(format!("{}. {}{several}", index + 1, within(&question.question)));
        for (number, option) in question.options.iter().enumerate() {
            lines.push(format!("   {}) {}: {}", number + 1, within(&option.label), within(&option.description)));
            let preview = option.preview.iter().flat_map(|preview| preview.lines());
            lines.extend(preview.map(|line| format!("      | {}", visible(line))));
        }
        if let Some(answer) = found.answers.as_ref().and_then(|answers| answers.get(index)) {
            lines.push(format!("   -> {}", within(answer)));
        }
    }
    lines.join("\n")
}

/// Formats a text within a line of Toolstead. Its further lines are marked, so that none can be mistaken for an option.
fn within(text: &str) -> String {
    visible(text).replace('\n', "\n      | ")
}

fn to_json(found: &DeferredQuestions) -> Value {
    let questions: Vec<Value> = found
        .questions
        .iter()
        .map(|question| {
            let options = question.options.iter();
            let options: Vec<Value> = options
                .map(|one| json!({"label": one.label, "description": one.description, "preview": one.preview}))
                .collect();
            json!({
                "question": question.question, "header": question.header, "options": options,
                "multi_select": question.multi_select,
            })
        })
        .collect();
    json!({
        "id": found.id.to_string(), "session": found.session, "asked": found.asked.to_string(),
        "questions": questions, "answers": found.answers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Timestamp, testing::question_store_contract::questions};

    #[test]
    fn agent_text_cannot_imitate_options_or_answers_of_a_question() {
        let mut asked = questions();
        asked[0].question = "Which?\n   1) Keep all: safe\n   -> yes".into();
        asked[0].options[0].description = "so\n   2) other".into();
        let id = QuestionGroupId(1);
        let asked_at = Timestamp(0);
        let found = DeferredQuestions { id, session: "s".into(), asked: asked_at, questions: asked, answers: None };
        let shown = shown(&found);
        let options = shown.lines().filter(|line| line.starts_with("   1) ") || line.starts_with("   -> "));
        assert_eq!(options.count(), 2, "one for each question: {shown}");
        assert!(shown.contains("\n      | ") && !shown.contains("\n   2) other"), "{shown}");
    }

    #[track_caller]
    fn check(typed: &[&str], expected: Option<&[&str]>) {
        let typed: Vec<String> = typed.iter().map(|text| (*text).to_owned()).collect();
        let answers = parse_answers(&questions(), &typed).ok();
        let expected = expected.map(|all| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(answers, expected, "{typed:?}");
    }

    #[test]
    fn an_answer_is_an_option_number_or_free_text() {
        check(&["1", "1,2"], Some(&["a", "a, b"]));
        check(&["b", "2"], Some(&["b", "b"]));
        check(&["1,2", "1,3"], Some(&["1,2", "1,3"]));
        check(&["0", "own words"], Some(&["0", "own words"]));
        check(&["1", ""], Some(&["a", ""]));
        check(&["", " "], None);
        check(&["1"], None);
        check(&["1", "2", "3"], None);
    }
}
