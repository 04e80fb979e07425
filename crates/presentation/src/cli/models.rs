//! `toolstead models`.

use super::{
    CommandResult,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::{StdoutWriter, table, visible},
};
use crate::{
    agent_parts::AgentModels as Answering,
    composition_root::ServerSelection,
    config::{
        Config,
        address_and_key_origins::{AddressAndKeyOrigins, places},
    },
};
use clap::Args;
use futures::future::join_all;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tokio::time::timeout;
use toolstead_domain::{Message, ModelError, ModelEvent, ModelRequest};
use toolstead_infrastructure::models::ModelSettings;

/// Maximum time for a model to answer a check.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum number of tokens of a model's answer to a check: the smallest value that every provider accepts.
const FEW_TOKENS: u64 = 16;

/// Shows the language models.
#[derive(Debug, Args)]
pub struct ModelsCommand {
    /// Only this one
    name: Option<String>,
    /// Sends each model a request of a few tokens; exits with 4 if one does not respond
    #[arg(long)]
    check: bool,
}

/// Result of checking a model: the time until its answer, or the error.
type CheckResult = Result<Duration, ModelError>;

impl ModelsCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let (config, tried) = match self.check {
            false => (global.load_and_print_notes()?, None),
            true => {
                let composition = global.compose_and_print_notes(ServerSelection::None).await?;
                let tried = self.check_all(&composition.app.models, &composition.config).await;
                let config = (*composition.config).clone();
                composition.close().await;
                (config, Some(tried))
            }
        };
        let is_meant = |name: &str| self.name.as_deref().is_none_or(|meant| meant == name);
        let usable: Vec<&ModelSettings> = config.models.iter().filter(|model| is_meant(&model.name)).collect();
        let unusable: Vec<(&str, &str)> = config
            .models
            .unusable
            .iter()
            .filter(|(name, _)| is_meant(name))
            .map(|(name, reason)| (name.as_str(), reason.as_str()))
            .collect();
        if let (Some(name), true) = (&self.name, usable.is_empty() && unusable.is_empty()) {
            let error = config.model(Some(name)).err();
            return Err(CommandError::NotFound(error.map_or(String::new(), |error| error.to_string())));
        }
        let fails = tried.as_ref().is_some_and(|tried| !unusable.is_empty() || tried.values().any(Result::is_err));
        if global.json {
            let all = usable.iter().map(|model| to_json(model, &config, tried.as_ref()));
            let others = unusable.iter().map(|(name, reason)| json!({"name": name, "reason": reason}));
            let whole = json!({"models": all.collect::<Vec<_>>(), "unusable": others.collect::<Vec<_>>()});
            output.json(&whole)?;
        } else {
            show(&usable, &unusable, &config, tried.as_ref(), output)?;
        }
        Ok(if fails { Exit::Absent } else { Exit::Done })
    }

    /// Checks the selected models concurrently.
    async fn check_all(&self, models: &Answering, config: &Config) -> BTreeMap<String, CheckResult> {
        let meant = config.models.iter().map(|model| &model.name);
        let meant = meant.filter(|name| self.name.as_ref().is_none_or(|only| only == *name));
        let all = meant.map(|name| async move {
            let tried = match models.find(Some(name)) {
                Err(error) => Err(ModelError::Unreachable(error.to_string())),
                Ok(model) => {
                    let mut request = ModelRequest::of(vec![Message::user("Say ok.")]);
                    request.max_output_tokens = Some(FEW_TOKENS);
                    let began = Instant::now();
                    let ended = timeout(PATIENCE, async {
                        let mut answer = model.send(request).await?;
                        while let Some(event) = answer.next().await {
                            if let ModelEvent::Finished { .. } = event? {
                                return Ok(());
                            }
                        }
                        Err(ModelError::Protocol("the answer has no end".into()))
                    });
                    let seconds = PATIENCE.as_secs();
                    let late = |_| Err(ModelError::Unreachable(format!("it did not answer within {seconds} seconds")));
                    ended.await.unwrap_or_else(late).map(|()| began.elapsed())
                }
            };
            (name.clone(), tried)
        });
        join_all(all).await.into_iter().collect()
    }
}

fn show(
    usable: &[&ModelSettings],
    unusable: &[(&str, &str)],
    config: &Config,
    tried: Option<&BTreeMap<String, CheckResult>>,
    output: &mut StdoutWriter,
) -> Result<(), CommandError> {
    if usable.is_empty() && unusable.is_empty() {
        if let Err(error) = config.model(None) {
            output.line(&visible(&error.to_string()))?;
        }
        return Ok(());
    }
    let row = |model: &&ModelSettings| {
        let AddressAndKeyOrigins { key, .. } = places(config, model);
        let default = if config.models.default.as_deref() == Some(&model.name) { "*" } else { "" };
        let mut cells = vec![
            format!("{}{default}", model.name),
            model.kind.as_str().to_owned(),
            model.model.clone(),
            model.base_url.clone(),
            key,
            model.context_tokens.to_string(),
        ];
        cells.extend(tried.map(|tried| match tried.get(&model.name) {
            Some(Ok(took)) => format!("answers, after {} ms", took.as_millis()),
            Some(Err(_)) | None => "does not answer".to_owned(),
        }));
        cells.iter().map(|cell| visible(cell)).collect::<Vec<_>>()
    };
    let mut head = vec!["MODEL", "PROVIDER", "NAME THERE", "ADDRESS", "KEY", "WINDOW"];
    head.extend(tried.map(|_| "CHECK"));
    if !usable.is_empty() {
        output.line(&table(&head, usable.iter().map(row)))?;
    }
    for model in usable {
        output.line(&visible(&format!("{}: its address comes from {}", model.name, places(config, model).address)))?;
    }
    for (name, reason) in unusable {
        output.line(&visible(&format!("{name}: cannot be asked: {reason}")))?;
    }
    for (name, error) in tried.into_iter().flatten().filter_map(|(name, tried)| Some((name, tried.as_ref().err()?))) {
        output.line(&visible(&format!("{name}: does not answer: {error}")))?;
    }
    Ok(())
}

fn to_json(model: &ModelSettings, config: &Config, tried: Option<&BTreeMap<String, CheckResult>>) -> Value {
    let AddressAndKeyOrigins { address, key, key_origin } = places(config, model);
    let prices = model.prices.map(|prices| {
        json!({
            "input": prices.input, "output": prices.output,
            "cache_read": prices.cache_read, "cache_write": prices.cache_write,
        })
    });
    let mut object = json!({
        "name": model.name, "provider": model.kind.as_str(), "model": model.model,
        "base_url": model.base_url, "base_url_origin": address.to_string(),
        "key": key, "key_origin": key_origin.to_string(),
        "context_tokens": model.context_tokens, "max_output_tokens": model.max_output_tokens,
        "images": model.takes_images, "prices": prices,
        "default": config.models.default.as_deref() == Some(&model.name),
    });
    if let Some(tried) = tried.and_then(|tried| tried.get(&model.name)) {
        object["check"] = match tried {
            Ok(took) => json!({"answers": true, "milliseconds": u64::try_from(took.as_millis()).unwrap_or(u64::MAX)}),
            Err(error) => {
                json!({"answers": false, "error": {"kind": error.kind().as_str(), "message": error.to_string()}})
            }
        };
    }
    object
}
