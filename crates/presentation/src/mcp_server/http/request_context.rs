//! Sender and headers of a request.

use super::{authenticator::Authenticated, negotiation::Accept};
use http::HeaderMap;

pub(super) struct RequestContext {
    pub(super) holder: Authenticated,
    pub(super) headers: HeaderMap,
    pub(super) accept: Accept,
}
