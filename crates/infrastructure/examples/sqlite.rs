//! The stores on SQLite alone: opens a database in a temporary folder, records a call, and reads it back.
//!
//! `cargo run -p toolstead-infrastructure --no-default-features --features sqlite --example sqlite`

use serde_json::{Value, json};
use std::{error::Error, sync::Arc};
use toolstead_domain::{
    AuditedRequestKind, CallId, CallLabels, Clock, ExecutionFilter, ExecutionLog, ExecutionOutcome, ToolExecution,
};
use toolstead_infrastructure::{
    sqlite::{Database, DatabaseOptions},
    system_clock::SystemClock,
};
use uuid::Uuid;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let clock = Arc::new(SystemClock);
    let now = clock.now();
    let database = Database::open(DatabaseOptions::at(folder.path().join("toolstead.db")), clock).await?;

    let trail: Arc<dyn ExecutionLog> = database.execution_log();
    let call = ToolExecution {
        id: CallId(Uuid::now_v7()),
        parent: None,
        kind: AuditedRequestKind::Tool,
        tool: "echo".into(),
        called_as: "echo".into(),
        source: "built-in".into(),
        principal: "local".into(),
        session: "example".into(),
        client: "example 1.0".into(),
        arguments: json!({"message": "hello"}),
        arguments_digest: String::new(),
        accesses: Vec::new(),
        decision: None,
        started: now,
        ended: Some(now),
        outcome: ExecutionOutcome::Succeeded,
        result_bytes: 5,
        result_digest: None,
        metadata: Value::Null,
        labels: CallLabels::default(),
    };
    trail.record(call.clone()).await?;

    let rows = trail.list(&ExecutionFilter::default()).await?;
    database.close().await;
    match rows == [call] {
        true => Ok(()),
        false => Err(format!("the trail holds other rows than the one that was recorded: {rows:?}").into()),
    }
}
