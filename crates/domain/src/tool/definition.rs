//! The definition of a tool as a JSON object that its clones share.

use serde_json::{Map, Value};
use std::{
    fmt,
    sync::{Arc, LazyLock},
};

type DefinitionFn = Box<dyn FnOnce() -> Map<String, Value> + Send>;

/// Definition that exists, or is built when it is first read.
#[derive(Clone)]
pub(super) enum LazyDefinition {
    Built(Arc<Map<String, Value>>),
    Deferred(Arc<LazyLock<Map<String, Value>, DefinitionFn>>),
}

impl LazyDefinition {
    pub(super) fn deferred(build: impl FnOnce() -> Map<String, Value> + Send + 'static) -> Self {
        Self::Deferred(Arc::new(LazyLock::new(Box::new(build))))
    }

    pub(super) fn get(&self) -> &Map<String, Value> {
        match self {
            Self::Built(definition) => definition,
            Self::Deferred(definition) => definition,
        }
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        match self {
            Self::Built(definition) => Arc::unwrap_or_clone(definition),
            Self::Deferred(definition) => Map::clone(&definition),
        }
    }

    pub(super) fn is_built(&self) -> bool {
        match self {
            Self::Built(_) => true,
            Self::Deferred(definition) => LazyLock::get(definition).is_some(),
        }
    }
}

impl From<Map<String, Value>> for LazyDefinition {
    fn from(definition: Map<String, Value>) -> Self {
        Self::Built(Arc::new(definition))
    }
}

impl PartialEq for LazyDefinition {
    /// Returns `true` for clones without building them; builds and compares any other definitions.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Built(one), Self::Built(other)) if Arc::ptr_eq(one, other) => true,
            (Self::Deferred(one), Self::Deferred(other)) if Arc::ptr_eq(one, other) => true,
            _ => self.get() == other.get(),
        }
    }
}

impl fmt::Debug for LazyDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
