//! Store of the plans of sessions.

use super::{
    fault::{Fault, store_error},
    writer::WriterHandle,
};
use async_trait::async_trait;
use futures::FutureExt;
use sqlx::{Connection, SqliteConnection, SqlitePool};
use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolstead_domain::{Principal, StoreError, TodoList, TodoStore};

/// Maximum number of plans per principal and workspace; [`IN_ALL`] is the maximum in total.
const OF_A_PRINCIPAL: i64 = 2_000;
const IN_ALL: i64 = 10_000;

/// Adapter that writes through the [`WriterHandle`] and reads from the pool.
pub(super) struct SqliteTodoStore {
    writer: WriterHandle,
    readers: SqlitePool,
    workspace: PathBuf,
}

/// Key of a plan.
struct TodoListKey {
    principal: String,
    workspace: Vec<u8>,
    session: String,
}

impl TodoListKey {
    fn new(principal: &Principal, workspace: &Path, session: &str) -> Self {
        Self {
            principal: principal.id().to_owned(),
            workspace: workspace.as_os_str().as_bytes().to_vec(),
            session: session.to_owned(),
        }
    }
}

const READ: &str = "SELECT todos FROM plans WHERE principal = $1 AND workspace = $2 AND session = $3";

impl SqliteTodoStore {
    /// Creates the store of this workspace's plans.
    pub(super) fn new(writer: WriterHandle, readers: SqlitePool, workspace: PathBuf) -> Self {
        Self { writer, readers, workspace }
    }

    async fn read(&self, name: TodoListKey) -> Result<TodoList, Fault> {
        let text: Option<String> = sqlx::query_scalar(READ)
            .bind(name.principal)
            .bind(name.workspace)
            .bind(name.session)
            .fetch_optional(&self.readers)
            .await?;
        plan(text)
    }
}

#[async_trait]
impl TodoStore for SqliteTodoStore {
    async fn todos(&self, principal: &Principal, session: &str) -> Result<TodoList, StoreError> {
        let read = self.read(TodoListKey::new(principal, &self.workspace, session)).await;
        read.map_err(|fault| store_error("read the plan", fault))
    }

    async fn replace(&self, principal: &Principal, session: &str, todos: TodoList) -> Result<TodoList, StoreError> {
        let failed = |fault: Arc<Fault>| store_error("store the plan", fault);
        let name = TodoListKey::new(principal, &self.workspace, session);
        let text = match todos.0.is_empty() {
            true => None,
            false => Some(serde_json::to_string(&todos).map_err(|error| failed(Fault::Refused(error.into()).into()))?),
        };
        let kept = self.writer.apply(move |connection| write(connection, name, text).boxed()).await;
        kept.map_err(failed)
    }
}

fn plan(text: Option<String>) -> Result<TodoList, Fault> {
    text.map_or_else(
        || Ok(TodoList::default()),
        |text| serde_json::from_str(&text).map_err(|error| Fault::Unreadable(error.into())),
    )
}

/// Replaces the plan (deletes it without `text`), and deletes the oldest plans over the limits. Returns the previous
/// plan, which is empty if it is missing or unreadable.
async fn write(connection: &mut SqliteConnection, name: TodoListKey, text: Option<String>) -> Result<TodoList, Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let before: Option<String> = sqlx::query_scalar(READ)
        .bind(&name.principal)
        .bind(&name.workspace)
        .bind(&name.session)
        .fetch_optional(&mut *transaction)
        .await?;
    // An unreadable plan counts as missing.
    let before = plan(before).unwrap_or_default();
    sqlx::query("DELETE FROM plans WHERE principal = $1 AND workspace = $2 AND session = $3")
        .bind(&name.principal)
        .bind(&name.workspace)
        .bind(&name.session)
        .execute(&mut *transaction)
        .await?;
    if let Some(text) = text {
        sqlx::query(
            "INSERT INTO plans (seq, principal, workspace, session, todos)
             VALUES ((SELECT coalesce(max(seq), 0) + 1 FROM plans), $1, $2, $3, $4)",
        )
        .bind(&name.principal)
        .bind(&name.workspace)
        .bind(&name.session)
        .bind(text)
        .execute(&mut *transaction)
        .await?;
        sqlx::query(
            "DELETE FROM plans WHERE principal = $1 AND workspace = $2 AND seq <= (
                 SELECT seq FROM plans WHERE principal = $1 AND workspace = $2 ORDER BY seq DESC LIMIT 1 OFFSET $3)",
        )
        .bind(&name.principal)
        .bind(&name.workspace)
        .bind(OF_A_PRINCIPAL)
        .execute(&mut *transaction)
        .await?;
        sqlx::query("DELETE FROM plans WHERE seq <= (SELECT seq FROM plans ORDER BY seq DESC LIMIT 1 OFFSET $1)")
            .bind(IN_ALL)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(before)
}
