//! Store of the versions of definitions that servers offer.

use super::{
    fault::{Fault, store_error},
    writer::WriterHandle,
};
use async_trait::async_trait;
use futures::FutureExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::{Connection, Row, SqliteConnection, SqlitePool, sqlite::SqliteRow};
use toolstead_domain::{
    DefinitionVersion, ItemKey, ItemKind, PinnedDefinitionStore, PinnedServerKey, StoreError, Timestamp,
    VersionApproval, pinning::item::fingerprinted,
};

/// Maximum number of stored versions of one item, beside the latest approved one.
const KEPT_VERSIONS: i64 = 32;

/// Maximum number of removed prompts, resources and templates of a server whose versions are stored. A server may list
/// new ones each time.
const KEPT_REMOVED: i64 = 10_000;

/// Statement that adds the versions of a JSON array ($3) to a server ($1, $2). Each item is in the format of [`values`].
const ADD: &str = "
    INSERT INTO definition_versions (
        configured_in, server, kind, name, number, definition, fingerprint, seen_at, approved_at, approved_by, findings,
        hard
    )
    SELECT
        $1, $2, value ->> 0, value ->> 1, value ->> 2, value ->> 3, unhex(value ->> 4), value ->> 5, value ->> 6,
        value ->> 7, value ->> 8, value ->> 9
    FROM jsonb_each($3)
    WHERE true
    ON CONFLICT DO NOTHING";

/// Statement that deletes old versions of the items of a server ($1, $2): those with at least $3 newer versions, except
/// the latest approved one.
const FORGET_OLD: &str = "
    DELETE FROM definition_versions AS old WHERE configured_in = $1 AND server = $2
    AND number <= (
        SELECT max(number) FROM definition_versions AS newer
        WHERE newer.configured_in = $1 AND newer.server = $2 AND newer.kind = old.kind AND newer.name = old.name
    ) - $3
    AND number <> coalesce((
        SELECT max(number) FROM definition_versions AS approved
        WHERE approved.configured_in = $1 AND approved.server = $2 AND approved.kind = old.kind
        AND approved.name = old.name AND approved.approved_at IS NOT NULL AND approved.definition IS NOT NULL
    ), 0)";

/// Statement that deletes the versions of prompts, resources and templates that a server ($1, $2) removed, except the $3
/// that it removed last. With `max`, SQLite takes the other columns from the row of the latest version.
const FORGET_REMOVED: &str = "
    DELETE FROM definition_versions WHERE configured_in = $1 AND server = $2 AND (kind, name) IN (
        SELECT kind, name FROM (
            SELECT kind, name, max(number), definition, seen_at FROM definition_versions
            WHERE configured_in = $1 AND server = $2 AND kind IN ('prompt', 'resource', 'template')
            GROUP BY kind, name
        ) WHERE definition IS NULL ORDER BY seen_at DESC, kind, name LIMIT -1 OFFSET $3
    )";

/// Statement that returns the versions of a server ($1, $2). [`read`] relies on the order of the columns.
const VERSIONS: &str = "
    SELECT kind, name, number, definition, seen_at, approved_at, approved_by, findings, hard
    FROM definition_versions WHERE configured_in = $1 AND server = $2 ORDER BY kind, name, number";

/// Statement that stores the approval of a version ($1 to $5) without one: its time ($6) and its approver ($7).
const APPROVE: &str = "
    UPDATE definition_versions SET approved_at = $6, approved_by = $7
    WHERE configured_in = $1 AND server = $2 AND kind = $3 AND name = $4 AND number = $5 AND approved_at IS NULL";

/// Adapter that writes through the [`WriterHandle`] and reads from the pool.
#[derive(Debug)]
pub(super) struct SqliteDefinitionStore {
    writer: WriterHandle,
    readers: SqlitePool,
}

impl SqliteDefinitionStore {
    /// Creates the store of this database.
    pub(super) fn new(writer: WriterHandle, readers: SqlitePool) -> Self {
        Self { writer, readers }
    }
}

#[async_trait]
impl PinnedDefinitionStore for SqliteDefinitionStore {
    async fn versions(&self, server: &PinnedServerKey) -> Result<Vec<DefinitionVersion>, StoreError> {
        let rows = sqlx::query(VERSIONS).bind(&server.configured_in).bind(&server.name);
        let rows = rows.fetch_all(&self.readers).await.map_err(Fault::from);
        rows.and_then(|rows| rows.iter().map(read).collect())
            .map_err(|fault| store_error(format!("read the definitions of `{}`", server.name), fault))
    }

    async fn add(&self, server: &PinnedServerKey, versions: &[DefinitionVersion]) -> Result<(), StoreError> {
        let rows = versions.iter().map(values).collect::<Value>().to_string();
        let PinnedServerKey { configured_in, name } = server.clone();
        let added = self.writer.apply(move |connection| add(connection, configured_in, name, rows).boxed()).await;
        added.map_err(|fault| store_error(format!("save the definitions of `{}`", server.name), fault))
    }

    async fn approve(
        &self,
        server: &PinnedServerKey,
        versions: &[(ItemKey, u32)],
        approval: &VersionApproval,
    ) -> Result<(), StoreError> {
        let (of, versions, approval) = (server.clone(), versions.to_vec(), approval.clone());
        let approved = self.writer.apply(move |connection| approve(connection, of, versions, approval).boxed()).await;
        approved.map_err(|fault| store_error(format!("approve the definitions of `{}`", server.name), fault))
    }
}

async fn add(
    connection: &mut SqliteConnection,
    configured_in: String,
    server: String,
    rows: String,
) -> Result<(), Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(ADD).bind(&configured_in).bind(&server).bind(rows).execute(&mut *transaction).await?;
    for (statement, kept) in [(FORGET_OLD, KEPT_VERSIONS), (FORGET_REMOVED, KEPT_REMOVED)] {
        let forget = sqlx::query(statement).bind(&configured_in).bind(&server).bind(kept);
        forget.execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(())
}

async fn approve(
    connection: &mut SqliteConnection,
    server: PinnedServerKey,
    versions: Vec<(ItemKey, u32)>,
    approval: VersionApproval,
) -> Result<(), Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for (key, number) in versions {
        let update = sqlx::query(APPROVE).bind(&server.configured_in).bind(&server.name).bind(key.kind.as_str());
        let update = update.bind(key.name).bind(number).bind(approval.at.0).bind(&approval.by);
        update.execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Returns a version as JSON, in the order that [`ADD`] expects.
fn values(version: &DefinitionVersion) -> Value {
    let definition = version.definition.as_ref();
    let fingerprint = definition.map(|definition| {
        let digest = Sha256::digest(fingerprinted(version.key.kind, definition).to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    });
    json!([
        version.key.kind.as_str(),
        version.key.name,
        version.number,
        definition.map(Value::to_string),
        fingerprint,
        version.seen_at.0,
        version.approval.as_ref().map(|approval| approval.at.0),
        version.approval.as_ref().map(|approval| &approval.by),
        Value::from(version.findings.as_slice()).to_string(),
        version.has_hard_finding,
    ])
}

/// Reads a row of [`VERSIONS`].
fn read(row: &SqliteRow) -> Result<DefinitionVersion, Fault> {
    let unreadable = |cause: String| Fault::Unreadable(cause.into());
    let json = |text: String| serde_json::from_str(&text).map_err(|error| Fault::Unreadable(error.into()));
    let kind: String = row.try_get(0)?;
    let kind = ItemKind::parse(&kind).ok_or_else(|| unreadable(format!("`{kind}` is not a kind of definition")))?;
    let approval = match (row.try_get::<Option<i64>, _>(5)?, row.try_get::<Option<String>, _>(6)?) {
        (Some(at), Some(by)) => Some(VersionApproval { at: Timestamp(at), by }),
        _ => None,
    };
    let findings = json(row.try_get(7)?)?;
    Ok(DefinitionVersion {
        key: ItemKey::new(kind, row.try_get::<String, _>(1)?),
        number: row.try_get(2)?,
        definition: row.try_get::<Option<String>, _>(3)?.map(json).transpose()?,
        seen_at: Timestamp(row.try_get(4)?),
        approval,
        findings: serde_json::from_value(findings).map_err(|error| Fault::Unreadable(error.into()))?,
        has_hard_finding: row.try_get(8)?,
    })
}
