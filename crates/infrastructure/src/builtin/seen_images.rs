//! The words of models on images, so that the same question about the same image is asked once.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};
use toolstead_domain::{content_digest::ContentDigest, principal::Principal};

/// As many answers are remembered. The oldest is forgotten first.
const ANSWERS: usize = 200;

/// A question about an image to a model, on somebody's behalf.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ImageQuestion {
    pub(super) principal: Principal,
    /// Of the image as it was, so that one that is changed is asked about anew.
    pub(super) image: ContentDigest,
    pub(super) question: String,
    pub(super) model: String,
}

/// The answers of this process.
#[derive(Debug, Default)]
pub(super) struct SeenImages(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    of: HashMap<ImageQuestion, (u64, String)>,
    /// Answers of all time.
    count: u64,
}

impl SeenImages {
    pub(super) fn answer(&self, question: &ImageQuestion) -> Option<String> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.of.get(question).map(|(_, text)| text.clone())
    }

    pub(super) fn remember(&self, question: ImageQuestion, text: String) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.count += 1;
        let number = answers.count;
        answers.of.insert(question, (number, text));
        if answers.of.len() > ANSWERS
            && let Some(oldest) = answers.of.iter().min_by_key(|(_, (number, _))| *number).map(|(name, _)| name.clone())
        {
            answers.of.remove(&oldest);
        }
    }
}
