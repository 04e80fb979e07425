//! A question at the terminal that one key answers.

use super::terminal::{InputMode, Terminal, forget_typed, key};
use std::{fs::File, io::Write, sync::atomic::AtomicBool, time::Duration};

/// Maximum time to wait for the key.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns `true` if the user presses `y` at the terminal. Any other key, no key in time and a missing terminal are
/// `false`.
pub(super) async fn is_confirmed(question: &'static str) -> bool {
    let Some(terminal) = Terminal::of_process() else { return false };
    let put = move |mut terminal: &File, given_up: &AtomicBool| {
        // Before the question: a key that is pressed once it is shown answers it.
        forget_typed(terminal)?;
        terminal.write_all(question.as_bytes())?;
        let is_confirmed = matches!(key(terminal, given_up)?, Some(b'y' | b'Y'));
        writeln!(terminal, "{}", if is_confirmed { "yes" } else { "no" })?;
        Ok(is_confirmed)
    };
    terminal.ask(InputMode::Keys, TIMEOUT, put).await.unwrap_or(false)
}
