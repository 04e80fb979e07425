//! URIs of resources that several servers offer, or that another server answers for: made distinct, and restored.

/// Prefix of the URIs that Toolstead makes distinct by the name of their server.
const OWN: &str = "toolstead://";

/// Returns the URI, or URI template, as that of this server alone: with the prefix `toolstead://SERVER/`, and otherwise
/// unchanged, so that readers see the host and the path that the server assigned.
///
/// ```
/// use toolstead_domain::context::server_uri::{of_server, within};
/// let distinct = of_server("notes", "memo://today/{id}");
/// assert_eq!(distinct, "toolstead://notes/memo://today/{id}");
/// assert_eq!(within("notes", &distinct), Some("memo://today/{id}"));
/// assert_eq!(within("other", &distinct), None);
/// ```
pub fn of_server(server: &str, uri: &str) -> String {
    format!("{OWN}{server}/{uri}")
}

/// Returns the URI that the server itself uses, if [`of_server`] made `uri` for this server; `None` for other URIs.
pub fn within<'a>(server: &str, uri: &'a str) -> Option<&'a str> {
    uri.strip_prefix(OWN)?.strip_prefix(server)?.strip_prefix('/')
}

/// Returns the server whose name [`of_server`] put into the URI; `None` for URIs without the prefix.
pub fn server_of(uri: &str) -> Option<&str> {
    uri.strip_prefix(OWN)?.split_once('/').map(|(server, _)| server)
}

/// Returns `true` if the URI begins with `toolstead://`, in any case. A URI to which its own server gave this prefix is
/// made distinct as well.
pub fn has_distinct_prefix(uri: &str) -> bool {
    uri.get(..OWN.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(OWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distinct_uri_identifies_its_server_and_the_original_uri_of_any_form() {
        for uri in ["file:///a/b", "urn:x", "toolstead://git/a://b", "a b?c#d", "äö", ""] {
            for server in ["git", "git-2"] {
                let distinct = of_server(server, uri);
                assert_eq!((within(server, &distinct), server_of(&distinct)), (Some(uri), Some(server)));
                assert!(has_distinct_prefix(&distinct));
            }
            assert_eq!(within("git", &of_server("git-2", uri)), None);
        }
        assert!(
            has_distinct_prefix("TOOLSTEAD://x/y")
                && !has_distinct_prefix("toolstead:/x")
                && !has_distinct_prefix("file:///a")
        );
    }
}
