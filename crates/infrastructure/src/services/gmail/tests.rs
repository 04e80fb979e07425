use super::*;
use crate::{
    egress::{connector::SystemNetwork, host::HostPatterns},
    services::google::resource,
    web::{
        testing::{ReceivedRequest, Reply, TestServer},
        web_client::WebClient,
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;
use toolstead_domain::{Principal, SilentCaller, testing::fake_credentials::FakeCredentials};

async fn with<T>(server: &TestServer, work: impl AsyncFnOnce(&Gmail<'_>) -> T) -> T {
    let reach = WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default());
    let principal = Principal::local();
    let credentials = FakeCredentials::none().holding(&principal, GRANT, "t1");
    let base = server.url("/");
    let account = GoogleApiClient {
        service: "Gmail",
        reach: &reach,
        credentials: &credentials,
        principal: &principal,
        resource: resource(GRANT, &base),
        judge: &|_| Ok(()),
        caller: &SilentCaller,
        deadline: Instant::now() + Duration::from_secs(120),
    };
    work(&Gmail::new(account, &base)).await
}

fn head(id: &str) -> Reply {
    let headers = json!([{"name": "Subject", "value": format!("About {id}")}]);
    Reply::json(&json!({"id": id, "threadId": "t", "labelIds": ["UNREAD"], "snippet": "Hi &amp; welcome &lt;b&gt;",
        "payload": {"mimeType": "text/plain", "headers": headers}}))
}

#[tokio::test]
async fn message_headers_are_fetched_five_at_a_time_and_stay_in_order() {
    let (counted, released) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let was_early = Arc::new(AtomicBool::new(false));
    let early = was_early.clone();
    let server = TestServer::plain(move |seen: &ReceivedRequest| {
        if seen.path() == "/gmail/v1/users/me/messages" {
            let ids: Vec<Value> = (0..12).map(|number| json!({"id": format!("m{number}")})).collect();
            return Reply::json(&json!({"messages": ids, "nextPageToken": "77", "resultSizeEstimate": 12}));
        }
        match seen.path().rsplit('/').next().unwrap() {
            // It was deleted meanwhile.
            "m3" => Reply::new(404, "{}"),
            // Answered once four other messages are requested.
            "m0" => head("m0").once(released.clone()),
            id => {
                let before = counted.fetch_add(1, Ordering::SeqCst);
                if before == AT_ONCE - 3 {
                    released.notify_one();
                } else if before < AT_ONCE - 3 && id == "m5" {
                    early.store(true, Ordering::SeqCst);
                }
                head(id)
            }
        }
    })
    .await;
    let search = MailSearch {
        query: "from:ann & \"x y\"".into(),
        max_results: 12,
        page_token: Some("76".into()),
        label_ids: vec!["INBOX".into(), "UNREAD".into()],
        include_spam_trash: true,
    };
    let page = with(&server, async |gmail| gmail.search(&search).await).await.unwrap();
    let subjects: Vec<&str> = page.messages.iter().map(|one| one.message.heading.subject.as_str()).collect();
    let expected: Vec<String> =
        (0..12).filter(|number| *number != 3).map(|number| format!("About m{number}")).collect();
    assert_eq!(
        (subjects, page.next_page_token.as_deref()),
        (expected.iter().map(String::as_str).collect(), Some("77"))
    );
    assert_eq!(page.messages[0].snippet, "Hi & welcome <b>");
    assert!(!was_early.load(Ordering::SeqCst), "a sixth was asked for");
    let list = &server.requests()[0];
    let query = url::form_urlencoded::parse(list.target.split_once('?').unwrap().1.as_bytes()).into_owned();
    let query: Vec<String> = query.map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        query,
        [
            "q=from:ann & \"x y\"",
            "maxResults=12",
            "pageToken=76",
            "labelIds=INBOX",
            "labelIds=UNREAD",
            "includeSpamTrash=true"
        ]
    );
    let head = &server.requests()[1].target;
    assert!(head.contains("format=metadata&metadataHeaders=From"), "{head}");
}

#[tokio::test]
async fn message_ids_and_page_tokens_cannot_change_the_requested_path() {
    let server = TestServer::plain(|seen: &ReceivedRequest| match seen.path() {
        "/gmail/v1/users/me/messages" => {
            let ids = ["../../profile", "", "m1/attachments/x", "m1"].map(|id| json!({ "id": id }));
            Reply::json(&json!({"messages": ids, "nextPageToken": "a b\n"}))
        }
        _ => head("m1"),
    })
    .await;
    let search = MailSearch { max_results: 10, ..MailSearch::default() };
    let page = with(&server, async |gmail| gmail.search(&search).await).await.unwrap();
    assert_eq!((page.messages.len(), page.next_page_token), (1, None));
    assert_eq!(server.requests()[1].path(), "/gmail/v1/users/me/messages/m1");
    for id in ["..", "m1/attachments/a", "m1?format=raw", "", "m 1"] {
        let failure = with(&server, async |gmail| gmail.read(id).await).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::InvalidInput, "{id}");
    }
    assert_eq!(server.requests().len(), 2);
}
