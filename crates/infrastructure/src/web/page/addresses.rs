//! Absolute addresses of the links of a page.

use super::tree::PageTree;
use url::Url;

/// Maximum length of an address in bytes. Longer ones are omitted, because they are useless to a reader.
const MAX_ADDRESS: usize = 2_000;

/// Base of the relative addresses of a page.
#[derive(Debug)]
pub(super) struct LinkResolver {
    page: Url,
    base: Url,
}

impl LinkResolver {
    /// Creates the base from the page's own address and its first `<base href>`.
    pub(super) fn of(tree: &PageTree, page: &Url) -> Self {
        let mut bases = tree.select(tree.root(), "base", "").filter_map(|node| tree.attribute(node, "href"));
        let base = bases.next().and_then(|href| page.join(href).ok());
        let is_usable = |base: &Url| !base.cannot_be_a_base() && base.as_str().len() <= MAX_ADDRESS;
        Self { page: page.clone(), base: base.filter(is_usable).unwrap_or_else(|| page.clone()) }
    }

    /// Creates the base from an address alone.
    pub(super) fn at(page: &Url) -> Self {
        Self { page: page.clone(), base: page.clone() }
    }

    /// Returns the page's own address.
    pub(super) fn page(&self) -> &Url {
        &self.page
    }

    /// Returns the absolute address of a link. Returns `None` for a link within the page, for a scheme that opens no
    /// page or contact (`javascript:`), and for an invalid or too long address.
    pub(super) fn of_link(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = self.joined(href)?;
        let is_in_page = url.fragment().is_some() && without_fragment(&url) == without_fragment(&self.page);
        let is_link =
            matches!(url.scheme(), "http" | "https" | "ftp" | "mailto" | "tel" | "sms" | "xmpp" | "geo" | "magnet");
        (is_link && !is_in_page).then(|| url.into())
    }

    /// Returns the absolute address of a picture or another embedded part. Returns `None` unless it is a valid HTTP or
    /// HTTPS address.
    pub(super) fn of_part(&self, src: &str) -> Option<String> {
        let url = self.joined(src.trim()).filter(|_| !src.trim().is_empty())?;
        matches!(url.scheme(), "http" | "https").then(|| url.into())
    }

    fn joined(&self, address: &str) -> Option<Url> {
        if address.len() > MAX_ADDRESS {
            return None;
        }
        self.base.join(address).ok().filter(|url| url.as_str().len() <= MAX_ADDRESS)
    }
}

fn without_fragment(url: &Url) -> &str {
    url.as_str().split('#').next().unwrap_or_default()
}
