//! Messages of tools for the user who watches. They are not printed while a question is open: enough of them would push
//! the question out of sight, and the last one could be mistaken for the question.

use super::{
    output::{note, passing},
    terminal::Terminal,
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Maximum number of messages that wait for the end of a question. Beyond that, the oldest are dropped.
const WAITING: usize = 50;

/// Printer of messages for the user. It holds them back while a question is open at the terminal.
#[derive(Clone)]
pub(super) struct ToolMessagePrinter {
    /// `None` if there is no terminal at which questions are asked.
    terminal: Option<Arc<Terminal>>,
    waiting: Arc<Mutex<VecDeque<String>>>,
    print_line: fn(&str),
}

impl ToolMessagePrinter {
    /// Creates a printer to standard error. It waits while a question is open on this terminal.
    pub(super) fn for_terminal(terminal: Option<Arc<Terminal>>) -> Self {
        fn print_line(line: &str) {
            passing("");
            note(line);
        }
        Self { terminal, waiting: Arc::default(), print_line }
    }

    /// Prints a message now, or once the open question has been answered. Must be called within a tokio runtime.
    pub(super) fn print(&self, line: String) {
        let Some(terminal) = self.terminal.clone() else { return (self.print_line)(&line) };
        let is_first = {
            let mut waiting = self.waiting();
            waiting.push_back(line);
            if waiting.len() > WAITING {
                waiting.pop_front();
            }
            waiting.len() == 1
        };
        if let Some(_turn) = terminal.quiet_now() {
            self.print_waiting();
        } else if is_first {
            let asides = self.clone();
            tokio::spawn(async move {
                let _turn = terminal.quiet().await;
                asides.print_waiting();
            });
        }
    }

    /// Shows a line that the next one replaces, unless a question is open.
    pub(super) fn show_progress(&self, line: &str) {
        match &self.terminal {
            Some(terminal) => {
                if let Some(_turn) = terminal.quiet_now() {
                    passing(line);
                }
            }
            None => passing(line),
        }
    }

    fn print_waiting(&self) {
        for line in std::mem::take(&mut *self.waiting()) {
            if let Some(terminal) = &self.terminal {
                terminal.clear_below();
            }
            (self.print_line)(&line);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use tokio::task::yield_now;

    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

    #[tokio::test]
    async fn tool_messages_are_printed_only_after_an_open_question_is_answered() {
        let text_of = || std::mem::take(&mut *TOLD.lock().unwrap());
        let terminal = Arc::new(Terminal::new(File::open("/dev/null").unwrap()));
        let asides = ToolMessagePrinter {
            print_line: |line| TOLD.lock().unwrap().push(line.into()),
            ..ToolMessagePrinter::for_terminal(Some(terminal.clone()))
        };
        asides.print("before".into());
        assert_eq!(text_of(), ["before"]);
        let question = terminal.quiet().await;
        for number in 0..WAITING + 2 {
            asides.print(number.to_string());
            yield_now().await;
        }
        assert_eq!(text_of(), [""; 0]);
        drop(question);
        while !asides.waiting().is_empty() {
            yield_now().await;
        }
        asides.print("after".into());
        let text_of = text_of();
        assert_eq!((text_of.len(), text_of[0].as_str(), text_of[WAITING].as_str()), (WAITING + 1, "2", "after"));
    }
}
