//! Reports about Toolstead itself as resources: its configuration and its health.

use crate::{
    app::App,
    config::{Config, layers::ResolvedSettings, tree::value},
};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Instant};
use toolstead_application::redaction::{redacted, redacted_value};
use toolstead_domain::ProviderState;
use toolstead_infrastructure::builtin::context::ReportResource;

/// Returns the resources `config://server` and `status://health`.
pub(super) fn reports(config: &Config, app: &App, version: &str) -> Vec<ReportResource> {
    vec![configuration(config), health(app, version)]
}

fn configuration(config: &Config) -> ReportResource {
    let settings = Arc::new(config.resolved.clone());
    ReportResource {
        uri: "config://server",
        name: "config",
        title: "Effective configuration",
        description: "Every setting that is in force, without secrets.",
        make: Box::new(move || {
            let settings = settings.clone();
            Box::pin(async move { settings_report(&settings) })
        }),
    }
}

/// Returns the value of each setting under its name, with secrets masked. Settings without a value are omitted.
fn settings_report(settings: &ResolvedSettings) -> Value {
    let settings = settings.all();
    let values = settings.iter().filter_map(|setting| Some((setting.name(), shown(setting.value.as_ref()?))));
    json!({"settings": redacted_value(&Value::Object(values.collect()))})
}

/// Masks a table of environment variables or headers: only references to variables are shown, and without a default,
/// because any other text may be a secret. Other values are returned unchanged.
fn shown(value: &value::ValidatedConfigValue) -> Value {
    let value::ValidatedConfigValue::Map(members) = value else { return value.to_json() };
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let members = members.iter().map(|(name, item)| {
        let variable = item.text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let text = if variable.is_some_and(is_name) { item.text.as_str() } else { "…" };
        (name.clone(), text.into())
    });
    members.collect::<Map<_, _>>().into()
}

fn health(app: &App, version: &str) -> ReportResource {
    // Holds these parts and not the whole application, which contains the provider of this report: that would be a
    // cycle.
    let (registry, open_calls, calls) = (app.registry.clone(), app.open_calls.clone(), app.execute_tool.clone());
    let (version, started) = (version.to_owned(), Instant::now());
    ReportResource {
        uri: "status://health",
        name: "health",
        title: "Health",
        description: "Version, uptime, providers of tools and how they are, open calls, and whether calls can be recorded.",
        make: Box::new(move || {
            let (registry, open_calls, calls) = (registry.clone(), open_calls.clone(), calls.clone());
            let version = version.clone();
            Box::pin(async move {
                let providers = registry.providers().into_iter().map(|provider| {
                    let mut report = json!({
                        "name": provider.name, "state": provider.state.label(), "tools": provider.tools,
                    });
                    if let ProviderState::Failed { reason } | ProviderState::NeedsAuthorization { reason } =
                        &provider.state
                    {
                        report["reason"] = redacted(reason).into();
                    }
                    report
                });
                json!({
                    "version": version,
                    "uptimeSeconds": started.elapsed().as_secs(),
                    "providers": providers.collect::<Vec<_>>(),
                    "openCalls": open_calls.len(),
                    "callsCanBeRecorded": calls.can_record().await.is_ok(),
                })
            })
        }),
    }
}
