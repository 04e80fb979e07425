//! What would go to another machine for everybody on the way to read.

use url::{Host, Url};

/// Tells whether what is sent to the address goes over a network without encryption.
pub(super) fn is_in_the_clear(url: &Url) -> bool {
    let is_here = match url.host() {
        None => return false,
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
    };
    url.scheme() == "http" && !is_here
}
