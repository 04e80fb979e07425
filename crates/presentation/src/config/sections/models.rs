//! `[models.NAME]`: the language models and the sources of their keys.
//!
//! A key is sent only to the address that its own file names. A layer that sets a provider or an address replaces the
//! key and the headers of lower layers, and a project file never supplies a key for an address of another file.

use crate::config::{
    layers::{ContributionsByKey, EffectiveSetting, ResolvedSettings, environment::EnvironmentVariables},
    sections::{
        known_models::{ModelDefaults, known},
        plaintext_url::is_plaintext,
    },
    tree::{expansion::expand, origin::Origin, problem::Problem, schema::KEY_FROM, value::ValidatedConfigValue},
    trust::programs,
};
use http::{HeaderName, HeaderValue};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    str::FromStr,
};
use toolstead_domain::{Secret, TokenPrices, tool_input_schema::nearest_name};
use toolstead_infrastructure::models::{KeySource, ModelSettings, ProviderKind};
use url::Url;

/// Models of all layers.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredModels {
    /// Usable models, sorted by name.
    pub usable: Vec<ModelSettings>,
    /// Unusable models by name, with the reason. They do not affect the others.
    pub unusable: BTreeMap<String, String>,
    /// Name of the model to use if the caller names none.
    pub default: Option<String>,
}

/// Example for a user without a model.
const EXAMPLE: &str = "    [models.main]
    provider = \"anthropic\"
    model = \"claude-sonnet-4-5\"
    api_key_env = \"ANTHROPIC_API_KEY\"";

/// Error of selecting a model by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelSelectionError {
    /// No model is configured.
    #[error(
        "no model is configured: write one into {file}, for example\n\n{EXAMPLE}\n\n\
         `provider` is anthropic, openai, openai_responses or gemini; `base_url = \"http://localhost:11434/v1\"` with \
         `openai` uses your own server, which needs no key. `toolstead models --check` shows whether it answers."
    )]
    NoneConfigured {
        /// Path of the file in which to configure a model.
        file: String,
    },
    /// Several models are configured, and none is the default.
    #[error("no model is chosen: set `default_model`, or name one of {names}")]
    NoneChosen {
        /// Names of the configured models.
        names: String,
    },
    /// No model has this name.
    #[error("no model is called `{name}`; {advice}")]
    Unknown {
        /// The unknown name.
        name: String,
        /// Suggested name, or the list of names.
        advice: String,
    },
    /// The model is configured, but cannot be used.
    #[error("the model `{name}` cannot be asked: {reason}")]
    Unusable {
        /// Name of the model.
        name: String,
        /// Reason why it cannot be used.
        reason: String,
    },
}

/// Inputs for reading models.
pub(in crate::config) struct ModelSectionInputs<'a> {
    pub(in crate::config) environment: &'a EnvironmentVariables,
    /// Home folder, in which key commands start, because tools cannot change files there.
    pub(in crate::config) home: &'a Path,
    /// Folders that tools can write to.
    pub(in crate::config) written: &'a [PathBuf],
}

/// Returns the configured models.
pub(in crate::config) fn models(
    resolved: &ResolvedSettings,
    surroundings: &ModelSectionInputs<'_>,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> ConfiguredModels {
    let mut models = ConfiguredModels::default();
    for (name, keys) in resolved.named("models") {
        let table = NamedModelTable { name: &name, keys: &keys, resolved };
        match table.settings(surroundings, problems) {
            Ok(settings) => {
                notes.extend(table.plaintext_key_problem(&settings));
                models.usable.push(settings);
            }
            Err(reason) => {
                notes.push(Problem::new(table.origin(), format!("the model `{name}` cannot be asked: {reason}")));
                models.unusable.insert(name, reason);
            }
        }
    }
    models.default = default_of(resolved, &models).unwrap_or_else(|problem| {
        problems.push(problem);
        None
    });
    models
}

/// Returns `default_model`, or the only model if the key is not set; `None` if there are several models or the only one
/// is unusable.
///
/// # Errors
/// The name is unknown. An unusable default model is reported only when it is used.
fn default_of(resolved: &ResolvedSettings, models: &ConfiguredModels) -> Result<Option<String>, Problem> {
    let setting = resolved.setting("default_model");
    let configured = setting.and_then(|setting| Some((setting.value?.as_text()?.to_owned(), setting.origins)));
    let Some((name, origins)) = configured else {
        // A file that waits for trust must not remove the default by adding a model.
        let is_there = |keys: &BTreeMap<&str, &EffectiveSetting>| {
            keys.values().any(|setting| setting.contributions.iter().any(|one| one.trusted))
        };
        let mut there = resolved.named("models").into_iter().filter(|(_, keys)| is_there(keys)).map(|(name, _)| name);
        return Ok(match (there.next(), there.next()) {
            (Some(only), None) if models.usable.iter().any(|model| model.name == only) => Some(only),
            _ => None,
        });
    };
    let origin = origins.into_iter().next().unwrap_or(Origin::Default);
    models.check_name(&name).map_err(|reason| Problem::new(origin, format!("`default_model`: {reason}")))?;
    Ok(Some(name))
}

/// Returns the files that contain keys. No tool may access them, even if their model is unusable or another layer names
/// a different key.
pub(in crate::config) fn key_files(layers: &ContributionsByKey) -> impl Iterator<Item = PathBuf> {
    layers.trusted_in_tables("models", "api_key_file").filter_map(|value| value.as_text().map(PathBuf::from))
}

impl ConfiguredModels {
    /// Returns the model with this name.
    ///
    /// # Errors
    /// [`ModelSelectionError`] if the model is unknown or unusable.
    pub fn named(&self, name: &str) -> Result<&ModelSettings, ModelSelectionError> {
        if let Some(found) = self.usable.iter().find(|model| model.name == name) {
            return Ok(found);
        }
        if let Some(reason) = self.unusable.get(name) {
            return Err(ModelSelectionError::Unusable { name: name.to_owned(), reason: reason.clone() });
        }
        let names: Vec<&str> = self.names().collect();
        let advice = match nearest_name(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "no model is configured".into(),
            None => format!("there are {}", names.join(", ")),
        };
        Err(ModelSelectionError::Unknown { name: name.to_owned(), advice })
    }

    /// Iterates over the usable models, sorted by name.
    pub fn iter(&self) -> std::slice::Iter<'_, ModelSettings> {
        self.usable.iter()
    }

    /// Returns all names, those of unusable models last.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let usable = self.usable.iter().map(|model| model.name.as_str());
        usable.chain(self.unusable.keys().map(String::as_str))
    }

    /// Checks that a model with this name is configured, even if it is unusable.
    pub(in crate::config) fn check_name(&self, name: &str) -> Result<(), ModelSelectionError> {
        match self.named(name) {
            Ok(_) | Err(ModelSelectionError::Unusable { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

/// A table `[models.NAME]` with the settings of all layers.
struct NamedModelTable<'a> {
    name: &'a str,
    keys: &'a BTreeMap<&'a str, &'a EffectiveSetting>,
    resolved: &'a ResolvedSettings,
}

impl NamedModelTable<'_> {
    fn value(&self, key: &str) -> Option<&ValidatedConfigValue> {
        self.keys.get(key)?.value.as_ref()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.value(key)?.as_text()
    }

    fn integer(&self, key: &str) -> Option<u64> {
        match self.value(key)? {
            ValidatedConfigValue::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the origin for problems with the table.
    fn origin(&self) -> Origin {
        let decisive = ["provider", "base_url", "model"].iter().find_map(|key| self.keys.get(key));
        let contribution = decisive.or(self.keys.values().next()).and_then(|setting| setting.contributions.first());
        contribution.map_or(Origin::Default, |one| one.origin.clone())
    }

    /// Returns a remark that the table waits for the user's trust in a file, if it does.
    fn waits(&self) -> Option<String> {
        let waiting = self.keys.values().flat_map(|setting| &setting.waiting).next()?;
        let Origin::File(path, _) = &waiting.origin else { return None };
        Some(format!("it waits for `toolstead config trust {}`", path.display()))
    }

    /// Returns the model, or the reason why it is unusable. Errors that do not depend on the environment are added to
    /// `problems`.
    fn settings(
        &self,
        surroundings: &ModelSectionInputs<'_>,
        problems: &mut Vec<Problem>,
    ) -> Result<ModelSettings, String> {
        let missing = |key: &str| {
            let why = match key {
                "provider" if self.value("base_url").is_some() => {
                    "; the file that says its `base_url` says all of how it is reached"
                }
                _ => "",
            };
            self.waits().unwrap_or_else(|| format!("`models.{}` has no `{key}`{why}", self.name))
        };
        let kind = self.text("provider").and_then(ProviderKind::parse).ok_or_else(|| missing("provider"))?;
        let model = self.text("model").ok_or_else(|| missing("model"))?;
        let known = known(model);
        let expand = |text: &str| expand(text, |name| surroundings.environment.get(name).map(str::to_owned));
        let base_url = match self.text("base_url") {
            Some(text) => parse_base_url(&expand(text)?)?,
            None => kind.usual_base_url().to_owned(),
        };
        let mut headers = BTreeMap::new();
        if let Some(ValidatedConfigValue::Map(members)) = self.value("headers") {
            for (name, item) in members {
                let header = HeaderName::from_str(name).map_err(|_| format!("`{name}` is not a valid header name"))?;
                let value = expand(&item.text)?;
                HeaderValue::from_str(&value)
                    .map_err(|_| format!("the header `{name}` has a value that cannot be sent"))?;
                headers.insert(header.as_str().to_owned(), value);
            }
        }
        Ok(ModelSettings {
            name: self.name.to_owned(),
            kind,
            key: self.key(kind, surroundings, problems)?,
            max_output_tokens: self.integer("max_output_tokens").unwrap_or(known.max_output_tokens),
            context_tokens: self.integer("context_tokens").unwrap_or(known.context_tokens),
            thinking_tokens: self.integer("thinking_tokens"),
            reasoning_effort: self.text("reasoning_effort").map(str::to_owned),
            takes_images: match self.value("images") {
                Some(ValidatedConfigValue::Boolean(takes)) => *takes,
                _ => known.takes_images,
            },
            prices: self.prices(known),
            temperature: self.value("temperature").and_then(ValidatedConfigValue::as_number),
            model: model.to_owned(),
            base_url,
            headers,
        })
    }

    /// Returns the configured prices, completed by the known ones if the model is used at its own provider; other
    /// servers have prices of their own.
    fn prices(&self, known: ModelDefaults) -> Option<TokenPrices> {
        let price = |key: &str| self.resolved.at(&["models", self.name, "prices", key])?.value.as_ref()?.as_number();
        let known = known.prices.filter(|_| self.value("base_url").is_none());
        let configured = ["input", "output", "cache_read", "cache_write"].map(price);
        if configured == [None; 4] {
            return known;
        }
        let [input, output, cache_read, cache_write] = configured;
        let known = match input {
            Some(input) => TokenPrices { input, cache_read: input, cache_write: input, ..known.unwrap_or_default() },
            None => known.unwrap_or_default(),
        };
        Some(TokenPrices {
            input: known.input,
            output: output.unwrap_or(known.output),
            cache_read: cache_read.unwrap_or(known.cache_read),
            cache_write: cache_write.unwrap_or(known.cache_write),
        })
    }

    fn key(
        &self,
        kind: ProviderKind,
        surroundings: &ModelSectionInputs<'_>,
        problems: &mut Vec<Problem>,
    ) -> Result<KeySource, String> {
        let set_keys: Vec<&str> = KEY_FROM.into_iter().filter(|key| self.value(key).is_some()).collect();
        if let [_, second, ..] = set_keys.as_slice() {
            let origin = self.keys.get(second).and_then(|setting| setting.origins.first().cloned());
            let message = format!("`models.{}` names its key in {}: keep one", self.name, quoted(&set_keys));
            problems.push(Problem::new(origin.unwrap_or(Origin::Default), message));
        }
        let in_environment = |variables: &[&str], mend: String| {
            let held = variables.iter().find_map(|name| surroundings.environment.get(name).map(str::trim));
            match held.filter(|key| !key.is_empty()) {
                Some(key) => KeySource::Known(Secret::new(key)),
                None => KeySource::Missing(mend),
            }
        };
        match (set_keys.first().copied(), set_keys.first().and_then(|key| self.value(key))) {
            (Some("api_key_env"), Some(value)) => {
                let name = value.as_text().unwrap_or_default();
                Ok(in_environment(&[name], format!("the environment variable `{name}` holds no key: set it")))
            }
            (Some("api_key_file"), Some(value)) => {
                Ok(KeySource::File(PathBuf::from(value.as_text().unwrap_or_default())))
            }
            (Some(_), Some(value)) => {
                let words: Vec<String> = value.items().iter().map(|item| item.text.clone()).collect();
                if words.is_empty() {
                    return Err("its `api_key_command` is empty".into());
                }
                let ModelSectionInputs { environment, home, written } = surroundings;
                match programs::in_reach_of_tools(&words, home, environment, written) {
                    Some(file) => Err(format!(
                        "its `api_key_command` runs `{}`, which tools can write to: put it elsewhere",
                        file.display()
                    )),
                    None => Ok(KeySource::Command(words)),
                }
            }
            _ if self.value("base_url").is_some() => Ok(KeySource::None),
            _ => {
                let variables = usual_variables(kind);
                let mend = format!(
                    "there is no key: set the environment variable `{}`, or set `api_key_env`, `api_key_file` or \
                     `api_key_command` of `models.{}`",
                    variables[0], self.name
                );
                Ok(in_environment(variables, mend))
            }
        }
    }

    /// Returns a problem if the key would be sent to another machine without encryption.
    fn plaintext_key_problem(&self, settings: &ModelSettings) -> Option<Problem> {
        let url = Url::parse(&settings.base_url).ok()?;
        let has_secrets = settings.key != KeySource::None || !settings.headers.is_empty();
        (is_plaintext(&url) && has_secrets).then(|| {
            // The address may contain values of variables, so it is not shown.
            let message =
                format!("the key of the model `{0}` goes to `models.{0}.base_url` without encryption", self.name);
            Problem::new(self.origin(), message)
        })
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" and ")
}

/// Returns the variables that usually contain the provider's key.
fn usual_variables(kind: ProviderKind) -> &'static [&'static str] {
    match kind {
        ProviderKind::Anthropic => &["ANTHROPIC_API_KEY"],
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => &["OPENAI_API_KEY"],
        ProviderKind::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    }
}

/// Returns the address without a trailing slash. Rejects an address with a user, a query or a fragment, because
/// addresses are displayed.
pub(in crate::config) fn parse_base_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("its `base_url` cannot be used: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("its `base_url` begins neither with `http://` nor with `https://`".into());
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        let message = "its `base_url` has a user, a query or a fragment: a key belongs into `api_key_env`, \
                       `api_key_file`, `api_key_command` or `headers`";
        return Err(message.into());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}
