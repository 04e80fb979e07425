//! The ways to origins, with the connections that are kept from request to request.

use crate::http::{
    client::{Endpoint, HttpClient},
    http_error::HttpError,
};
use std::sync::{Mutex, PoisonError};
use url::Url;

/// So many origins are remembered, those that were used last.
const MAX_ORIGINS: usize = 32;

/// The origins that one client went to.
#[derive(Debug)]
pub(super) struct Pool {
    client: HttpClient,
    /// Used last stands last. Short enough to be looked through.
    used: Mutex<Vec<Endpoint>>,
}

impl Pool {
    pub(super) fn new(client: HttpClient) -> Self {
        Self { client, used: Mutex::default() }
    }

    /// The client that makes the ways.
    pub(super) fn client(&self) -> &HttpClient {
        &self.client
    }

    /// The way to this URL, by the connections to its origin where there are some.
    ///
    /// # Errors
    /// [`HttpError::Address`].
    pub(super) fn endpoint(&self, url: &Url) -> Result<Endpoint, HttpError> {
        // Nothing panics while it is held.
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let known = used.iter().enumerate().find_map(|(at, endpoint)| Some((at, endpoint.to(url).ok()?)));
        let endpoint = match known {
            Some((at, endpoint)) => {
                used.remove(at);
                endpoint
            }
            None => self.client.endpoint(url)?,
        };
        if used.len() == MAX_ORIGINS {
            used.remove(0);
        }
        used.push(endpoint.clone());
        Ok(endpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::{connector::Connector, testing::FakeNetwork};
    use std::sync::Arc;

    #[test]
    fn so_many_origins_are_kept_and_those_that_were_used_last() {
        let pool = Pool::new(HttpClient::new(Connector::to_configured_hosts(Arc::new(FakeNetwork::default()))));
        let go = |url: String| drop(pool.endpoint(&url.parse().unwrap()).unwrap());
        for round in 0..3 * MAX_ORIGINS {
            go("https://often.example/".into());
            go(format!("http://h{round}.example/"));
        }
        let used = pool.used.lock().unwrap();
        assert_eq!(used.len(), MAX_ORIGINS);
        assert!(used.iter().any(|endpoint| endpoint.to(&"https://often.example/x".parse().unwrap()).is_ok()));
    }
}
