//! Events with the tokens of each answer of a model.

use crate::event_bus::EventBus;
use std::sync::Arc;
use toolstead_domain::{
    CallId, ConversationId, EventKind, EventOrigin, EventSink, ModelProvider, Principal, TokenUsage,
};

/// Publishes the usage of the models of one conversation.
#[derive(Debug, Clone)]
pub(super) struct UsageEvents {
    bus: Arc<EventBus>,
    conversation: ConversationId,
    principal: Principal,
    /// The call that delegated the run; `None` if a user started it.
    within: Option<CallId>,
}

impl UsageEvents {
    pub(super) fn new(
        bus: Arc<EventBus>,
        conversation: ConversationId,
        principal: Principal,
        within: Option<CallId>,
    ) -> Self {
        Self { bus, conversation, principal, within }
    }

    /// Publishes the usage and the cost of an answer of `model`, if the bus has subscribers.
    pub(super) fn publish(&self, model: &dyn ModelProvider, usage: TokenUsage) {
        if !self.bus.is_watched() {
            return;
        }
        let origin = EventOrigin {
            principal: Some(self.principal.clone()),
            session: Some(self.conversation.session()),
            call: self.within,
        };
        let kind = EventKind::Usage {
            conversation: Some(self.conversation),
            model: model.name().to_owned(),
            usage,
            cost: model.facts().prices.map(|prices| usage.cost(&prices)),
        };
        self.bus.send(origin, kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolstead_domain::{
        Timestamp,
        testing::{fixed_clock::FixedClock, scripted_model::ScriptedModel},
    };

    #[test]
    fn usage_events_reach_only_their_principal_and_name_conversation_and_model() {
        let bus = EventBus::new(Arc::new(FixedClock::at(Timestamp(7))));
        let (mine, other) = (Principal::token("mine"), Principal::token("other"));
        let conversation = ConversationId("01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap());
        let model = ScriptedModel::answering([]);
        let (mut watch, mut others) = (bus.subscribe_as(mine.clone()), bus.subscribe_as(other));
        let usage = TokenUsage { input_tokens: 1, cache_read_tokens: 2, cache_write_tokens: 3, output_tokens: 4 };
        UsageEvents::new(bus.clone(), conversation, mine, None).publish(&model, usage);
        let answer = watch.waiting().unwrap().to_json();
        assert_eq!((&answer["type"], &answer["model"]), (&json!("usage"), &json!(model.name())));
        assert_eq!(
            (&answer["conversation"], &answer["session"]),
            (&json!(conversation.to_string()), &answer["conversation"])
        );
        let tokens =
            ["input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"].map(|one| &answer[one]);
        assert_eq!(tokens, [&json!(1), &json!(2), &json!(3), &json!(4)]);
        assert_eq!(others.waiting(), None);
    }
}
