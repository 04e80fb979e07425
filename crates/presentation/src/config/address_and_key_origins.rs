//! Origins of a model's address and key, for display. Contains no key.

use crate::config::{
    Config,
    layers::EffectiveSetting,
    tree::{origin::Origin, schema::KEY_FROM},
};
use toolstead_application::redaction::redacted;
use toolstead_infrastructure::models::{KeySource, ModelSettings};

/// Origins of a model's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressAndKeyOrigins {
    /// Origin of the address.
    pub address: Origin,
    /// Description of the location of the key.
    pub key: String,
    /// Origin of the setting that names this location.
    pub key_origin: Origin,
}

/// Returns the origins of the model's address and key.
pub fn places(config: &Config, model: &ModelSettings) -> AddressAndKeyOrigins {
    let setting = |key: &str| config.resolved.at(&["models", &model.name, key]).filter(|one| one.value.is_some());
    let first = |setting: &EffectiveSetting| setting.origins.first().cloned();
    let named = KEY_FROM.iter().find_map(|key| setting(key));
    let variable = || {
        let named = named.and_then(|setting| setting.value.as_ref()?.as_text().map(str::to_owned));
        named.map_or("the usual variable".to_owned(), |name| format!("${name}"))
    };
    // If the user entered a key in place of its location, it is not shown here, either.
    let without_keys = |text: &str| redacted(text).into_owned();
    let key = match &model.key {
        KeySource::None => "none".to_owned(),
        KeySource::Known(_) => variable(),
        KeySource::Missing(_) => format!("{}, not set", variable()),
        KeySource::File(path) => without_keys(&path.display().to_string()),
        KeySource::Command(words) => {
            format!("what `{}` prints", words.first().map_or_else(String::new, |word| without_keys(word)))
        }
    };
    AddressAndKeyOrigins {
        address: setting("base_url").and_then(first).unwrap_or(Origin::Default),
        key,
        key_origin: named.and_then(first).unwrap_or(Origin::Default),
    }
}
