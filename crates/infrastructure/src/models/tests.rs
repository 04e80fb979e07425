//! Models against local servers whose responses are written out in each test.

use super::{KeySource, Model, ModelSettings, ProviderKind};
use crate::{
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
    user_program::{UserProgramError, UserProgramPort},
};
use async_trait::async_trait;
use futures::poll;
use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, yield_now},
    time::{advance, pause, resume},
};
use toolstead_domain::{
    Block, Message, ModelAnswer, ModelError, ModelEvent, ModelProvider, ModelRequest, Secret, error_kind::ErrorKind,
};

const KEY: &str = "sk-ant-0123456789";
const ANSWER: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hello\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

fn response(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn answer() -> Vec<u8> {
    response("200 OK\r\nContent-Type: text/event-stream", ANSWER)
}

fn settings(url: &str, key: KeySource) -> ModelSettings {
    ModelSettings {
        name: "main".into(),
        kind: ProviderKind::Anthropic,
        model: "m".into(),
        base_url: url.into(),
        key,
        max_output_tokens: 100,
        context_tokens: 1000,
        thinking_tokens: None,
        reasoning_effort: None,
        takes_images: false,
        prices: None,
        headers: BTreeMap::from([("x-team".into(), "team-secret".into())]),
        temperature: None,
    }
}

fn model_of(settings: ModelSettings) -> Model {
    let client = HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())));
    Model::new(settings, client).unwrap()
}

fn model(url: &str) -> Model {
    model_of(settings(url, KeySource::Known(Secret::new(KEY))))
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// Reads one request.
async fn taken(listener: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    loop {
        assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the client went away");
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return (stream, text.into_owned());
        }
    }
}

/// Starts a server that sends these responses, each on a connection of its own. Returns the requests at the end.
async fn serving(responses: Vec<Vec<u8>>) -> (String, JoinHandle<Vec<String>>) {
    let (listener, url) = listener().await;
    let serving = async move {
        let mut requests = Vec::new();
        for response in responses {
            let (mut stream, request) = taken(&listener).await;
            requests.push(request);
            // The client may close the connection before the end.
            let _ = stream.write_all(&response).await;
        }
        requests
    };
    (url, tokio::spawn(serving))
}

async fn ask(model: &Model) -> Box<dyn ModelAnswer> {
    model.send(ModelRequest::of(vec![Message::user("a")])).await.unwrap()
}

/// Returns the event that arrives after this pause and not earlier. The pause is simulated.
async fn after(answer: &mut dyn ModelAnswer, time: Duration) -> Option<Result<ModelEvent, ModelError>> {
    let mut next = pin!(answer.next());
    pause();
    assert!(poll!(&mut next).is_pending());
    advance(time.saturating_sub(Duration::from_millis(2))).await;
    assert!(poll!(&mut next).is_pending(), "it did not wait for {time:?}");
    advance(Duration::from_millis(4)).await;
    resume();
    next.await
}

/// Returns the pauses before retries, and the events after them.
async fn answer_of(model: &Model) -> (Vec<Duration>, Vec<Result<ModelEvent, ModelError>>) {
    let mut answer = ask(model).await;
    let (mut pauses, mut pieces) = (Vec::new(), Vec::new());
    let mut piece = answer.next().await;
    while let Some(event) = piece {
        piece = match event {
            Ok(ModelEvent::Retrying { after: time, reason }) => {
                assert!(!reason.contains(KEY) && !reason.contains("team-secret"), "{reason}");
                pauses.push(time);
                after(&mut *answer, time).await
            }
            event => {
                pieces.push(event);
                answer.next().await
            }
        };
    }
    (pauses, pieces)
}

fn is_whole(pieces: &[Result<ModelEvent, ModelError>]) -> bool {
    let [Ok(ModelEvent::TextDelta(_)), Ok(ModelEvent::Block(block)), Ok(ModelEvent::Finished { .. })] = pieces else {
        return false;
    };
    *block == Block::text("Hello")
}

#[tokio::test]
async fn temporary_failures_before_an_answer_are_retried_with_growing_pauses() {
    for status in
        ["408 Request Timeout", "409 Conflict", "429 Too Many Requests", "500 Internal Server Error", "529 Overloaded"]
    {
        let (url, server) = serving(vec![response(status, KEY), Vec::new(), answer()]).await;
        let (pauses, pieces) = answer_of(&model(&url)).await;
        assert!(is_whole(&pieces), "{status}: {pieces:?}");
        let [first, second] = pauses.try_into().unwrap();
        assert!(first >= Duration::from_millis(375) && first <= Duration::from_millis(500), "{first:?}");
        assert!(second >= Duration::from_millis(750) && second <= Duration::from_millis(1000), "{second:?}");
        let requests = server.await.unwrap();
        assert!(requests.windows(2).all(|pair| pair[0] == pair[1]), "{requests:?}");
    }
}

#[tokio::test]
async fn the_retry_pause_follows_the_headers_of_the_provider() {
    let busy = |header: &str| response(&format!("429 Too Many Requests\r\n{header}"), "");
    let date = "Date: Wed, 21 Oct 2026 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2026 07:28:45 GMT";
    let (url, _server) =
        serving(vec![busy("Retry-After: 7"), busy("retry-after-ms: 1500"), busy(date), answer()]).await;
    let (pauses, pieces) = answer_of(&model(&url)).await;
    assert_eq!(pauses, [7000, 1500, 45_000].map(Duration::from_millis));
    assert!(is_whole(&pieces), "{pieces:?}");
    // A provider that requests a pause of an hour is not called again, and the error says so.
    let (url, _server) = serving(vec![busy("Retry-After: 3600")]).await;
    let (pauses, pieces) = answer_of(&model(&url)).await;
    assert!(pauses.is_empty());
    let [Err(ModelError::RateLimited { retry_after, .. })] = &pieces[..] else { panic!("{pieces:?}") };
    assert_eq!(*retry_after, Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn a_request_fails_after_five_attempts() {
    let (url, server) = serving(vec![response("503 Service Unavailable", "later"); 5]).await;
    let (pauses, pieces) = answer_of(&model(&url)).await;
    assert_eq!(pauses.len(), 4);
    let [Err(error)] = &pieces[..] else { panic!("{pieces:?}") };
    assert!(error.to_string().contains("503: later"), "{error}");
    assert_eq!(server.await.unwrap().len(), 5);
    // No server is listening.
    let (listener, url) = listener().await;
    drop(listener);
    let (pauses, pieces) = answer_of(&model(&url)).await;
    assert_eq!(pauses.len(), 4);
    assert!(matches!(&pieces[..], [Err(ModelError::Unreachable(_))]), "{pieces:?}");
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    for (head, kind) in [
        ("400 Bad Request", ErrorKind::UpstreamHttp),
        ("401 Unauthorized", ErrorKind::AuthRequired),
        ("403 Forbidden", ErrorKind::AuthRequired),
        ("404 Not Found", ErrorKind::UpstreamHttp),
        ("413 Content Too Large", ErrorKind::TooLarge),
        ("500 Internal Server Error\r\nx-should-retry: false", ErrorKind::UpstreamHttp),
        ("302 Found\r\nLocation: http://127.0.0.1:1/", ErrorKind::UpstreamHttp),
        ("200 OK\r\nContent-Type: text/html", ErrorKind::UpstreamProtocol),
        ("200 OK\r\nContent-Type: application/json", ErrorKind::UpstreamProtocol),
    ] {
        let (url, _server) = serving(vec![response(head, "<html>")]).await;
        let (pauses, pieces) = answer_of(&model(&url)).await;
        let [Err(error)] = &pieces[..] else { panic!("{head}: {pieces:?}") };
        assert!(pauses.is_empty() && error.kind() == kind, "{head}: {error:?}");
    }
}

#[tokio::test]
async fn a_request_is_not_retried_once_its_answer_has_begun() {
    let half = &ANSWER[..ANSWER.find("content_block_stop").unwrap()];
    let (url, server) = serving(vec![response("200 OK\r\nContent-Type: text/event-stream", half)]).await;
    let (pauses, pieces) = answer_of(&model(&url)).await;
    assert!(pauses.is_empty());
    assert!(matches!(&pieces[..], [Ok(ModelEvent::TextDelta(_)), Err(ModelError::Unreachable(_))]), "{pieces:?}");
    assert_eq!(server.await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_error_at_the_start_of_a_stream_is_handled_like_a_failed_request() {
    for (kind, tries) in [("overloaded_error", 2), ("api_error", 2), ("invalid_request_error", 1)] {
        let error =
            format!("data: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"Overloaded\"}}}}\n\n");
        let (url, _server) =
            serving(vec![response("200 OK\r\nContent-Type: text/event-stream", &error), answer()]).await;
        let (pauses, pieces) = answer_of(&model(&url)).await;
        assert_eq!((pauses.len(), is_whole(&pieces)), (tries - 1, tries == 2), "{kind}: {pieces:?}");
    }
}

#[tokio::test]
async fn an_answer_with_more_than_256_calls_is_a_protocol_error() {
    let part = "{\"functionCall\":{\"name\":\"a\"}}";
    let parts = vec![part; 300].join(",");
    let body = format!("{{\"candidates\":[{{\"content\":{{\"parts\":[{parts}]}},\"finishReason\":\"STOP\"}}]}}");
    for (media_type, body) in [("application/json", body.clone()), ("text/event-stream", format!("data: {body}\n\n"))] {
        let (url, _server) = serving(vec![response(&format!("200 OK\r\nContent-Type: {media_type}"), &body)]).await;
        let (_, pieces) =
            answer_of(&model_of(ModelSettings { kind: ProviderKind::Gemini, ..settings(&url, KeySource::None) })).await;
        let calls = pieces.iter().filter(|piece| matches!(piece, Ok(ModelEvent::Block(Block::ToolUse(_))))).count();
        let Some(Err(ModelError::Protocol(text))) = pieces.last() else { panic!("{:?}", pieces.last()) };
        assert!(calls == 256 && text.contains("more than 256 calls"), "{calls}: {text}");
    }
}

/// Waker that records whether it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_request_fails_after_the_provider_is_silent_for_300_seconds() {
    let (listener, url) = listener().await;
    let model = model(&url);
    let mut answer = ask(&model).await;
    let mut stream = {
        let mut next = pin!(answer.next());
        let (mut stream, _) = tokio::select! {
            taken = taken(&listener) => taken,
            outcome = &mut next => panic!("{outcome:?}"),
        };
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await.unwrap();
        let begun = ANSWER.find("data: {\"type\":\"content_block_stop").unwrap();
        stream.write_all(&ANSWER.as_bytes()[..begun]).await.unwrap();
        assert!(matches!(next.await, Some(Ok(ModelEvent::TextDelta(_)))));
        stream
    };
    let mut next = pin!(answer.next());
    pause();
    for _ in 0..3 {
        // Every received byte resets the timeout.
        assert!(poll!(&mut next).is_pending());
        advance(Duration::from_secs(200)).await;
        resume();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        stream.write_all(b": still here\n\n").await.unwrap();
        while !woken.0.load(Ordering::Relaxed) {
            yield_now().await;
        }
        assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        pause();
    }
    assert!(poll!(&mut next).is_pending());
    advance(Duration::from_secs(301)).await;
    let Some(Err(ModelError::Unreachable(text))) = next.await else { panic!("it is not given up") };
    assert!(text.contains("sent nothing for 300 seconds"), "{text}");
}

#[tokio::test]
async fn an_endless_answer_event_or_document_is_a_protocol_error() {
    let (listener, url) = listener().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = taken(&listener).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await.unwrap();
        let line = [b": ".as_slice(), &[b'a'; 1 << 16], b"\n\n"].concat();
        while stream.write_all(&line).await.is_ok() {}
    });
    let model = model(&url);
    let answer = ask(&model).await.next().await;
    assert!(matches!(&answer, Some(Err(ModelError::Protocol(text))) if text.contains("more than")), "{answer:?}");
    server.await.unwrap();
    // An event without an end has a limit as well.
    let huge = format!("data: {}", "a".repeat(9 << 20));
    let (url, _server) = serving(vec![response("200 OK\r\nContent-Type: text/event-stream", &huge)]).await;
    let answer = ask(&self::model(&url)).await.next().await;
    assert!(matches!(&answer, Some(Err(ModelError::Protocol(text))) if text.contains("longer than")), "{answer:?}");
    // A document has a limit as well, because it is held in memory as a whole.
    let (url, _server) = serving(vec![response("200 OK\r\nContent-Type: application/json", &huge)]).await;
    let answer = ask(&self::model(&url)).await.next().await;
    assert!(matches!(&answer, Some(Err(ModelError::Protocol(text))) if text.contains("not a stream")), "{answer:?}");
}

#[tokio::test]
async fn the_key_appears_only_in_the_header_that_the_provider_expects() {
    let (url, server) = serving(vec![response("400 Bad Request", &format!("{KEY} team-secret {KEY}"))]).await;
    let model = model(&url);
    let (_, pieces) = answer_of(&model).await;
    let [Err(error)] = &pieces[..] else { panic!("{pieces:?}") };
    let shown = format!("{error} {error:?} {model:?}");
    assert!(shown.contains("[redacted] [redacted] [redacted]") && !shown.contains(KEY), "{shown}");
    assert!(!shown.contains("team-secret"), "{shown}");
    let request = server.await.unwrap().remove(0);
    assert_eq!(request.matches(KEY).count(), 1);
    assert!(request.contains(&format!("x-api-key: {KEY}\r\n")), "{request}");
}

/// Prints another key at each run: `sk-1`, `sk-2` and so on.
#[derive(Debug, Default)]
struct ChangingKey {
    runs: AtomicUsize,
}

#[async_trait]
impl UserProgramPort for ChangingKey {
    async fn output(&self, program: &str, arguments: &[String], _: Duration) -> Result<String, UserProgramError> {
        assert_eq!((program, arguments), ("key", &["main".to_owned()][..]));
        Ok(format!("sk-{}\n", self.runs.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

#[tokio::test]
async fn a_rejected_cached_key_is_requested_again_from_the_key_command() {
    let command = KeySource::Command(["key", "main"].map(str::to_owned).to_vec());
    let refused = || response("401 Unauthorized", "");
    let commands = Arc::new(ChangingKey::default());
    let (url, server) = serving(vec![answer(), refused(), answer()]).await;
    let model = model_of(settings(&url, command.clone())).with_key_commands(commands.clone());
    assert!(is_whole(&answer_of(&model).await.1));
    let mut answer = ask(&model).await;
    let Some(Ok(ModelEvent::Retrying { after, .. })) = answer.next().await else { panic!("it is not asked again") };
    assert_eq!(after, Duration::ZERO);
    assert!(matches!(answer.next().await, Some(Ok(ModelEvent::TextDelta(_)))));
    let requests = server.await.unwrap();
    let key = |request: &String| Some(request.split_once("x-api-key: ")?.1.split_once("\r\n")?.0.to_owned());
    assert_eq!(requests.iter().filter_map(key).collect::<Vec<_>>(), ["sk-1", "sk-1", "sk-2"]);
    // A key that was just obtained is not requested a second time.
    let (url, _server) = serving(vec![refused()]).await;
    let (pauses, pieces) = answer_of(&model_of(settings(&url, command)).with_key_commands(commands)).await;
    assert!(pauses.is_empty() && matches!(&pieces[..], [Err(ModelError::Unauthorized(_))]), "{pieces:?}");
}

#[tokio::test]
async fn a_model_without_a_usable_key_sends_no_request() {
    for (key, words) in [
        (KeySource::Missing("set `A_KEY`".into()), "set `A_KEY`"),
        (KeySource::File("/no/such/file".into()), "/no/such/file"),
        (KeySource::Command(vec!["key".into()]), "runs no key commands"),
        (KeySource::Known(Secret::new("two words")), "one word"),
    ] {
        let (listener, url) = listener().await;
        let (pauses, pieces) = answer_of(&model_of(settings(&url, key))).await;
        let [Err(error @ ModelError::Unauthorized(_))] = &pieces[..] else { panic!("{pieces:?}") };
        assert!(pauses.is_empty() && error.to_string().contains(words), "{error}");
        assert!(poll!(pin!(listener.accept())).is_pending());
    }
}

#[test]
fn invalid_settings_are_rejected_without_revealing_secrets() {
    let client = || HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())));
    let check = |change: &dyn Fn(&mut ModelSettings), words: &str| {
        let mut settings = settings("http://127.0.0.1:1", KeySource::Known(Secret::new(KEY)));
        change(&mut settings);
        let error = Model::new(settings, client()).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("`main`") && !error.contains("secret"), "{error}");
    };
    check(&|settings| settings.base_url = "no url".into(), "is not a valid URL");
    check(&|settings| settings.base_url = "ftp://host".into(), "not an http or https address");
    check(&|settings| settings.base_url = "https://secret@host".into(), "user or a password");
    check(&|settings| settings.base_url = "https://:secret@host".into(), "user or a password");
    check(&|settings| settings.base_url = "https://host/?key=secret".into(), "more than a path");
    let header = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), value.to_owned());
        move |settings: &mut ModelSettings| drop(settings.headers.insert(name.clone(), value.clone()))
    };
    check(&header("Host", "secret"), "set by the protocol");
    check(&header("a b", "secret"), "has an invalid name");
    check(&header("x-a", "secret\n"), "has an invalid value");
}

#[tokio::test]
async fn request_paths_are_appended_to_the_base_url() {
    for (base, path) in
        [("", "/v1/messages"), ("/", "/v1/messages"), ("/v1/", "/v1/messages"), ("/a/b", "/a/b/v1/messages")]
    {
        let (url, server) = serving(vec![answer()]).await;
        let _ = answer_of(&model(&format!("{url}{base}"))).await;
        let request = server.await.unwrap().remove(0);
        assert!(request.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{request}");
    }
}
