//! Google, on a port of its own: tokens by OAuth 2.0, Gmail and Calendar, in the shapes that Google documents. It checks the token and
//! the scopes of each request, and keeps the requests that it got.

pub(crate) mod calendar;
pub(crate) mod gmail;

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use calendar::Agenda;
use gmail::Mailbox;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    future::IntoFuture,
    sync::{Arc, Mutex},
};
use tokio::net::TcpListener;
use url::form_urlencoded;

pub(crate) const CLIENT_ID: &str = "client-1.apps.example";
pub(crate) const CLIENT_SECRET: &str = "client-secret-1";
pub(crate) const GMAIL_READ: &str = "https://www.googleapis.com/auth/gmail.readonly";
pub(crate) const GMAIL_SEND: &str = "https://www.googleapis.com/auth/gmail.send";
pub(crate) const CALENDAR: &str = "https://www.googleapis.com/auth/calendar";

/// A fake Google. It ends with the test's runtime.
#[derive(Debug, Clone)]
pub(crate) struct GoogleServer {
    url: String,
    state: Arc<Mutex<State>>,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    /// The body; null if it is not JSON.
    pub(crate) body: Value,
    /// The fields of a form.
    pub(crate) form: BTreeMap<String, String>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

/// Scopes that a user granted, and the tokens issued for them.
#[derive(Debug, Clone)]
struct Grant {
    user: String,
    scopes: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct State {
    seen: Vec<Seen>,
    /// Replies that are given next, whatever is asked of an API, by the path that they are for.
    scripted: VecDeque<(String, Reply)>,
    /// Codes with their grants, the redirect and the challenge that they were asked with.
    codes: BTreeMap<String, (Grant, String, Option<String>)>,
    access_tokens: BTreeMap<String, Grant>,
    refresh_tokens: BTreeMap<String, Grant>,
    issued: usize,
    /// The user who opens pages.
    at_browser: Option<String>,
    mailboxes: BTreeMap<String, Mailbox>,
    agendas: BTreeMap<String, Agenda>,
}

impl Reply {
    pub(crate) fn json(body: Value) -> Self {
        Self { status: 200, headers: Vec::new(), body }
    }

    /// An error in Google's envelope.
    pub(crate) fn error(code: u16, reason: &str, status: &str, message: &str) -> Self {
        let errors = json!([{"message": message, "domain": "global", "reason": reason}]);
        let error = json!({"code": code, "message": message, "errors": errors, "status": status});
        Self { status: code, headers: Vec::new(), body: json!({ "error": error }) }
    }

    pub(crate) fn not_found() -> Self {
        Self::error(404, "notFound", "NOT_FOUND", "Requested entity was not found.")
    }

    pub(crate) fn invalid(message: &str) -> Self {
        Self::error(400, "invalidArgument", "INVALID_ARGUMENT", message)
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn oauth(status: u16, error: &str) -> Self {
        Self { status, headers: Vec::new(), body: json!({"error": error, "error_description": "Bad Request"}) }
    }
}

impl Seen {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn parameters(&self, name: &str) -> Vec<&str> {
        self.query.iter().filter(|(one, _)| one == name).map(|(_, value)| value.as_str()).collect()
    }

    fn field(&self, name: &str) -> &str {
        self.form.get(name).map_or("", String::as_str)
    }
}

impl GoogleServer {
    pub(crate) async fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let serving = state.clone();
        let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
            let seen = Seen {
                method,
                path: uri.path().to_owned(),
                query,
                headers,
                body: serde_json::from_slice(&body).unwrap_or_default(),
                form: form_urlencoded::parse(&body).into_owned().collect(),
            };
            let reply = serving.lock().unwrap().answered(seen);
            async move { response(reply) }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
        Self { url, state }
    }

    /// Its address, without a path: of the token endpoint (`/token`, `/revoke`) and of the APIs.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// An access token of a user with these scopes, as if the user had signed in.
    pub(crate) fn signed_in(&self, user: &str, scopes: &[&str]) -> String {
        self.state.lock().unwrap().issue(&grant(user, scopes))
    }

    /// A refresh token of a user with these scopes.
    pub(crate) fn refresh_token(&self, user: &str, scopes: &[&str]) -> String {
        self.state.lock().unwrap().issue_refresh(&grant(user, scopes))
    }

    /// A code, as the page where the user says yes gives it to the one who asked from `redirect_uri`.
    pub(crate) fn code(&self, user: &str, scopes: &[&str], redirect_uri: &str, challenge: Option<&str>) -> String {
        self.state.lock().unwrap().code(user, scopes, redirect_uri, challenge)
    }

    /// Sets the user who opens the page (`/auth`) and grants everything that it asks for; without a user, nothing is
    /// granted.
    pub(crate) fn at_browser(&self, user: Option<&str>) {
        self.state.lock().unwrap().at_browser = user.map(str::to_owned);
    }

    /// No access token that was issued so far counts any more.
    pub(crate) fn expire_access_tokens(&self) {
        self.state.lock().unwrap().access_tokens.clear();
    }

    /// The next request of this path to an API is answered so, once its token was looked at.
    pub(crate) fn answer_next(&self, path: &str, reply: Reply) {
        self.state.lock().unwrap().scripted.push_back((path.to_owned(), reply));
    }

    /// Works on the mailbox of a user, which is there from the first time on.
    pub(crate) fn mailbox<T>(&self, user: &str, work: impl FnOnce(&mut Mailbox) -> T) -> T {
        work(self.state.lock().unwrap().mailboxes.entry(user.to_owned()).or_default())
    }

    /// Works on the events of a user.
    pub(crate) fn agenda<T>(&self, user: &str, work: impl FnOnce(&mut Agenda) -> T) -> T {
        work(self.state.lock().unwrap().agendas.entry(user.to_owned()).or_default())
    }

    /// The requests that it got, in their order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// Those to one path.
    pub(crate) fn seen_at(&self, path: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.path == path).collect()
    }
}

fn grant(user: &str, scopes: &[&str]) -> Grant {
    Grant { user: user.into(), scopes: scopes.iter().map(ToString::to_string).collect() }
}

fn response(reply: Reply) -> Response {
    let mut response = (StatusCode::from_u16(reply.status).unwrap(), reply.body.to_string()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, "application/json; charset=UTF-8".parse().unwrap());
    for (name, value) in reply.headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

impl State {
    fn answered(&mut self, seen: Seen) -> Reply {
        self.seen.push(seen.clone());
        match seen.path.as_str() {
            "/auth" => self.page(&seen),
            "/token" => self.token(&seen),
            "/revoke" => self.revoked(&seen),
            _ => self.api(&seen),
        }
    }

    fn code(&mut self, user: &str, scopes: &[&str], redirect_uri: &str, challenge: Option<&str>) -> String {
        self.issued += 1;
        let code = format!("4/code-{}", self.issued);
        self.codes.insert(code.clone(), (grant(user, scopes), redirect_uri.into(), challenge.map(str::to_owned)));
        code
    }

    /// The page where a user grants: it leads back at once.
    fn page(&mut self, seen: &Seen) -> Reply {
        let said = |name: &str| seen.parameter(name).unwrap_or_default();
        let scopes: Vec<&str> = said("scope").split(' ').collect();
        let (name, value) = match self.at_browser.clone() {
            Some(user) => ("code", self.code(&user, &scopes, said("redirect_uri"), seen.parameter("code_challenge"))),
            None => ("error", "access_denied".to_owned()),
        };
        let mut back = url::Url::parse(said("redirect_uri")).unwrap();
        back.query_pairs_mut().extend_pairs([("state", said("state")), (name, &value), ("scope", said("scope"))]);
        Reply { status: 302, headers: vec![("location", back.into())], body: Value::Null }
    }

    fn issue(&mut self, grant: &Grant) -> String {
        self.issued += 1;
        let token = format!("ya29.access-{}", self.issued);
        self.access_tokens.insert(token.clone(), grant.clone());
        token
    }

    fn issue_refresh(&mut self, grant: &Grant) -> String {
        self.issued += 1;
        let token = format!("1//refresh-{}", self.issued);
        self.refresh_tokens.insert(token.clone(), grant.clone());
        token
    }

    fn token(&mut self, seen: &Seen) -> Reply {
        if seen.method != Method::POST {
            return Reply::oauth(405, "invalid_request");
        }
        if (seen.field("client_id"), seen.field("client_secret")) != (CLIENT_ID, CLIENT_SECRET) {
            return Reply::oauth(401, "invalid_client");
        }
        let (grant, refresh_token) = match seen.field("grant_type") {
            "authorization_code" => {
                let Some((grant, redirect_uri, challenge)) = self.codes.remove(seen.field("code")) else {
                    return Reply::oauth(400, "invalid_grant");
                };
                let proves = challenge.is_none_or(|challenge| challenge == s256(seen.field("code_verifier")));
                if redirect_uri != seen.field("redirect_uri") || !proves {
                    return Reply::oauth(400, "invalid_grant");
                }
                let refresh_token = self.issue_refresh(&grant);
                (grant, Some(refresh_token))
            }
            "refresh_token" => match self.refresh_tokens.get(seen.field("refresh_token")) {
                Some(grant) => (grant.clone(), None),
                None => return Reply::oauth(400, "invalid_grant"),
            },
            _ => return Reply::oauth(400, "unsupported_grant_type"),
        };
        let scope = grant.scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let access_token = self.issue(&grant);
        let mut body =
            json!({"access_token": access_token, "expires_in": 3599, "scope": scope, "token_type": "Bearer"});
        if let Some(refresh_token) = refresh_token {
            body["refresh_token"] = refresh_token.into();
        }
        Reply::json(body)
    }

    fn revoked(&mut self, seen: &Seen) -> Reply {
        let token = seen.field("token");
        let found = self.refresh_tokens.remove(token).or_else(|| self.access_tokens.remove(token));
        match found {
            Some(revoked) => {
                // With a refresh token goes what was issued for it.
                self.access_tokens.retain(|_, grant| grant.user != revoked.user || grant.scopes != revoked.scopes);
                Reply::json(json!({}))
            }
            None => Reply::oauth(400, "invalid_token"),
        }
    }

    fn api(&mut self, seen: &Seen) -> Reply {
        let authorization = seen.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
        let Some(grant) = token.and_then(|token| self.access_tokens.get(token)).cloned() else {
            let message = "Request had invalid authentication credentials.";
            return Reply::error(401, "authError", "UNAUTHENTICATED", message);
        };
        if let Some(at) = self.scripted.iter().position(|(path, _)| *path == seen.path) {
            return self.scripted.remove(at).unwrap().1;
        }
        let has = |scope: &str| grant.scopes.contains(scope);
        if let Some(rest) = seen.path.strip_prefix("/gmail/v1/users/me/") {
            let needed = if seen.method == Method::POST { GMAIL_SEND } else { GMAIL_READ };
            return match has(needed) {
                true => gmail::answered(self.mailboxes.entry(grant.user).or_default(), rest, seen),
                false => insufficient(),
            };
        }
        if let Some(rest) = seen.path.strip_prefix("/calendar/v3/calendars/") {
            return match has(CALENDAR) {
                true => {
                    calendar::answered(self.agendas.entry(grant.user.clone()).or_default(), &grant.user, rest, seen)
                }
                false => insufficient(),
            };
        }
        Reply::not_found()
    }
}

fn insufficient() -> Reply {
    let message = "Request had insufficient authentication scopes.";
    Reply::error(403, "insufficientPermissions", "PERMISSION_DENIED", message)
}

/// The challenge of a verifier (RFC 7636).
fn s256(verifier: &str) -> String {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes()))
}
