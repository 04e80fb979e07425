//! Sign-ins that calls request.

use super::*;
use async_trait::async_trait;
use std::sync::Mutex;
use tokio::{sync::Notify, task::yield_now, time::timeout};
use toolstead_domain::{
    Caller, Credentials, CredentialsError, InputRequest, InputResponse, LogMessage, NotAnswered, Progress,
};

/// Client that behaves as the test defines.
#[derive(Debug, Default)]
struct Client {
    /// The client's answer; `None` for no answer at all.
    answer: Option<Result<Value, NotAnswered>>,
    /// Query with which the browser returns from the page.
    came: Option<&'static str>,
    /// Notified when the browser may return.
    when: Option<Arc<Notify>>,
    asked: Mutex<Vec<Value>>,
    completed: Mutex<Vec<String>>,
}

impl Client {
    fn of(answer: Value, came: Option<&'static str>) -> Self {
        Self { answer: Some(Ok(answer)), came, ..Self::default() }
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    fn completed(&self) -> Vec<String> {
        self.completed.lock().unwrap().clone()
    }
}

#[async_trait]
impl Caller for Client {
    fn progress(&self, _: Progress) {}

    fn log(&self, _: LogMessage) {}

    fn elicitation_completed(&self, id: &str) {
        self.completed.lock().unwrap().push(id.to_owned());
    }

    async fn ask(&self, request: InputRequest) -> Result<InputResponse, NotAnswered> {
        assert_eq!(request.method, "elicitation/create");
        self.asked.lock().unwrap().push(request.params.clone());
        if let Some(when) = &self.when {
            when.notified().await;
        }
        if let Some(came) = self.came {
            let page = Url::parse(request.params["url"].as_str().unwrap()).unwrap();
            let address = parameter(&page, "redirect_uri").replace("http://", "");
            let target = format!("/?state={}&{came}", parameter(&page, "state"));
            let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            tokio::spawn(async move { sent(&address, &request).await });
        }
        match &self.answer {
            Some(answer) => answer.clone().map(InputResponse),
            None => std::future::pending().await,
        }
    }
}

async fn bench() -> Bench {
    Bench::new(|seen| match seen.path() {
        "/token" => issued("ya29.0", Some("1//refresh"), GMAIL.scopes),
        _ => Reply::new(200, "{}"),
    })
    .await
}

async fn signed_in(bench: &Bench, principal: Principal, client: &Client) -> Result<(), CredentialsError> {
    timeout(2 * SOON, bench.accounts.sign_in(&principal, &gmail(), client)).await.expect("it ends")
}

#[tokio::test]
async fn the_client_receives_the_sign_in_page_and_a_completion_notification() {
    let bench = bench().await;
    let client = Client::of(json!({"action": "accept"}), Some("code=c"));
    signed_in(&bench, Principal::local(), &client).await.unwrap();
    let [asked] = client.asked().try_into().unwrap();
    assert_eq!(asked["mode"], "url");
    assert!(asked["message"].as_str().unwrap().contains("Gmail"), "{asked}");
    assert_eq!(client.completed(), [asked["elicitationId"].as_str().unwrap()]);
    let headers = bench.accounts.headers(&Principal::local(), &gmail()).await.unwrap();
    assert_eq!(value(&headers), "Bearer ya29.0");
}

#[tokio::test]
async fn a_user_who_finishes_before_the_client_answers_is_signed_in() {
    let bench = bench().await;
    let client = Client { came: Some("code=c"), ..Client::default() };
    signed_in(&bench, Principal::local(), &client).await.unwrap();
    assert_eq!(client.completed().len(), 1);
}

/// Signs in with a client whose answer ends the sign-in.
async fn refused(client: Client) -> CredentialsError {
    let bench = bench().await;
    let none = signed_in(&bench, Principal::local(), &client).await.unwrap_err();
    let went = client.answer == Some(Ok(json!({"action": "accept"})));
    assert_eq!((bench.kept(), client.completed().len()), (0, usize::from(went)), "{none}");
    none
}

#[tokio::test]
async fn a_declined_sign_in_is_reported_and_an_unusable_client_answer_requires_sign_in() {
    for (action, word) in [("decline", "declined"), ("cancel", "did not sign in")] {
        let none = refused(Client::of(json!({"action": action}), None)).await;
        assert!(matches!(&none, CredentialsError::Unavailable(outcome) if outcome.contains(word)), "{none}");
    }
    let none = refused(Client::of(json!({"action": "accept"}), Some("error=access_denied"))).await;
    assert!(matches!(&none, CredentialsError::Unavailable(outcome) if outcome.contains("access_denied")), "{none}");
    for answer in [Err(NotAnswered::Unsupported), Err(NotAnswered::TimedOut), Ok(json!({"action": "maybe"}))] {
        let none = refused(Client { answer: Some(answer), ..Client::default() }).await;
        assert!(matches!(&none, CredentialsError::SignIn(outcome) if !outcome.contains("toolstead ")), "{none}");
    }
}

#[tokio::test(start_paused = true)]
async fn accepting_to_open_the_page_does_not_complete_the_sign_in() {
    let none = refused(Client::of(json!({"action": "accept"}), None)).await;
    assert!(matches!(&none, CredentialsError::SignIn(outcome) if outcome.contains("within 60 seconds")), "{none}");
}

#[tokio::test]
async fn a_remote_principal_is_not_sent_to_a_page_that_redirects_to_this_machine() {
    let bench = bench().await;
    let client = Client::of(json!({"action": "accept"}), Some("code=c"));
    let none = signed_in(&bench, Principal::token("ada"), &client).await.unwrap_err();
    assert!(matches!(&none, CredentialsError::SignIn(_)), "{none}");
    assert!(client.asked().is_empty());
}

#[tokio::test]
async fn two_calls_share_one_page_and_one_outcome() {
    let bench = bench().await;
    let go = Arc::new(Notify::new());
    let first = Client { when: Some(go.clone()), ..Client::of(json!({"action": "accept"}), Some("code=c")) };
    let second = Client::of(json!({"action": "accept"}), Some("code=d"));
    let (principal, resource) = (Principal::local(), gmail());
    let begin = async {
        while first.asked().is_empty() {
            yield_now().await;
        }
        // The second call has checked by now, because all tasks run in turn.
        for _ in 0..100 {
            yield_now().await;
        }
        go.notify_one();
    };
    let both = async {
        tokio::join!(
            bench.accounts.sign_in(&principal, &resource, &first),
            bench.accounts.sign_in(&principal, &resource, &second),
            begin,
        )
    };
    let (one, other, ()) = timeout(SOON, both).await.expect("they end");
    assert_eq!((one, other), (Ok(()), Ok(())));
    assert_eq!((first.asked().len(), second.asked().len(), bench.forms("/token").len()), (1, 0, 1));
}

#[tokio::test]
async fn after_a_call_ends_without_an_answer_the_next_call_opens_a_new_page() {
    let bench = bench().await;
    let silent = Client::default();
    let (principal, resource) = (Principal::local(), gmail());
    tokio::select! {
        biased;
        _ = bench.accounts.sign_in(&principal, &resource, &silent) => panic!("nobody came back"),
        () = async {
            while silent.asked().is_empty() {
                yield_now().await;
            }
        } => {}
    }
    let page = silent.asked()[0]["url"].clone();
    let next = Client::of(json!({"action": "accept"}), Some("code=c"));
    signed_in(&bench, Principal::local(), &next).await.unwrap();
    // The port of the first sign-in is closed.
    assert_ne!(next.asked()[0]["url"], page);
}

#[tokio::test]
async fn a_sign_in_page_that_the_client_accepted_stays_open_after_its_call_ends() {
    let bench = bench().await;
    let went = Client::of(json!({"action": "accept"}), None);
    let (principal, resource) = (Principal::local(), gmail());
    let mut call = Box::pin(bench.accounts.sign_in(&principal, &resource, &went));
    tokio::select! {
        biased;
        _ = &mut call => panic!("nobody came back"),
        () = async {
            for _ in 0..1000 {
                yield_now().await;
            }
        } => {}
    }
    drop(call);
    // The next call sends the user to the same page, which is still open.
    let next = Client::of(json!({"action": "accept"}), Some("code=c"));
    signed_in(&bench, Principal::local(), &next).await.unwrap();
    assert_eq!(next.asked()[0]["url"], went.asked()[0]["url"]);
}
