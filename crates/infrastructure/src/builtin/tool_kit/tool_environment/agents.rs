//! The part of the environment that agents use.

use crate::builtin::agents::{image_answer_cache::ImageAnswerCache, plans_in_memory::InMemoryTodoStore};
use std::{fmt, sync::Arc};
use toolstead_domain::{AgentCatalogue, Models, NoAgents, NoModels, QuestionStore, TodoStore};

/// Environment of agents: their definitions, models, plans and questions.
#[derive(Clone)]
pub struct AgentEnvironment {
    pub(super) catalogue: Arc<dyn AgentCatalogue>,
    pub(super) models: Arc<dyn Models>,
    pub(super) todos: Arc<dyn TodoStore>,
    pub(super) questions: Option<Arc<dyn QuestionStore>>,
    pub(super) image_answers: Arc<ImageAnswerCache>,
}

impl Default for AgentEnvironment {
    fn default() -> Self {
        Self {
            catalogue: Arc::new(NoAgents),
            models: Arc::new(NoModels),
            todos: Arc::new(InMemoryTodoStore::default()),
            questions: None,
            image_answers: Arc::default(),
        }
    }
}

impl AgentEnvironment {
    pub(in crate::builtin) fn catalogue(&self) -> &dyn AgentCatalogue {
        &*self.catalogue
    }

    pub(in crate::builtin) fn models(&self) -> &Arc<dyn Models> {
        &self.models
    }

    pub(in crate::builtin) fn todos(&self) -> &Arc<dyn TodoStore> {
        &self.todos
    }

    pub(in crate::builtin) fn questions(&self) -> Option<&Arc<dyn QuestionStore>> {
        self.questions.as_ref()
    }

    /// Returns the cached answers of models about images.
    pub(in crate::builtin) fn image_answers(&self) -> &ImageAnswerCache {
        &self.image_answers
    }
}

impl fmt::Debug for AgentEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentEnvironment").finish_non_exhaustive()
    }
}
