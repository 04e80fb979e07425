//! The part of the environment that reaches hosts.

use crate::{
    browser::browsers::Browsers,
    builtin::web::page_cache::PageCache,
    egress::{connector::SystemNetwork, host::HostPatterns},
    services::settings::ServiceSettings,
    web::{robots::RobotsCache, web_client::WebClient},
};
use std::{fmt, sync::Arc};
use toolstead_domain::{Credentials, NoAccounts, WebSearch};

/// Environment of the tools that reach hosts: client, services, credentials and browsers.
#[derive(Clone)]
pub struct WebEnvironment {
    pub(super) page_cache: Arc<PageCache>,
    pub(super) robots: Option<Arc<RobotsCache>>,
    pub(super) client: WebClient,
    pub(super) services: Arc<ServiceSettings>,
    pub(super) web_search: Option<Arc<dyn WebSearch>>,
    pub(super) credentials: Arc<dyn Credentials>,
    pub(super) browsers: Arc<Browsers>,
}

impl Default for WebEnvironment {
    fn default() -> Self {
        Self {
            page_cache: Arc::default(),
            robots: None,
            client: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
            services: Arc::default(),
            web_search: None,
            credentials: Arc::new(NoAccounts),
            browsers: Arc::default(),
        }
    }
}

impl WebEnvironment {
    /// Returns the cached web responses.
    pub(in crate::builtin) fn page_cache(&self) -> &PageCache {
        &self.page_cache
    }

    /// Returns the `robots.txt` rules of sites, if they are checked.
    pub(in crate::builtin) fn robots(&self) -> Option<&RobotsCache> {
        self.robots.as_deref()
    }

    /// Returns the client for requests to hosts.
    pub fn client(&self) -> &WebClient {
        &self.client
    }

    /// Returns the configured services.
    pub fn services(&self) -> &ServiceSettings {
        &self.services
    }

    /// Returns the credentials of principals.
    pub fn credentials(&self) -> &dyn Credentials {
        &*self.credentials
    }

    /// Returns the browsers of sessions.
    pub(in crate::builtin) fn browsers(&self) -> &Browsers {
        &self.browsers
    }
}

impl fmt::Debug for WebEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebEnvironment").finish_non_exhaustive()
    }
}
