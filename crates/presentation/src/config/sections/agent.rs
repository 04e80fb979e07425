//! `[agent]`: the budgets of a run of an agent, and the point at which its conversation is compacted.

use crate::config::{
    layers::{LayerKind, ResolvedSettings},
    sections::models::ConfiguredModels,
    tree::{problem::Problem, value::ValidatedConfigValue},
};
use std::time::Duration;
use toolstead_domain::Budgets;

/// Settings that apply to every run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentSettings {
    /// Budgets of one run.
    pub budgets: Budgets,
    /// Limits set by the administrator. Flags cannot exceed them.
    pub ceilings: Budgets,
    /// Share of the context window at which the oldest part of a conversation is compacted.
    pub compact_at: f64,
    /// Configured name of the model that writes summaries; `None`: the model of the run.
    pub summarizer: Option<String>,
    /// Configured name of the model for small work; `None`: the default model.
    pub weak_model: Option<String>,
    /// Configured name of the model for hard work; `None`: the default model.
    pub strong_model: Option<String>,
    /// System prompt; `None`: the built-in prompt.
    pub prompt: Option<String>,
    /// `true` if agents receive the instructions of files in trusted folders.
    pub instructions: bool,
}

/// Returns the effective `[agent]` settings.
pub(in crate::config) fn agent(
    resolved: &ResolvedSettings,
    models: &ConfiguredModels,
    problems: &mut Vec<Problem>,
) -> AgentSettings {
    let setting = |key: &str| resolved.setting(&format!("agent.{key}"));
    let value = |key: &str| setting(key)?.value;
    let text = |key: &str| value(key)?.as_text().map(str::to_owned);
    let ceiling = |key: &str| {
        let said = setting(key)?.contributions;
        said.into_iter().find(|one| one.kind == LayerKind::Administrator).map(|one| one.value)
    };
    let mut model = |key: &str| {
        let name = text(key);
        if let Some(reason) = name.as_deref().and_then(|name| models.check_name(name).err()) {
            let origin = resolved.origin(&format!("agent.{key}"));
            problems.push(Problem::new(origin, format!("`agent.{key}`: {reason}")));
        }
        name
    };
    let [summarizer, weak_model, strong_model] = ["summarizer", "weak_model", "strong_model"].map(&mut model);
    AgentSettings {
        budgets: budgets(value),
        ceilings: budgets(ceiling),
        compact_at: value("compact_at").and_then(|share| share.as_number()).unwrap_or(0.8),
        summarizer,
        weak_model,
        strong_model,
        prompt: text("prompt"),
        instructions: value("instructions") != Some(ValidatedConfigValue::Boolean(false)),
    }
}

fn budgets(value: impl Fn(&str) -> Option<ValidatedConfigValue>) -> Budgets {
    let whole = |key: &str| match value(key)? {
        ValidatedConfigValue::Integer(number) => Some(number),
        _ => None,
    };
    let mut budgets = Budgets::default();
    budgets.calls = whole("max_calls");
    budgets.turns = whole("max_turns");
    budgets.tokens = whole("max_tokens");
    budgets.cost = value("max_cost").and_then(|cost| cost.as_number());
    budgets.time = whole("max_seconds").map(Duration::from_secs);
    budgets
}

impl AgentSettings {
    /// Returns the requested budgets, reduced to the administrator's limits.
    pub fn capped(&self, asked: Budgets) -> Budgets {
        fn least<T: PartialOrd>(asked: Option<T>, ceiling: Option<T>) -> Option<T> {
            match (asked, ceiling) {
                // If the values cannot be compared (NaN), the administrator's limit applies.
                (Some(asked), Some(ceiling)) => Some(if asked <= ceiling { asked } else { ceiling }),
                (asked, ceiling) => asked.or(ceiling),
            }
        }
        let ceilings = self.ceilings.clone();
        let mut capped = asked;
        capped.calls = least(capped.calls, ceilings.calls);
        capped.turns = least(capped.turns, ceilings.turns);
        capped.tokens = least(capped.tokens, ceilings.tokens);
        capped.cost = least(capped.cost, ceilings.cost);
        capped.time = least(capped.time, ceilings.time);
        capped
    }
}
