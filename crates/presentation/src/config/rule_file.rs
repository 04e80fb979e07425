//! Writing an allow rule into a configuration file, without touching anything else in it.

use crate::config::{
    Config,
    check::{Base, check},
    folders::write_private,
    layers::LayerKind,
    node::{Format, Node},
    origin::Origin,
    policy::is_known_tool,
    problem::Problem,
    source_file::read_bounded,
};
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toml_edit::{Array, DocumentMut, Item, Table, Value};
use toolstead_domain::permission::rule::{Effect, PermissionRule, RuleOrigin};

/// What became of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// Whether the rule is new there.
    pub is_new: bool,
}

/// Adds allow rules to `[permissions] allow` of the file of `--config`, else of the user's own, which is made if there
/// is none. Everything else in the file stays as it is. They are in force at the next start.
///
/// # Errors
/// A [`Problem`] for a rule that is none, a file that is not TOML, and a file that cannot be written; then nothing is.
pub fn add_allow_rules(config: &Config, rules: &[String]) -> Result<Vec<Written>, Problem> {
    let path = file(config)?;
    let failed = |error: io::Error| Problem::new(Origin::file(path.clone()), format!("cannot be changed: {error}"));
    let lock = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(config.folders.prepare_data()?.join("rules.lock"));
    let lock = lock.map_err(failed)?;
    lock.lock().map_err(failed)?;
    let text = match read_bounded(&path) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| Problem::new(Origin::file(path.clone()), "is not UTF-8"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let base = Base { folder, home: config.folders.home.as_deref() };
    let mut written = Vec::with_capacity(rules.len());
    let mut changed = text.clone();
    for rule in rules {
        let wrong = |reason: &str| Problem::new(Origin::Default, format!("`{rule}` is no rule: {reason}"));
        let parsed = PermissionRule::parse(Effect::Allow, rule, RuleOrigin::CommandLine, &base.patterns())
            .map_err(|error| wrong(&error.reason))?;
        if let Some(tool) = parsed.named_tool().filter(|tool| !is_known_tool(tool)) {
            return Err(wrong(&format!("no tool is called `{tool}`; `toolstead tools --all` lists them")));
        }
        let with_rule = with_allow_rule(&changed, rule.trim())
            .map_err(|reason| Problem::new(Origin::file(path.clone()), reason))?;
        written.push(Written { path: path.clone(), is_new: with_rule.is_some() });
        changed = with_rule.unwrap_or(changed);
    }
    let name: Arc<Path> = path.as_path().into();
    let (_, problems) = check(&Node::read(Format::Toml, &changed, &name)?, base);
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    if changed != text {
        replace(&path, &changed).map_err(failed)?;
    }
    Ok(written)
}

/// The file to write to, links resolved: a file that is kept elsewhere stays there.
fn file(config: &Config) -> Result<PathBuf, Problem> {
    let own = config.files.iter().find(|file| file.kind == LayerKind::Chosen);
    let own = own.or_else(|| config.files.iter().find(|file| file.kind == LayerKind::User));
    let path = match (own, &config.folders.config) {
        (Some(file), _) => file.path.to_path_buf(),
        (None, Some(folder)) => folder.join("config.toml"),
        (None, None) => {
            let message = "it is not set, and without it or XDG_CONFIG_HOME there is no place for a configuration";
            return Err(Problem::new(Origin::Environment("HOME".into()), message));
        }
    };
    match Format::of(&path) {
        Some(Format::Toml) => Ok(path),
        _ => Err(Problem::new(
            Origin::file(path),
            "only TOML is written to: add the rule to `permissions.allow` by hand",
        )),
    }
}

/// The text with the rule in its list; `None` where it is there already.
fn with_allow_rule(text: &str, rule: &str) -> Result<Option<String>, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| format!("not valid TOML: {}", error.message().trim()))?;
    let permissions = document.entry("permissions").or_insert_with(|| Item::Table(Table::new()));
    let permissions = permissions.as_table_like_mut().ok_or("`permissions` must be a table")?;
    let allow = permissions.entry("allow").or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let allow = allow.as_array_mut().ok_or("`permissions.allow` must be a list of rules")?;
    let said = |value: &Value| {
        value.as_str().or_else(|| value.as_inline_table()?.get("rule")?.as_str()).map(str::trim) == Some(rule)
    };
    if allow.iter().any(said) {
        return Ok(None);
    }
    // A list with a rule a line stays one.
    let own_line =
        allow.iter().next().and_then(|first| first.decor().prefix()?.as_str()).filter(|prefix| prefix.contains('\n'));
    let own_line = own_line.map(|prefix| prefix.rsplit('\n').next().unwrap_or_default().to_owned());
    match own_line {
        Some(indent) => {
            let mut value = Value::from(rule);
            value.decor_mut().set_prefix(format!("\n{indent}"));
            // What stood behind the last rule, such as a comment, stays before the new one.
            if !allow.trailing_comma()
                && let Some(last) = allow.iter_mut().last()
            {
                let suffix = last.decor().suffix().and_then(|suffix| suffix.as_str()).unwrap_or_default().to_owned();
                last.decor_mut().set_suffix("");
                allow.set_trailing(suffix);
            }
            let trailing = allow.trailing().as_str().unwrap_or_default().to_owned();
            let (before, after) = match trailing.rsplit_once('\n') {
                Some((before, after)) => (before.to_owned(), format!("\n{after}")),
                None => (String::new(), trailing),
            };
            value.decor_mut().set_prefix(format!("{before}\n{indent}"));
            allow.push_formatted(value);
            allow.set_trailing(after);
            allow.set_trailing_comma(true);
        }
        None => allow.push(rule),
    }
    Ok(Some(document.to_string()))
}

/// Puts the text in the place of the file, whole or not at all, and lets whoever could read it still do so.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let Ok(metadata) = fs::metadata(path) else {
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        return write_private(path, text.as_bytes(), super::folders::Existing::Replaced);
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let temporary =
        folder.join(format!(".{}.{}", path.file_name().unwrap_or_default().display(), uuid::Uuid::new_v4().simple()));
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        file.set_permissions(fs::Permissions::from_mode(metadata.permissions().mode() & 0o777))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // Of no use any more; nothing is lost if it stays.
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::with_allow_rule;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let written = with_allow_rule(text, "Bash(git *)").unwrap().unwrap_or_else(|| "as it was".into());
        assert_eq!(written, expected, "{text:?}");
    }

    #[test]
    fn a_rule_is_added_and_the_rest_of_the_file_stays() {
        check("", "[permissions]\nallow = [\"Bash(git *)\"]\n");
        check(
            "# mine\n[limits]\nprocesses = 5\n",
            "# mine\n[limits]\nprocesses = 5\n\n[permissions]\nallow = [\"Bash(git *)\"]\n",
        );
        check(
            "[permissions]\nallow = [\"Read\"] # all\n",
            "[permissions]\nallow = [\"Read\", \"Bash(git *)\"] # all\n",
        );
        check(
            "[permissions]\nallow = [\n    \"Read\", # all\n    \"Grep\",\n    # the end\n]\ndeny = []\n",
            "[permissions]\nallow = [\n    \"Read\", # all\n    \"Grep\",\n    # the end\n    \"Bash(git *)\",\n]\ndeny = []\n",
        );
        check(
            "[permissions]\nallow = [\n  \"Read\"\n]\n",
            "[permissions]\nallow = [\n  \"Read\",\n  \"Bash(git *)\",\n]\n",
        );
        check("permissions = { allow = [] }\n", "permissions = { allow = [\"Bash(git *)\"] }\n");
        check("[permissions]\nallow = [{ rule = \"Bash(git *)\", matches = [\"git x\"] }]\n", "as it was");
    }

    #[test]
    fn what_is_no_list_of_rules_is_left_alone() {
        for text in ["permissions = 1", "[permissions]\nallow = \"x\"", "[permissions"] {
            assert!(with_allow_rule(text, "Read").is_err(), "{text}");
        }
    }
}
