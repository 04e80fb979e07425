//! `[web]`, `[search]`, `[google]`, `[linkedin]`, `[anthropic_admin]`, `[secrets]`: the way to hosts, and the services that
//! tools speak to.
//!
//! A key of the usual variable goes to the usual address alone: whoever names another address names the key for it, too.

use crate::config::{
    environment::Environment, expansion::expand, layers::Resolved, origin::Origin, problem::Problem, value::Value,
};
use std::path::PathBuf;
use toolstead_domain::secret::Secret;
use toolstead_infrastructure::{
    accounts::oauth_client::OAuthClient,
    sandbox::egress::host::HostPatterns,
    services::settings::{AnthropicAdmin, SearchProvider, SearchSettings, Services},
};
use url::Url;

const GMAIL: &str = "https://gmail.googleapis.com";
const CALENDAR: &str = "https://www.googleapis.com";
const LINKEDIN: &str = "https://www.linkedin.com";
const ANTHROPIC: &str = "https://api.anthropic.com";
const GOOGLE_ISSUER: &str = "https://accounts.google.com";
const GOOGLE_SIGN_IN: &str = "https://accounts.google.com/o/oauth2/v2/auth";
const GOOGLE_TOKENS: &str = "https://oauth2.googleapis.com/token";
const GOOGLE_REVOCATION: &str = "https://oauth2.googleapis.com/revoke";

/// What tools that reach out are made with.
#[derive(Debug, Clone)]
pub struct OutsideSettings {
    /// The hosts that pages may be fetched from although they are in a private network or on this machine.
    pub private_hosts: HostPatterns,
    /// The proxy that pages are fetched through.
    pub proxy: Option<Url>,
    /// Whether `robots.txt` is asked before a page is fetched.
    pub respects_robots: bool,
    /// The services.
    pub services: Services,
    /// This program at Google, or why nobody can sign in there.
    pub google: Result<OAuthClient, String>,
    /// The file with the key that tokens are sealed under; `None`: the usual one.
    pub key_file: Option<PathBuf>,
}

/// What they are in force.
pub(super) fn outside(resolved: &Resolved, environment: &Environment, problems: &mut Vec<Problem>) -> OutsideSettings {
    let mut reader = Reader { resolved, environment, problems };
    let google = reader.google();
    let of_google = |url: Url| google.as_ref().map(|_| url).map_err(Clone::clone);
    let gmail = of_google(reader.url("google.gmail_base_url", GMAIL));
    let calendar = of_google(reader.url("google.calendar_base_url", CALENDAR));
    OutsideSettings {
        private_hosts: reader.private_hosts(),
        proxy: reader.said_url("web.proxy"),
        respects_robots: reader.is_true("web.respect_robots"),
        services: Services {
            search: reader.search(),
            gmail,
            calendar,
            linkedin: match reader.is_true("linkedin.enabled") {
                true => Ok(reader.url("linkedin.base_url", LINKEDIN)),
                false => {
                    Err("it is off: `[linkedin] enabled = true` switches it on, for who accepts the terms of the \
                              site"
                        .into())
                }
            },
            anthropic_admin: reader.anthropic_admin(),
        },
        google,
        key_file: reader.text("secrets.key_file").map(PathBuf::from),
    }
}

struct Reader<'a> {
    resolved: &'a Resolved,
    environment: &'a Environment,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn value(&self, path: &str) -> Option<Value> {
        self.resolved.setting(path)?.value
    }

    fn text(&self, path: &str) -> Option<String> {
        self.value(path)?.as_text().map(str::to_owned)
    }

    fn is_true(&self, path: &str) -> bool {
        self.value(path) == Some(Value::Boolean(true))
    }

    fn problem(&mut self, path: &str, message: String) {
        let setting = self.resolved.setting(path);
        let origin = setting.and_then(|setting| setting.origins.into_iter().next());
        self.problems.push(Problem::new(origin.unwrap_or(Origin::Default), format!("`{path}`: {message}")));
    }

    /// The address that is said; what cannot be used is a problem.
    fn said_url(&mut self, path: &str) -> Option<Url> {
        let text = self.text(path)?;
        let read = expand(&text, |name| self.environment.get(name).map(str::to_owned))
            .and_then(|text| Url::parse(&text).map_err(|error| error.to_string()))
            .and_then(|url| match matches!(url.scheme(), "http" | "https") && url.has_host() {
                true if url.username().is_empty() && url.password().is_none() && url.query().is_none() => Ok(url),
                true => Err("it has a user or a query".into()),
                false => Err("it begins neither with `http://` nor with `https://`".into()),
            });
        read.map_err(|message| self.problem(path, message)).ok()
    }

    fn url(&mut self, path: &str, usual: &'static str) -> Url {
        #[expect(clippy::expect_used, reason = "written above")]
        self.said_url(path).unwrap_or_else(|| Url::parse(usual).expect("it is an address"))
    }

    fn private_hosts(&mut self) -> HostPatterns {
        let value = self.value("web.allow_private_hosts");
        let hosts: Vec<String> = value.iter().flat_map(Value::items).map(|item| item.text.clone()).collect();
        HostPatterns::parse(&hosts).unwrap_or_else(|error| {
            self.problem("web.allow_private_hosts", error.to_string());
            HostPatterns::default()
        })
    }

    /// The secret in the variable that `path` names, else in the usual one, where that may be asked.
    fn secret(&self, path: &str, usual: Option<&str>) -> Result<Secret, String> {
        let said = self.text(path);
        let Some(variable) = said.as_deref().or(usual) else {
            return Err(format!("there is no key: `{path}` names the environment variable that holds it"));
        };
        let held = self.environment.get(variable).map(str::trim).filter(|key| !key.is_empty());
        held.map(Secret::new).ok_or_else(|| match said {
            Some(_) => format!("the environment variable `{variable}` holds no key: set it"),
            None => format!("there is no key: set the environment variable `{variable}`, or say `{path}`"),
        })
    }

    fn search(&mut self) -> Result<SearchSettings, String> {
        let said = self.text("search.provider");
        let provider = match said {
            Some(word) => SearchProvider::ALL.into_iter().find(|(known, _)| *known == word).map(|(_, one)| one),
            // As other programs have it: the key alone chooses.
            None => self.secret("search.api_key_env", Some("BRAVE_API_KEY")).ok().map(|_| SearchProvider::Brave),
        };
        let Some(provider) = provider else {
            return Err("nobody is asked: `[search] provider` names who searches (brave, searxng, tavily, exa, \
                        duckduckgo), or `BRAVE_API_KEY` holds a key for Brave"
                .into());
        };
        let own = self.said_url("search.base_url");
        let (address, variable) = match provider {
            SearchProvider::Brave => (Some("https://api.search.brave.com"), Some("BRAVE_API_KEY")),
            SearchProvider::Searxng => (None, None),
            SearchProvider::Tavily => (Some("https://api.tavily.com"), Some("TAVILY_API_KEY")),
            SearchProvider::Exa => (Some("https://api.exa.ai"), Some("EXA_API_KEY")),
            SearchProvider::DuckDuckGo => (Some("https://html.duckduckgo.com"), None),
        };
        let key = match (variable, &own, self.text("search.api_key_env")) {
            (_, _, Some(_)) => Some(self.secret("search.api_key_env", None)?),
            (Some(usual), None, None) => Some(self.secret("search.api_key_env", Some(usual))?),
            (_, Some(_), None) | (None, ..) => None,
        };
        let base_url = match (own, address) {
            (Some(own), _) => own,
            (None, Some(address)) => self.url("search.base_url", address),
            (None, None) => return Err("`[search] base_url` does not say where the SearXNG server is".into()),
        };
        Ok(SearchSettings { provider, base_url, key })
    }

    fn google(&mut self) -> Result<OAuthClient, String> {
        let variable = "GOOGLE_CLIENT_ID";
        let from_environment = || self.environment.get(variable).map(|id| id.trim().to_owned());
        let client_id = self.text("google.client_id").or_else(from_environment).filter(|id| !id.is_empty());
        let client_id =
            client_id.ok_or("there is no client: say `[google] client_id`, or set `GOOGLE_CLIENT_ID`".to_owned());
        let authorization_url = self.url("google.authorization_url", GOOGLE_SIGN_IN);
        let token_url = self.url("google.token_url", GOOGLE_TOKENS);
        let revocation_url = self.url("google.revocation_url", GOOGLE_REVOCATION);
        let issuer = match self.text("google.authorization_url") {
            Some(_) => authorization_url.origin().ascii_serialization(),
            None => GOOGLE_ISSUER.to_owned(),
        };
        Ok(OAuthClient {
            issuer,
            client_id: client_id?,
            client_secret: self.secret("google.client_secret_env", Some("GOOGLE_CLIENT_SECRET"))?,
            authorization_url,
            token_url,
            revocation_url,
        })
    }

    fn anthropic_admin(&mut self) -> Result<AnthropicAdmin, String> {
        let own = self.said_url("anthropic_admin.base_url");
        let usual = own.is_none().then_some("ANTHROPIC_ADMIN_API_KEY");
        let key = self.secret("anthropic_admin.api_key_env", usual)?;
        if key.expose().starts_with("sk-ant-api") {
            return Err(
                "the key is one for models, and usage takes the key of an administrator (`sk-ant-admin…`)".into()
            );
        }
        let base_url = self.url("anthropic_admin.base_url", ANTHROPIC);
        Ok(AnthropicAdmin { base_url, key })
    }
}
