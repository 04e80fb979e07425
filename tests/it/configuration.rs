//! The configuration, from files on disk to the value that the program works with.

mod defaults;
mod documentation;
mod formats;
mod layers;
mod mistakes;
mod models;
mod servers;
mod services;
mod tool_search;
mod tools;
mod trust;
mod views;

use std::{fs, path::Path};
use tempfile::TempDir;
use toolstead_presentation::config::{
    Config,
    layers::{
        environment::EnvironmentVariables,
        request::{ConfigFlags, ConfigRequest},
    },
    tree::problem::ConfigError,
};

/// A machine of its own: `etc/`, `home/` with `.config/toolstead/`, and `home/project/` under version control, where
/// the program starts.
struct Machine {
    folder: TempDir,
    request: ConfigRequest,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["etc", "home/.config/toolstead", "home/project/.git", "home/project/src", "elsewhere"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let request = ConfigRequest {
            environment: EnvironmentVariables::new([("HOME", root.join("home").to_str().unwrap())]),
            start: root.join("home/project"),
            administrator: root.join("etc"),
            file: None,
            flags: ConfigFlags::default(),
        };
        Self { folder, request }
    }

    /// With files; a name is relative to the machine's root.
    fn with(files: &[(&str, &str)]) -> Self {
        let machine = Self::new();
        for (name, text) in files {
            machine.write(name, text);
        }
        machine
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn variables(mut self, variables: &[(&str, &str)]) -> Self {
        let home = self.path("home");
        let all = variables.iter().copied().chain([("HOME", home.as_str())]);
        self.request.environment = EnvironmentVariables::new(all);
        self
    }

    fn load(&self) -> Result<Config, ConfigError> {
        Config::load(&self.request)
    }

    #[track_caller]
    fn config(&self) -> Config {
        self.load().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the text for comparison, with the machine's root as `~`.
    fn plain(&self, text: impl ToString) -> String {
        text.to_string().replace(&self.path(""), "~/")
    }

    #[track_caller]
    fn fails(&self, expected: &str) {
        let error = self.load().map(|_| "no error").unwrap_err();
        assert_eq!(self.plain(error), expected);
    }

    /// The value of a key with its origins.
    fn setting(&self, name: &str) -> String {
        let all = self.config().resolved.all();
        let setting = all.iter().find(|setting| setting.name() == name).unwrap();
        let value = setting.value.as_ref().map_or("nothing".to_owned(), ToString::to_string);
        let origins: Vec<String> = setting.origins.iter().map(ToString::to_string).collect();
        self.plain(format!("{value} from {}", origins.join(", ")))
    }

    /// Returns the settings that wait for trust.
    fn waiting(&self) -> Vec<String> {
        let all = self.config().resolved.all();
        let waiting =
            all.iter().flat_map(|one| one.waiting.iter().map(|value| format!("{} = {}", one.name(), value.value)));
        waiting.map(|text| self.plain(text)).collect()
    }

    fn trust(&self, name: &str) {
        let config = self.config();
        let file = config.files.iter().find(|file| file.path.ends_with(name)).unwrap();
        config.set_trust(file, true).unwrap();
    }

    fn rules(&self) -> Vec<String> {
        let rules = self.config().permissions.rules;
        rules
            .iter()
            .map(|rule| self.plain(format!("{} {} in {}", rule.effect.as_str(), rule.text, rule.origin)))
            .collect()
    }

    fn roots(&self) -> Vec<String> {
        let roots = self.config().roots;
        let write = roots.write.iter().map(|root| format!("write {}", root.display()));
        let read = roots.read_only.iter().map(|root| format!("read {}", root.display()));
        write.chain(read).map(|text| self.plain(text)).collect()
    }
}

const USER: &str = "home/.config/toolstead/config.toml";
const PROJECT: &str = "home/project/toolstead.toml";
const ADMINISTRATOR: &str = "etc/config.toml";
