//! Sender and headers of a request.

use super::{authenticator::AuthenticatedClient, negotiation::Accept};
use http::HeaderMap;
use std::sync::Arc;
use toolstead_domain::{RequestScope, View};

pub(super) struct RequestContext {
    pub(super) holder: AuthenticatedClient,
    pub(super) headers: HeaderMap,
    pub(super) accept: Accept,
    /// View that the path of the request names or the endpoint serves; `None`: all tools.
    pub(super) view: Option<Arc<View>>,
}

impl RequestContext {
    /// Returns the scope of requests outside of sessions.
    pub(super) fn stateless_scope(&self) -> RequestScope {
        self.scope("stateless")
    }

    /// Returns the scope of a request in this session.
    pub(super) fn scope(&self, session: impl Into<Arc<str>>) -> RequestScope {
        let scope = RequestScope::of(self.holder.principal.clone(), session);
        match &self.view {
            Some(view) => scope.through(view.clone()),
            None => scope,
        }
    }
}
