//! The bearer token of the server.

use crate::config::{
    Config,
    layers::{
        environment::{EnvironmentVariables, SERVER_TOKEN},
        folders::{ExistingFileTreatment, real, write_private},
    },
    tree::{origin::Origin, ownership::close_to_others, problem::Problem, source_file::read_bounded},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom, SystemRandom};
use std::{
    io,
    path::{Path, PathBuf},
};
use toolstead_domain::Secret;

/// The token and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpServerToken {
    /// The token: visible ASCII characters, without spaces.
    pub token: Secret,
    /// Origin of the token: the place where it was found or stored.
    pub origin: Origin,
    /// File that contains the token; `None` if it is the value of a variable.
    pub file: Option<PathBuf>,
    /// `true` if it was just created. Only then it is shown, and only on a terminal.
    pub is_new: bool,
    /// Remark about a correction of the permissions of its file.
    pub mended: Option<Problem>,
}

/// Minimum length of a token. A shorter one can be guessed.
const MIN_CHARACTERS: usize = 16;
/// Maximum length of a token.
const MAX_CHARACTERS: usize = 4096;

/// Returns the token of `TOOLSTEAD_SERVER_TOKEN`, or else of `server.token_file`, or else of the data folder, where one
/// is created if necessary. Withdraws permissions of others from the file.
///
/// # Errors
/// A [`Problem`] if a configured token is invalid or too short, if others can read its file and that cannot be
/// corrected, or if none can be created.
pub fn server_token(config: &Config, environment: &EnvironmentVariables) -> Result<HttpServerToken, Problem> {
    if let Some(token) = environment.get(SERVER_TOKEN) {
        return checked(token, Origin::Environment(SERVER_TOKEN.into()));
    }
    if let Some(path) = &config.server.token_file {
        return from_file(path);
    }
    let path = default_file(config)?;
    match write_new(&path, ExistingFileTreatment::Kept) {
        Err(TokenWriteError::Exists) => from_file(&path),
        written => written.map_err(|error| error.of_file(&path)),
    }
}

/// Replaces the token in `server.token_file`, or else in the data folder, by a new one. A server that runs has read its
/// token at its start, and accepts the old one until it is restarted.
///
/// # Errors
/// A [`Problem`] if the token is the value of a variable, or the file holds something else or cannot be written.
pub fn rotate_server_token(config: &Config, environment: &EnvironmentVariables) -> Result<HttpServerToken, Problem> {
    if environment.get(SERVER_TOKEN).is_some() {
        let message = "the token is the value of this variable: set another value, or unset it and name a file";
        return Err(Problem::new(Origin::Environment(SERVER_TOKEN.into()), message));
    }
    let path = match &config.server.token_file {
        Some(path) => path.clone(),
        None => default_file(config)?,
    };
    // A symbolic link is preserved, and its target is replaced.
    let path = real(&path);
    check_replaceable(&path)?;
    write_new(&path, ExistingFileTreatment::Replaced).map_err(|error| error.of_file(&path))
}

/// Rejects a file that holds something other than a token, to which a wrong name or a link may lead.
fn check_replaceable(path: &Path) -> Result<(), Problem> {
    let wrong = |reason: String| Problem::new(Origin::file(path), format!("the token is not replaced: {reason}"));
    let bytes = match read_bounded(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let text = bytes.trim_ascii();
    if text.len() > MAX_CHARACTERS || !text.iter().all(u8::is_ascii_graphic) {
        return Err(wrong(
            "this file holds something other than a token; name another one in `server.token_file`".into(),
        ));
    }
    Ok(())
}

/// Returns the default token file in the data folder. Creates the folder if necessary.
fn default_file(config: &Config) -> Result<PathBuf, Problem> {
    Ok(config.folders.prepare_data()?.join("server-token"))
}

/// Reason why a new token was not written.
#[derive(Debug, thiserror::Error)]
enum TokenWriteError {
    #[error("the file exists")]
    Exists,
    #[error("the system gives no random numbers")]
    NoRandomness,
    #[error(transparent)]
    Io(io::Error),
}

impl TokenWriteError {
    fn of_file(self, path: &Path) -> Problem {
        Problem::new(Origin::file(path), format!("no token can be written: {self}"))
    }
}

fn write_new(path: &Path, existing: ExistingFileTreatment) -> Result<HttpServerToken, TokenWriteError> {
    let mut random = [0_u8; 32];
    SystemRandom::new().fill(&mut random).map_err(|_| TokenWriteError::NoRandomness)?;
    let token = URL_SAFE_NO_PAD.encode(random);
    match write_private(path, token.as_bytes(), existing) {
        Ok(()) => Ok(HttpServerToken {
            token: Secret::new(token),
            origin: Origin::file(path),
            file: Some(path.to_owned()),
            is_new: true,
            mended: None,
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(TokenWriteError::Exists),
        Err(error) => Err(TokenWriteError::Io(error)),
    }
}

fn from_file(path: &Path) -> Result<HttpServerToken, Problem> {
    let origin = Origin::file(path);
    let wrong = |reason: String| Problem::new(origin.clone(), format!("the token cannot be read: {reason}"));
    let bytes = read_bounded(path).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not text".into()))?;
    let mended = close_to_others(path, 0o077)?;
    let mended = mended.map(|Problem { origin, message }| {
        Problem::new(origin, format!("{message}; if others may have read the token, replace it"))
    });
    Ok(HttpServerToken { mended, file: Some(path.to_owned()), ..checked(text.trim(), origin)? })
}

fn checked(token: &str, origin: Origin) -> Result<HttpServerToken, Problem> {
    // The characters that a header can contain (RFC 6750, section 2.1).
    if token.is_empty() || token.len() > MAX_CHARACTERS || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Problem::new(origin, "a token is made of visible ASCII characters, without spaces"));
    }
    if token.len() < MIN_CHARACTERS {
        let message = format!(
            "the token has {} characters, and a token of less than {MIN_CHARACTERS} can be guessed: take a longer one, or none, \
             and one is made in the data folder",
            token.len()
        );
        return Err(Problem::new(origin, message));
    }
    Ok(HttpServerToken { token: Secret::new(token), origin, file: None, is_new: false, mended: None })
}
