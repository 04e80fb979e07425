//! What a tool asks the client that called it: bounded, naming its server to the person, and on record.

mod fitting;
mod rows;

use crate::execute_tool::{
    ExecuteToolPorts, events,
    record::{Record, each_piece},
};
pub(crate) use fitting::fitted;
pub(super) use rows::Rows;
use rows::{Closed, OpenRow};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use toolstead_domain::{
    permission::grant::Grant,
    ports::caller::{InputRequest, InputResponse, NotAnswered},
    tool_call::ToolCall,
};

/// Questions that one call may ask. A tool that asks more wears a person out.
const MAX_QUESTIONS: usize = 32;
/// Bytes of all questions of one call together: they wait in memory for their answers.
const MAX_BYTES: u64 = 4 << 20;

/// The questions of one running call.
pub(in crate::execute_tool) struct Questions<'a> {
    call: &'a ToolCall,
    grant: &'a Grant,
    record: &'a Record,
    ports: &'a ExecuteToolPorts,
    /// Whether they go out without the name of their server before them.
    in_own_words: bool,
    left: Mutex<Left>,
    /// Made with the first question.
    rows: OnceLock<Arc<Rows>>,
}

/// What the call may still ask.
#[derive(Debug)]
struct Left {
    questions: usize,
    bytes: u64,
}

impl<'a> Questions<'a> {
    /// For a call that runs, with its row.
    pub(in crate::execute_tool) fn new(
        call: &'a ToolCall,
        grant: &'a Grant,
        record: &'a Record,
        ports: &'a ExecuteToolPorts,
        in_own_words: bool,
    ) -> Self {
        let left = Mutex::new(Left { questions: MAX_QUESTIONS, bytes: MAX_BYTES });
        Self { call, grant, record, ports, in_own_words, left, rows: OnceLock::new() }
    }

    /// The rows of the questions.
    pub(super) fn rows(&self) -> &Arc<Rows> {
        self.rows.get_or_init(|| Arc::new(Rows::new(self.ports)))
    }

    /// Returns the rows of the questions; `None` before the first question.
    pub(super) fn open_rows(&self) -> Option<&Arc<Rows>> {
        self.rows.get()
    }

    /// Takes the room of one question.
    ///
    /// # Errors
    /// [`NotAnswered::Exhausted`]. No row tells of such a question: a tool could make as many as it likes.
    pub(super) fn admit(&self, request: &InputRequest) -> Result<(), NotAnswered> {
        let bytes = each_piece(&request.params, |_| ());
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = left.questions.checked_sub(1).zip(left.bytes.checked_sub(bytes));
        let (questions, bytes) = rest.ok_or(NotAnswered::Exhausted)?;
        *left = Left { questions, bytes };
        Ok(())
    }

    /// Puts a question that was admitted by `ask`, and keeps a row of it.
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
        let row = rows::begun(self.call, self.record, &request, self.ports.clock.as_ref());
        let row = OpenRow::open(self.rows().clone(), row).await?;
        events::question_asked(&self.ports.events, self.call, &method);
        let said = match fitted(request, &self.call.tool, self.in_own_words) {
            Ok(request) => ask(request).await,
            Err(why) => Err(why),
        };
        let said = said.map(|answer| match method.as_str() {
            "roots/list" => fitting::within(self.grant.roots(), answer),
            _ => answer,
        });
        let closed = Closed::of(&method, &said);
        events::question_closed(&self.ports.events, self.call, &method, closed.word);
        let told = self.record.detail_of(&closed.detail);
        row.close(closed, told).await;
        said
    }
}
