//! Writes allow rules to configuration files, for approvals and for `toolstead permissions allow`.

mod insertion;

use crate::config::{
    Config, ConfigFile,
    layers::{
        LayerKind,
        folders::{ExistingFileTreatment, StandardFolders, real, write_private, write_with_mode},
    },
    sections::policy::{is_known_tool, nameable, no_such_tool},
    tree::{
        check::{PathBase, check},
        format::ConfigFormat,
        origin::Origin,
        problem::Problem,
        source_file::{LOCAL_STEM, project_folders, read_with_place},
    },
    trust::{self, TrustList},
};
use async_trait::async_trait;
use insertion::{line_of, with_allow_rule};
use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::{ApprovalScope, Effect, PermissionRule, RuleNotSaved, RuleStore, permission::rule::RuleOrigin};

/// Result of writing a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleWriteResult {
    /// Path of the file, with symbolic links resolved.
    pub path: PathBuf,
    /// Line of the rule in the file; 0 if it is not known.
    pub line: usize,
    /// `true` if the rule was added, `false` if the file already contained it.
    pub is_new: bool,
}

/// Adds allow rules to `[permissions] allow` in the file of `--config`, or else in the user's own file, which is
/// created if necessary. The rest of the file is unchanged. The rules take effect at the next start.
///
/// # Errors
/// A [`Problem`] if a rule is invalid, or the file is not TOML or cannot be written. Nothing is written then.
pub fn add_allow_rules(config: &Config, rules: &[String]) -> Result<Vec<RuleWriteResult>, Problem> {
    let path = chosen_file(config, "add the rule to `permissions.allow` by hand")?;
    let base = PathBase { folder: path.parent().unwrap_or(Path::new("/")), home: config.folders.home.as_deref() };
    for rule in rules {
        let wrong = |reason: &str| Problem::new(Origin::Default, format!("`{rule}` is not a valid rule: {reason}"));
        let parsed = PermissionRule::parse(Effect::Allow, rule, RuleOrigin::CommandLine, &base.patterns())
            .map_err(|error| wrong(&error.reason))?;
        if let Some(tool) = parsed.named_tool().filter(|tool| !is_known_tool(tool)) {
            return Err(wrong(&no_such_tool(tool, &nameable())));
        }
    }
    let rules: Vec<&str> = rules.iter().map(|rule| rule.trim()).collect();
    add(&config.folders, &path, &rules, RuleFileOwner::User)
}

/// Returns the file of `--config`, or else the user's file. `advice` follows the problem of a file that is not TOML.
pub(super) fn chosen_file(config: &Config, advice: &str) -> Result<PathBuf, Problem> {
    let own = config.files.iter().find(|file| file.kind == LayerKind::Chosen);
    let own = own.or_else(|| config.files.iter().find(|file| file.kind == LayerKind::User));
    let path = match (own, &config.folders.config) {
        (Some(file), _) => file.path.to_path_buf(),
        (None, Some(folder)) => folder.join("config.toml"),
        (None, None) => {
            let message = "it is not set; set it or XDG_CONFIG_HOME to locate the configuration";
            return Err(Problem::new(Origin::Environment("HOME".into()), message));
        }
    };
    match ConfigFormat::of(&path) {
        Some(ConfigFormat::Toml) => Ok(path),
        _ => Err(Problem::new(Origin::file(path), format!("Toolstead changes only TOML files: {advice}"))),
    }
}

/// Owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleFileOwner {
    /// The user: the whole file takes effect.
    User,
    /// A project: the file takes full effect only while the user trusts its content.
    Project,
}

/// Adds all rules to a file, or none, under a lock that other processes respect. The permissions of the file are
/// preserved.
///
/// A trusted file of a project stays trusted; an untrusted one is not changed. A symbolic link of the user is
/// preserved; one in a project may lead to another project and is not written through.
fn add(
    folders: &StandardFolders,
    path: &Path,
    rules: &[&str],
    owner: RuleFileOwner,
) -> Result<Vec<RuleWriteResult>, Problem> {
    let path = match owner {
        RuleFileOwner::User => real(path),
        RuleFileOwner::Project => path.to_path_buf(),
    };
    let wrong = |message: String| Problem::new(Origin::file(path.clone()), message);
    let failed = |error: io::Error| wrong(format!("cannot be changed: {error}"));
    let lock = folders.prepare_data()?.join("rules.lock");
    let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(lock).map_err(failed)?;
    lock.lock().map_err(failed)?;

    let before = match read_with_place(&path) {
        Ok((_, place)) if place != path => return Err(wrong(linked(&place))),
        Ok((bytes, _)) => Some(String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".into()))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound && real(&path) == path && !path.is_symlink() => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(wrong(linked(&real(&path)))),
        Err(error) => return Err(failed(error)),
    };
    let was_trusted = before.as_ref().is_some_and(|text| TrustList::load(folders).0.trusts(&path, text));
    if owner == RuleFileOwner::Project && before.is_some() && !was_trusted {
        return Err(wrong("it waits for `toolstead config trust`".into()));
    }
    let text = before.clone().unwrap_or_default();
    let mut after = text.clone();
    let mut is_new = Vec::with_capacity(rules.len());
    for rule in rules {
        let with_rule = with_allow_rule(&after, rule, &path).map_err(wrong)?;
        is_new.push(with_rule.is_some());
        after = with_rule.unwrap_or(after);
    }
    let base = PathBase { folder: path.parent().unwrap_or(Path::new("/")), home: folders.home.as_deref() };
    let (_, problems) = check(&ConfigFormat::Toml.read(&after, &Arc::from(path.as_path()))?, base);
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    if after != text {
        replace(&path, &after, owner).map_err(failed)?;
        if was_trusted || owner == RuleFileOwner::Project {
            trust::set(folders, &path, Some(&after))?;
        }
    }
    let written = |(rule, is_new): (&&str, bool)| RuleWriteResult {
        path: path.clone(),
        line: line_of(&after, rule, &path),
        is_new,
    };
    Ok(rules.iter().zip(is_new).map(written).collect())
}

fn linked(target: &Path) -> String {
    format!("it is a link, or is below one, to {}: only a file of the project itself is written to", target.display())
}

/// Replaces the content of the file atomically. A new file is readable only by its owner.
fn replace(path: &Path, text: &str, owner: RuleFileOwner) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) => write_with_mode(
            path,
            text.as_bytes(),
            ExistingFileTreatment::Replaced,
            metadata.permissions().mode() & 0o777,
        ),
        Err(_) => {
            // The folder of a project already exists.
            if let (RuleFileOwner::User, Some(folder)) = (owner, path.parent()) {
                fs::create_dir_all(folder)?;
            }
            write_private(path, text.as_bytes(), ExistingFileTreatment::Replaced)
        }
    }
}

/// Files to which approved rules are written, if they are TOML or do not exist yet. Files in other formats are left to
/// the user.
#[derive(Debug, Clone)]
pub(super) struct RuleFileStore {
    folders: StandardFolders,
    project: Option<PathBuf>,
    user: Option<PathBuf>,
}

impl RuleFileStore {
    /// Returns the rule files for the configuration files that were read. With `--config` there are none, since no
    /// other file is read.
    pub(super) fn of(folders: &StandardFolders, files: &[ConfigFile]) -> Self {
        let of_kind = |kind| files.iter().find(|file| file.kind == kind).map(|file| file.path.to_path_buf());
        let none = Self { folders: folders.clone(), project: None, user: None };
        if of_kind(LayerKind::Chosen).is_some() {
            return none;
        }
        let folder = of_kind(LayerKind::Project).and_then(|file| Some(file.parent()?.to_path_buf()));
        // `/` and the home folder are not projects: rules there would apply to everything below them.
        let is_project = |folder: &PathBuf| folder.parent().is_some() && folders.home.as_ref() != Some(folder);
        let folder = folder.or_else(|| project_folders(folders).pop()).filter(is_project);
        let folder = folder.or_else(|| Some(folders.start.clone()).filter(is_project));
        let local = of_kind(LayerKind::Local).or_else(|| Some(folder?.join(format!("{LOCAL_STEM}.toml"))));
        let user = of_kind(LayerKind::User).or_else(|| Some(folders.config.as_ref()?.join("config.toml")));
        let is_toml = |path: &PathBuf| ConfigFormat::of(path) == Some(ConfigFormat::Toml);
        Self { project: local.filter(is_toml), user: user.filter(is_toml), ..none }
    }

    fn file(&self, scope: ApprovalScope) -> Option<&Path> {
        match scope {
            ApprovalScope::Once | ApprovalScope::Run | ApprovalScope::Session | ApprovalScope::ReadOnlyCommands => None,
            ApprovalScope::Project => self.project.as_deref(),
            ApprovalScope::Always => self.user.as_deref(),
        }
    }

    fn add(&self, rule: &str, scope: ApprovalScope) -> Result<RuleOrigin, RuleNotSaved> {
        let path = self.file(scope).ok_or_else(|| RuleNotSaved("there is no file for it".into()))?;
        let owner = if scope == ApprovalScope::Project { RuleFileOwner::Project } else { RuleFileOwner::User };
        let written = add(&self.folders, path, &[rule], owner).map_err(|problem| RuleNotSaved(problem.to_string()))?;
        let written = written.into_iter().next().ok_or_else(|| RuleNotSaved("nothing was written".into()))?;
        Ok(RuleOrigin::File(written.path, written.line))
    }
}

#[async_trait]
impl RuleStore for RuleFileStore {
    fn keeps(&self, scope: ApprovalScope) -> bool {
        self.file(scope).is_some()
    }

    async fn keep(&self, rule: &str, scope: ApprovalScope) -> Result<RuleOrigin, RuleNotSaved> {
        let (files, rule) = (self.clone(), rule.to_owned());
        let added = tokio::task::spawn_blocking(move || files.add(&rule, scope)).await;
        added.unwrap_or_else(|panic| Err(RuleNotSaved(panic.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::layers::{
        environment::EnvironmentVariables,
        request::{ConfigFlags, ConfigRequest},
    };
    use toolstead_domain::testing::rule_store_contract::rule_store_contract;

    fn load(home: &Path, project: &Path) -> Config {
        let at = |path: &Path| path.to_str().unwrap().to_owned();
        let environment = EnvironmentVariables::new([
            ("HOME", at(home)),
            ("XDG_CONFIG_HOME", at(&home.join("config"))),
            ("XDG_DATA_HOME", at(&home.join("data"))),
        ]);
        let request = ConfigRequest {
            environment,
            start: project.into(),
            administrator: home.join("none"),
            file: None,
            flags: ConfigFlags::default(),
        };
        Config::load(&request).unwrap()
    }

    fn rules(config: &Config) -> Vec<String> {
        config.permissions.rules.iter().map(|rule| format!("{} in {}", rule.text, rule.origin)).collect()
    }

    #[tokio::test]
    async fn stored_rules_apply_at_the_next_start_unless_their_file_was_changed() {
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
        let outcome = rules(&load(&home, &project));
        for expected in [
            format!("Write(//w/a) in {}:2", local.display()),
            format!("Write(//w/b) in {}:2", local.display()),
            format!("Write(//w/c) in {}:2", user.display()),
        ] {
            assert!(outcome.contains(&expected), "{outcome:?}");
        }

        // The file was changed by someone else: it takes no effect, and no rule is added to it.
        fs::write(&local, "[permissions]\nallow = ['Bash']\n").unwrap();
        assert!(rules(&load(&home, &project)).iter().all(|rule| !rule.contains("local.toml")));
        let refused = store.keep("Write(//w/d)", ApprovalScope::Project).await.unwrap_err();
        assert!(refused.0.contains("toolstead config trust"), "{refused}");
        assert_eq!(fs::read_to_string(&local).unwrap(), "[permissions]\nallow = ['Bash']\n");
    }

    #[tokio::test]
    async fn a_project_rule_is_not_written_through_a_symbolic_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, project, other) = (root.join("home"), root.join("home/project"), root.join("home/other"));
        for folder in [&project, &other] {
            fs::create_dir_all(folder.join(".git")).unwrap();
        }
        let (local, theirs) = (project.join("toolstead.local.toml"), other.join("toolstead.local.toml"));
        // What is there and trusted at its place, what is there, and what is not there yet.
        for content in [Some("trusted"), Some("strange"), None] {
            if content == Some("trusted") {
                load(&home, &other).rule_store().keep("Write(//w/a)", ApprovalScope::Project).await.unwrap();
            }
            if content == Some("strange") {
                fs::write(&theirs, "# theirs\n").unwrap();
            }
            let before = content.map(|_| fs::read(&theirs).unwrap());
            std::os::unix::fs::symlink("../other/toolstead.local.toml", &local).unwrap();
            let refused = load(&home, &project).rule_store().keep("Write(//w/b)", ApprovalScope::Project).await;
            assert!(refused.as_ref().is_err_and(|reason| reason.0.contains("is a link")), "{content:?}: {refused:?}");
            assert_eq!(fs::read(&theirs).ok(), before, "{content:?}");
            assert!(local.is_symlink());
            fs::remove_file(&local).unwrap();
            let _ = fs::remove_file(&theirs);
        }
        let kept = load(&home, &project).rule_store().keep("Write(//w/b)", ApprovalScope::Project).await;
        assert_eq!(kept, Ok(RuleOrigin::File(local, 2)));
    }

    #[tokio::test]
    async fn the_rule_files_fulfil_the_rule_store_contract() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let project = home.join("project");
        fs::create_dir_all(project.join(".git")).unwrap();
        rule_store_contract(&*load(&home, &project).rule_store()).await;
    }

    #[test]
    fn no_rules_are_stored_in_a_json_configuration_or_for_the_home_folder() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("config/toolstead")).unwrap();
        fs::write(home.join("config/toolstead/config.json"), "{}").unwrap();
        let store = load(&home, &home).rule_store();
        assert!(!store.keeps(ApprovalScope::Always), "the user's file is JSON");
        assert!(!store.keeps(ApprovalScope::Project), "the home folder is not a project");
    }
}
