//! Tokens: exchanged, given out, renewed, revoked, and to whom they go.

use super::*;
use crate::accounts::sign_in_error::SignInError;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use tokio::sync::Notify;
use toolstead_domain::ports::credentials::{Credentials, NoCredentials};

/// An issuer as Google is: the access tokens count.
async fn google() -> Bench {
    let count = AtomicU64::new(0);
    Bench::new(move |seen| match (seen.path(), seen.form("grant_type").as_deref()) {
        ("/token", Some("authorization_code")) => issued("ya29.0", Some("1//refresh"), GMAIL.scopes),
        ("/token", Some("refresh_token")) => {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            issued(&format!("ya29.{number}"), None, GMAIL.scopes)
        }
        ("/revoke", _) => Reply::new(200, "{}"),
        _ => refusal(404, "not_found"),
    })
    .await
}

#[tokio::test]
async fn a_code_is_exchanged_with_the_verifier_of_its_page_and_the_tokens_are_given_out() {
    let bench = google().await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let (challenge, redirect_uri) =
        (parameter(sign_in.page(), "code_challenge"), parameter(sign_in.page(), "redirect_uri"));
    let came = sign_in.pasted(&answer_of(&sign_in, "code=c0de")).unwrap().unwrap();
    let signed_in = sign_in.finish(came).await.unwrap();
    assert_eq!((signed_in.grant.as_str(), signed_in.origin.as_str()), ("gmail", GMAIL_ORIGIN));
    assert!(signed_in.is_renewable);
    let [form] = bench.forms("/token").try_into().unwrap();
    for (name, expected) in
        [("code", "c0de"), ("client_id", "42.apps"), ("client_secret", CLIENT_SECRET), ("redirect_uri", &redirect_uri)]
    {
        assert_eq!(form.form(name).as_deref(), Some(expected), "{name}");
    }
    let verifier = form.form("code_verifier").unwrap();
    assert_eq!(URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())), challenge);
    let headers = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap();
    assert_eq!(value(&headers), "Bearer ya29.0");
    assert_eq!(bench.accounts.status(&Principal::local()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn tokens_are_one_principals_one_grants_and_go_to_one_origin_alone() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    for (principal, grant, origin) in [
        (Principal::token("ada"), "gmail", GMAIL_ORIGIN),
        (Principal::local(), "calendar", "https://www.googleapis.com"),
        (Principal::local(), "gmail", "https://www.googleapis.com"),
        (Principal::local(), "gmail", "http://gmail.googleapis.com"),
        (Principal::local(), "gmail", "https://gmail.googleapis.com:8443"),
        (Principal::local(), "drive", GMAIL_ORIGIN),
    ] {
        let resource = Resource { grant: grant.into(), origin: origin.into() };
        let none = bench.accounts.headers(&principal, &resource).await;
        assert!(none.is_err(), "{principal} {grant} {origin}");
        let known = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap();
        assert!(bench.accounts.renewed(&principal, &resource, &known).await.is_err(), "{principal} {grant} {origin}");
    }
    assert!(bench.accounts.status(&Principal::token("ada")).await.unwrap().is_empty());
    assert_eq!(bench.forms("/token").len(), 1);
}

#[tokio::test]
async fn a_service_at_another_address_gets_nothing_of_what_was_granted_for_the_first() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    let moved = Accounts::new(AccountsParts {
        services: vec![(&GMAIL, Url::parse("https://evil.example/gmail").unwrap())],
        ..parts(&bench)
    });
    let there = Resource { grant: "gmail".into(), origin: "https://evil.example".into() };
    assert!(matches!(moved.headers(&Principal::local(), &there).await, Err(NoCredentials::SignIn(_))));
    assert!(matches!(moved.headers(&Principal::local(), &gmail()).await, Err(NoCredentials::Unavailable(_))));
}

#[tokio::test]
async fn an_issuer_that_renews_or_revokes_at_another_address_gets_no_tokens_of_the_first() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    bench.pass(3600);
    let elsewhere = TestServer::plain(|_| issued("evil", Some("evil"), GMAIL.scopes)).await;
    let usual = client(&bench.issuer);
    for client in [
        OAuthClient { token_url: elsewhere.url("/token"), ..usual.clone() },
        OAuthClient { revocation_url: elsewhere.url("/revoke"), ..usual.clone() },
    ] {
        let services = vec![(&GMAIL, Url::parse(GMAIL_ORIGIN).unwrap())];
        let moved = Accounts::new(AccountsParts { client: Ok(client), services, ..parts(&bench) });
        let none = moved.headers(&Principal::local(), &gmail()).await;
        assert!(matches!(none, Err(NoCredentials::SignIn(_))), "{none:?}");
        assert_eq!(moved.sign_out(&Principal::local(), &GMAIL).await.unwrap(), None);
    }
    assert!(elsewhere.seen().is_empty());
    let status = bench.accounts.status(&Principal::local()).await.unwrap();
    assert_eq!(status[0].1.as_ref().unwrap().issuer, usual.issuer);
}

fn parts(bench: &Bench) -> AccountsParts {
    let vault = Vault::open(bench.folder.path().join("accounts"), bench.folder.path().join("secrets.key"));
    AccountsParts {
        client: Ok(client(&bench.issuer)),
        services: Vec::new(),
        vault: vault.map_err(|error| error.to_string()),
        reach: Reach::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        clock: bench.clock.clone(),
        patience: SOON,
    }
}

#[tokio::test]
async fn an_issuer_that_leads_elsewhere_is_not_followed() {
    let elsewhere = TestServer::plain(|_| issued("evil", Some("evil"), GMAIL.scopes)).await;
    let to = elsewhere.url("/token").to_string();
    let bench = Bench::new(move |_| Reply::redirect(307, &to)).await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let came = sign_in.pasted("c0de").unwrap().unwrap();
    assert!(sign_in.finish(came).await.is_err());
    assert!(elsewhere.seen().is_empty());
    assert_eq!(bench.kept(), 0);
}

#[tokio::test]
async fn a_token_is_renewed_a_minute_before_its_end_and_not_earlier() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    for (seconds, expected) in [(3538, "ya29.0"), (1, "ya29.1"), (3538, "ya29.1"), (100_000, "ya29.2")] {
        bench.pass(seconds);
        let headers = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap();
        assert_eq!(value(&headers), format!("Bearer {expected}"), "after {seconds} more");
    }
    let renewals = bench.forms("/token").split_off(1);
    assert!(renewals.iter().all(|form| form.form("refresh_token").as_deref() == Some("1//refresh")));
}

#[tokio::test]
async fn of_many_at_once_in_two_processes_one_renews_and_all_have_its_token() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    bench.pass(4000);
    let other = bench.of_another_process();
    let all = (0..40).map(|number| {
        let accounts = if number % 2 == 0 { bench.accounts.clone() } else { other.clone() };
        tokio::spawn(async move { accounts.headers(&Principal::local(), &gmail()).await.unwrap() })
    });
    for headers in futures::future::join_all(all).await {
        assert_eq!(value(&headers.unwrap()), "Bearer ya29.1");
    }
    assert_eq!(bench.forms("/token").len(), 2);
}

#[tokio::test]
async fn what_a_service_refuses_is_renewed_once_and_where_another_did_it_theirs_is_taken() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    let refused = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap();
    let renewed = bench.accounts.renewed(&Principal::local(), &gmail(), &refused).await.unwrap();
    assert_eq!(value(&renewed), "Bearer ya29.1");
    let theirs = bench.of_another_process().renewed(&Principal::local(), &gmail(), &refused).await.unwrap();
    assert_eq!(value(&theirs), "Bearer ya29.1");
    assert_eq!(bench.forms("/token").len(), 2);
}

#[tokio::test]
async fn a_renewal_that_nobody_waits_for_any_more_is_kept_all_the_same() {
    let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tells, waits) = (arrived.clone(), go.clone());
    let bench = Bench::new(move |seen| match seen.form("grant_type").as_deref() {
        Some("authorization_code") => issued("ya29.0", Some("one-time-0"), GMAIL.scopes),
        Some("refresh_token") if seen.form("refresh_token").as_deref() == Some("one-time-0") => {
            tells.notify_one();
            issued("ya29.1", Some("one-time-1"), GMAIL.scopes).once(waits.clone())
        }
        _ => refusal(400, "invalid_grant"),
    })
    .await;
    bench.sign_in(&GMAIL).await;
    bench.pass(4000);
    let accounts = bench.accounts.clone();
    let call = tokio::spawn(async move { accounts.headers(&Principal::local(), &gmail()).await });
    arrived.notified().await;
    call.abort();
    assert!(call.await.is_err());
    go.notify_one();
    // Behind the lock that the renewal holds.
    let headers = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap();
    assert_eq!(value(&headers), "Bearer ya29.1");
}

/// What comes of a renewal that the issuer answers so: the failure, and whether the tokens are still kept.
async fn renewal(answer: Reply, seconds: u64) -> (NoCredentials, bool) {
    let bench = Bench::new(move |seen| match seen.form("grant_type").as_deref() {
        Some("authorization_code") => issued("ya29.0", Some("1//refresh"), GMAIL.scopes),
        _ => answer.clone(),
    })
    .await;
    bench.sign_in(&GMAIL).await;
    bench.pass(seconds);
    let none = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap_err();
    let told = none.to_string();
    for secret in ["ya29.0", "1//refresh", CLIENT_SECRET] {
        assert!(!told.contains(secret), "{told}");
    }
    (none, bench.kept() == 1)
}

#[tokio::test]
async fn a_grant_that_is_over_is_forgotten_and_a_fault_of_the_issuer_forgets_nothing() {
    let (none, is_kept) = renewal(refusal(400, "invalid_grant"), 4000).await;
    assert!(
        matches!(&none, NoCredentials::SignIn(told) if told.contains("`toolstead auth login google --grant gmail`"))
    );
    assert!(!is_kept);
    let (none, is_kept) = renewal(issued("ya29.1", None, &[GMAIL.scopes[0]]), 4000).await;
    assert!(matches!(&none, NoCredentials::SignIn(told) if told.contains("gmail.send")), "{none}");
    assert!(!is_kept);
    for (answer, expected) in [
        (refusal(401, "invalid_client"), "client_id"),
        (refusal(500, "server_error"), "server_error"),
        (Reply::new(502, "<html>"), "HTTP 502"),
        (Reply::new(200, "{}"), "no answer with tokens"),
        (Reply::new(200, "x".repeat(100_000)), "too long"),
        (Reply::json(&json!({"access_token": "a", "token_type": "mac"})), "Bearer"),
        (Reply::json(&json!({"access_token": "a\r\nX: y", "token_type": "bearer"})), "header"),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), "not reached"),
        (
            Reply::json(&json!({"error": "x", "error_description": format!("no {CLIENT_SECRET} 1//refresh")}))
                .status(400),
            "no … …",
        ),
    ] {
        let (none, is_kept) = renewal(answer, 4000).await;
        assert!(none.to_string().contains(expected), "{expected}: {none}");
        assert!(!matches!(none, NoCredentials::SignIn(_)) && is_kept, "{expected}: {none:?}");
    }
}

#[tokio::test]
async fn a_token_that_lasts_for_a_moment_yet_serves_where_the_issuer_is_not_reached() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    bench.pass(3560);
    let Bench { issuer, accounts, clock, folder } = bench;
    drop(issuer);
    assert_eq!(value(&accounts.headers(&Principal::local(), &gmail()).await.unwrap()), "Bearer ya29.0");
    clock.0.fetch_add(100, Ordering::SeqCst);
    assert!(matches!(accounts.headers(&Principal::local(), &gmail()).await, Err(NoCredentials::Failed(_))));
    drop(folder);
}

/// Signs in at an issuer that answers the exchange so.
async fn exchanged(answer: Reply) -> (SignInError, Bench) {
    let bench = Bench::new(move |seen| match seen.path() {
        "/token" => answer.clone(),
        _ => Reply::new(200, "{}"),
    })
    .await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let came = sign_in.pasted("c0de").unwrap().unwrap();
    let error = sign_in.finish(came).await.unwrap_err();
    assert_eq!(bench.kept(), 0, "{error}");
    (error, bench)
}

#[tokio::test]
async fn less_than_all_is_told_and_given_back_and_nothing_is_kept() {
    let (error, bench) = exchanged(issued("ya29.0", Some("1//refresh"), &[GMAIL.scopes[0], "openid"])).await;
    assert!(error.to_string().contains("https://www.googleapis.com/auth/gmail.send"), "{error}");
    assert!(!error.to_string().contains("readonly"), "{error}");
    let [revoked] = bench.forms("/revoke").try_into().unwrap();
    assert_eq!(revoked.form("token").as_deref(), Some("1//refresh"));
}

#[tokio::test]
async fn an_exchange_that_fails_keeps_nothing_and_says_why() {
    for (answer, expected) in [
        (refusal(400, "invalid_grant"), "invalid_grant, Bad Request"),
        (refusal(401, "invalid_client"), "[google] client_id"),
        (refusal(400, "redirect_uri_mismatch"), "redirect_uri_mismatch"),
        (Reply::new(500, ""), "HTTP 500"),
    ] {
        let (error, _) = exchanged(answer).await;
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[tokio::test]
async fn signing_out_revokes_and_forgets_also_where_the_issuer_does_not_hear() {
    for (answer, expected) in [(Reply::new(200, "{}"), None), (refusal(400, "invalid_token"), Some("invalid_token"))] {
        let bench = Bench::new(move |seen| match seen.path() {
            "/token" => issued("ya29.0", Some("1//refresh"), GMAIL.scopes),
            _ => answer.clone(),
        })
        .await;
        bench.sign_in(&GMAIL).await;
        let said = bench.accounts.sign_out(&Principal::local(), &GMAIL).await.unwrap().expect("somebody was signed in");
        match expected {
            None => assert_eq!(said, Ok(())),
            Some(word) => assert!(said.unwrap_err().contains(word)),
        }
        assert_eq!(bench.kept(), 0);
        let none = bench.accounts.headers(&Principal::local(), &gmail()).await;
        assert!(matches!(none, Err(NoCredentials::SignIn(_))), "{none:?}");
        assert!(bench.accounts.sign_out(&Principal::local(), &GMAIL).await.unwrap().is_none());
    }
}

#[test]
fn no_secret_is_shown_by_what_is_written_for_debugging() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let bench = google().await;
        let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
        let came = sign_in.pasted("c0de").unwrap().unwrap();
        let shown = format!("{:?} {sign_in:?} {came:?}", bench.accounts);
        for secret in [CLIENT_SECRET, "c0de", &parameter(sign_in.page(), "state")] {
            assert!(!shown.contains(secret), "{shown}");
        }
    });
}
