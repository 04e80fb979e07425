//! Tokens: exchange, use, renewal, revocation, and the origins that receive them.

use super::*;
use crate::accounts::sign_in_error::SignInError;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use tokio::sync::Notify;
use toolstead_domain::{Credentials, CredentialsError};

/// Returns an issuer like Google's with numbered access tokens. It grants all requested scopes.
async fn google() -> Bench {
    let count = AtomicU64::new(0);
    let scopes = [GMAIL.scopes, CALENDAR.scopes].concat();
    Bench::new(move |seen| match (seen.path(), seen.form("grant_type").as_deref()) {
        ("/token", Some("authorization_code")) => issued("ya29.0", Some("1//refresh"), &scopes),
        ("/token", Some("refresh_token")) => {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            issued(&format!("ya29.{number}"), None, &scopes)
        }
        ("/revoke", _) => Reply::new(200, "{}"),
        _ => refusal(404, "not_found"),
    })
    .await
}

#[tokio::test]
async fn a_code_is_exchanged_with_its_verifier_and_the_tokens_are_then_available() {
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
    assert_eq!(bench.accounts.status(&Principal::local()).await.unwrap().signed_in, [signed_in]);
}

#[tokio::test]
async fn tokens_are_bound_to_one_principal_one_grant_and_one_origin() {
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
        let resource = ProtectedResource { grant: grant.into(), origin: origin.into() };
        let none = bench.accounts.headers(&principal, &resource).await;
        assert!(none.is_err(), "{principal} {grant} {origin}");
        let known = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap();
        assert!(bench.accounts.renewed(&principal, &resource, &known).await.is_err(), "{principal} {grant} {origin}");
    }
    assert_eq!(bench.accounts.status(&Principal::token("ada")).await.unwrap().signed_in, []);
    assert_eq!(bench.accounts.sign_out(&Principal::token("ada"), &GMAIL).await.unwrap(), []);
    assert_eq!((bench.kept(), bench.forms("/revoke").len()), (1, 0));
    assert_eq!(bench.forms("/token").len(), 1);
}

#[tokio::test]
async fn a_service_at_another_address_receives_no_tokens_granted_for_the_first() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    let moved = OAuthAccounts::new(AccountsParts {
        services: vec![(&GMAIL, Url::parse("https://evil.example/gmail").unwrap())],
        ..parts(&bench)
    });
    let there = ProtectedResource { grant: "gmail".into(), origin: "https://evil.example".into() };
    assert!(matches!(moved.headers(&Principal::local(), &there).await, Err(CredentialsError::SignIn(_))));
    assert!(matches!(moved.headers(&Principal::local(), &gmail()).await, Err(CredentialsError::Unavailable(_))));
}

#[tokio::test]
async fn an_issuer_with_another_token_or_revocation_address_receives_no_earlier_tokens() {
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
        let moved = OAuthAccounts::new(AccountsParts { client: Ok(client), services, ..parts(&bench) });
        let none = moved.headers(&Principal::local(), &gmail()).await;
        assert!(matches!(none, Err(CredentialsError::SignIn(_))), "{none:?}");
    }
    assert!(elsewhere.requests().is_empty());
    let status = bench.accounts.status(&Principal::local()).await.unwrap();
    assert_eq!(status.signed_in[0].issuer, usual.issuer);
}

#[tokio::test]
async fn signing_out_removes_tokens_of_earlier_addresses_without_sending_them_to_later_ones() {
    let elsewhere = TestServer::plain(|_| Reply::new(200, "{}")).await;
    let other = |path: &str| elsewhere.url(path);
    for (change, service, expected) in [
        ((|_, _| {}) as fn(&mut OAuthClient, Url), "https://gateway.example", None),
        (|client, _| client.authorization_url = Url::parse("https://sign-in.example/").unwrap(), GMAIL_ORIGIN, None),
        (|client, other| client.token_url = other, GMAIL_ORIGIN, None),
        (|client, other| client.revocation_url = other, GMAIL_ORIGIN, Some("was not sent to")),
    ] {
        let bench = google().await;
        bench.sign_in(&GMAIL).await;
        let mut client = client(&bench.issuer);
        change(&mut client, other("/any"));
        if client.authorization_url.host_str() == Some("sign-in.example") {
            client.issuer = "https://sign-in.example".into();
        }
        let services = vec![(&GMAIL, Url::parse(service).unwrap())];
        let moved = OAuthAccounts::new(AccountsParts { client: Ok(client), services, ..parts(&bench) });
        let signed_out = moved.sign_out(&Principal::local(), &GMAIL).await.unwrap();
        let [out] = signed_out.as_slice() else { panic!("{signed_out:?}") };
        assert_eq!((out.issuer.as_str(), out.origin.as_str()), ("https://accounts.google.com", GMAIL_ORIGIN));
        match expected {
            None => assert_eq!(out.revoked, Ok(())),
            Some(words) => assert!(out.revoked.as_ref().unwrap_err().contains(words), "{out:?}"),
        }
        let revoked: Vec<_> = bench.forms("/revoke").iter().map(|seen| seen.form("token").unwrap()).collect();
        assert_eq!(revoked, vec!["1//refresh"; usize::from(expected.is_none())]);
        assert_eq!(bench.kept(), 0);
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn signing_out_without_a_client_deletes_tokens_and_reports_the_missing_revocation() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    bench.sign_in(&CALENDAR).await;
    let without = OAuthAccounts::new(AccountsParts { client: Err("there is no client".into()), ..parts(&bench) });
    let signed_out = without.sign_out(&Principal::local(), &GMAIL).await.unwrap();
    assert_eq!(signed_out.len(), 1);
    assert!(signed_out[0].revoked.as_ref().unwrap_err().contains("there is no client"), "{signed_out:?}");
    let left = without.status(&Principal::local()).await.unwrap().signed_in;
    assert_eq!(left.iter().map(|one| one.grant.as_str()).collect::<Vec<_>>(), ["calendar"]);
}

#[tokio::test]
async fn unreadable_tokens_are_reported_by_status_and_deleted_by_sign_out() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    let folder = bench.folder.path().join("accounts");
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|end| end == "sealed")).unwrap();
    bench.sign_in(&CALENDAR).await;
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let status = bench.accounts.status(&Principal::local()).await.unwrap();
    assert_eq!(status.signed_in.iter().map(|one| one.grant.as_str()).collect::<Vec<_>>(), ["calendar"]);
    let [unreadable] = status.unreadable.as_slice() else { panic!("{status:?}") };
    assert!(unreadable.error.to_string().contains("chmod 600"), "{unreadable:?}");
    let signed_out = bench.accounts.sign_out(&Principal::local(), &GMAIL).await.unwrap();
    assert!(signed_out[0].revoked.as_ref().unwrap_err().contains("chmod 600"), "{signed_out:?}");
    assert!(!file.exists() && bench.kept() == 1);
}

fn parts(bench: &Bench) -> AccountsParts {
    let vault = Vault::open(bench.folder.path().join("accounts"), bench.folder.path().join("secrets.key"));
    AccountsParts {
        client: Ok(client(&bench.issuer)),
        services: Vec::new(),
        vault: vault.map_err(|error| error.to_string()),
        reach: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        clock: bench.clock.clone(),
        patience: SOON,
    }
}

#[tokio::test]
async fn redirects_of_the_issuer_are_not_followed() {
    let elsewhere = TestServer::plain(|_| issued("evil", Some("evil"), GMAIL.scopes)).await;
    let to = elsewhere.url("/token").to_string();
    let bench = Bench::new(move |_| Reply::redirect(307, &to)).await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let came = sign_in.pasted("c0de").unwrap().unwrap();
    assert!(sign_in.finish(came).await.is_err());
    assert!(elsewhere.requests().is_empty());
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
async fn concurrent_calls_in_two_processes_share_one_token_renewal() {
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
async fn a_refused_token_is_renewed_once_and_other_processes_use_the_renewed_token() {
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
async fn a_renewal_is_stored_even_if_its_call_is_cancelled() {
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
    // Waits for the lock that the renewal holds.
    let headers = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap();
    assert_eq!(value(&headers), "Bearer ya29.1");
}

/// Returns an issuer with single-use refresh tokens. Before it answers at `path`, it notifies the test and waits.
async fn waiting_at(path: &'static str) -> (Bench, Arc<Notify>, Arc<Notify>) {
    let (arrived, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tells, waits) = (arrived.clone(), go.clone());
    let bench = Bench::new(move |seen| {
        let answer = match (seen.path(), seen.form("refresh_token")) {
            ("/revoke", _) => Reply::new(200, "{}"),
            (_, None) => return issued("ya29.0", Some("one-time-0"), GMAIL.scopes),
            (_, Some(_)) => issued("ya29.1", Some("one-time-1"), GMAIL.scopes),
        };
        match seen.path() == path {
            true => {
                tells.notify_one();
                answer.once(waits.clone())
            }
            false => answer,
        }
    })
    .await;
    bench.sign_in(&GMAIL).await;
    bench.pass(4000);
    (bench, arrived, go)
}

/// Returns `true` if a process holds the lock of the tokens.
fn is_locked(bench: &Bench) -> bool {
    let files = std::fs::read_dir(bench.folder.path().join("accounts")).unwrap().map(|file| file.unwrap().path());
    let locks: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "lock")).collect();
    let [lock] = locks.as_slice() else { panic!("{locks:?}") };
    let lock = std::fs::File::open(lock).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err()
}

#[tokio::test]
async fn signing_out_during_a_renewal_revokes_the_new_tokens() {
    let (bench, arrived, go) = waiting_at("/token").await;
    let accounts = bench.accounts.clone();
    let renewal = tokio::spawn(async move { accounts.headers(&Principal::local(), &gmail()).await });
    arrived.notified().await;
    let other = bench.of_another_process();
    let principal = Principal::local();
    let signing_out = other.sign_out(&principal, &GMAIL);
    let (signed_out, ()) = tokio::join!(biased; signing_out, async { go.notify_one() });
    assert_eq!(signed_out.unwrap()[0].revoked, Ok(()));
    renewal.await.unwrap().unwrap();
    let revoked: Vec<_> = bench.forms("/revoke").iter().map(|seen| seen.form("token").unwrap()).collect();
    assert_eq!((revoked, bench.kept()), (vec!["one-time-1".to_owned()], 0));
}

#[tokio::test]
async fn a_renewal_during_sign_out_stores_no_tokens() {
    let (bench, arrived, go) = waiting_at("/revoke").await;
    let accounts = bench.accounts.clone();
    let signing_out = tokio::spawn(async move { accounts.sign_out(&Principal::local(), &GMAIL).await });
    arrived.notified().await;
    assert!(is_locked(&bench), "a renewal would go ahead");
    let other = bench.of_another_process();
    let renewal = tokio::spawn(async move { other.headers(&Principal::local(), &gmail()).await });
    go.notify_one();
    assert_eq!(signing_out.await.unwrap().unwrap()[0].revoked, Ok(()));
    let none = renewal.await.unwrap();
    assert!(matches!(none, Err(CredentialsError::SignIn(_))), "{none:?}");
    assert_eq!((bench.kept(), bench.forms("/token").len()), (0, 1));
}

/// Renews at an issuer with this answer. Returns the failure, and `true` if the tokens are still stored.
async fn renewal(answer: Reply, seconds: u64) -> (CredentialsError, bool) {
    let bench = Bench::new(move |seen| match seen.form("grant_type").as_deref() {
        Some("authorization_code") => issued("ya29.0", Some("1//refresh"), GMAIL.scopes),
        _ => answer.clone(),
    })
    .await;
    bench.sign_in(&GMAIL).await;
    bench.pass(seconds);
    let none = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap_err();
    let message = none.to_string();
    for secret in ["ya29.0", "1//refresh", CLIENT_SECRET] {
        assert!(!message.contains(secret), "{message}");
    }
    (none, bench.kept() == 1)
}

#[tokio::test]
async fn an_ended_or_reduced_grant_deletes_the_tokens_and_an_issuer_failure_keeps_them() {
    let (none, is_kept) = renewal(refusal(400, "invalid_grant"), 4000).await;
    assert!(matches!(&none, CredentialsError::SignIn(outcome) if !outcome.contains("toolstead ")));
    assert!(!is_kept);
    let (none, is_kept) = renewal(issued("ya29.1", None, &[GMAIL.scopes[0]]), 4000).await;
    assert!(matches!(&none, CredentialsError::SignIn(outcome) if outcome.contains("gmail.send")), "{none}");
    assert!(!is_kept);
    for (answer, expected) in [
        (refusal(401, "invalid_client"), "client_id"),
        (refusal(500, "server_error"), "server_error"),
        (Reply::new(502, "<html>"), "HTTP 502"),
        (Reply::new(200, "{}"), "it has no tokens"),
        (Reply::new(200, "x".repeat(100_000)), "too long"),
        (Reply::json(&json!({"access_token": "a", "token_type": "mac"})), "Bearer"),
        (Reply::json(&json!({"access_token": "a\r\nX: y", "token_type": "bearer"})), "header"),
        (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), "could not reach"),
        (
            Reply::json(&json!({"error": "x", "error_description": format!("no {CLIENT_SECRET} 1//refresh")}))
                .status(400),
            "no … …",
        ),
    ] {
        let (none, is_kept) = renewal(answer, 4000).await;
        assert!(none.to_string().contains(expected), "{expected}: {none}");
        assert!(!matches!(none, CredentialsError::SignIn(_)) && is_kept, "{expected}: {none:?}");
    }
}

#[tokio::test]
async fn a_token_close_to_expiry_is_used_while_the_issuer_is_unreachable() {
    let bench = google().await;
    bench.sign_in(&GMAIL).await;
    bench.pass(3560);
    let Bench { issuer, accounts, clock, folder } = bench;
    drop(issuer);
    assert_eq!(value(&accounts.headers(&Principal::local(), &gmail()).await.unwrap()), "Bearer ya29.0");
    clock.0.fetch_add(100, Ordering::SeqCst);
    assert!(matches!(accounts.headers(&Principal::local(), &gmail()).await, Err(CredentialsError::Failed(_))));
    drop(folder);
}

/// Signs in at an issuer with this answer to the exchange.
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
async fn an_incomplete_grant_is_reported_revoked_and_not_stored() {
    let (error, bench) = exchanged(issued("ya29.0", Some("1//refresh"), &[GMAIL.scopes[0], "openid"])).await;
    assert!(error.to_string().contains("https://www.googleapis.com/auth/gmail.send"), "{error}");
    assert!(!error.to_string().contains("readonly"), "{error}");
    let [revoked] = bench.forms("/revoke").try_into().unwrap();
    assert_eq!(revoked.form("token").as_deref(), Some("1//refresh"));
}

#[tokio::test]
async fn a_failed_code_exchange_stores_nothing_and_reports_the_reason() {
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
async fn signing_out_deletes_tokens_even_if_the_issuer_rejects_the_revocation() {
    for (answer, expected) in [(Reply::new(200, "{}"), None), (refusal(400, "invalid_token"), Some("invalid_token"))] {
        let bench = Bench::new(move |seen| match seen.path() {
            "/token" => issued("ya29.0", Some("1//refresh"), GMAIL.scopes),
            _ => answer.clone(),
        })
        .await;
        bench.sign_in(&GMAIL).await;
        let said = bench.accounts.sign_out(&Principal::local(), &GMAIL).await.unwrap();
        let [said] = said.as_slice() else { panic!("somebody was signed in") };
        match expected {
            None => assert_eq!(said.revoked, Ok(())),
            Some(word) => assert!(said.revoked.as_ref().unwrap_err().contains(word)),
        }
        assert_eq!(bench.kept(), 0);
        let none = bench.accounts.headers(&Principal::local(), &gmail()).await;
        assert!(matches!(none, Err(CredentialsError::SignIn(_))), "{none:?}");
        assert_eq!(bench.accounts.sign_out(&Principal::local(), &GMAIL).await.unwrap(), []);
    }
}

#[test]
fn debug_output_contains_no_secrets() {
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
