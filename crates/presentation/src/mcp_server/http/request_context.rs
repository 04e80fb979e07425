//! Sender and headers of a request.

use super::{authenticator::AuthenticatedClient, negotiation::Accept};
use http::HeaderMap;

pub(super) struct RequestContext {
    pub(super) holder: AuthenticatedClient,
    pub(super) headers: HeaderMap,
    pub(super) accept: Accept,
}
