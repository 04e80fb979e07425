//! Keeping approved rules in configuration files: a person's own file in the project, or the user's.

use crate::config::{
    ConfigFile,
    folders::{Existing, Folders, write_private},
    layers::LayerKind,
    node::{Content, Format, Node},
    source_file::{LOCAL_STEM, project_folders, read_bounded},
    trust::{self, TrustedFiles},
};
use async_trait::async_trait;
use serde_json::json;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use toml_edit::{Document, Item, Value};
use toolstead_domain::{
    permission::rule::RuleOrigin,
    ports::{
        approver::ApprovalScope,
        rule_store::{RuleNotKept, RuleStore},
    },
};

/// The files that approved rules go to, where they are TOML or not there yet: other formats are a person's to edit.
#[derive(Debug, Clone)]
pub(super) struct RuleFiles {
    folders: Folders,
    project: Option<PathBuf>,
    user: Option<PathBuf>,
}

impl RuleFiles {
    /// The files beside those that were read. With `--config` there are none, since no other file is read.
    pub(super) fn of(folders: &Folders, files: &[ConfigFile]) -> Self {
        let of_kind = |kind| files.iter().find(|file| file.kind == kind).map(|file| file.path.to_path_buf());
        let none = Self { folders: folders.clone(), project: None, user: None };
        if of_kind(LayerKind::Chosen).is_some() {
            return none;
        }
        let folder = of_kind(LayerKind::Project).and_then(|file| Some(file.parent()?.to_path_buf()));
        // What holds in `/` or in all of the home folder is no project's.
        let is_project = |folder: &PathBuf| folder.parent().is_some() && folders.home.as_ref() != Some(folder);
        let folder = folder.or_else(|| project_folders(folders).pop()).filter(is_project);
        let folder = folder.or_else(|| Some(folders.start.clone()).filter(is_project));
        let local = of_kind(LayerKind::Local).or_else(|| Some(folder?.join(format!("{LOCAL_STEM}.toml"))));
        let user = of_kind(LayerKind::User).or_else(|| Some(folders.config.as_ref()?.join("config.toml")));
        let is_toml = |path: &PathBuf| Format::of(path) == Some(Format::Toml);
        Self { project: local.filter(is_toml), user: user.filter(is_toml), ..none }
    }

    fn file(&self, scope: ApprovalScope) -> Option<&Path> {
        match scope {
            ApprovalScope::Once | ApprovalScope::Session => None,
            ApprovalScope::Project => self.project.as_deref(),
            ApprovalScope::Always => self.user.as_deref(),
        }
    }

    /// Adds the rule to its file, whole or not at all, under a lock that holds across processes.
    fn add(&self, rule: &str, scope: ApprovalScope) -> Result<RuleOrigin, RuleNotKept> {
        let path = self.file(scope).ok_or_else(|| RuleNotKept("there is no file for it".into()))?;
        let failed = |reason: String| RuleNotKept(format!("{}: {reason}", path.display()));
        let io_failed = |error: io::Error| failed(error.to_string());
        let data = self.folders.prepare_data().map_err(|problem| failed(problem.to_string()))?;
        let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(data.join("rules.lock"));
        let lock = lock.map_err(io_failed)?;
        lock.lock().map_err(io_failed)?;

        let before = match read_bounded(path) {
            Ok(bytes) => Some(String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".into()))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_failed(error)),
        };
        // A link stays a link.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if scope == ApprovalScope::Project
            && let Some(text) = &before
            && !TrustedFiles::load(&self.folders).0.trusts(&real, text)
        {
            return Err(failed("it waits for `toolstead config trust`".into()));
        }
        let text = before.as_deref().unwrap_or_default();
        let Some(after) = with_allow_rule(text, rule, &real).map_err(failed)? else {
            return Ok(RuleOrigin::File(real.clone(), line_of(text, rule, &real)));
        };
        if scope == ApprovalScope::Always
            && let Some(folder) = path.parent()
        {
            fs::create_dir_all(folder).map_err(io_failed)?;
        }
        let mode = fs::metadata(&real).ok().map(|metadata| metadata.permissions());
        write_private(&real, after.as_bytes(), Existing::Replaced).map_err(io_failed)?;
        if let Some(mode) = mode {
            fs::set_permissions(&real, mode).map_err(io_failed)?;
        }
        let real = real.canonicalize().unwrap_or(real);
        if scope == ApprovalScope::Project {
            trust::set(&self.folders, &real, Some(&after)).map_err(|problem| failed(problem.to_string()))?;
        }
        let line = line_of(&after, rule, &real);
        Ok(RuleOrigin::File(real, line))
    }
}

#[async_trait]
impl RuleStore for RuleFiles {
    fn keeps(&self, scope: ApprovalScope) -> bool {
        self.file(scope).is_some()
    }

    async fn keep(&self, rule: &str, scope: ApprovalScope) -> Result<RuleOrigin, RuleNotKept> {
        let (files, rule) = (self.clone(), rule.to_owned());
        let added = tokio::task::spawn_blocking(move || files.add(&rule, scope)).await;
        added.unwrap_or_else(|panic| Err(RuleNotKept(panic.to_string())))
    }
}

/// The text of a TOML file with one more allow rule, every other byte as it was; `None` where the rule stands there
/// already. The result is read again, and differs from before by the rule alone.
///
/// # Errors
/// What is wrong with the file, or where there is no place for a rule.
fn with_allow_rule(text: &str, rule: &str, file: &Path) -> Result<Option<String>, String> {
    let before = plain(text, file)?;
    let rules = &before["permissions"]["allow"];
    if rules.as_array().is_some_and(|rules| rules.iter().any(|known| known == rule)) {
        return Ok(None);
    }
    let document = Document::parse(text).map_err(|error| error.message().trim().to_owned())?;
    let quoted = json!(rule).to_string();
    let no_place = || "`permissions.allow` is not written as a list in a table: add the rule by hand".to_owned();
    let (at, insertion) = match document.get("permissions") {
        None => {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            let gap = if text.is_empty() { "" } else { "\n" };
            (text.len(), format!("{end}{gap}[permissions]\nallow = [{quoted}]\n"))
        }
        Some(Item::Table(permissions)) => match permissions.get("allow") {
            Some(Item::Value(Value::Array(rules))) => {
                let start = rules.span().ok_or_else(no_place)?.start + 1;
                (start, if rules.is_empty() { quoted } else { format!("{quoted}, ") })
            }
            Some(_) => return Err(no_place()),
            None if permissions.is_dotted() || permissions.is_implicit() => return Err(no_place()),
            None => {
                let header = document.get_key_value("permissions").and_then(|(key, _)| key.span());
                let header = header.ok_or_else(no_place)?.end;
                let end = text[header..].find('\n').map(|at| header + at + 1);
                match end {
                    Some(at) => (at, format!("allow = [{quoted}]\n")),
                    None => (text.len(), format!("\nallow = [{quoted}]\n")),
                }
            }
        },
        Some(_) => return Err(no_place()),
    };
    let mut after = text.to_owned();
    after.insert_str(at, &insertion);

    let mut expected = before;
    let mut allowed = expected["permissions"]["allow"].as_array().cloned().unwrap_or_default();
    let place = if at == text.len() || allowed.is_empty() { allowed.len() } else { 0 };
    allowed.insert(place, rule.into());
    expected["permissions"]["allow"] = allowed.into();
    if plain(&after, file)? == expected { Ok(Some(after)) } else { Err(no_place()) }
}

/// What the text says, without places. Missing tables are null.
fn plain(text: &str, file: &Path) -> Result<serde_json::Value, String> {
    fn of(content: &Content) -> serde_json::Value {
        match content {
            Content::Boolean(value) => json!(value),
            Content::Integer(value) => json!(value),
            Content::Text(text) | Content::Untyped(text) => json!(text),
            Content::List(items) => items.iter().map(|item| of(&item.content)).collect(),
            Content::Table(members) => {
                let members = members.iter().map(|member| (member.name.clone(), of(&member.node.content)));
                serde_json::Value::Object(members.collect())
            }
            Content::Other(what) => json!([what]),
        }
    }
    let root = Node::read(Format::Toml, text, &Arc::from(file)).map_err(|problem| problem.to_string())?;
    Ok(of(&root.content))
}

/// The line of the rule; 0 where it is not found.
fn line_of(text: &str, rule: &str, file: &Path) -> usize {
    let find = || {
        let root = Node::read(Format::Toml, text, &Arc::from(file)).ok()?;
        let member = |node: &Node, name: &str| match &node.content {
            Content::Table(members) => members.iter().find(|one| one.name == name).map(|one| one.node.clone()),
            _ => None,
        };
        let Content::List(rules) = member(&member(&root, "permissions")?, "allow")?.content else { return None };
        let found = rules.into_iter().find(|one| matches!(&one.content, Content::Text(text) if text == rule))?;
        match found.origin {
            crate::config::origin::Origin::File(_, line) => Some(line),
            _ => None,
        }
    };
    find().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        Config,
        environment::Environment,
        request::{Flags, Request},
    };

    const RULE: &str = "Write(//w/a \"b\")";

    #[track_caller]
    fn check(before: &str, expected: &str) {
        let after = with_allow_rule(before, RULE, Path::new("/x.toml")).unwrap();
        assert_eq!(after.as_deref(), Some(expected));
        assert_eq!(with_allow_rule(expected, RULE, Path::new("/x.toml")), Ok(None), "it is added once");
    }

    #[test]
    fn a_rule_is_added_and_every_other_byte_stays() {
        check("", "[permissions]\nallow = [\"Write(//w/a \\\"b\\\")\"]\n");
        check(
            "[limits]\nprocesses = 3",
            "[limits]\nprocesses = 3\n\n[permissions]\nallow = [\"Write(//w/a \\\"b\\\")\"]\n",
        );
        check(
            "# mine\n[permissions] # so\nmode = \"plan\"\n",
            "# mine\n[permissions] # so\nallow = [\"Write(//w/a \\\"b\\\")\"]\nmode = \"plan\"\n",
        );
        check("[permissions]", "[permissions]\nallow = [\"Write(//w/a \\\"b\\\")\"]\n");
        check("[permissions]\nallow = []\n", "[permissions]\nallow = [\"Write(//w/a \\\"b\\\")\"]\n");
        check(
            "[permissions]\nallow = [ # why\n  'Read', # because\n]\ndeny = ['x']\n",
            "[permissions]\nallow = [\"Write(//w/a \\\"b\\\")\",  # why\n  'Read', # because\n]\ndeny = ['x']\n",
        );
        check("permissions.allow = ['Read']\n", "permissions.allow = [\"Write(//w/a \\\"b\\\")\", 'Read']\n");
    }

    #[test]
    fn where_there_is_no_place_for_a_rule_nothing_changes() {
        for text in [
            "permissions = 1\n",
            "permissions = { mode = 'plan' }\n",
            "permissions.mode = 'plan'\n",
            "[permissions]\nallow = 'Read'\n",
            "[permissions\n",
            "a = 1\na = 2\n",
        ] {
            assert!(with_allow_rule(text, RULE, Path::new("/x.toml")).is_err(), "{text}");
        }
    }

    fn load(home: &Path, project: &Path) -> Config {
        let at = |path: &Path| path.to_str().unwrap().to_owned();
        let environment = Environment::new([
            ("HOME", at(home)),
            ("XDG_CONFIG_HOME", at(&home.join("config"))),
            ("XDG_DATA_HOME", at(&home.join("data"))),
        ]);
        let request = Request {
            environment,
            start: project.into(),
            administrator: home.join("none"),
            file: None,
            flags: Flags::default(),
        };
        Config::load(&request).unwrap()
    }

    fn rules(config: &Config) -> Vec<String> {
        config.rules.iter().map(|rule| format!("{} in {}", rule.text, rule.origin)).collect()
    }

    #[tokio::test]
    async fn what_is_kept_is_in_force_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, project) = (root.join("home"), root.join("home/project"));
        fs::create_dir_all(&project).unwrap();
        fs::create_dir(project.join(".git")).unwrap();
        fs::write(project.join("toolstead.toml"), "[permissions]\ndeny = ['Write(secret)']\n").unwrap();
        let store = load(&home, &project).rule_store();
        assert!(store.keeps(ApprovalScope::Project) && store.keeps(ApprovalScope::Always));
        assert!(!store.keeps(ApprovalScope::Session));
        let local = project.join("toolstead.local.toml");
        let user = home.join("config/toolstead/config.toml");
        let kept = store.keep("Write(//w/a)", ApprovalScope::Project).await.unwrap();
        assert_eq!(kept, RuleOrigin::File(local.clone(), 2));
        store.keep("Write(//w/b)", ApprovalScope::Project).await.unwrap();
        assert_eq!(store.keep("Write(//w/c)", ApprovalScope::Always).await, Ok(RuleOrigin::File(user.clone(), 2)));
        assert_eq!(store.keep("Write(//w/c)", ApprovalScope::Always).await, Ok(RuleOrigin::File(user.clone(), 2)));
        let told = rules(&load(&home, &project));
        for expected in [
            format!("Write(//w/a) in {}:2", local.display()),
            format!("Write(//w/b) in {}:2", local.display()),
            format!("Write(//w/c) in {}:2", user.display()),
        ] {
            assert!(told.contains(&expected), "{told:?}");
        }

        // Somebody else's hand in the file: nothing of it counts, and nothing is added to it.
        fs::write(&local, "[permissions]\nallow = ['Bash']\n").unwrap();
        assert!(rules(&load(&home, &project)).iter().all(|rule| !rule.contains("local.toml")));
        let refused = store.keep("Write(//w/d)", ApprovalScope::Project).await.unwrap_err();
        assert!(refused.0.contains("toolstead config trust"), "{refused}");
        assert_eq!(fs::read_to_string(&local).unwrap(), "[permissions]\nallow = ['Bash']\n");
    }

    #[test]
    fn files_that_are_not_toml_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("config/toolstead")).unwrap();
        fs::write(home.join("config/toolstead/config.json"), "{}").unwrap();
        let store = load(&home, &home).rule_store();
        assert!(!store.keeps(ApprovalScope::Always), "the user's file is JSON");
        assert!(!store.keeps(ApprovalScope::Project), "the home folder is no project");
    }
}
