//! Language models of other providers, behind the port `ModelProvider` (`docs/models.md`).
//!
//! A [`Model`] is made of [`ModelSettings`] and sends requests over [`http`](crate::http). Each protocol is a pure
//! conversion in a file of its own, of a request to the bytes of a body and of a stream's events to pieces of an answer.

mod answer;
mod failure;
mod images;
mod key;
#[expect(clippy::disallowed_methods, reason = "a person's own file, which no tool reaches by this way")]
mod key_file;
mod model;
mod names;
mod offer;
mod protocol;
mod redaction;
mod schema;
mod settings;
mod words;

#[cfg(test)]
mod tests;

pub use self::{
    model::{InvalidModel, Model},
    protocol::definitions,
    schema::schema_copy,
    settings::{KeySource, ModelSettings, ProviderKind},
};
