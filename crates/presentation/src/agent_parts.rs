//! What the agents of an application are made of: its models, and what holds for each run unless somebody says otherwise.

use crate::{
    composition_root::program_tools::ProgramTools,
    config::{agent::AgentSettings, models::NoSuchModel},
};
use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};
use toolstead_application::run_agent::Compaction;
use toolstead_domain::{
    permission::path_pattern::PatternBase,
    ports::{
        self,
        agent_catalogue::{AgentCatalogue, NoAgents},
        agent_hook::AgentHook,
        model_provider::ModelProvider,
        todo_store::TodoStore,
    },
    tool_input_schema::nearest_name,
};

/// The language models of an application, by name.
#[derive(Clone, Default)]
pub struct Models {
    /// Those that can be asked.
    pub usable: BTreeMap<String, Arc<dyn ModelProvider>>,
    /// Those that cannot, with the reason.
    pub unusable: BTreeMap<String, String>,
    /// The one that is asked where nobody names one.
    pub default: Option<String>,
    /// The one for small work; `None`: the default one.
    pub weak: Option<String>,
    /// The one for hard work; `None`: the default one.
    pub strong: Option<String>,
    /// Where a person configures one.
    pub file: String,
}

/// What an application needs for its agents.
#[derive(Clone)]
pub struct AgentParts {
    /// The models.
    pub models: Models,
    /// Are told of each run, in this order.
    pub hooks: Vec<Arc<dyn AgentHook>>,
    /// What holds for each run.
    pub defaults: AgentDefaults,
    /// Keeps plans; `None`: there are none to tell again.
    pub todos: Option<Arc<dyn TodoStore>>,
    /// The agents, skills and commands that people wrote down.
    pub catalogue: Arc<dyn AgentCatalogue>,
}

impl Default for AgentParts {
    fn default() -> Self {
        let (models, hooks, defaults, todos) = Default::default();
        Self { models, hooks, defaults, todos, catalogue: Arc::new(NoAgents) }
    }
}

/// What holds for each run of an agent, unless somebody says otherwise.
#[derive(Debug, Clone, Default)]
pub struct AgentDefaults {
    /// As configured.
    pub settings: AgentSettings,
    /// What the rules of a program are read with.
    pub rules: PatternBase,
    /// The tools of the program; `None` where none can be added.
    pub program_tools: Option<Arc<ProgramTools>>,
}

impl Models {
    /// The model of that name, else the default one.
    ///
    /// # Errors
    /// [`NoSuchModel`].
    pub fn find(&self, name: Option<&str>) -> Result<Arc<dyn ModelProvider>, NoSuchModel> {
        let names: Vec<&str> = self.names().collect();
        if names.is_empty() {
            return Err(NoSuchModel::NoneConfigured { file: self.file.clone() });
        }
        let Some(name) = name.or(self.default.as_deref()) else {
            return Err(NoSuchModel::NoneChosen { names: names.join(", ") });
        };
        if let Some(model) = self.usable.get(name) {
            return Ok(model.clone());
        }
        if let Some(reason) = self.unusable.get(name) {
            return Err(NoSuchModel::Unusable { name: name.to_owned(), reason: reason.clone() });
        }
        let advice = match nearest_name(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        Err(NoSuchModel::Unknown { name: name.to_owned(), advice })
    }

    /// All names, those of models that cannot be asked behind the others.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.usable.keys().chain(self.unusable.keys()).map(String::as_str)
    }
}

impl ports::models::Models for Models {
    /// A model that bears the name `weak` or `strong` itself is meant by it. A name that none bears may be that of a model at
    /// its provider.
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
    /// When what came before is made shorter.
    pub fn compaction(&self) -> Compaction {
        Compaction { at: Some(self.settings.compact_at).filter(|at| *at > 0.0) }
    }

    /// The instructions of a run in this folder: those that are given, else the configured ones, else our own.
    pub fn system(&self, given: Option<String>, workspace: &Path) -> String {
        given.or_else(|| self.settings.prompt.clone()).unwrap_or_else(|| {
            format!(
                "You are an agent that works with tools for the person who wrote the prompt. Your workspace is the folder \
                 {}: relative paths begin there. Look before you change something, do what was asked and nothing beside \
                 it, and check what you did. A call may be refused: the refusal says why; do not try to get around it. \
                 When you are done, say briefly what you found or did.",
                workspace.display()
            )
        })
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("usable", &self.usable.keys())
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AgentParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentParts").field("models", &self.models).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{ports::models::Models as _, testing::scripted_model::ScriptedModel};

    fn models(weak: Option<&str>, names: &[&str]) -> Models {
        let model = |name: &&str| {
            ((*name).to_owned(), Arc::new(ScriptedModel::answering([]).named(name)) as Arc<dyn ModelProvider>)
        };
        Models {
            usable: names.iter().map(model).collect(),
            default: Some("main".into()),
            weak: weak.map(str::to_owned),
            ..Models::default()
        }
    }

    #[track_caller]
    fn check(models: &Models, asked: Option<&str>, expected: Result<&str, &str>) {
        let found = models.model(asked);
        assert_eq!(found.as_ref().map(|model| model.name()).map_err(|reason| reason.as_str()), expected, "{asked:?}");
    }

    #[test]
    fn a_model_is_asked_for_by_its_name_or_its_strength() {
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
