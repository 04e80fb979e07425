//! Questions of a tool to the client: limited in number and size, attributed to their server, and recorded.

mod client_adaptation;
mod question_records;

use crate::execute_tool::{
    events,
    ports::ExecuteToolPorts,
    record::{CallRecord, each_piece},
};
pub(crate) use client_adaptation::adapt_for_client;
pub(super) use question_records::QuestionAuditWriter;
use question_records::{QuestionAuditGuard, QuestionEnd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use toolstead_domain::{CallPermissions, InputRequest, InputResponse, NotAnswered, ToolCall};

/// Maximum number of questions per call. More would exhaust the user's patience.
const MAX_QUESTIONS: usize = 32;
/// Maximum number of bytes of all questions of one call: they are in memory until they are answered.
const MAX_BYTES: u64 = 4 << 20;

/// The questions of one running call.
pub(in crate::execute_tool) struct QuestionRelay<'a> {
    call: &'a ToolCall,
    grant: &'a CallPermissions,
    record: &'a CallRecord,
    ports: &'a ExecuteToolPorts,
    /// `true` if the server's name is not prepended to the messages.
    in_own_words: bool,
    budget: Mutex<QuestionBudget>,
    /// Created with the first question.
    rows: OnceLock<Arc<QuestionAuditWriter>>,
}

/// Remaining budget of the call for questions.
#[derive(Debug)]
struct QuestionBudget {
    questions: usize,
    bytes: u64,
}

impl<'a> QuestionRelay<'a> {
    /// Creates the relay for the questions of a running call, with its whole budget.
    pub(in crate::execute_tool) fn new(
        call: &'a ToolCall,
        grant: &'a CallPermissions,
        record: &'a CallRecord,
        ports: &'a ExecuteToolPorts,
        in_own_words: bool,
    ) -> Self {
        let left = Mutex::new(QuestionBudget { questions: MAX_QUESTIONS, bytes: MAX_BYTES });
        Self { call, grant, record, ports, in_own_words, budget: left, rows: OnceLock::new() }
    }

    /// Returns the writer of the questions' audit records, and creates it first if necessary.
    pub(super) fn rows(&self) -> &Arc<QuestionAuditWriter> {
        self.rows.get_or_init(|| Arc::new(QuestionAuditWriter::new(self.ports)))
    }

    /// Returns the writer of the questions' audit records; `None` before the first question.
    pub(super) fn open_rows(&self) -> Option<&Arc<QuestionAuditWriter>> {
        self.rows.get()
    }

    /// Reserves the budget of one question.
    ///
    /// # Errors
    /// [`NotAnswered::Exhausted`]. Such a question is not recorded, because a tool could produce any number of them.
    pub(super) fn admit(&self, request: &InputRequest) -> Result<(), NotAnswered> {
        let bytes = each_piece(&request.params, |_| ());
        let mut left = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = left.questions.checked_sub(1).zip(left.bytes.checked_sub(bytes));
        let (questions, bytes) = rest.ok_or(NotAnswered::Exhausted)?;
        *left = QuestionBudget { questions, bytes };
        Ok(())
    }

    /// Adapts an admitted question for the client, sends it with `ask`, and records it and its end. An answer about
    /// roots contains only those in which tools may work.
    ///
    /// # Errors
    /// [`NotAnswered`].
    pub(super) async fn put<F>(
        &self,
        request: InputRequest,
        ask: impl FnOnce(InputRequest) -> F + Send,
    ) -> Result<InputResponse, NotAnswered>
    where
        F: Future<Output = Result<InputResponse, NotAnswered>> + Send,
    {
        let method = request.method.clone();
        let row = question_records::question_record(self.call, self.record, &request, self.ports.clock.as_ref());
        let row = QuestionAuditGuard::open(self.rows().clone(), row).await?;
        events::question_asked(&self.ports.events, self.call, &method);
        let said = match adapt_for_client(request, &self.call.tool, self.in_own_words) {
            Ok(request) => ask(request).await,
            Err(why) => Err(why),
        };
        let said = said.map(|answer| match method.as_str() {
            "roots/list" => client_adaptation::restrict_roots(self.grant.roots(), answer),
            _ => answer,
        });
        let closed = QuestionEnd::of(&method, &said);
        events::question_closed(&self.ports.events, self.call, &method, closed.word);
        let detail = self.record.detail_of(&closed.detail);
        row.close(closed, detail).await;
        said
    }
}
