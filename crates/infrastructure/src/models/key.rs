//! API key of a model, from any source.

use super::{key_file, settings::KeySource};
use crate::user_program::UserProgramPort;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Mutex, task::spawn_blocking};
use toolstead_domain::{ModelError, Secret};

/// Timeout of the key command. The user may have to unlock a key store.
const TIME_FOR_COMMAND: Duration = Duration::from_secs(60);
/// Maximum length of a key, in bytes.
const MAX_BYTES: usize = 16 << 10;

/// API key of one model.
#[derive(Debug)]
pub(super) struct ApiKeyResolver {
    pub(super) source: KeySource,
    /// Port that runs the command of [`KeySource::Command`].
    pub(super) commands: Option<Arc<dyn UserProgramPort>>,
    /// Key that the command returned. Locked while the command runs, so that it runs once.
    pub(super) remembered: Mutex<Option<Secret>>,
}

/// Key for one request.
#[derive(Debug)]
pub(super) struct RequestKey {
    /// Key; `None` if none is needed.
    pub(super) secret: Option<Secret>,
    /// `true` if the key is from an earlier request and may be outdated.
    pub(super) may_be_stale: bool,
}

impl ApiKeyResolver {
    /// Returns the current key.
    ///
    /// # Errors
    /// Returns [`ModelError::Unauthorized`], which says what to do. It contains no part of a key.
    pub(super) async fn now(&self) -> Result<RequestKey, ModelError> {
        let fresh = |secret| RequestKey { secret, may_be_stale: false };
        match &self.source {
            KeySource::None => Ok(fresh(None)),
            KeySource::Known(secret) => Ok(fresh(Some(checked(secret.expose(), "the key")?))),
            KeySource::Missing(what_to_do) => Err(ModelError::Unauthorized(what_to_do.clone())),
            KeySource::File(path) => {
                let (place, path) = (format!("the key file `{}`", path.display()), path.clone());
                let read = spawn_blocking(move || key_file::read(&path)).await;
                let read = read.map_err(|_| no_key(&place, "it could not be read"))?;
                let text = read.map_err(|error| no_key(&place, error))?;
                Ok(fresh(Some(checked(&text, &place)?)))
            }
            KeySource::Command(words) => {
                let mut remembered = self.remembered.lock().await;
                if let Some(secret) = &*remembered {
                    return Ok(RequestKey { secret: Some(secret.clone()), may_be_stale: true });
                }
                let secret = self.run_key_command(words).await?;
                *remembered = Some(secret.clone());
                Ok(fresh(Some(secret)))
            }
        }
    }

    /// Forgets the remembered key if it is `refused`, a key that the provider rejected. The next request then runs the
    /// key command again.
    pub(super) async fn forget(&self, refused: &Secret) {
        let mut remembered = self.remembered.lock().await;
        if remembered.as_ref() == Some(refused) {
            *remembered = None;
        }
    }

    /// Runs the command and returns the key it prints. Its outputs appear in no error, because they may contain the
    /// key.
    async fn run_key_command(&self, words: &[String]) -> Result<Secret, ModelError> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(no_key("the key command", "it is empty; name a program"));
        };
        let place = format!("the key command `{program}`");
        let Some(commands) = &self.commands else {
            let reason = "this program runs no key commands; use a file or a variable, or have the program set \
                          `Model::with_key_commands` (feature `sandbox` of `toolstead-infrastructure`)";
            return Err(no_key(&place, reason));
        };
        let printed = commands.output(program, arguments, TIME_FOR_COMMAND).await;
        checked(&printed.map_err(|error| no_key(&place, error))?, &place)
    }
}

fn checked(text: &str, place: &str) -> Result<Secret, ModelError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(no_key(place, "it is empty"));
    }
    if text.len() > MAX_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let what = "a key must be one word of visible ASCII characters";
        return Err(no_key(place, what));
    }
    Ok(Secret::new(text))
}

fn no_key(place: &str, reason: impl std::fmt::Display) -> ModelError {
    ModelError::Unauthorized(format!("no key is available: {place}: {reason}"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test writes the key file")]
mod tests {
    use super::*;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    async fn secret_of(key: &ApiKeyResolver) -> String {
        key.now().await.unwrap().secret.unwrap().expose().to_owned()
    }

    #[tokio::test]
    async fn a_changed_key_file_takes_effect_immediately() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key =
            ApiKeyResolver { source: KeySource::File(path.clone()), commands: None, remembered: Mutex::default() };
        for text in ["sk-1", "sk-2"] {
            fs::write(&path, format!("  {text}\n")).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            assert_eq!(secret_of(&key).await, text);
        }
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let error = key.now().await.unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains("sk-2"), "{error}");
    }

    #[tokio::test]
    async fn a_key_command_without_a_command_runner_fails_and_names_the_missing_feature() {
        let source = KeySource::Command(vec!["key".into()]);
        let key = ApiKeyResolver { source, commands: None, remembered: Mutex::default() };
        let error = key.now().await.unwrap_err().to_string();
        assert!(error.contains("runs no key commands") && error.contains("feature `sandbox`"), "{error}");
    }

    #[cfg(feature = "sandbox")]
    mod commands {
        use super::*;
        use crate::{
            child_environment,
            sandbox::{launcher::Launcher, user_programs::UserProgramRunner},
        };
        use std::path::Path;

        fn key(source: KeySource, folder: &Path) -> ApiKeyResolver {
            let commands = UserProgramRunner {
                launcher: Launcher::start().unwrap(),
                environment: child_environment::base(|_| None),
                folder: folder.to_path_buf(),
            };
            ApiKeyResolver { source, commands: Some(Arc::new(commands)), remembered: Mutex::default() }
        }

        fn command(line: &str) -> KeySource {
            KeySource::Command(["sh", "-c", line].map(str::to_owned).to_vec())
        }

        #[tokio::test]
        async fn a_key_command_runs_again_only_after_its_key_was_rejected() {
            let folder = tempfile::tempdir().unwrap();
            let key = key(command("echo x >> runs; echo \"sk-$(wc -l < runs | tr -d ' ')\""), folder.path());
            assert_eq!(secret_of(&key).await, "sk-1");
            let again = key.now().await.unwrap();
            assert!(again.may_be_stale);
            assert_eq!(again.secret, Some(Secret::new("sk-1")));
            key.forget(&Secret::new("sk-0")).await;
            assert_eq!(secret_of(&key).await, "sk-1");
            key.forget(&Secret::new("sk-1")).await;
            assert_eq!(secret_of(&key).await, "sk-2");
        }

        #[tokio::test]
        async fn errors_of_a_key_command_do_not_contain_its_output() {
            let folder = tempfile::tempdir().unwrap();
            for (line, words) in [
                ("echo sk-secret; echo sk-secret >&2; exit 3", "it ended with code 3"),
                ("echo sk-secret and more", "one word"),
                ("printf 'sk-secret\\0'", "one word"),
                ("exit 0", "it is empty"),
                ("yes sk-secret | head -c 3000000", "too much"),
            ] {
                let error = key(command(line), folder.path()).now().await.unwrap_err().to_string();
                assert!(error.contains(words) && !error.contains("sk-secret"), "{line}: {error}");
            }
            let missing = key(KeySource::Command(vec!["no-such-program".into()]), folder.path());
            let error = missing.now().await.unwrap_err().to_string();
            assert!(error.contains("`no-such-program` was not found"), "{error}");
        }

        #[tokio::test]
        async fn a_key_command_runs_without_a_shell() {
            let folder = tempfile::tempdir().unwrap();
            let words = ["echo", "$(id);sk-1"].map(str::to_owned).to_vec();
            assert_eq!(secret_of(&key(KeySource::Command(words), folder.path())).await, "$(id);sk-1");
        }
    }
}
