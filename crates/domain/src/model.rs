//! Messages to a language model and its answers, in a form for all providers.
//!
//! A transcript of [`message::Message`]s loses nothing: content that only one provider understands is stored sealed,
//! and is sent back to that provider unchanged.

pub mod error;
pub mod message;
pub mod reply;
pub mod request;
pub mod usage;
