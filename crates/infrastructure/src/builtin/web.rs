//! Web pages: their addresses, and cached responses.

pub(super) mod page_cache;
pub(super) mod web_address;
