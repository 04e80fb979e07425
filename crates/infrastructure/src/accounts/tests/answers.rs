//! Redirects from the page, and requests from anywhere else.

use super::*;
use crate::accounts::{credentials::SignInRedirectCode, sign_in_error::SignInError};
use proptest::prelude::*;

/// Sends a redirect request. Returns the status, and the outcome once there is one.
async fn sign_in(
    make: impl Fn(&PendingSignIn, &str) -> String,
) -> (String, Option<Result<SignInRedirectCode, SignInError>>) {
    let bench = Bench::new(|_| refusal(500, "unused")).await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let address = parameter(sign_in.page(), "redirect_uri").replace("http://", "");
    let request = make(&sign_in, &address);
    let asking = sent(&address, &request);
    let mut coming = std::pin::pin!(sign_in.wait_for_code());
    let mut outcome = None;
    let answer = tokio::select! {
        biased;
        came = &mut coming => { outcome = Some(came); String::new() }
        answer = asking => answer,
    };
    (answer, outcome)
}

fn get(target: &str, host: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

fn target(sign_in: &PendingSignIn, rest: &str) -> String {
    format!("/?state={}&{rest}", parameter(sign_in.page(), "state"))
}

#[tokio::test]
async fn the_sign_in_page_address_has_the_parameters_of_an_installed_application() {
    let bench = Bench::new(|_| refusal(500, "unused")).await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let page = sign_in.page();
    assert!(page.as_str().starts_with(bench.issuer.url("/auth").as_str()), "{page}");
    for (name, expected) in [
        ("response_type", "code"),
        ("client_id", "42.apps"),
        ("access_type", "offline"),
        ("prompt", "consent"),
        ("code_challenge_method", "S256"),
        ("scope", "https://www.googleapis.com/auth/gmail.readonly https://www.googleapis.com/auth/gmail.send"),
    ] {
        assert_eq!(parameter(page, name), expected, "{name}");
    }
    assert!(parameter(page, "redirect_uri").starts_with("http://127.0.0.1:"));
    // 32 bytes each, different each time.
    let another = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    for name in ["state", "code_challenge"] {
        assert_eq!(parameter(page, name).len(), 43, "{name}");
        assert_ne!(parameter(page, name), parameter(another.page(), name), "{name}");
    }
}

#[tokio::test]
async fn silent_connections_do_not_delay_the_answer() {
    let bench = Bench::new(|_| refusal(500, "unused")).await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let address = parameter(sign_in.page(), "redirect_uri").replace("http://", "");
    let mut coming = std::pin::pin!(sign_in.wait_for_code());
    let mut silent = Vec::new();
    for _ in 0..100 {
        tokio::select! {
            biased;
            _ = &mut coming => panic!("nothing was sent"),
            stream = TcpStream::connect(&address) => silent.push(stream.unwrap()),
        }
    }
    let request = get(&target(&sign_in, "code=c0de"), &address);
    // Waiting for a silent connection would take the ten seconds that its request head may take.
    let (came, _) =
        tokio::time::timeout(Duration::from_secs(5), async { tokio::join!(coming, sent(&address, &request)) })
            .await
            .expect("no silent connection is waited for");
    assert!(came.is_ok());
    assert_eq!(silent[0].read(&mut [0]).await.unwrap(), 0, "the oldest one is closed");
}

#[tokio::test]
async fn invalid_redirect_requests_are_refused_and_the_sign_in_continues() {
    let long = "x".repeat(20_000);
    type Make<'a> = Box<dyn Fn(&PendingSignIn, &str) -> String + 'a>;
    let requests: Vec<(&str, Make<'_>, &str)> = vec![
        ("a wrong state", Box::new(|_, host| get("/?state=other&code=c", host)), "400"),
        ("no state", Box::new(|_, host| get("/?code=c", host)), "400"),
        ("nothing", Box::new(|_, host| get("/", host)), "400"),
        ("two states", Box::new(|it, host| get(&target(it, "code=c&state=other"), host)), "400"),
        ("two codes", Box::new(|it, host| get(&target(it, "code=c&code=d"), host)), "400"),
        ("an error without a state", Box::new(|_, host| get("/?error=access_denied", host)), "400"),
        ("another path", Box::new(|it, host| get(&target(it, "code=c").replace("/?", "/x?"), host)), "404"),
        ("the icon", Box::new(|_, host| get("/favicon.ico", host)), "404"),
        ("another method", Box::new(|it, host| get(&target(it, "code=c"), host).replace("GET", "POST")), "405"),
        ("a look", Box::new(|it, host| get(&target(it, "code=c"), host).replace("GET", "HEAD")), "405"),
        ("another host", Box::new(|it, _| get(&target(it, "code=c"), "evil.example")), "421"),
        (
            "a name for this host",
            Box::new(|it, host| get(&target(it, "code=c"), &host.replace("127.0.0.1", "localhost"))),
            "421",
        ),
        ("no host", Box::new(|it, _| format!("GET {} HTTP/1.0\r\n\r\n", target(it, "code=c"))), "421"),
        ("too long", Box::new(|it, host| get(&target(it, &format!("code=c&x={long}")), host)), ""),
        ("no HTTP", Box::new(|_, _| "\u{16}\u{3}\u{1}\r\n\r\n".into()), "400"),
    ];
    for (what, make, status) in requests {
        let (answer, outcome) = sign_in(&make).await;
        assert!(outcome.is_none(), "{what}: {outcome:?}");
        let is_refused = !answer.starts_with("HTTP/1.1 2") && !answer.starts_with("HTTP/1.0 2");
        assert!(is_refused && answer.contains(status), "{what}: {answer}");
    }
}

#[tokio::test]
async fn the_redirect_is_accepted_after_unrelated_requests_and_connections() {
    let bench = Bench::new(|_| refusal(500, "unused")).await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let address = parameter(sign_in.page(), "redirect_uri").replace("http://", "");
    // Browsers open connections ahead of time.
    let _silent = TcpStream::connect(&address).await.unwrap();
    let asking = async {
        assert!(sent(&address, &get("/favicon.ico", &address)).await.contains(" 404 "));
        assert!(sent(&address, &get("/?state=x&code=y", &address)).await.contains(" 400 "));
        sent(&address, &get(&target(&sign_in, "code=c%2F0de&scope=x&iss=https://accounts.google.com"), &address)).await
    };
    let (came, page) = tokio::join!(sign_in.wait_for_code(), asking);
    assert_eq!(came.unwrap().code(), "c/0de");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("You may close this page."), "{page}");
    for header in ["cache-control: no-store", "referrer-policy: no-referrer", "default-src 'none'"] {
        assert!(page.contains(header), "{header}: {page}");
    }
    assert!(!page.contains("c0de") && !page.contains("c/0de"), "{page}");
}

#[track_caller]
fn check(sign_in: &PendingSignIn, rest: &str, expected: &str) {
    let error = sign_in.pasted(&answer_of(sign_in, rest)).unwrap_err().to_string();
    assert!(error.contains(expected), "{rest}: {error}");
}

#[tokio::test]
async fn an_issuer_redirect_that_grants_nothing_ends_the_sign_in() {
    let bench = Bench::new(|_| refusal(500, "unused")).await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    check(&sign_in, "error=access_denied", "the page answered `access_denied`");
    check(&sign_in, "error=<b>\u{1b}[2Jx&code=c", "the page answered `b2Jx`");
    check(&sign_in, "iss=https://evil.example&code=c", "another issuer");
    check(&sign_in, "code=", "no valid code");
    check(&sign_in, "code=a%20b", "no valid code");
    check(&sign_in, "scope=x", "neither a code nor an error");
}

#[tokio::test]
async fn a_user_may_paste_the_code_or_the_redirect_address_of_this_sign_in() {
    let bench = Bench::new(|_| refusal(500, "unused")).await;
    let sign_in = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let whole = answer_of(&sign_in, "code=4%2F0AbC-d_e");
    for text in [whole.as_str(), &format!("  {whole}#\r\n"), "4/0AbC-d_e", "4%2F0AbC-d_e\n"] {
        assert_eq!(sign_in.pasted(text).unwrap().unwrap().code(), "4/0AbC-d_e", "{text}");
    }
    let other = bench.accounts.begin(&Principal::local(), &GMAIL).unwrap();
    let of_other = answer_of(&other, "code=c");
    for text in [of_other.as_str(), "", "  ", "two words", "https://127.0.0.1/", "code=c", "state=x&code=c"] {
        assert!(sign_in.pasted(text).unwrap().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_redirect_with_a_foreign_state_is_rejected(query in "[a-zA-Z0-9=&%+._~/?-]{0,200}", state in "[A-Za-z0-9_-]{0,60}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let issuer = TestServer::plain(|_| refusal(500, "unused")).await;
            let attempt = crate::accounts::attempt::SignInAttempt::begin(&client(&issuer), &["s"], "http://127.0.0.1:1".into());
            let attempt = attempt.unwrap();
            for query in [query.clone(), format!("code=c&state={state}"), format!("code=c&state={state}&{query}")] {
                let outcome = attempt.parse_redirect(&query);
                prop_assert!(matches!(outcome, Err(crate::accounts::attempt::RedirectError::Foreign(_))), "{query}");
            }
            Ok(())
        })?;
    }
}
