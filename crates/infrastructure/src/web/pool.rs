//! A pool of endpoints, whose connections are reused.

use crate::http::{
    client::{EndpointClient, HttpClient},
    http_error::HttpError,
};
use std::sync::{Mutex, PoisonError};
use url::Url;

/// Maximum number of origins in the pool, the last used.
const MAX_ORIGINS: usize = 32;

/// Origins that one client has used.
#[derive(Debug)]
pub(super) struct EndpointPool {
    client: HttpClient,
    /// Sorted by last use, the latest last. Short enough for a linear search.
    used: Mutex<Vec<EndpointClient>>,
}

impl EndpointPool {
    pub(super) fn new(client: HttpClient) -> Self {
        Self { client, used: Mutex::default() }
    }

    /// Returns the client that creates the endpoints.
    pub(super) fn client(&self) -> &HttpClient {
        &self.client
    }

    /// Returns the endpoint of this URL, with the existing connections to its origin.
    ///
    /// # Errors
    /// [`HttpError::Address`].
    pub(super) fn endpoint(&self, url: &Url) -> Result<EndpointClient, HttpError> {
        // No code panics while it holds this lock.
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
    fn the_pool_keeps_a_limited_number_of_recently_used_origins() {
        let pool = EndpointPool::new(HttpClient::new(Connector::to_configured_hosts(Arc::new(FakeNetwork::default()))));
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
