//! Secrets in the keys of a server that is to be imported.

use super::block;
use crate::config::{
    servers::foreign_servers::literal_secrets,
    tree::value::{TextItem, ValidatedConfigValue},
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use toolstead_domain::ServerName;

/// Removes literal secrets. Those of the environment go to a file in `folder`, others become variables. Returns the file
/// with its content, and the variables.
pub(super) fn without_secrets(
    values: &mut Vec<(String, ValidatedConfigValue)>,
    server: &ServerName,
    folder: Option<&Path>,
) -> (Option<(PathBuf, String)>, Vec<String>) {
    let mut replaced = Vec::new();
    let mut replace = |text: &mut String, name: &str| {
        let scheme = if text.starts_with("Bearer ") { "Bearer " } else { "" };
        let variable = literal_secrets::variable(server, name);
        *text = format!("{scheme}${{{variable}}}");
        replaced.push(variable);
    };
    let has_env_file = values.iter().any(|(key, _)| key == "env_file");
    let folder = folder.filter(|_| !has_env_file);
    let mut lines = String::new();
    for (key, value) in values.iter_mut() {
        match (key.as_str(), value) {
            ("env", ValidatedConfigValue::Map(members)) => members.retain_mut(|(name, item)| {
                if !literal_secrets::is_literal(name, &item.text) {
                    return true;
                }
                match folder.and_then(|_| block::env_line(name, &item.text)) {
                    Some(line) => {
                        lines.push_str(&line);
                        false
                    }
                    None => {
                        replace(&mut item.text, name);
                        true
                    }
                }
            }),
            ("headers", ValidatedConfigValue::Map(members)) => {
                for (name, item) in
                    members.iter_mut().filter(|(name, item)| literal_secrets::is_literal(name, &item.text))
                {
                    replace(&mut item.text, name);
                }
            }
            ("args", ValidatedConfigValue::List(items)) => {
                let texts: Vec<String> = items.iter().map(|item| item.text.clone()).collect();
                for at in literal_secrets::in_arguments(&texts) {
                    replace_argument(items, at, &mut replace);
                }
            }
            ("url", ValidatedConfigValue::Text(url)) if literal_secrets::is_in_url(url) => replace(url, "url"),
            _ => {}
        }
    }
    values.retain(|(key, value)| {
        key != "env" || !matches!(value, ValidatedConfigValue::Map(members) if members.is_empty())
    });
    let file = folder.filter(|_| !lines.is_empty()).map(|folder| folder.join(format!("servers/{server}.env")));
    if let Some(file) = &file {
        values.push(("env_file".into(), ValidatedConfigValue::Text(file.to_string_lossy().into_owned())));
    }
    (file.map(|file| (file, lines)), replaced)
}

/// Replaces an argument that contains a secret: the part after `=`, or all of it. The variable is named after the option.
fn replace_argument(items: &mut [TextItem], at: usize, replace: &mut impl FnMut(&mut String, &str)) {
    let option = |text: &str| text.starts_with('-').then(|| text.trim_start_matches('-').to_owned());
    let before = at.checked_sub(1).and_then(|before| option(&items[before].text)).filter(|name| !name.contains('='));
    let text = &mut items[at].text;
    match text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())) {
        Some((name, mut value)) if name.starts_with('-') => {
            replace(&mut value, name.trim_start_matches('-'));
            *text = format!("{name}={value}");
        }
        _ => replace(text, before.as_deref().unwrap_or(&format!("argument_{}", at + 1))),
    }
}

/// Returns the places of literal secrets: the key, and the name or index within it.
pub(super) fn secret_places(values: &[(String, ValidatedConfigValue)]) -> BTreeSet<(String, String)> {
    let mut places = BTreeSet::new();
    for (key, value) in values {
        match (key.as_str(), value) {
            ("env" | "headers", ValidatedConfigValue::Map(members)) => {
                let secrets = members.iter().filter(|(name, item)| literal_secrets::is_literal(name, &item.text));
                places.extend(secrets.map(|(name, _)| (key.clone(), name.clone())));
            }
            ("args", ValidatedConfigValue::List(items)) => {
                let texts: Vec<String> = items.iter().map(|item| item.text.clone()).collect();
                places
                    .extend(literal_secrets::in_arguments(&texts).into_iter().map(|at| (key.clone(), at.to_string())));
            }
            ("url", ValidatedConfigValue::Text(url)) if literal_secrets::is_in_url(url) => {
                places.insert((key.clone(), String::new()));
            }
            _ => {}
        }
    }
    places
}
