//! A request without its message.

use super::{authenticator::Authenticated, negotiation::Accept};
use http::HeaderMap;

/// The sender of a request, and its headers.
pub(super) struct RequestContext {
    pub(super) holder: Authenticated,
    pub(super) headers: HeaderMap,
    pub(super) accept: Accept,
}
