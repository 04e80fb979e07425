//! Configured models, and those added by an embedding application.

use super::{StartupError, upstream::http_client};
use crate::{
    agent_parts::AgentModels,
    config::{Config, trust::programs::out_of_reach_of_tools},
};
use std::sync::Arc;
use toolstead_application::ToolSearch;
use toolstead_domain::ModelProvider;
use toolstead_infrastructure::{
    models::{EmbeddingsModel, InvalidModel, KeySource, Model},
    sandbox::{launcher::Launcher, user_programs::UserProgramRunner},
};

/// Returns all models. An added model takes precedence over a configured one of the same name.
pub(super) fn models(config: &Config, added: Vec<Arc<dyn ModelProvider>>) -> Result<AgentModels, StartupError> {
    let folder = config.folders.config.as_ref().map(|folder| folder.join("config.toml"));
    let mut models = AgentModels {
        unusable: config.models.unusable.clone(),
        default: config.models.default.clone(),
        weak: config.agent.weak_model.clone(),
        strong: config.agent.strong_model.clone(),
        file: folder.map_or("a configuration file".into(), |file| file.display().to_string()),
        ..AgentModels::default()
    };
    let client = http_client();
    let runs_commands = config.models.iter().any(|model| matches!(model.key, KeySource::Command(_)));
    let commands = match runs_commands {
        true => Some(Arc::new(UserProgramRunner {
            launcher: Launcher::start().map_err(StartupError::Launcher)?,
            environment: out_of_reach_of_tools(&config.mcp_servers, &config.roots, &config.environment),
            folder: config.folders.home.clone().unwrap_or_else(|| config.folders.start.clone()),
        })),
        false => None,
    };
    for settings in config.models.iter() {
        let name = settings.name.clone();
        match Model::new(settings.clone(), client.clone()) {
            Ok(model) => {
                let model = match &commands {
                    Some(commands) => model.with_key_commands(commands.clone()),
                    None => model,
                };
                models.usable.insert(name, Arc::new(model));
            }
            Err(error) => _ = models.unusable.insert(name, error.to_string()),
        }
    }
    if models.default.is_none() {
        models.default = added.first().map(|model| model.name().to_owned());
    }
    for model in added {
        models.unusable.remove(model.name());
        models.usable.insert(model.name().to_owned(), model);
    }
    Ok(models)
}

/// Returns the search of tools: by meaning if embeddings are configured, else by words.
pub(super) fn tool_search(config: &Config) -> Result<ToolSearch, InvalidModel> {
    Ok(match &config.tools.embeddings {
        Some(settings) => ToolSearch::with_embeddings(Arc::new(EmbeddingsModel::new(settings.clone(), http_client())?)),
        None => ToolSearch::default(),
    })
}
