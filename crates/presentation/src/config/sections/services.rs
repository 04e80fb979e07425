//! `[web]`, `[search]`, `[google]`, `[linkedin]`, `[anthropic_admin]`, `[secrets]`: outbound access, and the services
//! that tools use.
//!
//! An unusable service does not affect anything else; its tools report the reason. A key in the default variable is
//! sent only to the default address. If the configuration names another address, it must also name the key.

use crate::config::{
    layers::{EffectiveSetting, ResolvedSettings, environment::EnvironmentVariables},
    sections::plaintext_url::is_plaintext,
    tree::{expansion::expand, origin::Origin, problem::Problem, value::ValidatedConfigValue},
};
use http::HeaderValue;
use std::{path::PathBuf, time::Duration};
use toolstead_domain::Secret;
use toolstead_infrastructure::{
    accounts::oauth_client::OAuthClient,
    egress::host::HostPatterns,
    services::{
        linkedin::LinkedinSettings,
        settings::{AnthropicAdminSettings, SearchProvider, SearchSettings, ServiceSettings},
    },
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

const LINKEDIN_IS_OFF: &str =
    "it is off: `[linkedin] enabled = true` switches it on, for who accepts the terms of the site";

/// Prefix of Anthropic keys that are for administrators.
const ADMIN_KEY: &str = "sk-ant-admin";
const ANTHROPIC_KEY: &str = "sk-ant-";

/// Settings of tools that use the network.
#[derive(Debug, Clone)]
pub struct NetworkToolSettings {
    /// Hosts that may be fetched although they are in a private network or on this machine.
    pub private_hosts: HostPatterns,
    /// Proxy through which pages are fetched.
    pub proxy: Option<Url>,
    /// `true` if `robots.txt` is checked before a page is fetched.
    pub respects_robots: bool,
    /// Settings of the services.
    pub services: ServiceSettings,
    /// OAuth client for Google, or the reason why sign-in is unavailable.
    pub google: Result<OAuthClient, String>,
    /// Path of the browser that opens pages; `None`: the first one found on the machine.
    pub browser: Option<PathBuf>,
    /// Idle time after which a browser is closed.
    pub browser_idle: Duration,
    /// File with the key that encrypts stored tokens; `None`: the default file.
    pub key_file: Option<PathBuf>,
}

/// Returns the settings for outbound access, for the browser, and for the services that tools use.
pub(in crate::config) fn outside(
    resolved: &ResolvedSettings,
    environment: &EnvironmentVariables,
    problems: &mut Vec<Problem>,
    notes: &mut Vec<Problem>,
) -> NetworkToolSettings {
    let mut reader = ServiceSettingsReader { resolved, environment, notes };
    let google = reader.service("google", ServiceSettingsReader::google);
    let of_google = |address: Result<Url, String>| google.as_ref().map_err(Clone::clone).and(address);
    let services = ServiceSettings {
        search: reader.service("search", ServiceSettingsReader::search),
        gmail: of_google(reader.service("google", |reader| reader.for_tokens("google.gmail_base_url", GMAIL))),
        calendar: of_google(reader.service("google", |reader| reader.for_tokens("google.calendar_base_url", CALENDAR))),
        linkedin: match reader.is_true("linkedin.enabled") {
            true => reader.service("linkedin", ServiceSettingsReader::linkedin),
            false => Err(reader.missing("linkedin", LINKEDIN_IS_OFF.into())),
        },
        anthropic_admin: reader.service("anthropic_admin", ServiceSettingsReader::anthropic_admin),
    };
    // An invalid proxy is an error, because pages would otherwise be fetched without it.
    let proxy = reader.said_url("web.proxy").unwrap_or_else(|message| {
        problems.push(Problem::new(reader.origin("web.proxy"), message));
        None
    });
    NetworkToolSettings {
        private_hosts: reader.private_hosts(problems),
        proxy,
        respects_robots: reader.is_true("web.respect_robots"),
        services,
        google,
        browser: reader.text("browser.program").map(PathBuf::from),
        browser_idle: Duration::from_secs(match reader.value("browser.idle_seconds") {
            Some(ValidatedConfigValue::Integer(seconds)) => seconds,
            _ => 300,
        }),
        key_file: reader.text("secrets.key_file").map(PathBuf::from),
    }
}

struct ServiceSettingsReader<'a> {
    resolved: &'a ResolvedSettings,
    environment: &'a EnvironmentVariables,
    notes: &'a mut Vec<Problem>,
}

impl ServiceSettingsReader<'_> {
    fn value(&self, path: &str) -> Option<ValidatedConfigValue> {
        self.resolved.value(path)
    }

    fn text(&self, path: &str) -> Option<String> {
        self.value(path)?.as_text().map(str::to_owned)
    }

    fn is_true(&self, path: &str) -> bool {
        self.resolved.is_true(path)
    }

    fn origin(&self, path: &str) -> Origin {
        self.resolved.origin(path)
    }

    fn note(&mut self, note: Problem) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn said_of(&self, section: &str) -> Vec<EffectiveSetting> {
        self.resolved.all_in(section)
    }

    /// Returns the reason why a service is missing, with a setting of its section that waits for trust, if there is
    /// one.
    fn missing(&self, section: &str, reason: String) -> String {
        let settings = self.said_of(section);
        let mut waiting = settings.iter().flat_map(|setting| setting.waiting.iter().map(|one| (setting.name(), one)));
        let reference = waiting.find_map(|(name, one)| match &one.origin {
            Origin::File(path, _) => Some(format!("`{name}` waits for `toolstead config trust {}`", path.display())),
            _ => None,
        });
        reference.map_or(reason.clone(), |reference| format!("{reason}; {reference}"))
    }

    /// Returns the service of a section, or the reason why there is none. If a file configures the section, a note is
    /// added.
    fn service<T>(&mut self, section: &str, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        read(self).map_err(|reason| {
            let origins = self.said_of(section).into_iter().flat_map(|setting| setting.origins);
            if let Some(said) = origins.into_iter().find(|one| matches!(one, Origin::File(..))) {
                self.note(Problem::new(said, format!("`[{section}]` cannot be used: {reason}")));
            }
            self.missing(section, reason)
        })
    }

    /// Returns the HTTP address in the setting at `path`, with variables expanded; `None` if it is not set. The error
    /// is a message for the user.
    fn said_url(&self, path: &str) -> Result<Option<Url>, String> {
        let Some(text) = self.text(path) else { return Ok(None) };
        let read = expand(&text, |name| self.environment.get(name).map(str::to_owned))
            .and_then(|text| Url::parse(&text).map_err(|error| error.to_string()))
            .and_then(|url| match matches!(url.scheme(), "http" | "https") && url.has_host() {
                false => Err("it begins neither with `http://` nor with `https://`".into()),
                true if !url.username().is_empty() || url.password().is_some() => Err("it has a user".into()),
                true if url.query().is_some() || url.fragment().is_some() => Err("it has a query or a fragment".into()),
                true => Ok(url),
            });
        read.map(Some).map_err(|message| format!("`{path}` cannot be used: {message}"))
    }

    fn url(&self, path: &str, usual: &'static str) -> Result<Url, String> {
        match self.said_url(path)? {
            Some(said) => Ok(said),
            None => Url::parse(usual).map_err(|error| error.to_string()),
        }
    }

    /// Returns an address to which a key is sent. Adds a note if the connection is not encrypted.
    fn for_keys(&mut self, path: &str, url: Url) -> Url {
        if is_plaintext(&url) {
            // The address may contain values of variables, so it is not shown.
            let message = format!("what the address of `{path}` is sent goes without encryption, and keys with it");
            self.note(Problem::new(self.origin(path), message));
        }
        url
    }

    /// Returns an address to which tokens are sent: the one at `path`, or else `usual`. Adds a note if the connection
    /// is not encrypted.
    fn for_tokens(&mut self, path: &str, usual: &'static str) -> Result<Url, String> {
        let url = self.url(path, usual)?;
        Ok(self.for_keys(path, url))
    }

    fn private_hosts(&self, problems: &mut Vec<Problem>) -> HostPatterns {
        let value = self.value("web.allow_private_hosts");
        let hosts: Vec<String> =
            value.iter().flat_map(ValidatedConfigValue::items).map(|item| item.text.clone()).collect();
        HostPatterns::parse(&hosts).unwrap_or_else(|error| {
            let message = format!("`web.allow_private_hosts`: {error}");
            problems.push(Problem::new(self.origin("web.allow_private_hosts"), message));
            HostPatterns::default()
        })
    }

    /// Returns the trimmed value of a variable; `None` if it is missing or empty.
    fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(str::trim).filter(|text| !text.is_empty())
    }

    /// Returns the secret in the variable that `path` names, or else in the variable `usual`, if one is given.
    fn secret(&self, path: &str, usual: Option<&str>) -> Result<Secret, String> {
        let said = self.text(path);
        let Some(variable) = said.as_deref().or(usual) else {
            return Err(format!("there is no key: `{path}` names the environment variable that holds it"));
        };
        let held = self.variable(variable).ok_or_else(|| match said {
            Some(_) => format!("the environment variable `{variable}` holds no key: set it"),
            None => format!("there is no key: set the environment variable `{variable}`, or say `{path}`"),
        })?;
        match HeaderValue::from_str(held) {
            Ok(_) => Ok(Secret::new(held)),
            Err(_) => Err(format!(
                "the environment variable `{variable}` does not contain a valid key: it has line breaks or other control \
                 characters"
            )),
        }
    }

    fn search(&mut self) -> Result<SearchSettings, String> {
        let own = self.said_url("search.base_url")?;
        let key_of = self.text("search.api_key_env");
        let provider = match self.text("search.provider") {
            Some(word) => SearchProvider::ALL.into_iter().find(|(known, _)| *known == word).map(|(_, one)| one),
            None if own.is_some() || key_of.is_some() => {
                return Err("`[search] provider` must be one of brave, searxng, tavily, exa or duckduckgo".into());
            }
            // As in other systems, the presence of the key selects the provider.
            None => self.variable("BRAVE_API_KEY").map(|_| SearchProvider::Brave),
        };
        let Some(provider) = provider else {
            return Err("no search provider is set: `[search] provider` names one (brave, searxng, tavily, exa, \
                        duckduckgo), or `BRAVE_API_KEY` holds a key for Brave"
                .into());
        };
        let (address, variable) = match provider {
            SearchProvider::Brave => (Some("https://api.search.brave.com"), Some("BRAVE_API_KEY")),
            SearchProvider::Searxng => (None, None),
            SearchProvider::Tavily => (Some("https://api.tavily.com"), Some("TAVILY_API_KEY")),
            SearchProvider::Exa => (Some("https://api.exa.ai"), Some("EXA_API_KEY")),
            SearchProvider::DuckDuckGo => (Some("https://html.duckduckgo.com"), None),
        };
        let usual = variable.filter(|_| own.is_none());
        let key = match key_of.is_some() || usual.is_some() {
            true => Some(self.secret("search.api_key_env", usual)?),
            false => None,
        };
        let base_url = match (own, address) {
            (Some(own), _) => own,
            (None, Some(address)) => self.url("search.base_url", address)?,
            (None, None) => return Err("`[search] base_url` does not say where the SearXNG server is".into()),
        };
        let base_url = match key {
            Some(_) => self.for_keys("search.base_url", base_url),
            None => base_url,
        };
        Ok(SearchSettings { provider, base_url, key })
    }

    fn google(&mut self) -> Result<OAuthClient, String> {
        let said = self.text("google.client_id");
        let client_id = said.or_else(|| self.variable("GOOGLE_CLIENT_ID").map(str::to_owned));
        let client_id = client_id.ok_or("no client is configured: set `[google] client_id` or `GOOGLE_CLIENT_ID`")?;
        let authorization_url = self.url("google.authorization_url", GOOGLE_SIGN_IN)?;
        let token_url = self.for_tokens("google.token_url", GOOGLE_TOKENS)?;
        let revocation_url = self.for_tokens("google.revocation_url", GOOGLE_REVOCATION)?;
        // The secret is sent to both addresses.
        let is_usual = ["google.token_url", "google.revocation_url"].iter().all(|path| self.text(path).is_none());
        let usual = is_usual.then_some("GOOGLE_CLIENT_SECRET");
        let issuer = match self.text("google.authorization_url") {
            Some(_) => authorization_url.origin().ascii_serialization(),
            None => GOOGLE_ISSUER.to_owned(),
        };
        Ok(OAuthClient {
            issuer,
            client_id,
            client_secret: self.secret("google.client_secret_env", usual)?,
            authorization_url,
            token_url,
            revocation_url,
        })
    }

    fn linkedin(&mut self) -> Result<LinkedinSettings, String> {
        let user_agent = self.text("linkedin.user_agent");
        if user_agent.as_deref().is_some_and(|name| HeaderValue::from_str(name).is_err()) {
            return Err("`linkedin.user_agent` contains characters that a header cannot have".into());
        }
        Ok(LinkedinSettings { base_url: self.url("linkedin.base_url", LINKEDIN)?, user_agent })
    }

    fn anthropic_admin(&mut self) -> Result<AnthropicAdminSettings, String> {
        let own = self.said_url("anthropic_admin.base_url")?;
        let usual = own.is_none().then_some("ANTHROPIC_ADMIN_API_KEY");
        let key = self.secret("anthropic_admin.api_key_env", usual)?;
        if key.expose().starts_with(ANTHROPIC_KEY) && !key.expose().starts_with(ADMIN_KEY) {
            return Err(
                "the key is one for models, and usage takes the key of an administrator (`sk-ant-admin…`)".into()
            );
        }
        let base_url = self.for_tokens("anthropic_admin.base_url", ANTHROPIC)?;
        Ok(AnthropicAdminSettings { base_url, key })
    }
}
