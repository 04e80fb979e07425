//! Store of deferred questions, which wait for an answer.

use super::{
    fault::{Fault, store_error},
    writer::WriterHandle,
};
use async_trait::async_trait;
use futures::FutureExt;
use sqlx::{Connection, Row, SqliteConnection, SqlitePool, sqlite::SqliteRow};
use std::{os::unix::ffi::OsStrExt, path::PathBuf, sync::Arc};
use toolstead_domain::{
    DeferredQuestions, Principal, Question, QuestionError, QuestionGroupId, QuestionStore, StoreError, Timestamp,
    ports::question_store::WAITING_OF_A_SESSION,
};

/// Maximum number of stored questions, answered or not, per principal and workspace; [`IN_ALL`] is the maximum in
/// total.
const OF_A_PRINCIPAL: i64 = 1_000;
const IN_ALL: i64 = 5_000;

/// Adapter that writes through the [`WriterHandle`] and reads from the pool.
pub(super) struct SqliteQuestionStore {
    writer: WriterHandle,
    readers: SqlitePool,
    workspace: PathBuf,
}

/// Principal and workspace of questions.
struct QuestionOwner {
    principal: String,
    workspace: Vec<u8>,
}

impl SqliteQuestionStore {
    /// Creates the store of this workspace's questions.
    pub(super) fn new(writer: WriterHandle, readers: SqlitePool, workspace: PathBuf) -> Self {
        Self { writer, readers, workspace }
    }

    fn owner(&self, principal: &Principal) -> QuestionOwner {
        QuestionOwner {
            principal: principal.id().to_owned(),
            workspace: self.workspace.as_os_str().as_bytes().to_vec(),
        }
    }

    async fn read_questions(
        &self,
        owner: QuestionOwner,
        id: QuestionGroupId,
    ) -> Result<Option<DeferredQuestions>, Fault> {
        let row = sqlx::query(
            "SELECT number, session, asked, questions, answers FROM deferred_questions
             WHERE principal = $1 AND workspace = $2 AND number = $3",
        )
        .bind(owner.principal)
        .bind(owner.workspace)
        .bind(i64::from(id.0))
        .fetch_optional(&self.readers)
        .await?;
        row.as_ref().map(deferred).transpose()
    }

    async fn all_waiting(&self, owner: QuestionOwner) -> Result<Vec<DeferredQuestions>, Fault> {
        let rows = sqlx::query(
            "SELECT number, session, asked, questions, answers FROM deferred_questions
             WHERE principal = $1 AND workspace = $2 AND answers IS NULL ORDER BY number",
        )
        .bind(owner.principal)
        .bind(owner.workspace)
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(deferred).collect()
    }
}

#[async_trait]
impl QuestionStore for SqliteQuestionStore {
    async fn keep(
        &self,
        principal: &Principal,
        session: &str,
        at: Timestamp,
        questions: Vec<Question>,
    ) -> Result<QuestionGroupId, QuestionError> {
        let failed = |fault: Arc<Fault>| QuestionError::Store(store_error("store the questions", fault));
        let text = serde_json::to_string(&questions).map_err(|error| failed(Fault::Refused(error.into()).into()))?;
        let (owner, session) = (self.owner(principal), session.to_owned());
        let kept = self.writer.apply(move |connection| insert(connection, owner, session, at, text).boxed()).await;
        kept.map_err(failed)?
    }

    async fn find(&self, principal: &Principal, id: QuestionGroupId) -> Result<Option<DeferredQuestions>, StoreError> {
        let found = self.read_questions(self.owner(principal), id).await;
        found.map_err(|fault| store_error(format!("read the questions {id}"), fault))
    }

    async fn waiting(&self, principal: &Principal) -> Result<Vec<DeferredQuestions>, StoreError> {
        let waiting = self.all_waiting(self.owner(principal)).await;
        waiting.map_err(|fault| store_error("list the questions", fault))
    }

    async fn answer(
        &self,
        principal: &Principal,
        id: QuestionGroupId,
        answers: Vec<String>,
    ) -> Result<(), QuestionError> {
        let owner = self.owner(principal);
        let answered = self.writer.apply(move |connection| answer(connection, owner, id, answers).boxed()).await;
        answered.map_err(|fault| store_error(format!("answer the questions {id}"), fault))?
    }
}

/// Checks the limit, inserts the questions and deletes the oldest ones over the limits, in one transaction.
async fn insert(
    connection: &mut SqliteConnection,
    owner: QuestionOwner,
    session: String,
    at: Timestamp,
    questions: String,
) -> Result<Result<QuestionGroupId, QuestionError>, Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let waiting: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM deferred_questions
         WHERE principal = $1 AND workspace = $2 AND session = $3 AND answers IS NULL",
    )
    .bind(&owner.principal)
    .bind(&owner.workspace)
    .bind(&session)
    .fetch_one(&mut *transaction)
    .await?;
    let waiting = usize::try_from(waiting).unwrap_or(usize::MAX);
    if waiting >= WAITING_OF_A_SESSION {
        return Ok(Err(QuestionError::TooMany(waiting)));
    }
    let number: i64 = sqlx::query_scalar(
        "INSERT INTO deferred_questions (principal, workspace, number, session, asked, questions)
         VALUES ($1, $2, (SELECT coalesce(max(number), 0) + 1 FROM deferred_questions
                          WHERE principal = $1 AND workspace = $2), $3, $4, $5)
         RETURNING number",
    )
    .bind(&owner.principal)
    .bind(&owner.workspace)
    .bind(&session)
    .bind(at.0)
    .bind(questions)
    .fetch_one(&mut *transaction)
    .await?;
    // The newest of each workspace is never deleted, so that no number is assigned twice.
    sqlx::query("DELETE FROM deferred_questions WHERE principal = $1 AND workspace = $2 AND number <= $3")
        .bind(&owner.principal)
        .bind(&owner.workspace)
        .bind(number - OF_A_PRINCIPAL)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(
        "DELETE FROM deferred_questions AS old WHERE seq <= (
             SELECT seq FROM deferred_questions ORDER BY seq DESC LIMIT 1 OFFSET $1)
         AND number < (SELECT max(number) FROM deferred_questions AS newer
                       WHERE newer.principal = old.principal AND newer.workspace = old.workspace)",
    )
    .bind(IN_ALL)
    .execute(&mut *transaction)
    .await?;
    let id = number_of(number)?;
    transaction.commit().await?;
    Ok(Ok(id))
}

async fn answer(
    connection: &mut SqliteConnection,
    owner: QuestionOwner,
    id: QuestionGroupId,
    answers: Vec<String>,
) -> Result<Result<(), QuestionError>, Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let row = sqlx::query(
        "SELECT number, session, asked, questions, answers FROM deferred_questions
         WHERE principal = $1 AND workspace = $2 AND number = $3",
    )
    .bind(&owner.principal)
    .bind(&owner.workspace)
    .bind(i64::from(id.0))
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(found) = row.as_ref().map(deferred).transpose()? else { return Ok(Err(QuestionError::NotFound(id))) };
    if found.answers.is_some() {
        return Ok(Err(QuestionError::Answered(id)));
    }
    let (questions, given) = (found.questions.len(), answers.len());
    if questions != given {
        return Ok(Err(QuestionError::Mismatch { questions, answers: given }));
    }
    let text = serde_json::to_string(&answers).map_err(|error| Fault::Refused(error.into()))?;
    sqlx::query("UPDATE deferred_questions SET answers = $4 WHERE principal = $1 AND workspace = $2 AND number = $3")
        .bind(&owner.principal)
        .bind(&owner.workspace)
        .bind(i64::from(id.0))
        .bind(text)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(Ok(()))
}

fn deferred(row: &SqliteRow) -> Result<DeferredQuestions, Fault> {
    let questions: Vec<Question> = from_json(row.try_get("questions")?)?;
    let answers: Option<String> = row.try_get("answers")?;
    Ok(DeferredQuestions {
        id: number_of(row.try_get("number")?)?,
        session: row.try_get("session")?,
        asked: Timestamp(row.try_get("asked")?),
        questions,
        answers: answers.map(from_json).transpose()?,
    })
}

fn from_json<T: serde::de::DeserializeOwned>(text: String) -> Result<T, Fault> {
    serde_json::from_str(&text).map_err(|error| Fault::Unreadable(error.into()))
}

fn number_of(number: i64) -> Result<QuestionGroupId, Fault> {
    u32::try_from(number).map(QuestionGroupId).map_err(|error| Fault::Unreadable(error.into()))
}
