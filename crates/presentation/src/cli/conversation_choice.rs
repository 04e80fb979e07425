//! Selection of a conversation by the user.

use super::exit::Failed;
use toolstead_domain::{
    conversation::{Conversation, ConversationId},
    ports::conversation_store::ConversationStore,
    principal::Principal,
};

/// Maximum number of conversations that are searched for the prefix of an id.
const LOOKED_THROUGH: usize = 10_000;
/// Maximum number of ids to list if a prefix is ambiguous.
const NAMED: usize = 5;

/// Conversation that the user names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The conversation that was continued last.
    Last,
    /// The id, or a prefix of it.
    Named(String),
}

/// Returns the named conversation, from the store of this workspace.
///
/// # Errors
/// [`Failed::NotFound`] if there is none, [`Failed::Usage`] if the prefix is ambiguous.
pub(super) async fn chosen(store: &dyn ConversationStore, wanted: &Wanted) -> Result<Conversation, Failed> {
    let me = Principal::local();
    let id = match wanted {
        Wanted::Last => {
            let none = || Failed::NotFound("there is no conversation in this workspace yet".into());
            return store.latest(&me, 1).await?.pop().ok_or_else(none);
        }
        Wanted::Named(id) => id.trim().to_lowercase(),
    };
    let none = || {
        Failed::NotFound(format!(
            "there is no conversation `{id}` in this workspace; `toolstead conversations list` shows them"
        ))
    };
    if let Ok(whole) = id.parse::<ConversationId>() {
        return store.find(&me, whole).await?.ok_or_else(none);
    }
    let all = store.latest(&me, LOOKED_THROUGH).await?;
    let mut meant: Vec<Conversation> =
        all.into_iter().filter(|one| !id.is_empty() && one.id.to_string().starts_with(&id)).collect();
    match meant.len() {
        1 => Ok(meant.remove(0)),
        0 => Err(none()),
        several => {
            let named: Vec<String> =
                meant.iter().take(NAMED).map(|one| format!("{} ({})", one.id, one.title)).collect();
            let more = if several > NAMED { ", …" } else { "" };
            Err(Failed::Usage(format!("`{id}` begins {several} conversations: {}{more}", named.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolstead_domain::{ports::clock::Timestamp, testing::in_memory_conversations::InMemoryConversations};

    #[tokio::test]
    async fn a_conversation_is_meant_by_as_much_of_its_id_as_tells_it_apart() {
        let store = InMemoryConversations::new();
        assert!(chosen(&store, &Wanted::Last).await.is_err());
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

        let meant = async |wanted: Wanted| chosen(&store, &wanted).await.map(|one| one.id.to_string());
        let named = |id: &str| Wanted::Named(id.into());
        assert_eq!(meant(Wanted::Last).await.unwrap(), ids[2]);
        assert_eq!(meant(named(ids[1])).await.unwrap(), ids[1]);
        assert_eq!(meant(named(" 0199F")).await.unwrap(), ids[2]);
        assert!(matches!(meant(named("0199")).await, Err(Failed::Usage(told)) if told.contains("begins 3")));
        for unknown in ["02", "", others, "0199a"] {
            assert!(matches!(meant(named(unknown)).await, Err(Failed::NotFound(_))), "{unknown}");
        }
    }
}
