//! `[mcp_servers.NAME] auth`: credentials for an MCP server over HTTP.

use crate::config::{layers::ResolvedSettings, tree::value::ValidatedConfigValue};
use std::path::PathBuf;
use toolstead_domain::Secret;
use toolstead_infrastructure::upstream_auth::settings::{
    ClientCredentialsSettings, ExchangeSettings, IdJagSettings, SignInSettings, SubjectTokenFile, UpstreamAuth,
};
use url::Url;

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// Keys of each type, besides `type` and `scopes`.
const KEYS: [(&str, &[&str]); 4] = [
    ("oauth", &["client_id", "client_secret", "client_metadata_url", "issuer"]),
    ("client_credentials", &["client_id", "client_secret", "issuer"]),
    ("exchange", &["client_id", "client_secret", "token_url", "audience", "subject_token_file", "subject_token_type"]),
    (
        "id_jag",
        &[
            "client_id",
            "client_secret",
            "issuer",
            "subject_token_file",
            "idp_issuer",
            "idp_token_url",
            "idp_client_id",
            "idp_client_secret",
        ],
    ),
];

/// Reader of the keys in the `auth` table of one server.
struct AuthTableReader<'a, E> {
    resolved: &'a ResolvedSettings,
    server: &'a str,
    expand: E,
}

impl<E: Fn(&str) -> Result<String, String>> AuthTableReader<'_, E> {
    fn value(&self, key: &str) -> Option<&ValidatedConfigValue> {
        self.resolved.at(&["mcp_servers", self.server, "auth", key])?.value.as_ref()
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        let text = self.value(key).and_then(ValidatedConfigValue::as_text);
        text.map(|text| (self.expand)(text).map_err(|reason| format!("its `auth.{key}`: {reason}"))).transpose()
    }

    fn required(&self, key: &str, kind: &str) -> Result<String, String> {
        self.text(key)?.ok_or_else(|| format!("its `auth` table of the type `{kind}` needs `{key}`"))
    }

    fn secret(&self, key: &str) -> Result<Option<Secret>, String> {
        Ok(self.text(key)?.map(Secret::new))
    }

    fn url(&self, key: &str) -> Result<Option<Url>, String> {
        let url = self.text(key)?.map(|text| Url::parse(&text));
        url.transpose().map_err(|error| format!("its `auth.{key}` is not a URL: {error}"))
    }

    fn scopes(&self) -> Vec<String> {
        let items = self.value("scopes").map(ValidatedConfigValue::items).unwrap_or_default();
        items.iter().map(|item| item.text.clone()).collect()
    }

    fn client(&self, kind: &str) -> Result<ClientCredentialsSettings, String> {
        Ok(ClientCredentialsSettings {
            client_id: self.required("client_id", kind)?,
            client_secret: Secret::new(self.required("client_secret", kind)?),
            scopes: self.scopes(),
            // The server must not choose who receives the secret.
            issuer: Some(self.required("issuer", kind)?),
        })
    }

    /// Refuses keys that this type does not use.
    fn check_keys(&self, kind: &str) -> Result<(), String> {
        let known = KEYS.iter().find(|(name, _)| *name == kind).map(|(_, keys)| *keys).unwrap_or_default();
        let all = KEYS.iter().flat_map(|(_, keys)| keys.iter());
        match all.copied().find(|key| !known.contains(key) && self.value(key).is_some()) {
            Some(key) => Err(format!("its `auth.{key}` has no meaning for the type `{kind}`")),
            None => Ok(()),
        }
    }
}

/// Returns the credentials for a server; `None` if it has no `auth` table.
///
/// # Errors
/// Returns the reason why the table is invalid.
pub(in crate::config) fn auth(
    resolved: &ResolvedSettings,
    server: &str,
    expand: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<UpstreamAuth>, String> {
    let table = AuthTableReader { resolved, server, expand };
    let Some(kind) = table.text("type")? else {
        let others = KEYS.iter().flat_map(|(_, keys)| keys.iter()).copied().chain(["scopes"]);
        return match others.into_iter().find(|key| table.value(key).is_some()) {
            Some(key) => Err(format!("its `auth.{key}` needs `auth.type`")),
            None => Ok(None),
        };
    };
    table.check_keys(&kind)?;
    let subject_token = || -> Result<SubjectTokenFile, String> {
        Ok(SubjectTokenFile::in_file(PathBuf::from(table.required("subject_token_file", &kind)?)))
    };
    let auth = match kind.as_str() {
        "client_credentials" => UpstreamAuth::ClientCredentials(table.client(&kind)?),
        "exchange" => UpstreamAuth::Exchange(ExchangeSettings {
            // The server must not choose who receives the tokens of principals.
            token_url: Some(
                table.url("token_url")?.ok_or("its `auth` table of the type `exchange` needs `token_url`")?,
            ),
            client_id: table.required("client_id", &kind)?,
            client_secret: table.secret("client_secret")?,
            subject_token: subject_token()?,
            subject_token_type: table.text("subject_token_type")?.unwrap_or_else(|| ACCESS_TOKEN.to_owned()),
            audience: table.text("audience")?,
            scopes: table.scopes(),
        }),
        "id_jag" => UpstreamAuth::IdJag(IdJagSettings {
            idp_issuer: table.required("idp_issuer", &kind)?,
            idp_token_url: table
                .url("idp_token_url")?
                .ok_or_else(|| format!("its `auth` table of the type `{kind}` needs `idp_token_url`"))?,
            idp_client_id: table.required("idp_client_id", &kind)?,
            idp_client_secret: table.secret("idp_client_secret")?,
            id_token: subject_token()?,
            client: table.client(&kind)?,
        }),
        _ => {
            let settings = SignInSettings {
                scopes: table.scopes(),
                client_id: table.text("client_id")?,
                client_secret: table.secret("client_secret")?,
                client_metadata_url: table.url("client_metadata_url")?,
                issuer: table.text("issuer")?,
            };
            if settings.client_secret.is_some() && settings.client_id.is_none() {
                return Err("its `auth.client_secret` needs `auth.client_id`".into());
            }
            if settings.client_secret.is_some() && settings.issuer.is_none() {
                return Err("its `auth.client_secret` needs `auth.issuer`".into());
            }
            UpstreamAuth::OAuth(settings)
        }
    };
    Ok(Some(auth))
}
