//! Open questions to one client.

use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::oneshot;
use toolstead_infrastructure::mcp::wire::message::{RequestId, RpcError};

/// Maximum number of open questions of one client.
const MAX_OPEN: usize = 64;

type ClientAnswer = Result<Value, RpcError>;

/// Delivers answers to the callers that asked. Only the first answer is used; later ones, and answers to unknown
/// questions, are ignored.
#[derive(Debug, Default)]
pub(super) struct PendingQuestions {
    open: Mutex<HashMap<RequestId, oneshot::Sender<ClientAnswer>>>,
    asked: AtomicU64,
}

/// An open question. Dropping it closes it.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    questions: Arc<PendingQuestions>,
    /// Id of the request that asks.
    pub(super) id: RequestId,
    answer: oneshot::Receiver<ClientAnswer>,
}

impl PendingQuestions {
    /// Opens a question. Returns `None` if too many are open.
    pub(super) fn open(self: &Arc<Self>) -> Option<OpenQuestion> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let id = RequestId::Text(format!("toolstead-{number}").into());
        let (sender, answer) = oneshot::channel();
        let mut open = self.lock();
        if open.len() >= MAX_OPEN {
            return None;
        }
        open.insert(id.clone(), sender);
        Some(OpenQuestion { questions: self.clone(), id, answer })
    }

    /// Delivers the answer of the client.
    pub(super) fn answer(&self, id: &RequestId, outcome: ClientAnswer) {
        match self.lock().remove(id) {
            // The caller may have stopped waiting in the meantime.
            Some(asked) => drop(asked.send(outcome)),
            None => tracing::debug!(%id, "the client answered an unknown question"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<ClientAnswer>>> {
        // Nothing panics while the lock is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenQuestion {
    /// Waits for the client's answer; `None` if it can no longer arrive. Cancel-safe.
    pub(super) async fn answered(&mut self) -> Option<ClientAnswer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.questions.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_first_answer_counts_and_answers_with_unknown_ids_are_ignored() {
        let questions = Arc::new(PendingQuestions::default());
        let (mut one, two) = (questions.open().unwrap(), questions.open().unwrap());
        assert_ne!(one.id, two.id);
        questions.answer(&RequestId::Text("guessed".into()), Ok(1.into()));
        questions.answer(&one.id, Ok(2.into()));
        questions.answer(&one.id, Ok(3.into()));
        assert_eq!(one.answered().await, Some(Ok(2.into())));
        let id = two.id.clone();
        drop(two);
        questions.answer(&id, Ok(4.into()));
        assert!(questions.lock().is_empty());
    }

    #[test]
    fn open_questions_are_bounded() {
        let questions = Arc::new(PendingQuestions::default());
        let mut open: Vec<_> = (0..MAX_OPEN).map(|_| questions.open().unwrap()).collect();
        assert!(questions.open().is_none());
        open.pop();
        assert!(questions.open().is_some());
    }
}
