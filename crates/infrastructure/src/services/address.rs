//! Addresses below the configured one.

use url::Url;

/// Returns the address of a path below `base`, whose own path is retained. A `/` at the end of `path` is retained, too.
pub(super) fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path.split('/'));
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_base_is_kept() {
        for (base, path, expected) in [
            ("https://a.example", "v1/x", "https://a.example/v1/x"),
            ("https://a.example/", "v1/x", "https://a.example/v1/x"),
            ("https://a.example/gate/way", "v1/x", "https://a.example/gate/way/v1/x"),
            ("https://a.example/gate/", "html/", "https://a.example/gate/html/"),
        ] {
            assert_eq!(below(&Url::parse(base).unwrap(), path).as_str(), expected, "{base}");
        }
    }
}
