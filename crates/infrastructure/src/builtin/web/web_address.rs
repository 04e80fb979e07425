//! Addresses of pages as models write them: parsed once, so that the checked address is the requested one.

use crate::web::address;
use toolstead_domain::{Access, ToolFailure, error_kind::ErrorKind};
use url::Url;

/// Parses the address, without the fragment after `#`, which servers never receive.
///
/// # Errors
/// `invalid_input` for anything but a plain http or https address of a host.
pub(in crate::builtin) fn web_address(text: &str) -> Result<Url, ToolFailure> {
    let mut url = address::read(text).map_err(|error| {
        let next = match text.trim_start().get(..5) {
            Some(scheme) if scheme.eq_ignore_ascii_case("file:") => "`read_file` reads files by their path.",
            _ => "Write the whole address, as in \"https://example.com/page\".",
        };
        ToolFailure::new(ErrorKind::InvalidInput, error.to_string()).next(next)
    })?;
    url.set_fragment(None);
    Ok(url)
}

/// Returns the access of a request to this address.
pub(in crate::builtin) fn access(url: &Url) -> Access {
    Access::ReachHost(host(url).into())
}

/// Returns the host of an address as rules and messages name it; empty if there is none.
pub(in crate::builtin) fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_normalized_and_ambiguous_or_unsupported_forms_rejected() {
        for (text, expected) in [
            (" https://Example.COM/a?b#c ", Ok("example.com https://example.com/a?b")),
            ("http://127.0.0.1:80/", Ok("127.0.0.1 http://127.0.0.1/")),
            ("http://[::1]:8080/", Ok("[::1] http://[::1]:8080/")),
            ("https://b\u{fc}cher.example/", Ok("xn--bcher-kva.example https://xn--bcher-kva.example/")),
            ("http://2130706433/", Err("four decimal numbers")),
            ("http://0x7f.1/", Err("four decimal numbers")),
            ("https://good.example\\@evil.example/", Err("not fetched")),
            ("https://example.com./", Err("dot at its end")),
            ("https://me@example.com/", Err("a user or a password")),
            ("https://:secret@example.com/", Err("a user or a password")),
            ("file:///etc/passwd", Err("read_file")),
            ("data:text/plain,a", Err("https://")),
            ("example.com/page", Err("https://example.com/page")),
            ("https://", Err("empty")),
            ("https://ex%00ample.com/", Err("not fetched")),
        ] {
            match (web_address(text), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(format!("{} {url}", host(&url)), expected, "{text}"),
                (Err(failure), Err(outcome)) => assert!(failure.text().contains(outcome), "{text}: {}", failure.text()),
                (read, _) => panic!("{text}: {read:?}"),
            }
        }
    }
}
