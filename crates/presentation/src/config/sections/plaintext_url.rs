//! Detects data that would be sent to another machine without encryption.

use url::{Host, Url};

/// Returns `true` if data sent to the URL passes through a network without encryption.
pub(in crate::config) fn is_plaintext(url: &Url) -> bool {
    let is_here = match url.host() {
        None => return false,
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
    };
    url.scheme() == "http" && !is_here
}
