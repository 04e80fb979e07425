//! Who gets in: the right host, the right page, the right token.

use super::{
    response::{Body, text},
    settings::{BearerToken, HttpSettings},
};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use std::hint::black_box;
use toolstead_domain::principal::Principal;

/// What is checked before anything of a request is read but its head.
#[derive(Debug)]
pub(super) struct Gate {
    holders: Vec<TokenHolder>,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Where this server itself listens.
    port: u16,
}

/// The holder of a token.
pub(super) struct TokenHolder {
    secret: Box<[u8]>,
    pub(super) principal: Principal,
}

impl std::fmt::Debug for TokenHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenHolder").field("principal", &self.principal).finish_non_exhaustive()
    }
}

impl Gate {
    /// The gate of a server at this port.
    pub(super) fn new(settings: &HttpSettings, port: u16) -> Self {
        let holder = |token: &BearerToken| TokenHolder {
            secret: token.secret.as_bytes().into(),
            principal: Principal::token(&token.name),
        };
        let lower = |texts: &[String]| texts.iter().map(|text| text.to_ascii_lowercase()).collect();
        Self {
            holders: settings.tokens.iter().filter(|token| !token.secret.is_empty()).map(holder).collect(),
            hosts: lower(&settings.allowed_hosts),
            origins: lower(&settings.allowed_origins),
            port,
        }
    }

    /// The holder of the token that the request bears, if all is as it should be; else the refusal.
    pub(super) fn admit(&self, head: &Parts) -> Result<&TokenHolder, Response<Body>> {
        if !self.is_host_allowed(head) {
            tracing::debug!(host = ?head.headers.get(header::HOST), "refused a request for another host");
            return Err(text(StatusCode::FORBIDDEN, "this host name is not served here"));
        }
        if head.headers.contains_key(header::ORIGIN) && !self.is_origin_allowed(&head.headers) {
            tracing::debug!(origin = ?head.headers.get(header::ORIGIN), "refused a request of another origin");
            return Err(text(StatusCode::FORBIDDEN, "pages of this origin may not call"));
        }
        self.holder(&head.headers).ok_or_else(|| {
            let mut response = text(StatusCode::UNAUTHORIZED, "a bearer token is required");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        })
    }

    /// `Host`, and where the request names a whole URL the host in that, too (RFC 9112, 3.2.2).
    fn is_host_allowed(&self, head: &Parts) -> bool {
        let named = head.uri.authority().map(|authority| authority.as_str());
        let Some(host) = sole(&head.headers, header::HOST) else { return false };
        [Some(host), named].into_iter().flatten().all(|host| {
            let host = host.to_ascii_lowercase();
            let name = without_port(&host);
            self.hosts.iter().any(|allowed| *allowed == host || Some(allowed.as_str()) == name)
        })
    }

    /// The origin of the page that the request comes from, if that page may call here.
    pub(super) fn page(&self, head: &Parts) -> Option<HeaderValue> {
        let origin = head.headers.get(header::ORIGIN)?;
        (self.is_host_allowed(head) && self.is_origin_allowed(&head.headers)).then(|| origin.clone())
    }

    /// `Origin`, which is there: a listed one, or this server's own.
    fn is_origin_allowed(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = sole(headers, header::ORIGIN) else { return false };
        let origin = origin.to_ascii_lowercase();
        let listed = self.origins.iter().any(|allowed| match allowed.strip_suffix(":*") {
            Some(base) => origin.strip_prefix(base).is_some_and(|port| port.is_empty() || is_port(port)),
            None => *allowed == origin,
        });
        listed || self.is_own(&origin, headers)
    }

    /// Whether the origin is the address that the request itself goes to, at this server's port: other ports of the same
    /// host belong to other programs.
    fn is_own(&self, origin: &str, headers: &HeaderMap) -> bool {
        let Some(host) = sole(headers, header::HOST) else { return false };
        let host = host.to_ascii_lowercase();
        origin.strip_prefix("http://") == Some(&host) && port_of(&host) == Some(self.port)
    }

    /// Every token is compared in full, so that the time it takes tells nothing about any of them.
    fn holder(&self, headers: &HeaderMap) -> Option<&TokenHolder> {
        let value = sole(headers, header::AUTHORIZATION)?;
        let (scheme, given) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("Bearer") {
            return None;
        }
        let given = given.trim().as_bytes();
        self.holders
            .iter()
            .fold(None, |found, holder| if is_same(&holder.secret, given) { Some(holder) } else { found })
    }
}

/// Compares without stopping at the first difference. Only the length shows.
fn is_same(secret: &[u8], given: &[u8]) -> bool {
    let difference = secret.iter().zip(given).fold(0, |difference, (a, b)| black_box(difference | (a ^ b)));
    secret.len() == given.len() && black_box(difference) == 0
}

/// The header's value if it is there once.
fn sole(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The name in `name:port`, `[address]:port` or either without a port; `None` when it is none of them.
fn without_port(host: &str) -> Option<&str> {
    let end = match host.find(']') {
        Some(at) if host.starts_with('[') => at + 1,
        _ => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    (port.is_empty() || is_port(port)).then_some(name)
}

/// The port in `name:port` or `[address]:port`; that of HTTP where none is named.
fn port_of(host: &str) -> Option<u16> {
    match host.strip_prefix(without_port(host)?)? {
        "" => Some(80),
        port => port.strip_prefix(':')?.parse().ok(),
    }
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn gate() -> Gate {
        let mut settings = HttpSettings::default();
        for (name, secret) in [("a", "secret-a"), ("b", "secret-b"), ("none", "")] {
            settings.tokens.push(BearerToken { name: name.into(), secret: secret.into() });
        }
        settings.allowed_hosts.push("Tools.Example:8443".into());
        settings.allowed_origins.push("https://app.example".into());
        settings.allowed_origins.push("http://localhost:*".into());
        Gate::new(&settings, 7332)
    }

    fn admitted(uri: &str, headers: &[(&str, &str)]) -> Result<String, StatusCode> {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        gate().admit(&head).map(|holder| holder.principal.to_string()).map_err(|response| response.status())
    }

    #[track_caller]
    fn check_host(host: &str, expected: bool) {
        let status = admitted("/mcp", &[("host", host), ("authorization", "Bearer secret-a")]);
        assert_eq!(status.is_ok(), expected, "{host}");
    }

    #[test]
    fn only_allowed_hosts_get_in() {
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:7332", "[::1]", "[::1]:80", "tools.example:8443"] {
            check_host(host, true);
        }
        for host in [
            "evil.example",
            "tools.example",
            "localhost.evil.example",
            "localhost:80:80",
            "localhost:",
            "[::1",
            "::1",
            "",
        ] {
            check_host(host, false);
        }
        let token = ("authorization", "Bearer secret-a");
        assert_eq!(admitted("/mcp", &[token]), Err(StatusCode::FORBIDDEN));
        assert_eq!(
            admitted("/mcp", &[("host", "localhost"), ("host", "localhost"), token]),
            Err(StatusCode::FORBIDDEN)
        );
        assert_eq!(admitted("http://evil.example/mcp", &[("host", "localhost"), token]), Err(StatusCode::FORBIDDEN));
    }

    #[track_caller]
    fn check_origin(origin: &str, expected: bool) {
        check_origin_at("localhost", origin, expected);
    }

    #[track_caller]
    fn check_origin_at(host: &str, origin: &str, expected: bool) {
        let headers = [("host", host), ("origin", origin), ("authorization", "bearer secret-a")];
        assert_eq!(admitted("/mcp", &headers).is_ok(), expected, "{origin} at {host}");
    }

    #[test]
    fn only_allowed_origins_get_in() {
        for origin in ["http://localhost", "http://localhost:6274", "https://APP.example"] {
            check_origin(origin, true);
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://localhost:1.evil.example",
            "https://app.example:8443",
            "http://app.example",
            "https://localhost",
            "https://[::1]:1",
        ] {
            check_origin(origin, false);
        }
    }

    #[test]
    fn the_servers_own_origin_gets_in_and_other_ports_of_its_host_do_not() {
        check_origin_at("127.0.0.1:7332", "http://127.0.0.1:7332", true);
        check_origin_at("[::1]:7332", "http://[::1]:7332", true);
        for (host, origin) in [
            ("127.0.0.1:7332", "http://127.0.0.1:8000"),
            ("127.0.0.1:7332", "http://127.0.0.1"),
            ("127.0.0.1:7332", "https://127.0.0.1:7332"),
            ("127.0.0.1:7332", "http://[::1]:7332"),
            // Somebody else's port, behind which this server seems to stand.
            ("127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("127.0.0.1", "http://127.0.0.1"),
            ("tools.example:8443", "http://tools.example:8443"),
        ] {
            check_origin_at(host, origin, false);
        }
    }

    #[test]
    fn the_token_says_who_calls_and_nothing_else_gets_in() {
        let with = |value: &str| admitted("/mcp", &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(with("Bearer secret-a"), Ok("token:a".into()));
        assert_eq!(with("bearer  secret-b "), Ok("token:b".into()));
        for wrong in ["Bearer secret-", "Bearer secret-aa", "Bearer ", "Bearer", "Basic secret-a", "secret-a"] {
            assert_eq!(with(wrong), Err(StatusCode::UNAUTHORIZED), "{wrong}");
        }
        let in_url = admitted("/mcp?access_token=secret-a&token=secret-a", &[("host", "localhost")]);
        assert_eq!(in_url, Err(StatusCode::UNAUTHORIZED));
    }
}
