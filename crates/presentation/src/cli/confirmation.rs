//! A question at the terminal that one key answers.

use super::terminal::{InputMode, Terminal, forget_typed, key};
use std::{fs::File, io::Write, sync::atomic::AtomicBool, time::Duration};

/// Maximum time to wait for the key that answers the question.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Asks the question at the terminal and returns `true` if the user presses `y` or `Y`. Returns `false` for any other
/// key, if no key is pressed within [`TIMEOUT`], and if there is no terminal.
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
