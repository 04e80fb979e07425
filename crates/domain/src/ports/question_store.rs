//! The store of questions that wait for an answer because no user could be asked during the call.

use crate::{
    ports::{clock::Timestamp, tool_repository::StoreError},
    principal::Principal,
    question::{DeferredQuestions, Question, QuestionGroupId},
};
use async_trait::async_trait;

/// Reason why questions were not stored, or not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// The session of the principal has too many waiting questions.
    #[error("{0} questions of this session are already waiting for an answer")]
    TooMany(usize),
    /// The principal has no questions with that id.
    #[error("there are no questions {0}")]
    NotFound(QuestionGroupId),
    /// The questions already have answers.
    #[error("the questions {0} are answered already")]
    Answered(QuestionGroupId),
    /// The number of answers is not the number of questions.
    #[error("there are {questions} questions and {answers} answers")]
    Mismatch {
        /// Number of questions.
        questions: usize,
        /// Number of answers.
        answers: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Maximum number of waiting [`DeferredQuestions`] of one session.
pub const WAITING_OF_A_SESSION: usize = 20;

/// Stores the questions of one workspace until they are answered, by principal.
///
/// Implementers guarantee:
/// - a principal cannot read the questions of another, even with their number, and a number always refers to the same
///   questions;
/// - questions are answered once;
/// - at most [`WAITING_OF_A_SESSION`] of a session wait, and further ones are refused; the store is bounded, and the
///   oldest questions are deleted first.
///
/// A test of an implementation runs the contract:
///
/// ```
/// use toolstead_domain::testing::{in_memory_questions::InMemoryQuestions, question_store_contract::question_store_contract};
///
/// # async fn test() {
/// question_store_contract(&InMemoryQuestions::new()).await;
/// # }
/// ```
#[async_trait]
pub trait QuestionStore: Send + Sync {
    /// Stores questions, which are answered together, and returns their common id.
    ///
    /// # Errors
    /// [`QuestionError`]; they are then not stored.
    async fn keep(
        &self,
        principal: &Principal,
        session: &str,
        at: Timestamp,
        questions: Vec<Question>,
    ) -> Result<QuestionGroupId, QuestionError>;

    /// Returns the principal's questions with this id; `None` if there are none.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn find(&self, principal: &Principal, id: QuestionGroupId) -> Result<Option<DeferredQuestions>, StoreError>;

    /// Returns the principal's waiting questions, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    async fn waiting(&self, principal: &Principal) -> Result<Vec<DeferredQuestions>, StoreError>;

    /// Answers the principal's questions with this id, with one text for each question in their order.
    ///
    /// # Errors
    /// [`QuestionError`]; nothing has then changed.
    async fn answer(
        &self,
        principal: &Principal,
        id: QuestionGroupId,
        answers: Vec<String>,
    ) -> Result<(), QuestionError>;
}
