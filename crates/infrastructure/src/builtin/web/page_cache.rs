//! Cached web responses, so that the same page is not fetched for each question about it.

use crate::web::web_client::WebResponse;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use toolstead_domain::{Principal, Timestamp};

/// Age at which a response is fetched again.
const KEPT_FOR: Duration = Duration::from_secs(15 * 60);
/// Maximum number of cached responses. The oldest is discarded first.
const ANSWERS: usize = 200;
/// Maximum size in bytes of all cached responses together: their bodies, headers and addresses.
const BYTES: usize = 32 << 20;

/// Key of a cached response: the request of one principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::builtin) struct PageCacheKey {
    pub(in crate::builtin) principal: Principal,
    pub(in crate::builtin) url: String,
    /// Accepted content types: a server may have a different response for each.
    pub(in crate::builtin) accept: &'static str,
}

/// Cache of web responses in this process.
#[derive(Debug, Default)]
pub(in crate::builtin) struct PageCache(Mutex<PageCacheState>);

#[derive(Debug, Default)]
struct PageCacheState {
    entries: HashMap<PageCacheKey, CachedPage>,
    bytes: usize,
    /// Number of responses stored so far, including discarded ones.
    count: u64,
}

#[derive(Debug)]
struct CachedPage {
    answer: WebResponse,
    stored_at: Timestamp,
    number: u64,
    bytes: usize,
}

impl PageCache {
    /// Returns the cached response; `None` if there is none, or it is too old at this time.
    pub(in crate::builtin) fn answer(&self, request: &PageCacheKey, now: Timestamp) -> Option<WebResponse> {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let page = pages.entries.get(request)?;
        let age = now.0.checked_sub(page.stored_at.0).and_then(|age| u64::try_from(age).ok())?;
        (Duration::from_micros(age) < KEPT_FOR).then(|| page.answer.clone())
    }

    /// Caches a response if its status and headers allow that; otherwise does nothing. Discards the oldest responses
    /// beyond the limits.
    pub(in crate::builtin) fn remember(&self, request: PageCacheKey, answer: WebResponse, now: Timestamp) {
        if !is_cacheable(&answer) {
            return;
        }
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.count += 1;
        let head: usize = answer.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        let page = CachedPage {
            number: pages.count,
            bytes: answer.body.len() + request.url.len() + head,
            answer,
            stored_at: now,
        };
        pages.bytes += page.bytes;
        let replaced = pages.entries.insert(request, page);
        pages.bytes -= replaced.map_or(0, |page| page.bytes);
        while pages.entries.len() > ANSWERS || pages.bytes > BYTES {
            let oldest = pages.entries.iter().min_by_key(|(_, page)| page.number).map(|(request, _)| request.clone());
            let Some(gone) = oldest.and_then(|oldest| pages.entries.remove(&oldest)) else { break };
            pages.bytes -= gone.bytes;
        }
    }
}

/// Returns `true` for a response with the status 200 that is not a redirect, and whose server allows caching.
fn is_cacheable(answer: &WebResponse) -> bool {
    let says = answer.headers.get_all("cache-control").iter().filter_map(|value| value.to_str().ok());
    let mut words = says.flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase());
    answer.status == http::StatusCode::OK
        && answer.redirect_target.is_none()
        && !words.any(|word| matches!(&*word, "no-store" | "no-cache" | "max-age=0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};
    use proptest::prelude::*;

    fn answer(status: u16, control: &str, body: usize) -> WebResponse {
        let mut headers = HeaderMap::new();
        if !control.is_empty() {
            headers.insert("cache-control", control.parse().unwrap());
        }
        WebResponse {
            url: "https://example.com/".parse().unwrap(),
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: Bytes::from(vec![b'x'; body]),
            is_cut: false,
            redirect_target: None,
        }
    }

    fn of(principal: &str, url: &str, accept: &'static str) -> PageCacheKey {
        PageCacheKey { principal: Principal::new("test", principal), url: url.into(), accept }
    }

    #[test]
    fn a_cached_response_is_valid_for_its_principal_url_and_kind_for_fifteen_minutes() {
        let pages = PageCache::default();
        pages.remember(of("ada", "u", "html"), answer(200, "", 3), Timestamp(0));
        let minutes = |count: i64| Timestamp(count * 60_000_000);
        for (request, now, expected) in [
            (of("ada", "u", "html"), minutes(14), true),
            (of("ada", "u", "html"), minutes(15), false),
            (of("ada", "u", "html"), minutes(-1), false),
            (of("bob", "u", "html"), minutes(1), false),
            (of("ada", "v", "html"), minutes(1), false),
            (of("ada", "u", "text"), minutes(1), false),
        ] {
            assert_eq!(pages.answer(&request, now).is_some(), expected, "{request:?} {now:?}");
        }
    }

    #[test]
    fn caches_only_status_200_responses_whose_server_permits_caching() {
        for (status, control, expected) in [
            (200, "", true),
            (200, "private, max-age=60", true),
            (200, "No-Store", false),
            (200, "private, no-cache", false),
            (200, "max-age=0", false),
            (204, "", false),
            (301, "", false),
            (404, "", false),
        ] {
            let pages = PageCache::default();
            pages.remember(of("ada", "u", "html"), answer(status, control, 1), Timestamp(0));
            let kept = pages.answer(&of("ada", "u", "html"), Timestamp(0)).is_some();
            assert_eq!(kept, expected, "{status} {control}");
        }
    }

    proptest! {
        #[test]
        fn the_cache_stays_within_its_byte_and_entry_limits(sizes in prop::collection::vec((0_usize..300, 0_usize..3 << 20), 0..40)) {
            let pages = PageCache::default();
            for (name, size) in sizes {
                pages.remember(of("ada", &name.to_string(), "html"), answer(200, "", size), Timestamp(0));
                let pages = pages.0.lock().unwrap();
                prop_assert_eq!(pages.bytes, pages.entries.values().map(|page| page.bytes).sum::<usize>());
                prop_assert!(pages.bytes <= BYTES && pages.entries.len() <= ANSWERS);
            }
        }
    }
}
