//! Cached answers of models about images, so that the same question about the same image is sent once.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};
use toolstead_domain::{ContentDigest, Principal};

/// Maximum number of answers. The oldest is discarded first.
const ANSWERS: usize = 200;

/// A question about an image to a model, for one principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::builtin) struct ImageQuestion {
    pub(in crate::builtin) principal: Principal,
    /// Digest of the content, so that a changed image is a different question.
    pub(in crate::builtin) image: ContentDigest,
    pub(in crate::builtin) question: String,
    pub(in crate::builtin) model: String,
}

/// Answers of this process.
#[derive(Debug, Default)]
pub(in crate::builtin) struct ImageAnswerCache(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    entries: HashMap<ImageQuestion, (u64, String)>,
    /// Number of answers stored so far.
    count: u64,
}

impl ImageAnswerCache {
    pub(in crate::builtin) fn answer(&self, question: &ImageQuestion) -> Option<String> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.entries.get(question).map(|(_, text)| text.clone())
    }

    pub(in crate::builtin) fn remember(&self, question: ImageQuestion, text: String) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.count += 1;
        let number = answers.count;
        answers.entries.insert(question, (number, text));
        if answers.entries.len() > ANSWERS
            && let Some(oldest) =
                answers.entries.iter().min_by_key(|(_, (number, _))| *number).map(|(name, _)| name.clone())
        {
            answers.entries.remove(&oldest);
        }
    }
}
