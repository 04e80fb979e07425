//! `[models.NAME]`: the language models, and where the key of each comes from.
//!
//! A key goes where the file says that names it: a layer that says a provider or an address replaces the key and the
//! headers of the layers below it, and a project's file gives no key to another file's address.

use crate::config::{
    environment::Environment,
    expansion::expand,
    in_the_clear::is_in_the_clear,
    known_models::{KnownModel, known},
    layers::{Layers, Resolved, Setting},
    origin::Origin,
    problem::{ConfigError, Problem},
    programs,
    schema::KEY_FROM,
    value::Value,
};
use http::{HeaderName, HeaderValue};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    str::FromStr,
};
use toolstead_domain::{model::usage::Prices, secret::Secret, tool_input_schema::nearest_name};
use toolstead_infrastructure::models::{KeySource, ModelSettings, ProviderKind};
use url::Url;

/// The models of all layers.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredModels {
    /// Those that can be asked, sorted by name.
    pub usable: Vec<ModelSettings>,
    /// Those that cannot, by name, with the reason: a broken one harms no other.
    pub unusable: BTreeMap<String, String>,
}

/// What a person writes who has none.
const EXAMPLE: &str = "    [models.main]
    provider = \"anthropic\"
    model = \"claude-sonnet-4-5\"
    api_key_env = \"ANTHROPIC_API_KEY\"";

/// A name that no model bears, or one that cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchModel {
    /// Nothing is configured.
    #[error(
        "no model is configured: write one into {file}, for example\n\n{EXAMPLE}\n\n\
         `provider` is anthropic, openai, openai_responses or gemini; `base_url = \"http://localhost:11434/v1\"` with \
         `openai` asks a server of your own, which needs no key. `toolstead models --check` shows whether it answers."
    )]
    NoneConfigured {
        /// Where to write it.
        file: String,
    },
    /// There are several, and none is the default.
    #[error("no model is chosen: set `default_model`, or name one of {names}")]
    NoneChosen {
        /// Those that there are.
        names: String,
    },
    /// Nothing bears the name.
    #[error("no model is called `{name}`; {advice}")]
    Unknown {
        /// The name.
        name: String,
        /// Which one is meant, or which there are.
        advice: String,
    },
    /// It is configured and cannot be asked.
    #[error("the model `{name}` cannot be asked: {reason}")]
    Unusable {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
}

/// What models are read with.
pub(super) struct Surroundings<'a> {
    pub(super) environment: &'a Environment,
    /// The home folder, in which key commands start: nothing there is a tool's to change.
    pub(super) home: &'a Path,
    /// The folders that tools write to.
    pub(super) written: &'a [PathBuf],
}

/// The models in force.
pub(super) fn models(
    resolved: &Resolved,
    surroundings: &Surroundings<'_>,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> ConfiguredModels {
    let mut models = ConfiguredModels::default();
    for (name, keys) in resolved.named("models") {
        let table = Table { name: &name, keys: &keys, resolved };
        match table.settings(surroundings, problems) {
            Ok(settings) => {
                notes.extend(table.in_the_clear(&settings));
                models.usable.push(settings);
            }
            Err(reason) => {
                notes.push(Problem::new(table.origin(), format!("the model `{name}` cannot be asked: {reason}")));
                models.unusable.insert(name, reason);
            }
        }
    }
    models
}

/// `default_model`, or the only model.
///
/// # Errors
/// That nothing bears the name, in a file's own words: one that is there and cannot be asked is told when it is asked.
pub(super) fn default_of(resolved: &Resolved, models: &ConfiguredModels) -> Result<Option<String>, ConfigError> {
    let setting = resolved.setting("default_model");
    let said = setting.and_then(|setting| Some((setting.value?.as_text()?.to_owned(), setting.origins)));
    let Some((name, origins)) = said else {
        // A file that waits for trust cannot take the default away either.
        let is_there = |keys: &BTreeMap<&str, &Setting>| {
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

/// The files that hold keys: no tool may touch them, whether their model can be asked and whether another layer names
/// another key.
pub(super) fn key_files(layers: &Layers) -> impl Iterator<Item = PathBuf> {
    layers.trusted_in_tables("models", "api_key_file").filter_map(|value| value.as_text().map(PathBuf::from))
}

impl ConfiguredModels {
    /// The model of that name.
    ///
    /// # Errors
    /// [`NoSuchModel`].
    pub fn named(&self, name: &str) -> Result<&ModelSettings, NoSuchModel> {
        if let Some(found) = self.usable.iter().find(|model| model.name == name) {
            return Ok(found);
        }
        if let Some(reason) = self.unusable.get(name) {
            return Err(NoSuchModel::Unusable { name: name.to_owned(), reason: reason.clone() });
        }
        let names: Vec<&str> = self.names().collect();
        let advice = match nearest_name(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "there is none at all".into(),
            None => format!("there are {}", names.join(", ")),
        };
        Err(NoSuchModel::Unknown { name: name.to_owned(), advice })
    }

    /// Those that can be asked, sorted by name.
    pub fn iter(&self) -> std::slice::Iter<'_, ModelSettings> {
        self.usable.iter()
    }

    /// All names, those of models that cannot be asked behind the others.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let usable = self.usable.iter().map(|model| model.name.as_str());
        usable.chain(self.unusable.keys().map(String::as_str))
    }

    /// Tells whether some model bears the name, be it one that cannot be asked.
    pub(super) fn check_name(&self, name: &str) -> Result<(), NoSuchModel> {
        match self.named(name) {
            Ok(_) | Err(NoSuchModel::Unusable { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

/// One table as it is written.
struct Table<'a> {
    name: &'a str,
    keys: &'a BTreeMap<&'a str, &'a Setting>,
    resolved: &'a Resolved,
}

impl Table<'_> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.keys.get(key)?.value.as_ref()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.value(key)?.as_text()
    }

    fn whole(&self, key: &str) -> Option<u64> {
        match self.value(key)? {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Where the table is told of.
    fn origin(&self) -> Origin {
        let decisive = ["provider", "base_url", "model"].iter().find_map(|key| self.keys.get(key));
        let contribution = decisive.or(self.keys.values().next()).and_then(|setting| setting.contributions.first());
        contribution.map_or(Origin::Default, |one| one.origin.clone())
    }

    /// The file whose word it would need.
    fn waits(&self) -> Option<String> {
        let waiting = self.keys.values().flat_map(|setting| &setting.waiting).next()?;
        let Origin::File(path, _) = &waiting.origin else { return None };
        Some(format!("it waits for `toolstead config trust {}`", path.display()))
    }

    /// The model, or why it cannot be asked. What is wrong whatever the surroundings is a problem.
    fn settings(&self, surroundings: &Surroundings<'_>, problems: &mut Vec<Problem>) -> Result<ModelSettings, String> {
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
            Some(text) => checked(&expand(text)?)?,
            None => kind.usual_base_url().to_owned(),
        };
        let mut headers = BTreeMap::new();
        if let Some(Value::Map(members)) = self.value("headers") {
            for (name, item) in members {
                let header = HeaderName::from_str(name).map_err(|_| format!("`{name}` is no name of a header"))?;
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
            max_output_tokens: self.whole("max_output_tokens").unwrap_or(known.max_output_tokens),
            context_tokens: self.whole("context_tokens").unwrap_or(known.context_tokens),
            thinking_tokens: self.whole("thinking_tokens"),
            reasoning_effort: self.text("reasoning_effort").map(str::to_owned),
            takes_images: match self.value("images") {
                Some(Value::Boolean(takes)) => *takes,
                _ => known.takes_images,
            },
            prices: self.prices(known),
            temperature: self.value("temperature").and_then(Value::as_number),
            model: model.to_owned(),
            base_url,
            headers,
        })
    }

    /// What is said, and of the rest what is known at the provider itself: another server has its own prices.
    fn prices(&self, known: KnownModel) -> Option<Prices> {
        let price = |key: &str| self.resolved.at(&["models", self.name, "prices", key])?.value.as_ref()?.as_number();
        let known = known.prices.filter(|_| self.value("base_url").is_none());
        let said = ["input", "output", "cache_read", "cache_write"].map(price);
        if said == [None; 4] {
            return known;
        }
        let [input, output, cache_read, cache_write] = said;
        let known = match input {
            Some(input) => Prices { input, cache_read: input, cache_write: input, ..known.unwrap_or_default() },
            None => known.unwrap_or_default(),
        };
        Some(Prices {
            input: known.input,
            output: output.unwrap_or(known.output),
            cache_read: cache_read.unwrap_or(known.cache_read),
            cache_write: cache_write.unwrap_or(known.cache_write),
        })
    }

    fn key(
        &self,
        kind: ProviderKind,
        surroundings: &Surroundings<'_>,
        problems: &mut Vec<Problem>,
    ) -> Result<KeySource, String> {
        let said: Vec<&str> = KEY_FROM.into_iter().filter(|key| self.value(key).is_some()).collect();
        if let [_, second, ..] = said.as_slice() {
            let origin = self.keys.get(second).and_then(|setting| setting.origins.first().cloned());
            let message = format!("`models.{}` names its key in {}: keep one", self.name, quoted(&said));
            problems.push(Problem::new(origin.unwrap_or(Origin::Default), message));
        }
        let in_environment = |variables: &[&str], mend: String| {
            let held = variables.iter().find_map(|name| surroundings.environment.get(name).map(str::trim));
            match held.filter(|key| !key.is_empty()) {
                Some(key) => KeySource::Known(Secret::new(key)),
                None => KeySource::Missing(mend),
            }
        };
        match (said.first().copied(), said.first().and_then(|key| self.value(key))) {
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
                let Surroundings { environment, home, written } = surroundings;
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
                    "there is no key: set the environment variable `{}`, or say `api_key_env`, `api_key_file` or \
                     `api_key_command` of `models.{}`",
                    variables[0], self.name
                );
                Ok(in_environment(variables, mend))
            }
        }
    }

    /// A key that would go to another machine for everybody on the way to read.
    fn in_the_clear(&self, settings: &ModelSettings) -> Option<Problem> {
        let url = Url::parse(&settings.base_url).ok()?;
        let has_secrets = settings.key != KeySource::None || !settings.headers.is_empty();
        (is_in_the_clear(&url) && has_secrets).then(|| {
            // The address may be made of variables, so it is not shown.
            let message =
                format!("the key of the model `{0}` goes to `models.{0}.base_url` without encryption", self.name);
            Problem::new(self.origin(), message)
        })
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" and ")
}

/// The variables in which people keep the provider's key.
fn usual_variables(kind: ProviderKind) -> &'static [&'static str] {
    match kind {
        ProviderKind::Anthropic => &["ANTHROPIC_API_KEY"],
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => &["OPENAI_API_KEY"],
        ProviderKind::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    }
}

/// The address without a slash at its end. One that holds a password would be told wherever it is told.
fn checked(text: &str) -> Result<String, String> {
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
