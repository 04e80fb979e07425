//! Servers that require credentials of the caller.

use super::{
    http_server::{Reply, Request, http_server},
    provider_calls::{Client, Listener, SOON, call, call_as, config, start, until, until_ready},
};
use crate::mcp::client::config::{CredentialsOwner, HttpUpstream, McpTransport, UpstreamConfig, UpstreamCredentials};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};
use tokio::{task::yield_now, time::timeout};
use toolstead_domain::{
    Credentials, Principal, ProviderState, error_kind::ErrorKind, ports::credentials::ProtectedResource,
    testing::fake_credentials::FakeCredentials,
};
use url::Url;

const GRANT: &str = "mcp_server";

fn authorized(url: &Url, source: FakeCredentials, is_optional: bool) -> UpstreamConfig {
    let server = HttpUpstream { url: url.clone(), headers: BTreeMap::new() };
    UpstreamConfig {
        credentials: Some(UpstreamCredentials {
            source: Arc::new(source),
            resource: ProtectedResource { grant: GRANT.into(), origin: url.as_str().into() },
            owner: CredentialsOwner::Principal,
            is_optional,
            can_sign_in: true,
        }),
        ..config(McpTransport::StreamableHttp(server))
    }
}

fn client(name: &str) -> Client {
    Client { principal: Principal::token(name), ..Client::new(json!({})) }
}

fn unauthorized() -> Reply {
    Reply::Whole(401, vec![("www-authenticate", "Bearer error=\"invalid_token\"".into())], vec![])
}

#[tokio::test]
async fn each_principal_uses_its_own_token_and_its_own_connection() {
    // Token and session of each request.
    let seen = Arc::new(Mutex::new(Vec::<(String, String, String)>::new()));
    let noted = seen.clone();
    let end = http_server(move |request: Request| {
        let token = request.header("authorization").unwrap_or_default().to_owned();
        let session = request.header("mcp-session-id").unwrap_or_default().to_owned();
        noted.lock().unwrap().push((token.clone(), session, request.rpc().to_owned()));
        match token.strip_prefix("Bearer ") {
            Some(name) => request.answer_plainly(Some(name)),
            None => unauthorized(),
        }
    })
    .await;
    let source = FakeCredentials::none()
        .holding(&Principal::local(), GRANT, "own")
        .holding(&Principal::token("ada"), GRANT, "of-ada")
        .holding(&Principal::token("bob"), GRANT, "of-bob");
    let server = start(authorized(&end.url, source, false));
    until_ready(&server).await;
    for caller in [Client::new(json!({})), client("ada"), client("bob"), client("ada")] {
        call_as(&server, &caller, "echo", json!({}), &Listener::default(), SOON).await.unwrap();
    }
    let failed = call_as(&server, &client("eve"), "echo", json!({}), &Listener::default(), SOON).await;
    assert_eq!(failed.unwrap_err().0, ErrorKind::AuthRequired);
    assert_eq!(server.status().state, ProviderState::Ready);
    let seen = seen.lock().unwrap().clone();
    let calls = seen
        .iter()
        .filter(|(_, _, rpc)| rpc == "tools/call")
        .map(|(token, session, _)| (token.as_str(), session.as_str()));
    let expected =
        [("Bearer own", "own"), ("Bearer of-ada", "of-ada"), ("Bearer of-bob", "of-bob"), ("Bearer of-ada", "of-ada")];
    assert_eq!(calls.collect::<Vec<_>>(), expected);
    let listing: BTreeSet<&str> =
        seen.iter().filter(|(_, _, rpc)| rpc == "tools/list").map(|(token, ..)| token.as_str()).collect();
    assert_eq!(listing, BTreeSet::from(["Bearer own"]), "the lists are those of the local user");
    assert!(seen.iter().all(|(token, ..)| !token.is_empty()), "{seen:?}");
}

#[tokio::test]
async fn a_request_with_an_expired_token_is_sent_again_with_a_renewed_one() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = calls.clone();
    let end = http_server(move |request: Request| {
        let token = request.header("authorization").unwrap_or_default().to_owned();
        if request.rpc() == "tools/call" {
            noted.lock().unwrap().push(token.clone());
            if token == "Bearer old" {
                return unauthorized();
            }
        }
        request.answer_plainly(None)
    })
    .await;
    let source = FakeCredentials::none().holding(&Principal::local(), GRANT, "old").renewing_to("new");
    let server = start(authorized(&end.url, source, false));
    until_ready(&server).await;
    call(&server, "echo", json!({})).await.unwrap();
    assert_eq!(*calls.lock().unwrap(), ["Bearer old", "Bearer new"]);
}

#[tokio::test]
async fn a_call_with_insufficient_scope_fails_without_affecting_the_server() {
    let end = http_server(|request: Request| match request.rpc() {
        "tools/call" if request.message["params"]["arguments"]["write"] == true => Reply::Whole(
            403,
            vec![("www-authenticate", "Bearer error=\"insufficient_scope\", scope=\"notes.write\"".into())],
            vec![],
        ),
        _ => request.answer_plainly(None),
    })
    .await;
    let source = FakeCredentials::none().holding(&Principal::local(), GRANT, "own");
    let server = start(authorized(&end.url, source, false));
    until_ready(&server).await;
    let (kind, text) = call(&server, "echo", json!({"write": true})).await.unwrap_err();
    assert_eq!(kind, ErrorKind::AuthRequired);
    assert!(text.contains("notes.write"), "{text}");
    assert_eq!(server.status().state, ProviderState::Ready);
}

#[tokio::test]
async fn an_open_server_is_used_without_credentials_and_a_protected_server_requires_sign_in() {
    let open = http_server(|request: Request| {
        assert_eq!(request.header("authorization"), None);
        request.answer_plainly(None)
    })
    .await;
    let server = start(authorized(&open.url, FakeCredentials::none(), true));
    until_ready(&server).await;
    for caller in [Client::new(json!({})), client("ada")] {
        call_as(&server, &caller, "echo", json!({}), &Listener::default(), SOON).await.unwrap();
    }
    assert_eq!(server.status().connections, 1);
    let closed = http_server(|_| unauthorized()).await;
    let server = start(authorized(&closed.url, FakeCredentials::none(), true));
    let status = until(&server, |status| matches!(status.state, ProviderState::NeedsAuthorization { .. })).await;
    let ProviderState::NeedsAuthorization { reason } = status.state else { panic!("{:?}", status.state) };
    assert!(reason.contains("HTTP status 401") && reason.contains("signed in"), "{reason}");
}

#[tokio::test]
async fn an_unauthenticated_connection_never_carries_the_token_of_the_local_user() {
    // Token and method of each request.
    let seen = Arc::new(Mutex::new(Vec::<(String, String)>::new()));
    let noted = seen.clone();
    let end = http_server(move |request: Request| {
        let token = request.header("authorization").unwrap_or_default().to_owned();
        noted.lock().unwrap().push((token, request.rpc().to_owned()));
        match request.message["params"]["arguments"]["write"] == true {
            true => Reply::Whole(
                403,
                vec![("www-authenticate", "Bearer error=\"insufficient_scope\", scope=\"notes.write\"".into())],
                vec![],
            ),
            false => request.answer_plainly(None),
        }
    })
    .await;
    let source = Arc::new(FakeCredentials::none().signing_in_as("own"));
    let mut config = authorized(&end.url, FakeCredentials::none(), true);
    let credentials = config.credentials.as_mut().unwrap();
    credentials.source = source.clone();
    let resource = credentials.resource.clone();
    let server = start(config);
    until_ready(&server).await;
    let ada = client("ada");
    call_as(&server, &ada, "echo", json!({}), &Listener::default(), SOON).await.unwrap();
    // The local user signs in, and a call of another principal makes the server require credentials.
    source.sign_in(&Principal::local(), &resource, &Listener::default()).await.unwrap();
    let refused = call_as(&server, &ada, "echo", json!({"write": true}), &Listener::default(), SOON).await;
    assert_eq!(refused.unwrap_err().0, ErrorKind::AuthRequired);
    let calling = async {
        while call_as(&server, &ada, "echo", json!({}), &Listener::default(), SOON).await.is_err()
            || !seen.lock().unwrap().iter().any(|(token, _)| token == "Bearer own")
        {
            yield_now().await;
        }
    };
    timeout(SOON, calling).await.unwrap();
    let of_calls = |seen: &[(String, String)]| -> BTreeSet<String> {
        seen.iter().filter(|(_, rpc)| rpc == "tools/call").map(|(token, _)| token.clone()).collect()
    };
    assert_eq!(of_calls(&seen.lock().unwrap()), BTreeSet::from([String::new()]), "the calls of ada carry no token");
    call(&server, "echo", json!({})).await.unwrap();
    assert!(of_calls(&seen.lock().unwrap()).contains("Bearer own"), "the local user uses its own token");
}
