//! Hostile metadata, redirects and addresses.

use super::*;
use crate::upstream_auth::upstream_auth_error::UpstreamAuthError;
use toolstead_domain::{Credentials, CredentialsError, error_chain::with_causes};
use url::Url;

/// Checks that a sign-in does not begin, with these words in its reason.
#[track_caller]
fn check(behavior: Behavior, words: &str) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let bench = Bench::for_sign_in().await;
        bench.set(|own| *own = behavior);
        match bench.accounts.begin(&Principal::local()).await {
            Ok(sign_in) => panic!("{place}: {}", sign_in.page()),
            Err(error) => {
                let text = with_causes(&error);
                assert!(text.contains(words), "{place}: {text}");
            }
        }
        assert_eq!(bench.seen("/token").len(), 0, "{place}");
    }
}

fn server(change: fn(&mut Value)) -> Behavior {
    Behavior { server: Some(change), ..Behavior::default() }
}

fn resource(change: fn(&mut Value)) -> Behavior {
    Behavior { resource: Some(change), ..Behavior::default() }
}

#[tokio::test]
async fn unsafe_authorization_metadata_prevents_a_sign_in() {
    check(server(|own| own["issuer"] = "https://evil.example".into()), "issuer").await;
    check(server(|own| own["code_challenge_methods_supported"] = json!(["plain"])), "S256").await;
    check(server(|own| drop(own.as_object_mut().unwrap().remove("code_challenge_methods_supported"))), "S256").await;
    check(server(|own| own["authorization_endpoint"] = "http://evil.example/page".into()), "neither an `https`").await;
    check(server(|own| own["authorization_endpoint"] = "javascript:alert(1)".into()), "neither an `https`").await;
    check(server(|own| own["authorization_endpoint"] = "https://169.254.169.254/page".into()), "169.254").await;
    check(server(|own| own["registration_endpoint"] = "http://10.0.0.1/register".into()), "https").await;
    check(server(|own| own["registration_endpoint"] = "https://10.0.0.1/register".into()), "10.0.0.1").await;
    check(server(|own| drop(own.as_object_mut().unwrap().remove("registration_endpoint"))), "client_id").await;
    check(resource(|own| own["resource"] = "https://other.example/mcp".into()), "resource").await;
    check(resource(|own| own["authorization_servers"] = json!(["https://192.168.1.1"])), "authorization servers").await;
}

#[tokio::test]
async fn a_code_is_not_sent_to_a_private_address() {
    let bench = Bench::for_sign_in().await;
    bench.set(|own| own.server = Some(|own| own["token_endpoint"] = "https://169.254.169.254/token".into()));
    let sign_in = bench.accounts.begin(&Principal::local()).await.unwrap();
    let code = sign_in.pasted(&answer_of(&sign_in, "code=c0de-of-the-test")).unwrap().unwrap();
    let error = sign_in.finish(code).await.unwrap_err();
    let text = with_causes(&error);
    assert!(matches!(error, UpstreamAuthError::Refused(_)) && !text.contains("c0de-of-the-test"), "{text}");
    assert_eq!(bench.accounts.grants(&Principal::local()).await.unwrap(), []);
}

#[tokio::test]
async fn the_redirect_of_another_issuer_is_refused() {
    for answer in ["code=c0de&iss=https%3A%2F%2Fevil.example", "error=access_denied"] {
        let bench = Bench::for_sign_in().await;
        let sign_in = bench.accounts.begin(&Principal::local()).await.unwrap();
        if let Ok(code) = sign_in.pasted(&answer_of(&sign_in, answer)) {
            assert!(sign_in.finish(code.unwrap()).await.is_err(), "{answer}");
        }
        assert_eq!(bench.seen("/token").len(), 0, "{answer}");
    }
}

#[tokio::test]
async fn only_the_configured_issuer_is_accepted() {
    let settings = SignInSettings { issuer: Some("https://sso.example".into()), ..SignInSettings::default() };
    let bench = Bench::new(UpstreamAuth::OAuth(settings)).await;
    let error = bench.accounts.begin(&Principal::local()).await.unwrap_err();
    assert!(matches!(error, UpstreamAuthError::OtherIssuer { .. }), "{error}");
    assert_eq!(bench.seen("/register").len(), 0);
}

#[tokio::test]
async fn tokens_stay_with_the_authorization_server_that_issued_them() {
    let bench = Bench::for_sign_in().await;
    bench.sign_in(&Principal::local()).await;
    bench.set(|own| own.resource = Some(|own| own["authorization_servers"] = json!(["https://evil.example"])));
    bench.pass(7200);
    let headers = bench.accounts.headers(&Principal::local(), &bench.accounts.resource()).await.unwrap();
    assert_eq!(token(&headers), "access-2");
}

#[tokio::test]
async fn a_server_without_encryption_receives_no_token() {
    let accounts = UpstreamServerCredentials::new(UpstreamServerCredentialsParts {
        server: Url::parse("http://notes.example/mcp").unwrap(),
        auth: UpstreamAuth::OAuth(SignInSettings::default()),
        vault: Err("unused".into()),
        web: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        clock: Arc::new(SetClock::default()),
    });
    let none = accounts.headers(&Principal::local(), &accounts.resource()).await;
    assert!(matches!(&none, Err(CredentialsError::Unavailable(why)) if why.contains("https")), "{none:?}");
    assert!(accounts.begin(&Principal::local()).await.is_err());
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let other = TestServer::plain(|_| Reply::json(&json!({"issuer": "http://127.0.0.1"}))).await;
    let target = other.url("/.well-known/oauth-authorization-server").to_string();
    let server = TestServer::plain(move |seen| match seen.path() {
        "/.well-known/oauth-authorization-server" => Reply::redirect(302, &target),
        _ => reply(seen, &mut Behavior::default()),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let auth = UpstreamAuth::OAuth(SignInSettings::default());
    let accounts = accounts(&server, &folder, Arc::new(SetClock::default()), auth);
    assert!(accounts.begin(&Principal::local()).await.is_err());
    assert_eq!(other.requests().len(), 0);
}
