//! Store of conversations with agents.

use super::{
    fault::{Fault, store_error},
    writer::WriterHandle,
};
use async_trait::async_trait;
use futures::FutureExt;
use sqlx::{Connection, Row, SqliteConnection, SqlitePool, sqlite::SqliteRow};
use std::{os::unix::ffi::OsStrExt, path::PathBuf};
use toolstead_domain::{
    AppendError, CallId, Conversation, ConversationEvent, ConversationEventKind, ConversationId, ConversationStore,
    Delegation, Principal, StoreError, Timestamp,
};
use uuid::Uuid;

/// Version of the stored form of events. Events of other versions are rejected when they are read.
const VERSION: i64 = 1;
/// Maximum size of one event in bytes of JSON. Images are included as received.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Maximum nesting depth of one event. The JSON parser accepts 127 levels, and an event that it rejects would make the
/// whole conversation unreadable.
const MAX_EVENT_LEVELS: usize = 120;

/// Adapter that writes through the [`WriterHandle`] and reads from the pool.
#[derive(Debug)]
pub(super) struct SqliteConversationStore {
    writer: WriterHandle,
    readers: SqlitePool,
    workspace: PathBuf,
}

/// Principal and workspace of a conversation.
struct ConversationOwner {
    principal: String,
    workspace: Vec<u8>,
}

impl SqliteConversationStore {
    /// Creates the store of this workspace's conversations.
    pub(super) fn new(writer: WriterHandle, readers: SqlitePool, workspace: PathBuf) -> Self {
        Self { writer, readers, workspace }
    }

    fn owner(&self, principal: &Principal) -> ConversationOwner {
        ConversationOwner {
            principal: principal.id().to_owned(),
            workspace: self.workspace.as_os_str().as_bytes().to_vec(),
        }
    }

    async fn read_conversation(
        &self,
        principal: &Principal,
        id: ConversationId,
    ) -> Result<Option<Conversation>, Fault> {
        let owner = self.owner(principal);
        let row = sqlx::query(
            "SELECT id, title, profile, created, updated, events, original, copied_events, within_session, within_call,
                    agent
             FROM conversations WHERE principal = $1 AND id = $2 AND workspace = $3",
        )
        .bind(owner.principal)
        .bind(id.0)
        .bind(owner.workspace)
        .fetch_optional(&self.readers)
        .await?;
        row.map(|row| conversation(principal, &row)).transpose()
    }

    async fn newest(&self, principal: &Principal, limit: usize) -> Result<Vec<Conversation>, Fault> {
        let owner = self.owner(principal);
        let rows = sqlx::query(
            "SELECT id, title, profile, created, updated, events, original, copied_events, within_session, within_call,
                    agent
             FROM conversations INDEXED BY conversations_by_last
             WHERE principal = $1 AND workspace = $2 AND within_session IS NULL ORDER BY last DESC LIMIT $3",
        )
        .bind(owner.principal)
        .bind(owner.workspace)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(|row| conversation(principal, row)).collect()
    }

    async fn list_delegated(
        &self,
        principal: &Principal,
        session: &str,
        limit: usize,
    ) -> Result<Vec<Conversation>, Fault> {
        let owner = self.owner(principal);
        let rows = sqlx::query(
            "SELECT id, title, profile, created, updated, events, original, copied_events, within_session, within_call,
                    agent
             FROM conversations INDEXED BY conversations_handed_over
             WHERE principal = $1 AND workspace = $2 AND within_session = $3 ORDER BY last DESC LIMIT $4",
        )
        .bind(owner.principal)
        .bind(owner.workspace)
        .bind(session)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(|row| conversation(principal, row)).collect()
    }

    async fn all_events(&self, principal: &Principal, id: ConversationId) -> Result<Vec<ConversationEvent>, Fault> {
        let owner = self.owner(principal);
        let rows = sqlx::query(
            "SELECT number, at, version, event FROM conversations
             JOIN conversation_events ON conversation = conversations.seq
             WHERE principal = $1 AND id = $2 AND workspace = $3 ORDER BY number",
        )
        .bind(owner.principal)
        .bind(id.0)
        .bind(owner.workspace)
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(event).collect()
    }
}

#[async_trait]
impl ConversationStore for SqliteConversationStore {
    async fn begin(&self, conversation: &Conversation) -> Result<(), StoreError> {
        let failed = format!("begin the conversation {}", conversation.id);
        let (owner, conversation) = (self.owner(&conversation.principal), conversation.clone());
        let begun = self.writer.apply(move |connection| insert(connection, owner, conversation).boxed()).await;
        begun.map_err(|fault| store_error(failed, fault))
    }

    async fn append(
        &self,
        principal: &Principal,
        id: ConversationId,
        expected: u64,
        at: Timestamp,
        events: Vec<ConversationEventKind>,
    ) -> Result<u64, AppendError> {
        let failed = || format!("add to the conversation {id}");
        let written = events.iter().map(written).collect::<Result<Vec<_>, _>>();
        let events = written.map_err(|fault| store_error(failed(), fault))?;
        let owner = self.owner(principal);
        let adding = self.writer.apply(move |connection| add(connection, owner, id, expected, at, events).boxed());
        adding.await.map_err(|fault| store_error(failed(), fault))?
    }

    async fn find(&self, principal: &Principal, id: ConversationId) -> Result<Option<Conversation>, StoreError> {
        let found = self.read_conversation(principal, id).await;
        found.map_err(|fault| store_error(format!("find the conversation {id}"), fault))
    }

    async fn events(&self, principal: &Principal, id: ConversationId) -> Result<Vec<ConversationEvent>, StoreError> {
        let events = self.all_events(principal, id).await;
        events.map_err(|fault| store_error(format!("read the conversation {id}"), fault))
    }

    async fn delegated_in(
        &self,
        principal: &Principal,
        session: &str,
        limit: usize,
    ) -> Result<Vec<Conversation>, StoreError> {
        let found = self.list_delegated(principal, session, limit).await;
        found.map_err(|fault| store_error("list the conversations of agents", fault))
    }

    async fn latest(&self, principal: &Principal, limit: usize) -> Result<Vec<Conversation>, StoreError> {
        self.newest(principal, limit).await.map_err(|fault| store_error("list the conversations", fault))
    }
}

/// Inserts the conversation and copies the events of the one that it forks, in one transaction.
async fn insert(
    connection: &mut SqliteConnection,
    owner: ConversationOwner,
    conversation: Conversation,
) -> Result<(), Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let copied = conversation.forked_from.map(|(_, events)| number(events)).transpose()?;
    let seq: i64 = sqlx::query_scalar(
        "INSERT INTO conversations (id, principal, workspace, title, profile, created, updated, original, copied_events,
                                    within_session, within_call, agent, events, last)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, coalesce($9, 0),
                 (SELECT coalesce(max(last), 0) + 1 FROM conversations INDEXED BY conversations_by_last
                  WHERE principal = $2 AND workspace = $3))
         RETURNING seq",
    )
    .bind(conversation.id.0)
    .bind(&owner.principal)
    .bind(&owner.workspace)
    .bind(&conversation.title)
    .bind(&conversation.profile)
    .bind(conversation.created.0)
    .bind(conversation.updated.0)
    .bind(conversation.forked_from.map(|(original, _)| original.0))
    .bind(copied)
    .bind(conversation.delegated_by.as_ref().map(|by| by.session.to_string()))
    .bind(conversation.delegated_by.as_ref().map(|by| by.call.0))
    .bind(conversation.delegated_by.as_ref().map(|by| by.agent.to_string()))
    .fetch_one(&mut *transaction)
    .await?;
    if let Some((original, _)) = conversation.forked_from {
        let original: Option<i64> =
            sqlx::query_scalar("SELECT seq FROM conversations WHERE principal = $1 AND id = $2 AND workspace = $3")
                .bind(&owner.principal)
                .bind(original.0)
                .bind(&owner.workspace)
                .fetch_optional(&mut *transaction)
                .await?;
        let events = sqlx::query(
            "INSERT INTO conversation_events (conversation, number, at, version, event)
             SELECT $1, number, at, version, event FROM conversation_events
             WHERE conversation = $2 AND number <= $3 ORDER BY number",
        )
        .bind(seq)
        .bind(original)
        .bind(copied)
        .execute(&mut *transaction)
        .await?;
        if original.is_none() || i64::try_from(events.rows_affected()).ok() != copied {
            return Err(Fault::Refused("the original conversation has no such events".into()));
        }
    }
    transaction.commit().await?;
    Ok(())
}

/// Adds the events in one transaction, and returns the new number of events. Adds none if the conversation does not
/// have the expected number of events.
async fn add(
    connection: &mut SqliteConnection,
    owner: ConversationOwner,
    id: ConversationId,
    expected: u64,
    at: Timestamp,
    events: Vec<String>,
) -> Result<Result<u64, AppendError>, Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let conversation: Option<(i64, i64)> =
        sqlx::query_as("SELECT seq, events FROM conversations WHERE principal = $1 AND id = $2 AND workspace = $3")
            .bind(&owner.principal)
            .bind(id.0)
            .bind(&owner.workspace)
            .fetch_optional(&mut *transaction)
            .await?;
    let Some((seq, mut last)) = conversation else { return Ok(Err(AppendError::NotFound(id))) };
    let found = last.unsigned_abs();
    if found != expected {
        return Ok(Err(AppendError::GoesOnElsewhere { found, expected }));
    }
    if events.is_empty() {
        return Ok(Ok(found));
    }
    for event in events {
        last += 1;
        sqlx::query(
            "INSERT INTO conversation_events (conversation, number, at, version, event) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(seq)
        .bind(last)
        .bind(at.0)
        .bind(VERSION)
        .bind(event)
        .execute(&mut *transaction)
        .await?;
    }
    sqlx::query(
        "UPDATE conversations SET events = $2, updated = $3,
             last = (SELECT max(last) + 1 FROM conversations INDEXED BY conversations_by_last
                     WHERE principal = $4 AND workspace = $5)
         WHERE seq = $1",
    )
    .bind(seq)
    .bind(last)
    .bind(at.0)
    .bind(&owner.principal)
    .bind(&owner.workspace)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(Ok(last.unsigned_abs()))
}

/// Serializes an event. An event that exceeds the limits of size or depth is an error.
fn written(event: &ConversationEventKind) -> Result<String, Fault> {
    let text = serde_json::to_string(event).map_err(|error| Fault::Refused(error.into()))?;
    match (text.len(), levels(&text)) {
        (0..=MAX_EVENT_BYTES, 0..=MAX_EVENT_LEVELS) => Ok(text),
        (0..=MAX_EVENT_BYTES, levels) => Err(Fault::Refused(
            format!("an event is nested {levels} levels deep, at most {MAX_EVENT_LEVELS} are allowed").into(),
        )),
        (bytes, _) => {
            Err(Fault::Refused(format!("an event has {bytes} bytes, at most {MAX_EVENT_BYTES} are allowed").into()))
        }
    }
}

/// Returns the nesting depth of a JSON text.
fn levels(text: &str) -> usize {
    let (mut level, mut deepest, mut in_text, mut signs) = (0_usize, 0, false, text.bytes());
    while let Some(sign) = signs.next() {
        match sign {
            b'"' => in_text = !in_text,
            b'\\' => drop(signs.next()),
            b'{' | b'[' if !in_text => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' if !in_text => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn event(row: &SqliteRow) -> Result<ConversationEvent, Fault> {
    let (number, version): (i64, i64) = (row.try_get("number")?, row.try_get("version")?);
    if version != VERSION {
        return Err(Fault::Unreadable(format!("event {number} has the unknown version {version}").into()));
    }
    let kind = serde_json::from_str(row.try_get("event")?)
        .map_err(|error| Fault::Unreadable(format!("event {number}: {error}").into()))?;
    Ok(ConversationEvent { number: number.unsigned_abs(), at: Timestamp(row.try_get("at")?), kind })
}

fn conversation(principal: &Principal, row: &SqliteRow) -> Result<Conversation, Fault> {
    let id = ConversationId(row.try_get("id")?);
    let title: String = row.try_get("title")?;
    let mut conversation = Conversation::new(id, principal.clone(), title, Timestamp(row.try_get("created")?));
    conversation.profile = row.try_get("profile")?;
    conversation.updated = Timestamp(row.try_get("updated")?);
    conversation.events = row.try_get::<i64, _>("events")?.unsigned_abs();
    let original: Option<Uuid> = row.try_get("original")?;
    let copied: Option<i64> = row.try_get("copied_events")?;
    conversation.forked_from =
        original.zip(copied).map(|(original, copied)| (ConversationId(original), copied.unsigned_abs()));
    let session: Option<String> = row.try_get("within_session")?;
    let call: Option<Uuid> = row.try_get("within_call")?;
    let agent: Option<String> = row.try_get("agent")?;
    conversation.delegated_by = session.zip(call).zip(agent).map(|((session, call), agent)| Delegation {
        session: session.into(),
        call: CallId(call),
        agent: agent.into(),
    });
    Ok(conversation)
}

/// Converts a number of events for SQLite.
fn number(events: u64) -> Result<i64, Fault> {
    i64::try_from(events).map_err(|error| Fault::Refused(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use toolstead_domain::{Block, ToolResultBlock};

    #[test]
    fn rejects_an_event_that_exceeds_the_maximum_size() {
        let of =
            |bytes: usize| written(&ConversationEventKind::UserSaid { blocks: vec![Block::text("x".repeat(bytes))] });
        let around = of(0).unwrap().len();
        assert_eq!(of(MAX_EVENT_BYTES - around).unwrap().len(), MAX_EVENT_BYTES);
        assert!(matches!(of(MAX_EVENT_BYTES - around + 1), Err(Fault::Refused(_))));
    }

    #[test]
    fn every_stored_event_can_be_read_back_and_too_deep_ones_are_rejected() {
        let ended = |levels: usize| {
            let content = vec![Block::text("\"[[[\\")];
            let result = ToolResultBlock { id: "c".into(), name: "t".into(), content, is_error: false };
            let record = (0..levels).fold(json!("{[\\\"{"), |inner, _| json!([inner]));
            ConversationEventKind::CallEnded { result, call: None, record }
        };
        for levels in [0, 1, 119, 120, 126, 127, 500] {
            let kept = written(&ended(levels));
            assert_eq!(kept.is_ok(), levels < MAX_EVENT_LEVELS, "{levels}");
            if let Ok(text) = kept {
                assert!(serde_json::from_str::<ConversationEventKind>(&text).is_ok(), "{levels}");
                assert!(serde_json::from_str::<Value>(&text).is_ok(), "{levels}");
            }
        }
    }
}
