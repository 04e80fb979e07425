//! The contract of [`Stores`]: that of every port in it.

use super::{
    change_journal_contract::change_journal_contract, conversation_store_contract::conversation_store_contract,
    definition_store_contract::definition_store_contract, execution_log_contract::execution_log_contract,
    output_store_contract::output_store_contract, question_store_contract::question_store_contract,
    read_state_contract::read_state_contract, todo_store_contract::todo_store_contract,
    tool_repository_contract::tool_repository_contract,
};
use crate::ports::stores::Stores;

/// Checks every store of a backend. They must be empty.
///
/// # Panics
/// If a guarantee is violated.
pub async fn stores_contract(stores: &Stores) {
    tool_repository_contract(&*stores.tool_repository).await;
    definition_store_contract(&*stores.definitions).await;
    execution_log_contract(&*stores.execution_log).await;
    // Before the outputs: both may share stored contents, and those of an output would then be known here.
    change_journal_contract(&*stores.change_journal).await;
    output_store_contract(&*stores.output_store).await;
    read_state_contract(&*stores.seen_files).await;
    conversation_store_contract(&*stores.conversations).await;
    todo_store_contract(&*stores.todos).await;
    question_store_contract(&*stores.questions).await;
}
