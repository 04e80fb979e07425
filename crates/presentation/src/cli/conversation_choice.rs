//! Selection of a conversation by the user.

use super::exit::CommandError;
use toolstead_domain::{Conversation, ConversationId, ConversationStore, Principal};

/// Maximum number of conversations that are searched for the prefix of an id.
const LOOKED_THROUGH: usize = 10_000;
/// Maximum number of ids to list if a prefix is ambiguous.
const NAMED: usize = 5;

/// Conversation that the user names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConversationSelector {
    /// The conversation that was continued last.
    Last,
    /// The id, or a prefix of it.
    Named(String),
}

/// Returns the named conversation, from the store of this workspace.
///
/// # Errors
/// [`CommandError::NotFound`] if there is none, [`CommandError::Usage`] if the prefix is ambiguous.
pub(super) async fn find_conversation(
    store: &dyn ConversationStore,
    selector: &ConversationSelector,
) -> Result<Conversation, CommandError> {
    let me = Principal::local();
    let id = match selector {
        ConversationSelector::Last => {
            let none = || CommandError::NotFound("there is no conversation in this workspace yet".into());
            return store.latest(&me, 1).await?.pop().ok_or_else(none);
        }
        ConversationSelector::Named(id) => id.trim().to_lowercase(),
    };
    let none = || {
        CommandError::NotFound(format!(
            "there is no conversation `{id}` in this workspace; `toolstead conversations list` shows them"
        ))
    };
    if let Ok(whole) = id.parse::<ConversationId>() {
        return store.find(&me, whole).await?.ok_or_else(none);
    }
    let all = store.latest(&me, LOOKED_THROUGH).await?;
    let mut matches: Vec<Conversation> =
        all.into_iter().filter(|one| !id.is_empty() && one.id.to_string().starts_with(&id)).collect();
    match matches.len() {
        1 => Ok(matches.remove(0)),
        0 => Err(none()),
        several => {
            let named: Vec<String> =
                matches.iter().take(NAMED).map(|one| format!("{} ({})", one.id, one.title)).collect();
            let more = if several > NAMED { ", …" } else { "" };
            Err(CommandError::Usage(format!("`{id}` begins {several} conversations: {}{more}", named.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{Timestamp, testing::in_memory_conversations::InMemoryConversations};

    #[tokio::test]
    async fn a_conversation_is_selected_by_any_unambiguous_prefix_of_its_id() {
        let store = InMemoryConversations::new();
        assert!(find_conversation(&store, &ConversationSelector::Last).await.is_err());
        let ids = [
            "01990000-0000-7000-8000-00000000000a",
            "01990000-0000-7000-8000-00000000000b",
            "0199ff00-0000-7000-8000-00000000000c",
        ];
        for (id, at) in ids.iter().zip(1..) {
            let conversation = Conversation::new(id.parse().unwrap(), Principal::local(), "talk", Timestamp(at));
            store.begin(&conversation).await.unwrap();
        }
        let others = "0199aa00-0000-7000-8000-00000000000d";
        let of_others = Conversation::new(others.parse().unwrap(), Principal::token("ann"), "talk", Timestamp(9));
        store.begin(&of_others).await.unwrap();

        let meant =
            async |wanted: ConversationSelector| find_conversation(&store, &wanted).await.map(|one| one.id.to_string());
        let named = |id: &str| ConversationSelector::Named(id.into());
        assert_eq!(meant(ConversationSelector::Last).await.unwrap(), ids[2]);
        assert_eq!(meant(named(ids[1])).await.unwrap(), ids[1]);
        assert_eq!(meant(named(" 0199F")).await.unwrap(), ids[2]);
        assert!(
            matches!(meant(named("0199")).await, Err(CommandError::Usage(outcome)) if outcome.contains("begins 3"))
        );
        for unknown in ["02", "", others, "0199a"] {
            assert!(matches!(meant(named(unknown)).await, Err(CommandError::NotFound(_))), "{unknown}");
        }
    }
}
