//! Contract of stores that are reopened: the data that they must preserve.
//!
//! Each suite opens an empty store by its first call of `reopen`, fills it, reopens it and checks it. `reopen` returns
//! the store as the next process opens it: the previous store has ended in some way. The most significant test is the
//! worst way, without closing anything.

use super::{
    change_journal_contract, conversation_store_contract, question_store_contract, samples, todo_store_contract,
};
use crate::{
    content_digest::ContentDigest,
    ports::{
        change_journal::ChangeJournal,
        conversation_store::{AppendError, ConversationStore},
        execution_log::{ExecutionFilter, ExecutionLog},
        output_store::OutputStore,
        question_store::QuestionStore,
        read_state::ReadState,
        stores::Stores,
        todo_store::TodoStore,
        tool_repository::{StoredToolCatalogue, ToolRepository},
    },
    principal::Principal,
    provider_identity::ProviderIdentity,
    tool_call::CallId,
    tool_execution::{ExecutionOutcome, OutcomeKind, ToolExecution},
};
use std::{io::Read, path::Path, sync::Arc};

/// Checks every store of a backend except `definitions`, one after the other.
///
/// # Panics
/// If data was lost; the message names it.
pub async fn reopened_stores_contract(mut reopen: impl AsyncFnMut() -> Stores) {
    reopened_tool_repository_contract(async || reopen().await.tool_repository).await;
    reopened_execution_log_contract(async || reopen().await.execution_log).await;
    reopened_output_store_contract(async || reopen().await.output_store).await;
    reopened_change_journal_contract(async || reopen().await.change_journal).await;
    reopened_read_state_contract(async || reopen().await.seen_files).await;
    reopened_conversations_contract(async || reopen().await.conversations).await;
    reopened_todos_contract(async || reopen().await.todos).await;
    reopened_questions_contract(async || reopen().await.questions).await;
}

/// Checks that catalogues and the names of disabled tools are durable.
///
/// # Panics
/// If data was lost; the message names it.
pub async fn reopened_tool_repository_contract(mut reopen: impl AsyncFnMut() -> Arc<dyn ToolRepository>) {
    let provider = ProviderIdentity::of_program("lasting");
    let saved = StoredToolCatalogue { tools: vec![samples::tool("lasts")], changes: Vec::new() };
    let repository = reopen().await;
    repository.save_catalogue(&provider, &saved, samples::START).await.unwrap();
    repository.set_enabled("lasts_not", false).await.unwrap();
    drop(repository);
    let repository = reopen().await;
    assert_eq!(repository.catalogue(&provider).await.unwrap(), saved, "a catalogue lasts");
    assert_eq!(repository.disabled().await.unwrap(), ["lasts_not"], "what is switched off stays off");
}

/// Checks that records are durable, and that calls of a process that has ended are marked as interrupted exactly once.
///
/// # Panics
/// If a record was lost or remains running; the message names it.
pub async fn reopened_execution_log_contract(mut reopen: impl AsyncFnMut() -> Arc<dyn ExecutionLog>) {
    let [done, running, ended] = [samples::execution(1), samples::running_execution(2), samples::execution(3)];
    let log = reopen().await;
    log.record(done.clone()).await.unwrap();
    log.record(running.clone()).await.unwrap();
    // A replaced record counts in its last state.
    log.record(samples::running_execution(3)).await.unwrap();
    log.record(ended.clone()).await.unwrap();
    drop(log);
    let interrupted = ToolExecution { outcome: ExecutionOutcome::Interrupted, ..running.clone() };
    for opening in 1..=2 {
        let log = reopen().await;
        let found = async |id: CallId| log.find(id).await.unwrap();
        assert_eq!(found(done.id).await.as_ref(), Some(&done), "a row lasts ({opening})");
        assert_eq!(found(ended.id).await.as_ref(), Some(&ended), "the final row lasts ({opening})");
        let row = found(running.id).await.expect("a call that ran is on record");
        assert_eq!(row.outcome, ExecutionOutcome::Interrupted, "no call runs in a process that has ended ({opening})");
        assert_eq!(ToolExecution { ended: interrupted.ended, ..row.clone() }, interrupted, "its row is what it was");
        let of_kind = async |outcome| {
            let filter = ExecutionFilter { outcome: Some(outcome), ..ExecutionFilter::default() };
            log.list(&filter).await.unwrap()
        };
        assert_eq!(
            of_kind(OutcomeKind::Interrupted).await,
            std::slice::from_ref(&row),
            "it is listed as interrupted ({opening})"
        );
        assert_eq!(of_kind(OutcomeKind::Running).await, [], "and nothing as running ({opening})");
        // The process may have been slow to end.
        log.record(samples::execution(2)).await.unwrap();
        assert_eq!(found(running.id).await, Some(row), "an interrupted row is final ({opening})");
        let listed = log.list(&ExecutionFilter::default()).await.unwrap();
        let order: Vec<CallId> = listed.iter().map(|row| row.id).collect();
        assert_eq!(order, [ended.id, running.id, done.id], "the order of recording lasts ({opening})");
    }
    let log = reopen().await;
    let next = samples::running_execution(4);
    log.record(next.clone()).await.unwrap();
    assert_eq!(log.find(next.id).await.unwrap(), Some(next), "a call of this process runs");
}

/// Checks that contents are durable under their handles, and that no handle is used twice.
///
/// # Panics
/// If data was lost; the message names it.
pub async fn reopened_output_store_contract(mut reopen: impl AsyncFnMut() -> Arc<dyn OutputStore>) {
    let owner = Principal::local();
    let large = vec![7; 300_000];
    let contents: [&[u8]; 3] = [b"", b"small", &large];
    let store = reopen().await;
    let mut kept = Vec::new();
    for content in contents {
        kept.push(store.store(&owner, samples::call_id(1), "text/plain", content).await.unwrap());
    }
    drop(store);
    let store = reopen().await;
    for (stored, content) in kept.iter().zip(contents) {
        assert_eq!(store.find(&owner, stored.handle).await.unwrap().as_ref(), Some(stored), "a handle lasts");
        let mut read = Vec::new();
        let mut opened = store.open(&owner, stored.handle).await.unwrap().expect("a content lasts");
        opened.read_to_end(&mut read).unwrap();
        assert!(read == content, "a content of {} bytes lasts as it was", content.len());
    }
    let new = store.store(&owner, samples::call_id(2), "text/plain", b"new").await.unwrap();
    assert!(kept.iter().all(|stored| stored.handle != new.handle), "a handle never names another content");
    let again = store.store(&owner, samples::call_id(2), "text/plain", b"small").await.unwrap();
    assert_eq!(again.handle, kept[1].handle, "the same content keeps its handle");
}

/// Checks that entries are durable with their contents.
///
/// # Panics
/// If data was lost; the message names it.
pub async fn reopened_change_journal_contract(mut reopen: impl AsyncFnMut() -> Arc<dyn ChangeJournal>) {
    let (owner, entry) = (Principal::local(), change_journal_contract::entry(1));
    let journal = reopen().await;
    journal.record(entry.clone(), change_journal_contract::contents()).await.unwrap();
    drop(journal);
    let journal = reopen().await;
    assert_eq!(journal.find(&owner, entry.call).await.unwrap().as_ref(), Some(&entry), "an entry lasts");
    let listed = journal.of_session(&owner, &entry.session, 10).await.unwrap();
    assert_eq!(listed, [entry], "a session is listed");
    for kept in change_journal_contract::contents() {
        assert_eq!(journal.content(kept.digest).await.unwrap(), Some(kept.bytes), "a content lasts");
    }
}

/// Checks that known file versions are durable: sessions may continue in the next process.
///
/// # Panics
/// If data was lost; the message names it.
pub async fn reopened_read_state_contract(mut reopen: impl AsyncFnMut() -> Arc<dyn ReadState>) {
    let (owner, digest) = (Principal::local(), ContentDigest([3; 32]));
    let seen = reopen().await;
    for name in ["/w/kept", "/w/forgotten"] {
        seen.record_version(&owner, "s", Path::new(name), digest).await.unwrap();
    }
    seen.forget(&owner, "s", Path::new("/w/forgotten")).await.unwrap();
    drop(seen);
    let seen = reopen().await;
    assert_eq!(seen.known(&owner, "s", Path::new("/w/kept")).await.unwrap(), Some(digest), "what was read lasts");
    assert_eq!(seen.known(&owner, "s", Path::new("/w/forgotten")).await.unwrap(), None, "what is forgotten is so");
}

/// Checks that conversations are durable with their events, and continue after the last one.
///
/// # Panics
/// If data was lost; the message names it.
pub async fn reopened_conversations_contract(mut reopen: impl AsyncFnMut() -> Arc<dyn ConversationStore>) {
    let (owner, begun) = (Principal::local(), conversation_store_contract::conversation(900));
    let (id, at) = (begun.id, samples::START);
    let store = reopen().await;
    store.begin(&begun).await.unwrap();
    let kinds = conversation_store_contract::one_of_each();
    let events = store.append(&owner, id, 0, at, kinds.clone()).await.unwrap();
    drop(store);
    let store = reopen().await;
    let found = store.find(&owner, id).await.unwrap();
    assert_eq!(found.map(|found| (found.events, found.title)), Some((events, begun.title)), "a conversation lasts");
    let lasting = store.events(&owner, id).await.unwrap();
    assert!(lasting.into_iter().map(|event| event.kind).eq(kinds), "its events last as they were");
    let late = store.append(&owner, id, 0, at, conversation_store_contract::one_of_each()).await;
    assert!(matches!(late, Err(AppendError::GoesOnElsewhere { .. })), "it goes on behind what lasts: {late:?}");
    let more = store.append(&owner, id, events, at, conversation_store_contract::one_of_each()).await.unwrap();
    assert_eq!(more, events * 2, "numbers go on without a gap");
}

/// Checks that plans are durable: an agent continues with its own.
///
/// # Panics
/// If data was lost; the message names it.
pub async fn reopened_todos_contract(mut reopen: impl AsyncFnMut() -> Arc<dyn TodoStore>) {
    let owner = Principal::local();
    reopen().await.replace(&owner, "lasting", todo_store_contract::plan()).await.unwrap();
    let lasting = reopen().await.todos(&owner, "lasting").await.unwrap();
    assert_eq!(lasting, todo_store_contract::plan(), "a plan lasts");
}

/// Checks that questions and their answers are durable: the answer may come in another process.
///
/// # Panics
/// If data was lost; the message names it.
pub async fn reopened_questions_contract(mut reopen: impl AsyncFnMut() -> Arc<dyn QuestionStore>) {
    let owner = Principal::local();
    let questions = question_store_contract::questions;
    let id = reopen().await.keep(&owner, "lasting", samples::START, questions()).await.unwrap();
    let answers: Vec<String> = questions().iter().map(|one| one.header.clone()).collect();
    reopen().await.answer(&owner, id, answers.clone()).await.unwrap();
    let found = reopen().await.find(&owner, id).await.unwrap();
    let found = found.map(|found| (found.questions, found.answers));
    assert_eq!(found, Some((questions(), Some(answers))), "questions last with their answers");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        block_on::block_on, in_memory_change_journal::InMemoryChangeJournal,
        in_memory_conversations::InMemoryConversations, in_memory_definition_store::InMemoryDefinitionStore,
        in_memory_execution_log::InMemoryExecutionLog, in_memory_output_store::InMemoryOutputStore,
        in_memory_questions::InMemoryQuestions, in_memory_read_state::InMemoryReadState,
        in_memory_todos::InMemoryTodos, in_memory_tool_repository::InMemoryToolRepository,
    };

    fn in_memory(execution_log: Arc<InMemoryExecutionLog>) -> Stores {
        Stores {
            tool_repository: Arc::new(InMemoryToolRepository::new()),
            definitions: Arc::new(InMemoryDefinitionStore::default()),
            execution_log,
            output_store: Arc::new(InMemoryOutputStore::new()),
            change_journal: Arc::new(InMemoryChangeJournal::new()),
            seen_files: Arc::new(InMemoryReadState::new()),
            conversations: Arc::new(InMemoryConversations::new()),
            todos: Arc::new(InMemoryTodos::new()),
            questions: Arc::new(InMemoryQuestions::new()),
        }
    }

    #[test]
    fn in_memory_stores_fulfil_the_reopened_contract_after_a_simulated_process_end() {
        let log = Arc::new(InMemoryExecutionLog::new());
        let stores = in_memory(log.clone());
        block_on(reopened_stores_contract(async || {
            log.interrupt_what_runs();
            stores.clone()
        }));
    }

    #[test]
    #[should_panic(expected = "no call runs in a process that has ended")]
    fn a_log_with_records_that_still_run_after_reopening_breaks_the_contract() {
        let log: Arc<dyn ExecutionLog> = Arc::new(InMemoryExecutionLog::new());
        block_on(reopened_execution_log_contract(async || log.clone()));
    }

    #[test]
    fn stores_that_lose_data_break_the_reopened_contract() {
        let opened = || in_memory(Arc::new(InMemoryExecutionLog::new()));
        let fails = |suite: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(suite)).is_err();
        assert!(fails(&|| block_on(reopened_tool_repository_contract(async || opened().tool_repository))));
        assert!(fails(&|| block_on(reopened_execution_log_contract(async || opened().execution_log))));
        assert!(fails(&|| block_on(reopened_output_store_contract(async || opened().output_store))));
        assert!(fails(&|| block_on(reopened_change_journal_contract(async || opened().change_journal))));
        assert!(fails(&|| block_on(reopened_read_state_contract(async || opened().seen_files))));
        assert!(fails(&|| block_on(reopened_conversations_contract(async || opened().conversations))));
        assert!(fails(&|| block_on(reopened_todos_contract(async || opened().todos))));
        assert!(fails(&|| block_on(reopened_questions_contract(async || opened().questions))));
    }
}
