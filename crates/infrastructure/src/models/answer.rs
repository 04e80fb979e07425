//! Exchange for one answer of a provider: the request, its retries, and the events of the response.

use super::{
    failure::AttemptFailure,
    key::{ApiKeyResolver, RequestKey},
    protocol::{Decoder, ModelProtocol, incomplete_answer},
    redaction::StreamRedactor,
    settings::ModelSettings,
    words,
};
use crate::http::{
    client::{EndpointClient, Request},
    pause::pause_after,
    response::Response,
    sse::SseDecoder,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use http::{HeaderMap, Method, header};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use toolstead_domain::{Block, ModelAnswer, ModelError, ModelEvent, ModelRequest, Secret};

/// Maximum number of attempts.
const MAX_TRIES: u32 = 5;
/// First and longest pause between attempts if the provider requests none.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Maximum time without data from the provider, before and during its answer.
const SILENCE: Duration = Duration::from_secs(300);
/// Timeout of a whole answer.
const TIME_FOR_ALL: Duration = Duration::from_secs(3600);
/// Maximum size of a stream event, and of an answer sent as one document, in bytes.
const MAX_EVENT: usize = 8 << 20;
/// Maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 64 << 20;
/// Maximum number of blocks of an answer.
const MAX_BLOCKS: usize = 10_000;
/// Maximum number of tool calls of an answer.
const MAX_CALLS: usize = 256;
/// Number of bytes to read of an error response.
const MAX_REFUSAL: usize = 64 << 10;

/// State shared by the requests to one model.
pub(super) struct ModelClient {
    pub(super) settings: ModelSettings,
    pub(super) protocol: &'static dyn ModelProtocol,
    pub(super) endpoint: EndpointClient,
    /// Headers of every request, without the key.
    pub(super) headers: HeaderMap,
    pub(super) key: ApiKeyResolver,
}

/// Stream of the events of an answer. The request is sent when the first event is requested.
pub(super) struct AnswerStream(BoxStream<'static, Result<ModelEvent, ModelError>>);

impl AnswerStream {
    /// Creates the stream of the answer to `request`. `body` is the serialized request.
    pub(super) fn new(provider: Arc<ModelClient>, request: ModelRequest, body: Bytes) -> Self {
        let exchange = ModelExchangeState {
            provider,
            request,
            body,
            tries: 0,
            has_begun: false,
            blocks: 0,
            calls: 0,
            secrets: Vec::new(),
            redaction: StreamRedactor::default(),
            ready: VecDeque::new(),
            step: ExchangePhase::Ask,
        };
        // The stream keeps its state if the caller is cancelled while it waits for an event.
        let pieces = stream::unfold(exchange, |mut exchange| async {
            let piece = exchange.next().await?;
            Some((piece, exchange))
        });
        Self(pieces.boxed())
    }
}

#[async_trait]
impl ModelAnswer for AnswerStream {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        self.0.next().await
    }
}

/// Exchange in progress.
struct ModelExchangeState {
    provider: Arc<ModelClient>,
    request: ModelRequest,
    body: Bytes,
    /// Number of attempts made.
    tries: u32,
    /// `true` once an event was returned. The request is then not retried.
    has_begun: bool,
    /// Number of blocks returned.
    blocks: usize,
    /// Number of tool calls among them.
    calls: usize,
    /// Secrets that must not appear in errors.
    secrets: Vec<Secret>,
    redaction: StreamRedactor,
    ready: VecDeque<ModelEvent>,
    step: ExchangePhase,
}

enum ExchangePhase {
    Ask,
    Wait(Duration),
    Read(Box<ResponseReader>),
    Over,
}

impl ModelExchangeState {
    /// Returns the next event; `None` at the end.
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.has_begun = true;
                if let Err(fault) = self.count(&event) {
                    self.ready.clear();
                    return Some(self.after(fault));
                }
                if matches!(event, ModelEvent::Finished { .. }) {
                    self.ready.clear();
                    self.step = ExchangePhase::Over;
                }
                return Some(Ok(event));
            }
            let done = match &mut self.step {
                ExchangePhase::Over => return None,
                ExchangePhase::Wait(pause) => {
                    sleep(*pause).await;
                    self.step = ExchangePhase::Ask;
                    Ok(())
                }
                ExchangePhase::Ask => self.ask().await,
                ExchangePhase::Read(reading) => {
                    reading.next().await.map(|events| self.ready.extend(self.redaction.applied(events)))
                }
            };
            if let Err(fault) = done {
                return Some(self.after(fault));
            }
        }
    }

    /// Counts the blocks and calls of the answer, and fails if there are too many to store and process.
    fn count(&mut self, event: &ModelEvent) -> Result<(), AttemptFailure> {
        let ModelEvent::Block(block) = event else { return Ok(()) };
        self.blocks += 1;
        self.calls += usize::from(matches!(block, Block::ToolUse(_)));
        let too_many = |what: String| {
            Err(AttemptFailure::lasting(ModelError::Protocol(format!("the answer has more than {what}"))))
        };
        match (self.blocks > MAX_BLOCKS, self.calls > MAX_CALLS) {
            (true, _) => too_many(format!("{MAX_BLOCKS} blocks")),
            (_, true) => too_many(format!("{MAX_CALLS} calls")),
            _ => Ok(()),
        }
    }

    /// Sends the request and reads the head of the response.
    async fn ask(&mut self) -> Result<(), AttemptFailure> {
        self.tries += 1;
        let ModelClient { protocol, endpoint, key, .. } = &*self.provider;
        let RequestKey { secret, may_be_stale } = key.now().await.map_err(AttemptFailure::lasting)?;
        let mut headers = self.provider.headers.clone();
        self.secrets = self.provider.settings.headers.values().map(Secret::new).collect();
        let configured = self.provider.settings.headers.iter();
        let configured = configured.map(|(name, value)| (name.as_str(), value.as_str()));
        self.redaction = StreamRedactor::of(secret.as_ref().map(Secret::expose), configured);
        if let Some(secret) = &secret {
            self.secrets.push(secret.clone());
            protocol.authorize(secret, &mut headers).map_err(|_| {
                AttemptFailure::lasting(ModelError::Unauthorized(
                    "the key is not valid in a header; check its source".into(),
                ))
            })?;
        }
        let request = Request { method: Method::POST, headers, body: self.body.clone() };
        let response = timeout(SILENCE, Box::pin(endpoint.send(request))).await.map_err(|_| silent())??;
        if response.status().is_success() {
            self.step = ExchangePhase::Read(Box::new(ResponseReader::of(response, protocol.decoder(&self.request))?));
            return Ok(());
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let mut fault = AttemptFailure::of_response(status, &headers, &beginning(response).await);
        if let (Some(secret), ModelError::Unauthorized(_)) = (&secret, &fault.error) {
            key.forget(secret).await;
            if may_be_stale {
                fault = AttemptFailure { is_temporary: true, retry_after: Some(Duration::ZERO), ..fault };
            }
        }
        Err(fault)
    }

    /// Schedules another attempt and returns [`ModelEvent::Retrying`], or ends the exchange and returns the error.
    fn after(&mut self, fault: AttemptFailure) -> Result<ModelEvent, ModelError> {
        let error = self.sanitize_error(fault.error);
        if !fault.is_temporary || self.has_begun || self.tries >= MAX_TRIES {
            self.step = ExchangePhase::Over;
            return Err(error);
        }
        let after = fault.retry_after.unwrap_or_else(|| pause_after(self.tries, PAUSES.0, PAUSES.1));
        self.step = ExchangePhase::Wait(after);
        Ok(ModelEvent::Retrying { after, reason: error.to_string() })
    }

    /// Returns the error with the model's name and without secrets.
    fn sanitize_error(&self, error: ModelError) -> ModelError {
        let redacted = |text: String| {
            format!("the model `{}`: {}", self.provider.settings.name, words::clean(&text, &self.secrets))
        };
        match error {
            ModelError::Unauthorized(text) => ModelError::Unauthorized(redacted(text)),
            ModelError::Unreachable(text) => ModelError::Unreachable(redacted(text)),
            ModelError::ContextTooLong(text) => ModelError::ContextTooLong(redacted(text)),
            ModelError::Protocol(text) => ModelError::Protocol(redacted(text)),
            ModelError::RateLimited { message, retry_after } => {
                ModelError::RateLimited { message: redacted(message), retry_after }
            }
            ModelError::Refused { status, message } => ModelError::Refused { status, message: redacted(message) },
            other => ModelError::Protocol(redacted(other.to_string())),
        }
    }
}

/// Response body being read.
struct ResponseReader {
    response: Response,
    form: AnswerBody,
    decoder: Box<dyn Decoder>,
    /// Number of bytes received.
    taken: usize,
    until: Instant,
}

/// Format of an answer.
enum AnswerBody {
    Stream(SseDecoder),
    Whole(Vec<u8>),
}

impl ResponseReader {
    fn of(response: Response, decoder: Box<dyn Decoder>) -> Result<Self, AttemptFailure> {
        let media_type =
            response.headers().get(header::CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
        let media_type = String::from_utf8_lossy(media_type.as_deref().unwrap_or_default()).into_owned();
        if media_type.contains("html") {
            let what = "the answer is a page of HTML; check the model's `base_url` and any proxy";
            return Err(AttemptFailure::lasting(ModelError::Protocol(what.into())));
        }
        let is_whole = media_type.contains("json");
        let form =
            if is_whole { AnswerBody::Whole(Vec::new()) } else { AnswerBody::Stream(SseDecoder::new(MAX_EVENT)) };
        Ok(Self { response, form, decoder, taken: 0, until: Instant::now() + TIME_FOR_ALL })
    }

    /// Returns the events in the next chunk, which may be none. At the end of the body, returns the last events, or a
    /// failure if the answer is incomplete.
    async fn next(&mut self) -> Result<Vec<ModelEvent>, AttemptFailure> {
        let chunk = timeout(SILENCE, self.response.chunk());
        let chunk = timeout_at(self.until, chunk).await.map_err(|_| endless())?.map_err(|_| silent())??;
        let Some(chunk) = chunk else { return self.end() };
        self.taken += chunk.len();
        if self.taken > MAX_ANSWER {
            let what = format!("the answer has more than {MAX_ANSWER} bytes");
            return Err(AttemptFailure::lasting(ModelError::Protocol(what)));
        }
        let mut events = Vec::new();
        match &mut self.form {
            AnswerBody::Whole(body) if body.len() + chunk.len() > MAX_EVENT => {
                let what = format!("the answer has more than {MAX_EVENT} bytes, and is not a stream");
                return Err(AttemptFailure::lasting(ModelError::Protocol(what)));
            }
            AnswerBody::Whole(body) => body.extend_from_slice(&chunk),
            AnswerBody::Stream(stream) => {
                stream
                    .push(&chunk)
                    .map_err(|error| AttemptFailure::from(crate::http::http_error::HttpError::from(error)))?;
                while let Some(event) = stream.next_event() {
                    events.extend(self.decoder.event(&event).map_err(of_decoder)?);
                    if matches!(events.last(), Some(ModelEvent::Finished { .. })) {
                        break;
                    }
                }
            }
        }
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, AttemptFailure> {
        let events = match &self.form {
            AnswerBody::Stream(_) => self.decoder.end(),
            AnswerBody::Whole(body) => self.decoder.decode_document(body),
        };
        match events {
            Ok(events) if matches!(events.last(), Some(ModelEvent::Finished { .. })) => Ok(events),
            // An incomplete answer must not look complete.
            Ok(_) => Err(AttemptFailure::passing(incomplete_answer())),
            Err(error) => Err(of_decoder(error)),
        }
    }
}

/// Returns the fault for an error that the provider reported in its answer or that the answer contains.
fn of_decoder(error: ModelError) -> AttemptFailure {
    match error {
        ModelError::Unreachable(_)
        | ModelError::RateLimited { .. }
        | ModelError::Refused { status: Some(408 | 409 | 500..=599), .. } => AttemptFailure::passing(error),
        _ => AttemptFailure::lasting(error),
    }
}

fn silent() -> AttemptFailure {
    AttemptFailure::passing(ModelError::Unreachable(format!(
        "the provider sent nothing for {} seconds",
        SILENCE.as_secs()
    )))
}

fn endless() -> AttemptFailure {
    let what = format!("the answer took longer than {} seconds", TIME_FOR_ALL.as_secs());
    AttemptFailure::lasting(ModelError::Unreachable(what))
}

/// Returns the beginning of a body, as far as it can be read.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    while body.len() < MAX_REFUSAL
        && let Ok(Ok(Some(chunk))) = timeout_at(until, response.chunk()).await
    {
        body.extend_from_slice(&chunk[..chunk.len().min(MAX_REFUSAL - body.len())]);
    }
    body
}
