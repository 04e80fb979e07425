//! A web search with scripted answers.

use super::lock;
use crate::ports::web_search::{WebHit, WebQuery, WebSearch, WebSearchContext, WebSearchError};
use async_trait::async_trait;
use std::{collections::VecDeque, sync::Mutex};

/// Search that answers in the order of the script, limited to hits in the domains of the query. After the end of the
/// script, it finds nothing.
#[derive(Debug, Default)]
pub struct ScriptedSearch {
    host: Option<String>,
    answers: Mutex<VecDeque<Result<Vec<WebHit>, WebSearchError>>>,
    queries: Mutex<Vec<WebQuery>>,
}

impl ScriptedSearch {
    /// Creates a search that uses this host.
    pub fn at(host: &str) -> Self {
        Self { host: Some(host.into()), ..Self::default() }
    }

    /// Adds an answer with these hits.
    #[must_use]
    pub fn finding(self, hits: impl IntoIterator<Item = WebHit>) -> Self {
        lock(&self.answers).push_back(Ok(hits.into_iter().collect()));
        self
    }

    /// Adds a failure.
    #[must_use]
    pub fn failing(self, error: WebSearchError) -> Self {
        lock(&self.answers).push_back(Err(error));
        self
    }

    /// Returns the searches so far, in order.
    pub fn queries(&self) -> Vec<WebQuery> {
        lock(&self.queries).clone()
    }
}

#[async_trait]
impl WebSearch for ScriptedSearch {
    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    async fn search<'s, 'q, 'b>(
        &'s self,
        query: &'q WebQuery,
        bounds: WebSearchContext<'b>,
    ) -> Result<Vec<WebHit>, WebSearchError> {
        if let Some(host) = &self.host {
            (bounds.may_reach)(host).map_err(WebSearchError::NotReached)?;
        }
        lock(&self.queries).push(query.clone());
        let mut hits = lock(&self.answers).pop_front().unwrap_or_else(|| Ok(Vec::new()))?;
        hits.retain(|hit| {
            let host = hit.url.split_once("://").and_then(|(_, rest)| rest.split(['/', ':', '?', '#']).next());
            query.domains.admits(host.unwrap_or_default())
        });
        hits.truncate(query.count);
        Ok(hits)
    }
}
