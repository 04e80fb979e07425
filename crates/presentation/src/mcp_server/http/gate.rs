//! Admission of requests by host, origin and token.

use super::{
    authenticator::{AuthenticatedClient, Authenticator, NotAuthenticated, sole},
    bearer_tokens::BearerTokens,
    response::{Body, text},
    settings::HttpSettings,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header, request::Parts};
use std::sync::Arc;

/// Checks on the head of a request, before its body is read.
#[derive(Debug)]
pub(super) struct RequestGate {
    authentication: AuthenticationMethod,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Port on which this server listens; `None` if it is mounted in another server.
    port: Option<u16>,
}

/// Authentication of requests. Tokens need no future.
#[derive(Debug)]
enum AuthenticationMethod {
    Tokens(BearerTokens),
    Authenticator(Arc<dyn Authenticator>),
}

impl RequestGate {
    /// Creates the gate of a server at this port, or of one that is mounted in another server.
    pub(super) fn new(settings: &HttpSettings, port: Option<u16>) -> Self {
        let tokens = || AuthenticationMethod::Tokens(BearerTokens::new(&settings.tokens));
        Self {
            authentication: settings.authenticator.clone().map_or_else(tokens, AuthenticationMethod::Authenticator),
            hosts: settings.allowed_hosts.clone(),
            origins: settings.allowed_origins.iter().map(|origin| origin.to_ascii_lowercase()).collect(),
            port,
        }
    }

    /// Returns the sender of the request, or the refusal.
    pub(super) async fn admit(&self, head: &Parts) -> Result<AuthenticatedClient, Response<Body>> {
        if !self.is_host_allowed(head) {
            tracing::debug!(host = ?head.headers.get(header::HOST), "refused a request for another host");
            return Err(text(StatusCode::FORBIDDEN, "this host name is not served here"));
        }
        if head.headers.contains_key(header::ORIGIN) && !self.is_origin_allowed(&head.headers) {
            tracing::debug!(origin = ?head.headers.get(header::ORIGIN), "refused a request of another origin");
            return Err(text(StatusCode::FORBIDDEN, "pages of this origin are not permitted"));
        }
        let authenticated = match &self.authentication {
            AuthenticationMethod::Tokens(tokens) => tokens.check(head),
            AuthenticationMethod::Authenticator(authenticator) => authenticator.authenticate(head).await,
        };
        authenticated.map_err(NotAuthenticated::response)
    }

    /// Returns `true` if the host is allowed in `Host` and, if the request names a whole URL, in that URL (RFC 9112,
    /// 3.2.2). Requests of HTTP/2 may have only the latter (RFC 9113, 8.3.1).
    fn is_host_allowed(&self, head: &Parts) -> bool {
        let named = head.uri.authority().map(|authority| authority.as_str());
        let host = sole(&head.headers, header::HOST);
        let needs_none = head.version == Version::HTTP_2 && named.is_some() && !head.headers.contains_key(header::HOST);
        if host.is_none() && !needs_none {
            return false;
        }
        [host, named].into_iter().flatten().all(|host| {
            let name = without_port(host);
            let is_this = |allowed: &str| {
                allowed.eq_ignore_ascii_case(host) || name.is_some_and(|name| allowed.eq_ignore_ascii_case(name))
            };
            self.hosts.iter().any(|allowed| is_this(allowed))
        })
    }

    /// Returns the origin of the requesting page if the page is allowed.
    pub(super) fn page(&self, head: &Parts) -> Option<HeaderValue> {
        let origin = head.headers.get(header::ORIGIN)?;
        (self.is_host_allowed(head) && self.is_origin_allowed(&head.headers)).then(|| origin.clone())
    }

    /// Returns `true` if `Origin` occurs once, and is listed or this server's own origin.
    fn is_origin_allowed(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = sole(headers, header::ORIGIN) else { return false };
        let origin = origin.to_ascii_lowercase();
        let listed = self.origins.iter().any(|allowed| match allowed.strip_suffix(":*") {
            Some(base) => origin.strip_prefix(base).is_some_and(|port| port.is_empty() || is_port(port)),
            None => *allowed == origin,
        });
        listed || self.is_own(&origin, headers)
    }

    /// Returns `true` if the origin is the requested address at this server's port. Other ports of the host belong to
    /// other programs.
    fn is_own(&self, origin: &str, headers: &HeaderMap) -> bool {
        let Some(host) = sole(headers, header::HOST) else { return false };
        let host = host.to_ascii_lowercase();
        origin.strip_prefix("http://") == Some(&host) && self.port.is_some() && port_of(&host) == self.port
    }
}

/// Returns the name in `name:port`, `[address]:port` or either without a port; `None` for any other text.
fn without_port(host: &str) -> Option<&str> {
    let end = match host.find(']') {
        Some(at) if host.starts_with('[') => at + 1,
        _ => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    (port.is_empty() || is_port(port)).then_some(name)
}

/// Returns the port in `name:port` or `[address]:port`, or that of HTTP if none is named.
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
    use crate::mcp_server::http::settings::BearerToken;
    use async_trait::async_trait;
    use futures::FutureExt;
    use http::Request;
    use toolstead_domain::Principal;

    fn settings() -> HttpSettings {
        let mut settings = HttpSettings::default();
        for (name, secret) in [("a", "secret-a"), ("b", "secret-b"), ("none", "")] {
            settings.tokens.push(BearerToken { name: name.into(), secret: secret.into() });
        }
        settings.allowed_hosts.push("Tools.Example:8443".into());
        settings.allowed_origins.push("https://app.example".into());
        settings.allowed_origins.push("http://localhost:*".into());
        settings
    }

    fn gate() -> RequestGate {
        RequestGate::new(&settings(), Some(7332))
    }

    fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn admitted_by(gate: &RequestGate, head: &Parts) -> Result<String, StatusCode> {
        let admitted = gate.admit(head).now_or_never().expect("nothing is waited for");
        admitted.map(|holder| holder.principal.to_string()).map_err(|response| response.status())
    }

    fn admitted(uri: &str, headers: &[(&str, &str)]) -> Result<String, StatusCode> {
        admitted_by(&gate(), &head(uri, headers))
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
            // The port of another server in front of this one.
            ("127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("127.0.0.1", "http://127.0.0.1"),
            ("tools.example:8443", "http://tools.example:8443"),
        ] {
            check_origin_at(host, origin, false);
        }
    }

    #[test]
    fn a_bearer_token_identifies_the_caller_and_other_credentials_are_rejected() {
        let with = |value: &str| admitted("/mcp", &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(with("Bearer secret-a"), Ok("token:a".into()));
        assert_eq!(with("bearer  secret-b "), Ok("token:b".into()));
        for wrong in ["Bearer secret-", "Bearer secret-aa", "Bearer ", "Bearer", "Basic secret-a", "secret-a"] {
            assert_eq!(with(wrong), Err(StatusCode::UNAUTHORIZED), "{wrong}");
        }
        let in_url = admitted("/mcp?access_token=secret-a&token=secret-a", &[("host", "localhost")]);
        assert_eq!(in_url, Err(StatusCode::UNAUTHORIZED));
    }

    /// Authenticator that accepts every request.
    #[derive(Debug)]
    struct Anybody;

    #[async_trait]
    impl Authenticator for Anybody {
        async fn authenticate(&self, _: &Parts) -> Result<AuthenticatedClient, NotAuthenticated> {
            Ok(AuthenticatedClient::new(Principal::new("user", "anybody")))
        }
    }

    #[test]
    fn an_authenticator_does_not_bypass_the_host_and_origin_checks() {
        let gate = RequestGate::new(&settings().authenticated_by(Arc::new(Anybody)), None);
        for (headers, expected) in [
            (&[("host", "localhost")][..], Ok("user:anybody".to_owned())),
            (&[("host", "localhost"), ("origin", "https://app.example")], Ok("user:anybody".to_owned())),
            (&[("host", "evil.example")], Err(StatusCode::FORBIDDEN)),
            (&[], Err(StatusCode::FORBIDDEN)),
            (&[("host", "localhost"), ("origin", "https://evil.example")], Err(StatusCode::FORBIDDEN)),
            // Without a port of its own, no origin is its own.
            (&[("host", "127.0.0.1"), ("origin", "http://127.0.0.1")], Err(StatusCode::FORBIDDEN)),
        ] {
            assert_eq!(admitted_by(&gate, &head("/mcp", headers)), expected, "{headers:?}");
        }
    }

    #[test]
    fn an_http_2_request_is_checked_by_the_host_in_its_url() {
        let token = ("authorization", "Bearer secret-a");
        for (uri, headers, is_let_in) in [
            ("https://localhost/mcp", &[token][..], true),
            ("https://evil.example/mcp", &[token], false),
            ("https://localhost/mcp", &[("host", "evil.example"), token], false),
            ("/mcp", &[token], false),
        ] {
            let mut head = head(uri, headers);
            head.version = Version::HTTP_2;
            assert_eq!(admitted_by(&gate(), &head).is_ok(), is_let_in, "{uri} {headers:?}");
        }
        assert!(admitted("https://localhost/mcp", &[token]).is_err(), "HTTP/1.1 needs `Host`");
    }
}
