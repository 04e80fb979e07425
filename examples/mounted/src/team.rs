//! Who calls, as this team knows it.

use axum::http::{HeaderValue, request::Parts};
use toolstead_domain::principal::Principal;
use toolstead_presentation::mcp_server::http::authenticator::{
    Authenticated, Authenticator, NotAuthenticated, bearer, is_same_secret,
};

/// The keys of the team; a real one would ask its identity provider.
const KEYS: [(&str, &str); 2] = [("ada", "ada's-long-key"), ("bob", "bob's-long-key")];

#[derive(Debug)]
pub struct Team;

#[async_trait::async_trait]
impl Authenticator for Team {
    async fn authenticate(&self, head: &Parts) -> Result<Authenticated, NotAuthenticated> {
        let given = bearer(&head.headers).unwrap_or_default();
        let person = KEYS.iter().find(|(_, key)| is_same_secret(key.as_bytes(), given.as_bytes()));
        match person {
            Some((name, _)) => Ok(Authenticated::new(Principal::new("user", name))),
            None => Err(NotAuthenticated::unauthorized(HeaderValue::from_static("Bearer"))),
        }
    }
}
