//! The language models that tools may ask.

use crate::ports::model_provider::ModelProvider;
use std::sync::Arc;

/// The models of an application.
pub trait Models: Send + Sync {
    /// The model of this name, of this strength (`weak`, `strong`), or the usual one.
    ///
    /// # Errors
    /// The reason, with the names that there are.
    fn model(&self, name: Option<&str>) -> Result<Arc<dyn ModelProvider>, String>;
}

/// No models.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

impl Models for NoModels {
    fn model(&self, _: Option<&str>) -> Result<Arc<dyn ModelProvider>, String> {
        Err("no model is configured".into())
    }
}
