//! Ports: the traits through which the inner layers use the outer layers. Each file has one trait, and the
//! documentation of the trait is its contract.
//!
//! A signature that names a lifetime names all of them, because `mockall::mock!` does not accept `'_`: each signature
//! can be copied into a mock unchanged. Implementers can omit the names: `request: ApprovalRequest<'_>` is the same
//! signature.

pub mod agent_catalogue;
pub mod agent_hook;
pub mod agent_surroundings;
pub mod approval_rule;
pub mod approver;
pub mod caller;
pub mod calls;
pub mod change_journal;
pub mod clock;
pub mod context_provider;
pub mod conversation_store;
pub mod credentials;
pub mod definition_store;
pub mod embeddings;
pub mod event_sink;
pub mod execution_log;
pub mod model_provider;
pub mod models;
pub mod output_store;
pub mod question_store;
pub mod read_state;
pub mod rule_store;
pub mod schema_validator;
pub mod stores;
pub mod tasks;
pub mod todo_store;
pub mod tool_hook;
pub mod tool_provider;
pub mod tool_repository;
pub mod web_search;
