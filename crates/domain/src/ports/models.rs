//! Language models that tools may use.

use crate::ports::model_provider::ModelProvider;
use std::sync::Arc;

/// Models of an application.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_domain::{ModelProvider, Models};
///
/// /// One model under every name.
/// struct OneModel(Arc<dyn ModelProvider>);
///
/// impl Models for OneModel {
///     fn model(&self, _: Option<&str>) -> Result<Arc<dyn ModelProvider>, String> {
///         Ok(self.0.clone())
///     }
/// }
/// ```
pub trait Models: Send + Sync {
    /// Returns the model with this name or of this strength (`weak`, `strong`); the default model for `None`.
    ///
    /// # Errors
    /// The reason, with the available names.
    fn model(&self, name: Option<&str>) -> Result<Arc<dyn ModelProvider>, String>;
}

/// Application without models.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

impl Models for NoModels {
    fn model(&self, _: Option<&str>) -> Result<Arc<dyn ModelProvider>, String> {
        Err("no model is configured".into())
    }
}
