//! `[tools] select` and `--tools`: selection of the offered tools.

use crate::config::{
    layers::{Contribution, ResolvedSettings, UntrustedValue},
    tree::value::{TextItem, ValidatedConfigValue},
};
use toolstead_domain::ToolSelection;

/// Returns the selection of tools after applying each layer to all tools, from the lowest precedence up, and the names
/// in its effective steps, for checks. An untrusted file may remove tools, and may select tools if no layer below it
/// does. Records the effective text and the values that are not applied in `tools.select`.
pub(in crate::config) fn choice(resolved: &mut ResolvedSettings) -> (ToolSelection, Vec<TextItem>) {
    let mut selection = ToolSelection::all();
    let mut names = Vec::new();
    let Some(mut setting) = resolved.setting("tools.select") else { return (selection, names) };
    setting.waiting.clear();
    let mut steps: Vec<&Contribution> = Vec::new();
    for one in setting.contributions.iter().rev() {
        let Some(text) = one.value.as_text() else { continue };
        if !(one.trusted || only_removes(text) || steps.is_empty()) {
            setting.waiting.push(UntrustedValue { value: one.value.clone(), origin: one.origin.clone() });
            continue;
        }
        // The text was validated when its layer was checked.
        if let Ok(adjusted) = selection.clone().adjusted(text) {
            selection = adjusted;
            steps.push(one);
        }
    }
    if !steps.is_empty() {
        let replaces =
            |one: &&Contribution| one.value.as_text().is_some_and(|text| !text.trim_start().starts_with(['+', '-']));
        let from = steps.iter().rposition(replaces).unwrap_or(0);
        for one in &steps[from..] {
            let words = one
                .value
                .as_text()
                .unwrap_or_default()
                .split(',')
                .map(|word| word.trim().trim_start_matches(['+', '-']));
            names.extend(
                words.filter(|word| !word.is_empty()).map(|word| TextItem::new(word.trim(), one.origin.clone())),
            );
        }
        let texts: Vec<&str> = steps[from..].iter().filter_map(|one| one.value.as_text()).collect();
        setting.value = Some(ValidatedConfigValue::Text(texts.join(" then ")));
        setting.origins = steps[from..].iter().rev().map(|one| one.origin.clone()).collect();
    }
    resolved.put(setting);
    (selection, names)
}

fn only_removes(text: &str) -> bool {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).all(|word| word.starts_with('-'))
        && !text.trim().is_empty()
}
