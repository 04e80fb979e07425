//! A store of deferred questions in memory.

use super::lock;
use crate::{
    ports::{
        clock::Timestamp,
        question_store::{QuestionError, QuestionStore, WAITING_OF_A_SESSION},
        tool_repository::StoreError,
    },
    principal::Principal,
    question::{DeferredQuestions, Question, QuestionGroupId},
};
use async_trait::async_trait;
use std::sync::Mutex;

/// Store that holds all questions until it is dropped: tests ask few.
#[derive(Debug, Default)]
pub struct InMemoryQuestions {
    kept: Mutex<Vec<(Principal, DeferredQuestions)>>,
}

impl InMemoryQuestions {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl QuestionStore for InMemoryQuestions {
    async fn keep(
        &self,
        principal: &Principal,
        session: &str,
        at: Timestamp,
        questions: Vec<Question>,
    ) -> Result<QuestionGroupId, QuestionError> {
        let mut kept = lock(&self.kept);
        let of_mine = kept.iter().filter(|(owner, _)| owner == principal);
        let waiting = of_mine.clone().filter(|(_, one)| one.session == session && one.answers.is_none()).count();
        if waiting >= WAITING_OF_A_SESSION {
            return Err(QuestionError::TooMany(waiting));
        }
        let id = QuestionGroupId(of_mine.map(|(_, one)| one.id.0).max().unwrap_or(0) + 1);
        let session = session.to_owned();
        kept.push((principal.clone(), DeferredQuestions { id, session, asked: at, questions, answers: None }));
        Ok(id)
    }

    async fn find(&self, principal: &Principal, id: QuestionGroupId) -> Result<Option<DeferredQuestions>, StoreError> {
        let kept = lock(&self.kept);
        Ok(kept.iter().find(|(owner, one)| owner == principal && one.id == id).map(|(_, one)| one.clone()))
    }

    async fn waiting(&self, principal: &Principal) -> Result<Vec<DeferredQuestions>, StoreError> {
        let kept = lock(&self.kept);
        let waiting = kept.iter().filter(|(owner, one)| owner == principal && one.answers.is_none());
        Ok(waiting.map(|(_, one)| one.clone()).collect())
    }

    async fn answer(
        &self,
        principal: &Principal,
        id: QuestionGroupId,
        answers: Vec<String>,
    ) -> Result<(), QuestionError> {
        let mut kept = lock(&self.kept);
        let found = kept.iter_mut().find(|(owner, one)| owner == principal && one.id == id);
        let (_, one) = found.ok_or(QuestionError::NotFound(id))?;
        if one.answers.is_some() {
            return Err(QuestionError::Answered(id));
        }
        if one.questions.len() != answers.len() {
            return Err(QuestionError::Mismatch { questions: one.questions.len(), answers: answers.len() });
        }
        one.answers = Some(answers);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on::block_on, question_store_contract::question_store_contract};

    #[test]
    fn the_in_memory_question_store_fulfils_the_contract() {
        block_on(question_store_contract(&InMemoryQuestions::new()));
    }
}
