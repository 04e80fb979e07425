//! Requests to a configured model, with a text as the result.

use crate::builtin::tool_kit::tool_context::ToolContext;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{
    Access, Block, EventKind, EventOrigin, ModelError, ModelEvent, ModelProvider, ModelRequest, StopReason, TokenUsage,
    ToolFailure, error_kind::ErrorKind,
};

/// Maximum size of the text of an answer, in bytes. It is the limit of any answer of a provider, because answers are
/// paid for. A text that is too long for a model is stored under a handle, as every result is.
const MAX_TEXT: usize = 64 << 20;

/// A model's answer.
pub(in crate::builtin) struct ModelTextAnswer {
    pub(in crate::builtin) text: String,
    pub(in crate::builtin) stop: StopReason,
    pub(in crate::builtin) usage: TokenUsage,
}

/// Returns the access of a request to the model: its host, which receives the text of the request. A model that an
/// application added may have none.
pub(in crate::builtin) fn access(model: &dyn ModelProvider) -> Vec<Access> {
    model.host().map(|host| Access::ReachHost(host.into())).into_iter().collect()
}

/// Sends a request to the model with a timeout, and publishes its token usage.
///
/// # Errors
/// The failure of the model, and `timeout`.
pub(in crate::builtin) async fn ask(
    model: &Arc<dyn ModelProvider>,
    request: ModelRequest,
    time: Duration,
    run: &ToolContext<'_>,
) -> Result<ModelTextAnswer, ToolFailure> {
    let answered = timeout(time, receive_answer(&**model, request)).await.map_err(|_| {
        ToolFailure::new(ErrorKind::Timeout, format!("the model `{}` did not answer within {time:?}", model.name()))
            .next("Give a longer `timeout_ms`, or ask for less.")
    })?;
    let answer = answered.map_err(|error| {
        ToolFailure::new(error.kind(), format!("the model `{}` did not answer: {error}", model.name()))
    })?;
    let (events, context) = (run.environment().events(), run.context());
    if events.is_watched() {
        let origin = EventOrigin {
            principal: Some(context.principal.clone()),
            session: Some(context.session.into()),
            call: Some(context.id),
        };
        let kind = EventKind::Usage {
            conversation: context.session.parse().ok(),
            model: model.name().to_owned(),
            usage: answer.usage,
            cost: model.facts().prices.map(|prices| answer.usage.cost(&prices)),
        };
        events.send(origin, kind);
    }
    Ok(answer)
}

async fn receive_answer(model: &dyn ModelProvider, request: ModelRequest) -> Result<ModelTextAnswer, ModelError> {
    let mut stream = model.send(request).await?;
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::Block(Block::Text { text: more }) => text.push_str(&more),
            ModelEvent::Finished { stop, usage } => return Ok(ModelTextAnswer { text, stop, usage }),
            _ => {}
        }
        if text.len() > MAX_TEXT {
            return Err(ModelError::Protocol(format!("the answer has more than {MAX_TEXT} bytes")));
        }
    }
    Err(ModelError::Unreachable("the answer broke off without an end".into()))
}
