//! Contract of every store of deferred questions.

use super::samples;
use crate::{
    ports::question_store::{QuestionError, QuestionStore, WAITING_OF_A_SESSION},
    principal::Principal,
    question::{Choice, DeferredQuestions, Question, QuestionGroupId},
};

/// Returns two questions that use all members.
pub fn questions() -> Vec<Question> {
    let choice = |label: &str, preview: Option<&str>| Choice {
        label: label.into(),
        description: format!("means \u{e4} {label}"),
        preview: preview.map(str::to_owned),
    };
    let options = vec![choice("a", None), choice("b", Some("line\nline"))];
    let one = |question: &str, multi_select| Question {
        question: question.into(),
        header: "head".into(),
        options: options.clone(),
        multi_select,
    };
    vec![one("which?", false), one("which ones?", true)]
}

/// Checks each guarantee of [`QuestionStore`], except deletion, on an empty store.
///
/// # Panics
/// If a guarantee is violated; the message names it.
pub async fn question_store_contract(store: &dyn QuestionStore) {
    let (me, other) = (Principal::local(), Principal::token("t"));
    let answers = || vec!["a".to_owned(), "a, \u{f6}wn".to_owned()];
    assert_eq!(store.waiting(&me).await.unwrap(), [], "nothing waits at first");
    assert_eq!(store.find(&me, QuestionGroupId(1)).await.unwrap(), None);

    let id = store.keep(&me, "s", samples::START, questions()).await.unwrap();
    let kept =
        DeferredQuestions { id, session: "s".into(), asked: samples::START, questions: questions(), answers: None };
    assert_eq!(store.find(&me, id).await.unwrap().as_ref(), Some(&kept), "questions are kept as they were");
    let next = store.keep(&me, "t", samples::START, questions()).await.unwrap();
    assert_ne!(next, id, "each has a number of its own");
    let waiting: Vec<QuestionGroupId> = store.waiting(&me).await.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(waiting, [id, next], "the oldest comes first");

    assert_eq!(store.waiting(&other).await.unwrap(), [], "questions of another owner are not listed");
    assert_eq!(store.find(&other, next).await.unwrap(), None, "whoever knows the number");
    let foreign = store.answer(&other, next, answers()).await;
    assert!(matches!(foreign, Err(QuestionError::NotFound(_))), "nor are they anybody else's to answer: {foreign:?}");
    let unequal = store.answer(&me, id, vec!["a".into()]).await;
    let is_told = matches!(unequal, Err(QuestionError::Mismatch { questions: 2, answers: 1 }));
    assert!(is_told, "each question has an answer: {unequal:?}");
    assert_eq!(store.find(&me, id).await.unwrap(), Some(kept.clone()), "what was refused has changed nothing");

    store.answer(&me, id, answers()).await.unwrap();
    let answered = DeferredQuestions { answers: Some(answers()), ..kept };
    assert_eq!(store.find(&me, id).await.unwrap(), Some(answered), "answers are kept");
    let again = store.answer(&me, id, answers()).await;
    assert!(matches!(again, Err(QuestionError::Answered(_))), "questions are answered once: {again:?}");
    let waiting: Vec<QuestionGroupId> = store.waiting(&me).await.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(waiting, [next], "what is answered waits no more");

    for _ in 0..WAITING_OF_A_SESSION {
        store.keep(&me, "many", samples::START, questions()).await.unwrap();
    }
    let beyond = store.keep(&me, "many", samples::START, questions()).await;
    assert!(matches!(beyond, Err(QuestionError::TooMany(WAITING_OF_A_SESSION))), "they are bounded: {beyond:?}");
    store.keep(&other, "many", samples::START, questions()).await.unwrap();
}
