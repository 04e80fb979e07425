//! Import of tokens that Micro-X left in a folder. The files are read as untrusted text, shown to the user and imported
//! after approval.
//!
//! The files are not changed. Client secrets in them are not read.

use crate::accounts::{
    grant::GRANTS,
    oauth_client::OAuthClient,
    private_file::{OTHERS, PrivateFileError, UserOwnedFile},
    vault::{TokenLookupKey, Tokens, Vault, VaultError},
};
use chrono::{DateTime, NaiveDateTime};
use rustix::fs::CWD;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use toolstead_domain::{Secret, Timestamp};
use url::Url;

/// Token folders of Micro-X, below the folder in which it was started.
const FOLDERS: [&str; 2] = [".gmail-tokens", ".calendar-tokens"];
/// Name of the token file in each folder.
const FILE: &str = "token.json";
/// Maximum size of a file to read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;
const MAX_TOKEN_BYTES: usize = 8 << 10;
const MAX_SCOPES: usize = 50;
const MAX_SCOPE_BYTES: usize = 200;
/// Maximum length of a quoted text from a file, in characters.
const MAX_SAID: usize = 120;

/// Findings of an import, before anything is done.
#[derive(Debug, Default)]
pub struct TokenImportPlan {
    /// Tokens that can be imported.
    pub found: Vec<FoundTokens>,
    /// Files that cannot be imported, with the reason.
    pub refused: Vec<(PathBuf, ImportError)>,
}

/// Tokens in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTokens {
    /// Path of the file.
    pub path: PathBuf,
    /// Names of the grants: `gmail`, `calendar`.
    pub grants: Vec<&'static str>,
    /// Modification time of the file.
    pub written_at: Timestamp,
    /// Mode of the file if other users may read it, who may therefore have the tokens; `None` if they may not.
    pub open_to_others: Option<u32>,
    /// Tokens.
    pub tokens: Tokens,
}

/// Reason why a file is not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The path is a link or no file, or the file belongs to another user, is too large or cannot be read.
    #[error("{0}")]
    File(#[from] PrivateFileError),
    /// The file contains something other than tokens.
    #[error("it has no tokens in the format of Micro-X: {0}")]
    NoTokens(String),
    /// The tokens belong to another issuer.
    #[error("its tokens come from {said}, but the configured issuer is `{configured}`")]
    OtherIssuer {
        /// Issuer in the file.
        said: String,
        /// Configured issuer.
        configured: Url,
    },
    /// The tokens were issued to another client, and only that client can renew them.
    #[error(
        "its tokens were issued to the client {said}, and `[google] client_id` is `{configured}`: set it to that \
         client, or sign in again"
    )]
    OtherClient {
        /// Client in the file.
        said: String,
        /// Configured client.
        configured: String,
    },
    /// The tokens cannot be renewed.
    #[error("it has no refresh token, so it expires within an hour: sign in instead")]
    NotRenewable,
    /// None of the scopes belongs to a grant of this program.
    #[error("its scopes are for neither Gmail nor Calendar: {0}")]
    OtherScopes(String),
}

/// Format that `google.oauth2.credentials` writes.
#[derive(Deserialize)]
struct TokenFile {
    token: Option<String>,
    refresh_token: Option<String>,
    token_uri: Option<String>,
    client_id: Option<String>,
    scopes: Option<Value>,
    expiry: Option<String>,
}

/// Searches for tokens. A place is a token file, a folder with one, or a folder in which Micro-X was started. Changes
/// nothing. Blocks.
pub fn plan(places: &[PathBuf], client: &OAuthClient) -> TokenImportPlan {
    let mut plan = TokenImportPlan::default();
    let mut seen = Vec::new();
    for place in places {
        let inside = FOLDERS.map(|folder| place.join(folder).join(FILE));
        for path in [place.clone(), place.join(FILE)].into_iter().chain(inside) {
            if seen.contains(&path) {
                continue;
            }
            match read(&path, client) {
                Ok(found) => plan.found.extend(found),
                // The place is a folder and is searched next.
                Err(ImportError::File(PrivateFileError::NoFile)) if path == *place => continue,
                Err(reason) => plan.refused.push((path.clone(), reason)),
            }
            seen.push(path);
        }
    }
    plan
}

impl FoundTokens {
    /// Stores the tokens in the vault for each grant, under the key that `key` returns. Replaces any stored tokens.
    ///
    /// # Errors
    /// Returns [`VaultError`].
    pub async fn take(&self, vault: &Vault, key: impl Fn(&str) -> TokenLookupKey + Send) -> Result<(), VaultError> {
        let keys: Vec<TokenLookupKey> = self.grants.iter().map(|grant| key(grant)).collect();
        for key in keys {
            vault.put(&key, self.tokens.clone()).await?;
        }
        Ok(())
    }

    /// Returns advice on the file after the import.
    pub fn advice(&self) -> String {
        let file = self.path.display();
        match self.open_to_others {
            Some(mode) => format!(
                "`{file}` still contains the tokens unencrypted, and others may read it (mode {mode:03o}): delete it \
                 once Micro-X is no longer used, or `chmod 600` it"
            ),
            None => format!("`{file}` still contains the tokens unencrypted: delete it once Micro-X is no longer used"),
        }
    }
}

fn read(path: &Path, client: &OAuthClient) -> Result<Option<FoundTokens>, ImportError> {
    let Some(file) = UserOwnedFile::open(CWD, path)? else { return Ok(None) };
    let open_to_others = (file.mode & OTHERS != 0).then_some(file.mode);
    let written_at = Timestamp(file.written_at.saturating_mul(1_000_000));
    let (grants, tokens) = parsed(&file.read(MAX_FILE_BYTES)?, client)?;
    Ok(Some(FoundTokens { path: path.to_owned(), grants, written_at, open_to_others, tokens }))
}

/// Parses the content of a file, and checks that this client can renew its tokens. Returns the names of the grants with
/// a scope in the file, and the tokens.
fn parsed(bytes: &[u8], client: &OAuthClient) -> Result<(Vec<&'static str>, Tokens), ImportError> {
    let wrong = |reason: &str| ImportError::NoTokens(reason.to_owned());
    let written: TokenFile = serde_json::from_slice(bytes).map_err(|_| wrong("it is not a valid JSON object"))?;
    let issuer = written.token_uri.unwrap_or_default();
    if Url::parse(&issuer).ok().as_ref() != Some(&client.token_url) {
        return Err(ImportError::OtherIssuer { said: quote(&issuer), configured: client.token_url.clone() });
    }
    let id = written.client_id.unwrap_or_default();
    if id != client.client_id {
        return Err(ImportError::OtherClient { said: quote(&id), configured: client.client_id.clone() });
    }
    let token = |text: String| match text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text),
        false => Err(wrong("a token has invalid characters or is too long")),
    };
    let refresh_token = written.refresh_token.filter(|token| !token.is_empty()).ok_or(ImportError::NotRenewable)?;
    let access_token = written.token.filter(|token| !token.is_empty());
    let scopes = scopes(written.scopes).ok_or_else(|| wrong("its `scopes` is not a list of scopes"))?;
    let grants = GRANTS.iter().filter(|grant| scopes.iter().any(|scope| grant.scopes.contains(&scope.as_str())));
    let grants: Vec<&str> = grants.map(|grant| grant.name).collect();
    if grants.is_empty() {
        return Err(ImportError::OtherScopes(quote(&scopes.join(" "))));
    }
    // A token that is missing or has no expiry is renewed before it is used.
    let over = Timestamp(0);
    let expires_at = access_token.as_ref().and(written.expiry).and_then(|text| time(&text)).unwrap_or(over);
    let tokens = Tokens {
        access_token: Secret::new(token(access_token.unwrap_or_default())?),
        refresh_token: Some(Secret::new(token(refresh_token)?)),
        expires_at: Some(expires_at),
        scopes,
        registration: None,
    };
    Ok((grants, tokens))
}

/// Returns the scopes from a list, or from a string separated by spaces; `None` if the value is neither, or is too
/// large.
fn scopes(value: Option<Value>) -> Option<Vec<String>> {
    let scopes: Vec<String> = match value? {
        Value::String(text) => text.split_ascii_whitespace().take(MAX_SCOPES + 1).map(str::to_owned).collect(),
        Value::Array(items) => items.into_iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        _ => return None,
    };
    let is_scope = |scope: &String| scope.len() <= MAX_SCOPE_BYTES && scope.bytes().all(|byte| byte.is_ascii_graphic());
    (scopes.len() <= MAX_SCOPES && scopes.iter().all(is_scope)).then_some(scopes)
}

/// Parses a time as written by Python. A time without a zone is in UTC.
fn time(text: &str) -> Option<Timestamp> {
    let time = match DateTime::parse_from_rfc3339(text) {
        Ok(time) => time.to_utc(),
        Err(_) => NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?.and_utc(),
    };
    Some(Timestamp(time.timestamp_micros()))
}

/// Returns a text of a file on one line and in backticks, cut to [`MAX_SAID`]; a note in parentheses if it is empty.
fn quote(text: &str) -> String {
    if text.is_empty() {
        return "(it does not say)".into();
    }
    let line = text.chars().take(MAX_SAID).map(|c| if c.is_control() || c == '`' { '\u{fffd}' } else { c });
    format!("`{}`", line.collect::<String>())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out what is found")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, symlink},
    };
    use tempfile::TempDir;
    use toolstead_domain::Principal;

    const CALENDAR: &str = "https://www.googleapis.com/auth/calendar";
    const READ_MAIL: &str = "https://www.googleapis.com/auth/gmail.readonly";

    fn client() -> OAuthClient {
        let url = |path: &str| Url::parse(&format!("https://oauth2.googleapis.com/{path}")).unwrap();
        OAuthClient {
            issuer: "https://accounts.google.com".into(),
            client_id: "client-1.apps.example".into(),
            client_secret: Secret::new("s"),
            authorization_url: url("auth"),
            token_url: url("token"),
            revocation_url: url("revoke"),
        }
    }

    /// As `Credentials.to_json` of google-auth writes it.
    fn written(scope: &str) -> Value {
        json!({
            "token": "ya29.one", "refresh_token": "1//two", "token_uri": "https://oauth2.googleapis.com/token",
            "client_id": "client-1.apps.example", "client_secret": "three", "scopes": [scope],
            "universe_domain": "googleapis.com", "account": "", "expiry": "2026-01-05T09:00:00.5Z",
        })
    }

    fn put(folder: &TempDir, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[tokio::test]
    async fn tokens_of_both_folders_are_imported_and_their_files_remain() {
        let home = tempfile::tempdir().unwrap();
        let mail = put(&home, ".gmail-tokens/token.json", written(READ_MAIL).to_string().as_bytes(), 0o644);
        let days = put(&home, ".calendar-tokens/token.json", written(CALENDAR).to_string().as_bytes(), 0o600);
        let plan = plan(&[home.path().to_owned(), home.path().join(".gmail-tokens"), days.clone()], &client());
        let summary: Vec<_> = plan.found.iter().map(|one| (&one.path, &*one.grants, one.open_to_others)).collect();
        assert_eq!(summary, [(&mail, &["gmail"][..], Some(0o644)), (&days, &["calendar"][..], None)]);
        assert!(plan.refused.is_empty(), "{:?}", plan.refused);
        assert!(plan.found[0].advice().contains("chmod 600") && !plan.found[1].advice().contains("chmod"));
        let vault = Vault::open(home.path().join("data"), home.path().join("key")).unwrap();
        let key = |grant: &str| TokenLookupKey {
            principal: Principal::local(),
            issuer: "https://accounts.google.com".into(),
            resource: grant.into(),
        };
        for one in &plan.found {
            one.take(&vault, key).await.unwrap();
        }
        let taken = vault.get(&key("calendar")).await.unwrap().unwrap();
        let expected = Tokens {
            access_token: Secret::new("ya29.one"),
            refresh_token: Some(Secret::new("1//two")),
            expires_at: Some(Timestamp(1_767_603_600_500_000)),
            scopes: vec![CALENDAR.into()],
            registration: None,
        };
        assert_eq!((taken, vault.list(&Principal::local()).await.unwrap().keys.len()), (expected, 2));
        assert_eq!(fs::read_to_string(days).unwrap(), written(CALENDAR).to_string());
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Value), expected: &str) {
        let mut content = written(CALENDAR);
        change(&mut content);
        let error = parsed(content.to_string().as_bytes(), &client()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn foreign_and_malformed_tokens_are_refused_with_a_reason() {
        check(|content| content["token_uri"] = json!("https://evil.example/token"), "`https://evil.example/token`");
        check(|content| content["token_uri"] = Value::Null, "(it does not say)");
        check(|content| content["client_id"] = json!("other`\n"), "client `other\u{fffd}\u{fffd}`");
        check(|content| content["refresh_token"] = Value::Null, "no refresh token");
        check(|content| content["refresh_token"] = json!("a\r\nX: y"), "invalid characters");
        check(|content| content["token"] = json!("a".repeat(9000)), "invalid characters");
        check(|content| content["scopes"] = json!(["https://www.googleapis.com/auth/drive"]), "auth/drive");
        check(|content| content["scopes"] = json!([1]), "not a list of scopes");
        check(|content| content["scopes"] = json!(vec!["s"; 51]), "not a list of scopes");
        check(|content| *content = json!([]), "not a valid JSON object");
        let deep = "[".repeat(60_000);
        assert!(parsed(deep.as_bytes(), &client()).is_err());
    }

    #[test]
    fn a_token_with_an_invalid_expiry_is_imported_as_expired() {
        for (expiry, expected) in [
            (json!("2026-01-05T09:00:00"), 1_767_603_600_000_000),
            (json!("2026-01-05T10:00:00+01:00"), 1_767_603_600_000_000),
            (json!("soon"), 0),
            (Value::Null, 0),
        ] {
            let mut content = written(CALENDAR);
            content["expiry"] = expiry.clone();
            let (_, tokens) = parsed(content.to_string().as_bytes(), &client()).unwrap();
            assert_eq!(tokens.expires_at, Some(Timestamp(expected)), "{expiry}");
        }
    }

    #[test]
    fn links_and_oversized_files_are_refused_with_their_path() {
        let home = tempfile::tempdir().unwrap();
        let real = put(&home, "real.json", written(CALENDAR).to_string().as_bytes(), 0o600);
        let large = put(&home, ".gmail-tokens/token.json", &[b' '; 70 << 10], 0o600);
        fs::create_dir(home.path().join(".calendar-tokens")).unwrap();
        let link = home.path().join(".calendar-tokens/token.json");
        symlink(real, &link).unwrap();
        let plan = plan(&[home.path().to_owned()], &client());
        let refused: Vec<_> = plan.refused.iter().map(|(path, reason)| (path, reason.to_string())).collect();
        assert!(plan.found.is_empty());
        assert!(refused[0].0 == &large && refused[0].1.contains("more than"), "{refused:?}");
        assert!(refused[1].0 == &link && refused[1].1.contains("it is a link"), "{refused:?}");
    }

    proptest! {
        #[test]
        fn parsing_arbitrary_bytes_as_a_token_file_returns_an_error_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(parsed(&bytes, &client()).is_err());
        }
    }
}
