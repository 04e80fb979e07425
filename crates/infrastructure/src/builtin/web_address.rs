//! The address of a page as a model gives it: read once, and judged as what was read.

use crate::sandbox::egress::host::Host;
use toolstead_domain::{access::Access, error_kind::ErrorKind, tool_failure::ToolFailure};
use url::Url;

/// The address, without the part behind `#`, which no server sees.
///
/// # Errors
/// `invalid_input` for all that is no plain http or https address of a host.
pub(super) fn web_address(text: &str) -> Result<Url, ToolFailure> {
    let wrong = |reason: &str| {
        let shown: String = text.chars().take(200).flat_map(char::escape_debug).collect();
        ToolFailure::new(ErrorKind::InvalidInput, format!("`{shown}` is no address that can be fetched: {reason}"))
    };
    let mut url = Url::parse(text.trim()).map_err(|error| {
        wrong(&error.to_string()).next("Write the whole address, as in \"https://example.com/page\".")
    })?;
    match url.scheme() {
        "http" | "https" => {}
        "file" => return Err(wrong("it names a file").next("`read_file` reads files by their path.")),
        other => return Err(wrong(&format!("`{other}` is neither http nor https"))),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds a user name or password").next("Leave out what stands before the `@`."));
    }
    Host::parse(url.host_str().unwrap_or_default()).map_err(|error| wrong(&error.to_string()))?;
    url.set_fragment(None);
    Ok(url)
}

/// The access of a request there.
pub(super) fn access(url: &Url) -> Access {
    Access::ReachHost(host(url).into())
}

/// The host as rules and people know it.
pub(super) fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_judged_as_it_is_dialled() {
        for (text, expected) in [
            (" https://Example.COM/a?b#c ", Ok("example.com https://example.com/a?b")),
            ("http://127.0.0.1:80/", Ok("127.0.0.1 http://127.0.0.1/")),
            ("http://2130706433/", Ok("127.0.0.1 http://127.0.0.1/")),
            ("http://0x7f.1/", Ok("127.0.0.1 http://127.0.0.1/")),
            ("http://[::1]:8080/", Ok("[::1] http://[::1]:8080/")),
            ("https://b\u{fc}cher.example/", Ok("xn--bcher-kva.example https://xn--bcher-kva.example/")),
            ("https://good.example\\@evil.example/", Ok("good.example https://good.example/@evil.example/")),
            ("https://example.com./", Err("dot at its end")),
            ("https://me@example.com/", Err("user name")),
            ("https://:secret@example.com/", Err("user name")),
            ("file:///etc/passwd", Err("read_file")),
            ("data:text/plain,a", Err("neither http nor https")),
            ("gopher://example.com/", Err("neither http nor https")),
            ("example.com/page", Err("https://example.com/page")),
            ("https://", Err("no address")),
            ("https://ex%00ample.com/", Err("no address")),
        ] {
            match (web_address(text), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(format!("{} {url}", host(&url)), expected, "{text}"),
                (Err(failure), Err(told)) => assert!(failure.text().contains(told), "{text}: {}", failure.text()),
                (read, _) => panic!("{text}: {read:?}"),
            }
        }
    }
}
