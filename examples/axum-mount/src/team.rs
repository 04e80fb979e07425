//! Identification of callers by the team's own keys.

use toolstead_presentation::prelude::*;

/// The keys of the team; a real one would ask its identity provider.
const KEYS: [(&str, &str); 2] = [("ada", "ada's-long-key"), ("bob", "bob's-long-key")];

#[derive(Debug)]
pub struct Team;

#[async_trait]
impl Authenticator for Team {
    async fn authenticate(&self, head: &Parts) -> Result<AuthenticatedClient, NotAuthenticated> {
        let given = bearer(&head.headers).unwrap_or_default();
        let person = KEYS.iter().find(|(_, key)| is_same_secret(key.as_bytes(), given.as_bytes()));
        match person {
            Some((name, _)) => Ok(AuthenticatedClient::new(Principal::new("user", name))),
            None => Err(NotAuthenticated::unauthorized(HeaderValue::from_static("Bearer"))),
        }
    }
}
