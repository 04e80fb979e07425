//! Sign-in, renewal, further scopes and sign-out.

use super::*;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use toolstead_domain::{Credentials, CredentialsError};

#[tokio::test]
async fn a_client_registers_itself_and_signs_in_with_pkce_for_the_resource() {
    let bench = Bench::for_sign_in().await;
    let sign_in = bench.accounts.begin(&Principal::local()).await.unwrap();
    let uri = bench.server.url("/mcp").to_string();
    for (name, expected) in [
        ("client_id", "registered"),
        ("code_challenge_method", "S256"),
        ("resource", uri.as_str()),
        ("scope", "notes.read"),
        ("response_type", "code"),
    ] {
        assert_eq!(parameter(&sign_in, name).as_deref(), Some(expected), "{name}");
    }
    let challenge = parameter(&sign_in, "code_challenge").unwrap();
    let code = sign_in.pasted(&answer_of(&sign_in, "code=c0de")).unwrap().unwrap();
    let grant = sign_in.finish(code).await.unwrap();
    assert_eq!((grant.resource.as_str(), grant.scopes.as_slice()), (uri.as_str(), &["notes.read".to_owned()][..]));
    let [form] = bench.seen("/token").try_into().unwrap();
    for (name, expected) in [
        ("code", "c0de"),
        ("resource", uri.as_str()),
        ("client_id", "registered"),
        ("client_secret", "registered-secret"),
    ] {
        assert_eq!(form.form(name).as_deref(), Some(expected), "{name}");
    }
    let verifier = form.form("code_verifier").unwrap();
    assert_eq!(URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())), challenge);
    let registered = bench.seen("/register")[0].json();
    assert_eq!(registered["application_type"], "native");
    let resource = bench.accounts.resource();
    assert_eq!(token(&bench.accounts.headers(&Principal::local(), &resource).await.unwrap()), "access-1");
    assert_eq!(bench.accounts.grants(&Principal::local()).await.unwrap(), [grant]);
}

#[tokio::test]
async fn two_principals_have_their_own_tokens_and_others_have_none() {
    let bench = Bench::for_sign_in().await;
    let (ada, bob) = (Principal::token("ada"), Principal::token("bob"));
    bench.sign_in(&ada).await;
    bench.sign_in(&bob).await;
    let resource = bench.accounts.resource();
    for (principal, expected) in [(&ada, "access-1"), (&bob, "access-2"), (&ada, "access-1")] {
        assert_eq!(token(&bench.accounts.headers(principal, &resource).await.unwrap()), expected, "{principal}");
    }
    let none = bench.accounts.headers(&Principal::local(), &resource).await;
    assert!(matches!(none, Err(CredentialsError::SignIn(_))), "{none:?}");
    let elsewhere =
        toolstead_domain::ports::credentials::ProtectedResource { origin: "https://other.example/".into(), ..resource };
    assert!(bench.accounts.headers(&ada, &elsewhere).await.is_err());
}

#[tokio::test]
async fn a_token_that_expires_soon_is_renewed_once_for_all_calls() {
    let bench = Bench::for_sign_in().await;
    bench.sign_in(&Principal::local()).await;
    bench.pass(3550);
    let (resource, local) = (bench.accounts.resource(), Principal::local());
    let other = bench.of_another_process();
    let (one, two, three) = tokio::join!(
        bench.accounts.headers(&local, &resource),
        bench.accounts.headers(&local, &resource),
        other.headers(&local, &resource),
    );
    for headers in [one, two, three] {
        assert_eq!(token(&headers.unwrap()), "access-2");
    }
    let [_, renewal] = bench.seen("/token").try_into().unwrap();
    for (name, expected) in [
        ("grant_type", "refresh_token"),
        ("refresh_token", "refresh-1"),
        ("client_secret", "registered-secret"),
        ("resource", bench.server.url("/mcp").as_str()),
    ] {
        assert_eq!(renewal.form(name).as_deref(), Some(expected), "{name}");
    }
}

#[tokio::test]
async fn a_revoked_grant_is_deleted_and_not_requested_again() {
    let bench = Bench::for_sign_in().await;
    bench.sign_in(&Principal::local()).await;
    let (resource, local) = (bench.accounts.resource(), Principal::local());
    let refused = bench.accounts.headers(&local, &resource).await.unwrap();
    bench.set(|behavior| behavior.token = Some(|| refusal("invalid_grant")));
    let none = bench.accounts.renewed(&local, &resource, &refused).await;
    assert!(matches!(none, Err(CredentialsError::SignIn(_))), "{none:?}");
    assert_eq!(bench.accounts.grants(&local).await.unwrap(), []);
    let requests = bench.seen("/token").len();
    for _ in 0..3 {
        assert!(matches!(bench.accounts.headers(&local, &resource).await, Err(CredentialsError::SignIn(_))));
    }
    assert_eq!(bench.seen("/token").len(), requests);
}

#[tokio::test]
async fn a_failed_renewal_keeps_the_grant_and_the_token_while_it_is_valid() {
    let bench = Bench::for_sign_in().await;
    bench.sign_in(&Principal::local()).await;
    bench.set(|behavior| behavior.token = Some(|| Reply::new(503, "")));
    let (resource, local) = (bench.accounts.resource(), Principal::local());
    bench.pass(3550);
    assert_eq!(token(&bench.accounts.headers(&local, &resource).await.unwrap()), "access-1");
    bench.pass(3600);
    let none = bench.accounts.headers(&local, &resource).await;
    assert!(matches!(none, Err(CredentialsError::Failed(_))), "{none:?}");
    bench.set(|behavior| behavior.token = None);
    assert_eq!(token(&bench.accounts.headers(&local, &resource).await.unwrap()), "access-2");
}

#[tokio::test]
async fn a_server_that_refuses_every_token_causes_one_renewal() {
    let bench = Bench::for_sign_in().await;
    bench.sign_in(&Principal::local()).await;
    let (resource, local) = (bench.accounts.resource(), Principal::local());
    let first = bench.accounts.headers(&local, &resource).await.unwrap();
    let second = bench.accounts.renewed(&local, &resource, &first).await.unwrap();
    assert_eq!(token(&second), "access-2");
    for _ in 0..3 {
        let none = bench.accounts.renewed(&local, &resource, &second).await;
        assert!(matches!(none, Err(CredentialsError::Failed(_))), "{none:?}");
    }
    assert_eq!(bench.seen("/token").len(), 2);
}

#[tokio::test]
async fn further_scopes_are_requested_together_with_the_granted_ones() {
    let bench = Bench::for_sign_in().await;
    let (resource, local) = (bench.accounts.resource(), Principal::local());
    bench.sign_in(&local).await;
    let held = bench.accounts.headers(&local, &resource).await.unwrap();
    let none = bench.accounts.challenged(&local, &resource, &held, &insufficient("notes.write")).await;
    assert!(matches!(&none, Err(CredentialsError::SignIn(why)) if why.contains("notes.write")), "{none:?}");
    // Another process signs in, and this one uses the new grant for the next request.
    let sign_in = bench.of_another_process().begin(&local).await.unwrap();
    assert_eq!(parameter(&sign_in, "scope").as_deref(), Some("notes.read notes.write"));
    let code = sign_in.pasted(&answer_of(&sign_in, "code=c0de")).unwrap().unwrap();
    let grant = sign_in.finish(code).await.unwrap();
    assert_eq!((grant.scopes, grant.missing_scopes), (vec!["notes.read".into(), "notes.write".into()], vec![]));
    let new = bench.accounts.challenged(&local, &resource, &held, &insufficient("notes.write")).await.unwrap();
    assert_eq!(token(&new), "access-2");
    let useless = bench.accounts.challenged(&local, &resource, &new, &insufficient("notes.write")).await;
    assert!(matches!(useless, Err(CredentialsError::Unavailable(_))), "{useless:?}");
}

#[tokio::test]
async fn signing_out_revokes_and_deletes_the_grant_of_one_principal() {
    let bench = Bench::for_sign_in().await;
    let ada = Principal::token("ada");
    bench.sign_in(&Principal::local()).await;
    bench.sign_in(&ada).await;
    let signed_out = bench.accounts.sign_out(&Principal::local()).await.unwrap();
    assert_eq!(signed_out.iter().map(|one| one.revoked.clone()).collect::<Vec<_>>(), [Ok(())]);
    assert_eq!(bench.seen("/revoke")[0].form("token").as_deref(), Some("refresh-1"));
    assert_eq!(bench.accounts.sign_out(&Principal::local()).await.unwrap(), []);
    let resource = bench.accounts.resource();
    assert!(bench.accounts.headers(&Principal::local(), &resource).await.is_err());
    assert_eq!(token(&bench.accounts.headers(&ada, &resource).await.unwrap()), "access-2");
}
