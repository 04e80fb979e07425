//! Messages to a language model and its answers, the same for every provider.
//!
//! A transcript of [`message::Message`]s loses nothing: what only one provider understands travels along sealed, and goes
//! back to it as it came.

pub mod error;
pub mod message;
pub mod reply;
pub mod request;
pub mod usage;
