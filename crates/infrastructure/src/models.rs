//! Language models of external providers, as adapters of the port `ModelProvider` (`docs/guide/models.md`).
//!
//! A [`Model`] is created from [`ModelSettings`] and sends requests over [`http`](crate::http). Each protocol is a
//! conversion without I/O in a file of its own, from a request to a body and from stream events to the events of an
//! answer.

mod answer;
mod embeddings;
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
    embeddings::{EmbeddingsModel, EmbeddingsSettings},
    model::{InvalidModel, Model},
    protocol::definitions,
    schema::schema_copy,
    settings::{KeySource, ModelSettings, ProviderKind},
};
