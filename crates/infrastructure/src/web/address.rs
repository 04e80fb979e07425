//! Untrusted addresses of the web: parsed by one parser, and rejected if another parser could read them differently.

use crate::egress::host::{Host, parse_authority};
use std::{fmt::Write, net::IpAddr};
use url::Url;

/// Maximum length of an address in bytes.
const MAX_BYTES: usize = 8 << 10;

/// Parses an address that a model, a page or a server wrote.
///
/// # Errors
/// [`InvalidAddress`] for anything but `http` or `https` with a host and a path: other schemes, user-info, control
/// characters, and hosts that [`Host::parse`] rejects.
pub fn read(text: &str) -> Result<Url, InvalidAddress> {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let wrong = |reason: String| InvalidAddress { address: text.into(), reason };
    if text.len() > MAX_BYTES {
        return Err(wrong(format!("it is longer than {MAX_BYTES} bytes")));
    }
    // The parser would silently drop some of them.
    if text.contains(char::is_control) {
        return Err(wrong("it contains control characters".into()));
    }
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => ("http", rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => ("https", rest),
        _ => return Err(wrong("it must begin with `https://` or `http://`".into())),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // Some parsers treat it as a slash.
    if authority.contains('\\') {
        return Err(wrong("its host contains a `\\`".into()));
    }
    if authority.contains('@') {
        return Err(wrong("it contains a user or a password: leave them out".into()));
    }
    let port = if scheme == "https" { 443 } else { 80 };
    let (host, port) = parse_authority(authority, Some(port)).map_err(|error| wrong(error.to_string()))?;
    let mut url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    if host_of(&url)? != host || url.port_or_known_default() != Some(port) {
        return Err(wrong("it is ambiguous".into()));
    }
    // It is connected to as the IPv4 address that it maps, and rules use that notation.
    if let Host::Address(IpAddr::V6(address)) = host
        && let Some(address) = address.to_ipv4_mapped()
    {
        url.set_ip_host(address.into()).map_err(|()| wrong("it has no host".into()))?;
    }
    Ok(url)
}

/// Parses the target of a redirect: an address, or a path relative to `base`.
///
/// # Errors
/// [`InvalidAddress`], as [`read`].
pub(super) fn read_location(base: &Url, location: &[u8]) -> Result<Url, InvalidAddress> {
    let text = String::from_utf8_lossy(location);
    let text = text.trim_matches([' ', '\t']);
    let wrong = |reason: String| InvalidAddress { address: text.into(), reason };
    if let Some(rest) = text.strip_prefix("//") {
        return read(&format!("{}://{rest}", base.scheme()));
    }
    if has_scheme(text) {
        return read(text);
    }
    if text.len() > MAX_BYTES || text.contains(char::is_control) {
        return Err(wrong("it is too long, or contains control characters".into()));
    }
    let url = base.join(text).map_err(|error| wrong(error.to_string()))?;
    // Some parsers, including this one, read `/\other.example` as another host.
    if url.origin() != base.origin() {
        return Err(wrong("it is ambiguous".into()));
    }
    Ok(url)
}

/// Returns `true` if a reference begins with a scheme (RFC 3986, section 3.1).
fn has_scheme(text: &str) -> bool {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Returns the host of an address to fetch.
///
/// # Errors
/// [`InvalidAddress`] for an address that [`read`] would not return.
pub(super) fn host_of(url: &Url) -> Result<Host, InvalidAddress> {
    let wrong = |reason: String| InvalidAddress { address: url.as_str().into(), reason };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must begin with `https://` or `http://`".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidAddress {
            address: format!("{}://…@{}", url.scheme(), url.host_str().unwrap_or_default()),
            reason: "it contains a user or a password: leave them out".into(),
        });
    }
    Host::parse(url.host_str().unwrap_or_default()).map_err(|error| wrong(error.to_string()))
}

/// A text that is not an address of the web.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not fetched: {reason}", shown(.address))]
pub struct InvalidAddress {
    address: String,
    reason: String,
}

impl InvalidAddress {
    pub(super) fn new(address: &str, reason: &str) -> Self {
        Self { address: address.into(), reason: reason.into() }
    }
}

/// Returns an untrusted text for messages: without control characters and passwords, and shortened.
fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut shown = String::new();
    let text = match text.split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let from = authority.rfind('@').map_or(0, |at| at + 1);
            let _ = write!(shown, "{}://{}", scheme.escape_debug(), if from > 0 { "…@" } else { "" });
            &rest[from..]
        }
        None => text,
    };
    shown.extend(text.chars().take(LONGEST).flat_map(char::escape_debug));
    if text.chars().nth(LONGEST).is_some() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn web_addresses_are_normalized_and_ambiguous_ones_are_rejected() {
        for (text, expected) in [
            ("https://docs.example/a?b=c#d", "https://docs.example/a?b=c#d"),
            (" HTTP://Docs.Example:80 ", "http://docs.example/"),
            ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
            ("https://[2606:4700:0::1111]:443/", "https://[2606:4700::1111]/"),
            ("https://[::ffff:8.8.8.8]/", "https://8.8.8.8/"),
            ("https://[::ffff:808:808]:8443/a", "https://8.8.8.8:8443/a"),
            ("https://93.184.216.34/a@b\\c", "https://93.184.216.34/a@b/c"),
            ("https://docs.example:8443?q", "https://docs.example:8443/?q"),
        ] {
            assert_eq!(read(text).unwrap().as_str(), expected, "{text}");
        }
        for (text, reason) in [
            ("file:///etc/passwd", "must begin with"),
            ("data:text/html,hello", "must begin with"),
            ("javascript://docs.example/%0aalert(1)", "must begin with"),
            ("docs.example/a", "must begin with"),
            ("https:docs.example", "must begin with"),
            ("https:/\\docs.example", "must begin with"),
            ("https://", "it is empty"),
            ("https:///docs.example", "it is empty"),
            ("https://user:secret@docs.example/", "leave them out"),
            ("https://docs.example@evil.example/", "leave them out"),
            ("https://evil.example\\@docs.example/", "contains a `\\`"),
            ("https://docs.example\\.evil.example/", "contains a `\\`"),
            ("https://do\tcs.example/", "control"),
            ("https://docs.example/\r\nHost: evil", "control"),
            ("https://docs.example\0.evil.example/", "control"),
            ("https://%31%32%37.0.0.1/", "invalid in a host name"),
            ("https://docs%2eexample/", "invalid in a host name"),
            ("https://docs.example./", "dot"),
            ("http://2130706433/", "did you mean 127.0.0.1"),
            ("http://0x7f.1/", "did you mean 127.0.0.1"),
            ("http://0177.0.0.1/", "did you mean 127.0.0.1"),
            ("http://127.1/", "did you mean 127.0.0.1"),
            ("http://１２７.0.0.1/", "did you mean 127.0.0.1"),
            ("http://[fe80::1%25eth0]/", "without a zone"),
            ("http://[::1/", "is not a valid host"),
            ("http://docs.example:0/", "port"),
            ("http://docs.example:65536/", "port"),
            ("http://docs.example:080x/", "port"),
            ("http://docs.example:/", "port"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("secret") && !error.contains('\0'), "{text}: {error}");
        }
    }

    #[test]
    fn only_unambiguous_redirect_targets_are_accepted() {
        let base = Url::parse("https://docs.example/a/b?c").unwrap();
        for (location, expected) in [
            ("/d", Some("https://docs.example/d")),
            ("d?e=http://x", Some("https://docs.example/a/d?e=http://x")),
            ("?e", Some("https://docs.example/a/b?e")),
            ("//other.example/f", Some("https://other.example/f")),
            ("http://docs.example:8080/", Some("http://docs.example:8080/")),
            ("/\\other.example/", None),
            ("\\\\other.example/", None),
            ("///other.example/", None),
            ("//user@other.example/", None),
            ("https:other.example", None),
            ("file:///etc/passwd", None),
            ("data:,x", None),
            ("http://2130706433/", None),
        ] {
            let read = read_location(&base, location.as_bytes()).ok();
            assert_eq!(read.as_ref().map(Url::as_str), expected, "{location}");
        }
    }

    proptest! {
        #[test]
        fn a_parsed_address_has_the_host_that_its_text_shows(text in r"https?://[a-z0-9.@:\\/#?%-]{0,30}") {
            if let Ok(url) = read(&text) {
                let rest = text.split_once("://").unwrap().1;
                let host = host_of(&url).unwrap().to_string();
                prop_assert!(rest.starts_with(&host), "{} is {}", text, host);
            }
        }
    }
}
