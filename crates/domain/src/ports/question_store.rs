//! The place of questions that wait, since nobody could be asked in mid-call.

use crate::{
    ports::{clock::Timestamp, tool_repository::StoreError},
    principal::Principal,
    question::{DeferredQuestions, Question, QuestionId},
};
use async_trait::async_trait;

/// The reason why questions were not kept, or not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// The principal's session has too many questions that wait.
    #[error("{0} questions of this session wait for an answer already")]
    TooMany(usize),
    /// The principal has no questions of that id.
    #[error("there are no questions {0}")]
    NotFound(QuestionId),
    /// Somebody answered them before.
    #[error("the questions {0} are answered already")]
    Answered(QuestionId),
    /// There is not one answer for each question.
    #[error("there are {questions} questions and {answers} answers")]
    Mismatch {
        /// As many questions.
        questions: usize,
        /// As many answers.
        answers: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// As many of a session wait at once.
pub const WAITING_OF_A_SESSION: usize = 20;

/// Keeps questions of one workspace until they are answered, by principal.
///
/// Implementers guarantee:
/// - one principal's questions mean nothing to another, whoever knows their number, and a number names the same questions
///   for good;
/// - questions are answered once;
/// - at most [`WAITING_OF_A_SESSION`] of a session wait; what was asked longest ago is forgotten first.
#[async_trait]
pub trait QuestionStore: Send + Sync {
    /// Keeps questions, and returns their number.
    ///
    /// # Errors
    /// [`QuestionError`]; then they are not kept.
    async fn keep(
        &self,
        principal: &Principal,
        session: &str,
        at: Timestamp,
        questions: Vec<Question>,
    ) -> Result<QuestionId, QuestionError>;

    /// The principal's questions of that number.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn find(&self, principal: &Principal, id: QuestionId) -> Result<Option<DeferredQuestions>, StoreError>;

    /// The principal's questions that wait, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read.
    async fn waiting(&self, principal: &Principal) -> Result<Vec<DeferredQuestions>, StoreError>;

    /// Answers them, one text for each question.
    ///
    /// # Errors
    /// [`QuestionError`]; then nothing has changed.
    async fn answer(&self, principal: &Principal, id: QuestionId, answers: Vec<String>) -> Result<(), QuestionError>;
}
