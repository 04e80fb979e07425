//! Export of a view to a file of its own, and import of such a file.

use crate::config::{
    Config,
    layers::folders::{ExistingFileTreatment, real, write_private, write_with_mode},
    rule_files::chosen_file,
    tree::{
        check::{PathBase, check},
        format::ConfigFormat,
        node::{Node, NodeContent},
        origin::Origin,
        problem::Problem,
        source_file::read_with_place,
    },
    views::ConfiguredView,
};
use serde_json::{Map, Value, json};
use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};

/// Format of an exported view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewFileFormat {
    /// TOML, as in the configuration.
    Toml,
    /// JSON.
    Json,
}

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewImportResult {
    /// Configuration file that was changed.
    pub path: PathBuf,
    /// Names of the added views.
    pub names: Vec<String>,
}

/// Returns the text of a file that contains only this view.
pub fn export(view: &ConfiguredView, format: ViewFileFormat) -> String {
    match format {
        ViewFileFormat::Json => format!("{:#}\n", json!({"views": {&view.name: view.written}})),
        ViewFileFormat::Toml => {
            let mut document = DocumentMut::new();
            insert(&mut document, &view.name, &view.written);
            document.to_string()
        }
    }
}

/// Adds the views of a file to the file of `--config`, or else to the user's own file, which is created if necessary.
/// The rest of that file is unchanged. `reload` loads the configuration with the new views; if that fails, the file is
/// restored.
///
/// # Errors
/// A [`Problem`] if the file contains anything but valid views, a view of the same name exists and `replaces` is
/// `false`, or the configuration file is not TOML or cannot be written. Nothing is changed then.
pub fn import(
    config: &Config,
    file: &Path,
    replaces: bool,
    reload: impl FnOnce() -> Result<(), String>,
) -> Result<ViewImportResult, Problem> {
    let views = read_views(config, &config.folders.start.join(file))?;
    let path = real(&chosen_file(config, "copy the views into it by hand")?);
    let wrong = |message: String| Problem::new(Origin::file(path.clone()), message);
    let failed = |error: io::Error| wrong(format!("cannot be changed: {error}"));
    let lock = config.folders.prepare_data()?.join("rules.lock");
    let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(lock).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let before = match read_with_place(&path) {
        Ok((bytes, _)) => Some(String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".into()))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let parsed = before.as_deref().unwrap_or_default().parse::<DocumentMut>();
    let mut document = parsed.map_err(|error| wrong(format!("not valid TOML: {}", error.message().trim())))?;
    for (name, keys) in &views {
        let is_there = document.get("views").and_then(|views| views.get(name)).is_some();
        if is_there && !replaces {
            return Err(wrong(format!("has a view `{name}` already: `--replace` replaces it")));
        }
        insert(&mut document, name, keys);
    }
    write(&path, &document.to_string(), before.is_some()).map_err(failed)?;
    if let Err(reason) = reload() {
        match &before {
            Some(text) => write(&path, text, true).map_err(failed)?,
            None => fs::remove_file(&path).map_err(failed)?,
        }
        return Err(Problem::new(Origin::file(file), format!("its views cannot be used: {reason}")));
    }
    Ok(ViewImportResult { path, names: views.into_iter().map(|(name, _)| name).collect() })
}

/// Name of a view with its keys.
type NamedView = (String, Map<String, Value>);

/// Reads the views of a file.
fn read_views(config: &Config, file: &Path) -> Result<Vec<NamedView>, Problem> {
    let wrong = |message: String| Problem::new(Origin::file(file), message);
    let format = ConfigFormat::of(file);
    let format =
        format.ok_or_else(|| wrong("the name of the file must end in `.toml`, `.json`, `.yaml` or `.yml`".into()))?;
    let (bytes, _) = read_with_place(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".into()))?;
    let root = format.read(&text, &Arc::from(file))?;
    only_views(&root)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let (entries, problems) = check(&root, PathBase { folder, home: config.folders.home.as_deref() });
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    let mut views: Vec<NamedView> = Vec::new();
    for entry in entries {
        let [_, name, keys @ .., last] = entry.path.as_slice() else { continue };
        let at = views.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            views.push((name.clone(), Map::new()));
            views.len() - 1
        });
        let mut table = &mut views[at].1;
        for key in keys {
            let below = table.entry(key.clone()).or_insert_with(|| Map::new().into());
            let Value::Object(below) = below else { return Err(wrong(format!("`{key}` must be a table"))) };
            table = below;
        }
        table.insert(last.clone(), entry.value.to_json());
    }
    match views.is_empty() {
        true => Err(wrong("contains no view with a key".into())),
        false => Ok(views),
    }
}

/// Checks that the file has no other section than `views`.
fn only_views(root: &Node) -> Result<(), Problem> {
    let NodeContent::Table(members) = &root.content else { return Ok(()) };
    match members.iter().find(|member| member.name != "views") {
        Some(other) => {
            let message = format!("`{}` is not a part of a view: only the section `views` is imported", other.name);
            Err(Problem::new(other.origin.clone(), message))
        }
        None => Ok(()),
    }
}

/// Sets a view in the document.
fn insert(document: &mut DocumentMut, name: &str, keys: &Map<String, Value>) {
    let implicit = || {
        let mut table = Table::new();
        table.set_implicit(true);
        table
    };
    let views = document.entry("views").or_insert_with(|| implicit().into());
    let mut view = Table::new();
    for (key, value) in keys.iter().filter(|(key, _)| *key != "overlay") {
        view.insert(key, toml_value(value).into());
    }
    if let Some(Value::Object(overlays)) = keys.get("overlay") {
        let mut all = implicit();
        for (tool, overlay) in overlays {
            let mut table = Table::new();
            for (key, value) in overlay.as_object().into_iter().flatten() {
                table.insert(key, toml_value(value).into());
            }
            all.insert(tool, table.into());
        }
        view.insert("overlay", all.into());
    }
    if let Some(views) = views.as_table_like_mut() {
        views.insert(name, Item::Table(view));
    }
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<Array>().into(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.as_str(), toml_value(value))).collect::<InlineTable>().into()
        }
        // No key accepts an empty value.
        Value::Null => "".into(),
    }
}

/// Replaces the content of the file atomically. A new file is readable only by its owner, and its folder is created.
fn write(path: &Path, text: &str, exists: bool) -> io::Result<()> {
    if exists {
        let mode = fs::metadata(path)?.permissions().mode() & 0o777;
        return write_with_mode(path, text.as_bytes(), ExistingFileTreatment::Replaced, mode);
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    write_private(path, text.as_bytes(), ExistingFileTreatment::Replaced)
}
