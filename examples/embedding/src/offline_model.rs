use std::collections::VecDeque;
use toolstead_presentation::prelude::*;

/// Calls the first offered tool and repeats its result, in place of a model on a server.
pub struct OfflineModel(ModelFacts);

impl Default for OfflineModel {
    fn default() -> Self {
        let (provider, model) = ("offline".to_owned(), "offline-1".to_owned());
        Self(ModelFacts { provider, model, context_tokens: 100_000, takes_images: false, prices: None })
    }
}

#[async_trait]
impl ModelProvider for OfflineModel {
    fn name(&self) -> &str {
        "offline"
    }

    fn facts(&self) -> &ModelFacts {
        &self.0
    }

    async fn send(&self, request: ModelRequest) -> Result<Box<dyn ModelAnswer>, ModelError> {
        let result = request.messages.iter().flat_map(|message| &message.blocks).find_map(|block| match block {
            Block::ToolResult(result) => result.content.first(),
            _ => None,
        });
        let (block, stop) = match (result, request.tools.first()) {
            (Some(Block::Text { text }), _) => (Block::text(format!("It says {text}.")), StopReason::EndTurn),
            (_, Some(tool)) => {
                let arguments = ToolArguments::parse(r#"{"city": "Bern"}"#);
                let call = ToolUse { id: "call_1".into(), name: tool.name.clone(), arguments, sealed: None };
                (Block::ToolUse(call), StopReason::ToolUse)
            }
            _ => (Block::text("There is nothing to call."), StopReason::EndTurn),
        };
        let end = ModelEvent::Finished { stop, usage: TokenUsage::default() };
        Ok(Box::new(Answer(VecDeque::from([ModelEvent::Block(block), end]))))
    }
}

struct Answer(VecDeque<ModelEvent>);

#[async_trait]
impl ModelAnswer for Answer {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        self.0.pop_front().map(Ok)
    }
}
