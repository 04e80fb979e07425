//! Parts of an application that its agents use: the models, and the defaults of each run.

use crate::{
    composition_root::custom_tool_registry::CustomToolRegistry,
    config::sections::{agent::AgentSettings, models::ModelSelectionError},
};
use std::{collections::BTreeMap, fmt, sync::Arc};
use toolstead_application::CompactionThreshold;
use toolstead_domain::{
    AgentCatalogue, AgentHook, AgentSurroundings, ModelProvider, NoAgents, PatternContext, TodoStore,
    ports::{self},
    tool_input_schema::nearest_name,
};

/// The language models of an application, by name.
#[derive(Clone, Default)]
pub struct AgentModels {
    /// Usable models.
    pub usable: BTreeMap<String, Arc<dyn ModelProvider>>,
    /// Unusable models, with the reason.
    pub unusable: BTreeMap<String, String>,
    /// Model to use if the caller names none.
    pub default: Option<String>,
    /// Model for small work; `None`: the default model.
    pub weak: Option<String>,
    /// Model for hard work; `None`: the default model.
    pub strong: Option<String>,
    /// Path of the file in which a model is configured.
    pub file: String,
}

/// Dependencies that all agents of an application share.
#[derive(Clone)]
pub struct SharedAgentDependencies {
    /// The models.
    pub models: AgentModels,
    /// Hooks that run at the events of each run, in this order.
    pub hooks: Vec<Arc<dyn AgentHook>>,
    /// Defaults of each run.
    pub defaults: AgentDefaults,
    /// Store of plans; `None`: compaction does not repeat plans.
    pub todos: Option<Arc<dyn TodoStore>>,
    /// Agents, skills and commands defined in files.
    pub agent_files: Arc<dyn AgentCatalogue>,
    /// Describes the surroundings of agents; `None`: agents receive no description.
    pub surroundings: Option<Arc<dyn AgentSurroundings>>,
}

impl Default for SharedAgentDependencies {
    fn default() -> Self {
        let (models, hooks, defaults, todos) = Default::default();
        Self { models, hooks, defaults, todos, agent_files: Arc::new(NoAgents), surroundings: None }
    }
}

/// Defaults of each run of an agent.
#[derive(Debug, Clone, Default)]
pub struct AgentDefaults {
    /// Configured settings.
    pub settings: AgentSettings,
    /// Context in which rules of an embedding application are parsed.
    pub rules: PatternContext,
    /// Tools of the embedding application; `None` if none can be added.
    pub program_tools: Option<Arc<CustomToolRegistry>>,
}

impl AgentModels {
    /// Returns the model with this name, or the default model if `name` is `None`.
    ///
    /// # Errors
    /// [`ModelSelectionError`] if no model is configured, no default is set, or the name is unknown or unusable.
    pub fn find(&self, name: Option<&str>) -> Result<Arc<dyn ModelProvider>, ModelSelectionError> {
        let names: Vec<&str> = self.names().collect();
        if names.is_empty() {
            return Err(ModelSelectionError::NoneConfigured { file: self.file.clone() });
        }
        let Some(name) = name.or(self.default.as_deref()) else {
            return Err(ModelSelectionError::NoneChosen { names: names.join(", ") });
        };
        if let Some(model) = self.usable.get(name) {
            return Ok(model.clone());
        }
        if let Some(reason) = self.unusable.get(name) {
            return Err(ModelSelectionError::Unusable { name: name.to_owned(), reason: reason.clone() });
        }
        let advice = match nearest_name(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        Err(ModelSelectionError::Unknown { name: name.to_owned(), advice })
    }

    /// Returns all names, those of unusable models last.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.usable.keys().chain(self.unusable.keys()).map(String::as_str)
    }
}

impl ports::models::Models for AgentModels {
    /// Resolves a name. A model named `weak` or `strong` takes precedence over the setting of that name. An unknown
    /// name may also be the name of a model at its provider.
    fn model(&self, name: Option<&str>) -> Result<Arc<dyn ModelProvider>, String> {
        let is_there = |name: &str| self.usable.contains_key(name) || self.unusable.contains_key(name);
        let meant = match name {
            Some("weak") if !is_there("weak") => self.weak.as_deref(),
            Some("strong") if !is_there("strong") => self.strong.as_deref(),
            name => name,
        };
        if let Some(name) = meant.filter(|name| !is_there(name))
            && let Some(model) = self.usable.values().find(|model| model.facts().model == name)
        {
            return Ok(model.clone());
        }
        self.find(meant).map_err(|error| error.to_string())
    }
}

impl AgentDefaults {
    /// Returns the share of the context window at which a conversation is compacted. With a setting of 0, that happens
    /// only after the model refuses the conversation as too long.
    pub fn compaction(&self) -> CompactionThreshold {
        CompactionThreshold { at: Some(self.settings.compact_at).filter(|at| *at > 0.0) }
    }

    /// Returns the instructions of a run: the given ones, or else the configured or built-in ones. The description of
    /// the surroundings is not included; it follows them later.
    pub fn system(&self, given: Option<String>) -> String {
        given.or_else(|| self.settings.prompt.clone()).unwrap_or_else(|| {
            "You are an agent that works with tools for the person who wrote the prompt. Look before you change \
             something, do what was asked and nothing beside it, and check what you did. A call may be refused: the \
             refusal says why; do not try to get around it. When you are done, say briefly what you found or did."
                .to_owned()
        })
    }
}

impl fmt::Debug for AgentModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentModels")
            .field("usable", &self.usable.keys())
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SharedAgentDependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedAgentDependencies").field("models", &self.models).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Models as _, testing::scripted_model::ScriptedModel};

    fn models(weak: Option<&str>, names: &[&str]) -> AgentModels {
        let model = |name: &&str| {
            ((*name).to_owned(), Arc::new(ScriptedModel::answering([]).named(name)) as Arc<dyn ModelProvider>)
        };
        AgentModels {
            usable: names.iter().map(model).collect(),
            default: Some("main".into()),
            weak: weak.map(str::to_owned),
            ..AgentModels::default()
        }
    }

    #[track_caller]
    fn check(models: &AgentModels, asked: Option<&str>, expected: Result<&str, &str>) {
        let found = models.model(asked);
        assert_eq!(found.as_ref().map(|model| model.name()).map_err(|reason| reason.as_str()), expected, "{asked:?}");
    }

    #[test]
    fn a_model_is_selected_by_its_name_or_its_strength() {
        let two = models(Some("small"), &["main", "small"]);
        check(&two, None, Ok("main"));
        check(&two, Some("small"), Ok("small"));
        check(&two, Some("weak"), Ok("small"));
        check(&two, Some("strong"), Ok("main"));
        check(&two, Some("scripted-1"), Ok("main"));
        check(&two, Some("mian"), Err("no model is called `mian`; did you mean `main`?"));
        check(&models(None, &["main"]), Some("weak"), Ok("main"));
        check(&models(Some("main"), &["main", "weak"]), Some("weak"), Ok("weak"));
    }
}
