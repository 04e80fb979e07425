//! Display of the runs of an agent, with the line in which the user types while the model works.

use super::{
    columns::{beginning, columns, end, folded},
    global::GlobalFlags,
    keyboard::Keyboard,
    narration::{NarrationPiece, RunRenderer, ending},
    output::{StdoutWriter, note, passing, visible},
    terminal::Terminal,
    typed_ahead::TypeAheadBuffer,
};
use crate::telemetry::Verbosity;
use std::{
    io::{self, IsTerminal},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::MutexGuard, time::timeout};
use toolstead_domain::AgentEvent;

/// Mark of the input line.
const PROMPT: &str = "> ";
/// Maximum number of rows of the line that the model is writing.
const OPEN_ROWS: usize = 8;
/// Maximum number of rows of queued texts.
const QUEUED_ROWS: usize = 4;
/// Minimum number of bytes shown of the line that the model is writing; a shorter line is shown whole.
const OPEN_BYTES: usize = 4 << 10;
/// Maximum time to wait at the end of a turn until an open question is closed.
const TIME_TO_CLOSE: Duration = Duration::from_secs(1);

/// Display of agent runs, as text or as JSON lines.
pub(super) struct RunDisplay<'a> {
    output: &'a mut StdoutWriter,
    narration: RunRenderer,
    as_json: bool,
    is_quiet: bool,
    /// `true` if a line is shown that the next one replaces.
    is_passing: bool,
    /// Input line and other rows at the bottom; `None` if the user does not type while a turn runs.
    input: Option<ScreenFooter>,
}

/// The rows below all other output: the line that the model is writing, the state of the run, the queued texts, and the
/// line in which the user types.
struct ScreenFooter {
    terminal: Arc<Terminal>,
    typed: TypeAheadBuffer,
    /// Text of the model after its last line break.
    open_line: String,
    state: String,
    /// `None` between turns, and if the keyboard cannot be read.
    keyboard: Option<Keyboard>,
}

impl<'a> RunDisplay<'a> {
    /// Creates a display with answers on standard output and everything else on standard error.
    pub(super) fn new(output: &'a mut StdoutWriter, global: &GlobalFlags) -> Self {
        let is_verbose = matches!(global.verbosity(), Verbosity::Verbose | Verbosity::Debug);
        Self {
            output,
            narration: RunRenderer::new(io::stdout().is_terminal(), is_verbose),
            as_json: global.json,
            is_quiet: global.is_quiet(),
            is_passing: false,
            input: None,
        }
    }

    /// Lets the user type on this terminal while a turn runs.
    pub(super) fn with_input(self, terminal: Arc<Terminal>) -> Self {
        let input = ScreenFooter {
            terminal,
            typed: TypeAheadBuffer::default(),
            open_line: String::new(),
            state: String::new(),
            keyboard: None,
        };
        Self { input: Some(input), ..self }
    }

    /// Shows an event. The caller must hold the turn on the terminal.
    ///
    /// # Errors
    /// An error if writing fails, also because the reader has closed its end.
    pub(super) fn show_event(&mut self, event: &AgentEvent) -> io::Result<()> {
        if self.as_json {
            return self.output.json_line(&event.to_json());
        }
        for piece in self.narration.narrate(event) {
            self.show(piece)?;
        }
        if self.is_quiet
            && let AgentEvent::Ended { outcome, .. } = event
            && let Some(line) = ending(outcome)
        {
            self.clear();
            note(&line);
        }
        self.show_input();
        Ok(())
    }

    /// Updates the time that running calls have taken, and sets the modes of the keyboard again if they were changed.
    /// The caller must hold the turn on the terminal.
    ///
    /// # Errors
    /// The errors of [`show_event`](Self::show_event).
    pub(super) fn tick(&mut self) -> io::Result<()> {
        if !self.as_json
            && let Some(piece) = self.narration.running_status()
        {
            self.show(piece)?;
        }
        if let Some(keyboard) = self.live_input().and_then(|input| input.keyboard.as_ref()) {
            keyboard.renew();
        }
        self.show_input();
        Ok(())
    }

    fn show(&mut self, piece: NarrationPiece) -> io::Result<()> {
        let is_quiet = self.is_quiet;
        match (piece, self.live_input()) {
            (NarrationPiece::Text(text), Some(input)) => {
                input.state.clear();
                // The open line has no line break yet. It may be long and arrive in small pieces.
                let end = text.rfind('\n').map(|end| input.open_line.len() + end);
                input.open_line.push_str(&text);
                if let Some(end) = end {
                    let lines: String = input.open_line.drain(..=end).collect();
                    self.clear();
                    self.output.text(&lines)?;
                }
            }
            (NarrationPiece::Text(text), None) => {
                self.clear();
                self.output.text(&text)?;
            }
            (NarrationPiece::Note(line), input) if !is_quiet => {
                if let Some(input) = input {
                    input.state.clear();
                }
                self.clear();
                note(&line);
            }
            (NarrationPiece::Status(now), Some(input)) if !is_quiet => input.state = now,
            (NarrationPiece::Status(now), None) if !is_quiet => {
                passing(&now);
                self.is_passing = !now.is_empty();
            }
            (NarrationPiece::Note(_) | NarrationPiece::Status(_), _) => {}
        }
        Ok(())
    }

    /// Shows a line of Toolstead on standard error, unless only errors or JSON are printed.
    pub(super) fn note(&mut self, line: &str) {
        if !self.is_quiet && !self.as_json {
            self.clear();
            note(line);
        }
    }

    fn clear(&mut self) {
        if let Some(input) = self.live_input() {
            input.terminal.clear_below();
        }
        if std::mem::take(&mut self.is_passing) {
            passing("");
        }
    }

    fn live_input(&mut self) -> Option<&mut ScreenFooter> {
        self.input.as_mut().filter(|input| input.keyboard.is_some())
    }

    fn show_input(&mut self) {
        if let Some(input) = self.live_input() {
            input.terminal.show_below(&input.rows(input.terminal.width()));
        }
    }

    /// Takes the keyboard for a turn. If that fails, the user can only type after the turn.
    pub(super) async fn begin_input(&mut self) {
        let Some(input) = &mut self.input else { return };
        let turn = input.terminal.quiet().await;
        match Keyboard::of_process() {
            Ok(keyboard) => input.keyboard = Some(keyboard),
            Err(error) => tracing::debug!(%error, "typing while the model works is unavailable"),
        }
        drop(turn);
    }

    /// Releases the keyboard and completes the open line of the model's text. Unsent text is retained for the next
    /// line.
    pub(super) async fn end_input(&mut self) {
        let Some(terminal) = self.live_input().map(|input| input.terminal.clone()) else { return };
        // A question restores the modes of the keyboard, so it must be closed before the keyboard restores the original
        // modes.
        let turn = timeout(TIME_TO_CLOSE, terminal.quiet()).await;
        self.clear();
        if let Some(input) = &mut self.input {
            input.keyboard = None;
            input.state.clear();
            let open_line = std::mem::take(&mut input.open_line);
            if !open_line.is_empty() {
                // A terminal that no longer exists shows nothing.
                let _ = self.output.text(&format!("{open_line}\n"));
            }
        }
        drop(turn);
    }

    /// Returns the keys that the user presses while a turn runs, as [`Keyboard::read`] does. Waits forever without a
    /// keyboard.
    pub(super) async fn keys<'t>(&mut self, turn: Option<&'t Terminal>) -> (Vec<u8>, Option<MutexGuard<'t, ()>>) {
        if let Some(input) = self.live_input()
            && let Some(keyboard) = &mut input.keyboard
        {
            match keyboard.read(turn).await {
                Ok(read) => return read,
                Err(error) => {
                    tracing::debug!(%error, "the keyboard can no longer be read");
                    input.keyboard = None;
                }
            }
        }
        std::future::pending().await
    }

    /// Adds keys to the input line. Returns `true` if they interrupt the turn. The caller must hold the turn on the
    /// terminal.
    pub(super) fn typed(&mut self, keys: &[u8]) -> bool {
        let is_interrupt = self.live_input().is_some_and(|input| input.typed.take(keys));
        self.show_input();
        is_interrupt
    }

    /// Returns `true` if the input line contains unsent text.
    pub(super) fn has_draft(&self) -> bool {
        self.input.as_ref().is_some_and(|input| !input.typed.draft().is_empty())
    }

    /// Removes and returns the oldest queued text.
    pub(super) fn next_queued(&mut self) -> Option<String> {
        self.input.as_mut()?.typed.next()
    }

    /// Removes and returns the unsent text.
    pub(super) fn take_draft(&mut self) -> String {
        self.input.as_mut().map(|input| input.typed.take_draft()).unwrap_or_default()
    }
}

impl ScreenFooter {
    fn rows(&self, width: usize) -> Vec<String> {
        // The last column is left free, because a full row would start another one.
        let width = width.saturating_sub(1);
        let mut rows = folded(&visible(end_of_open_line(&self.open_line)).replace('\t', " "), width, OPEN_ROWS);
        if !self.state.is_empty() {
            rows.push(beginning(&one_row(&self.state), width));
        }
        let queued = self.typed.queued();
        let more = queued.len().saturating_sub(QUEUED_ROWS);
        rows.extend(queued.take(QUEUED_ROWS).map(|text| beginning(&format!("queued: {}", one_row(text)), width)));
        if more > 0 {
            rows.push(format!("queued: {more} more"));
        }
        let draft = one_row(self.typed.draft());
        rows.push(format!("{PROMPT}{}", end(&draft, width - columns(PROMPT))));
        rows
    }
}

/// Returns the end of a long line. It starts at a multiple of [`OPEN_BYTES`], so that the row breaks seldom change as
/// the line grows.
fn end_of_open_line(line: &str) -> &str {
    let start = (line.len() / OPEN_BYTES).saturating_sub(1) * OPEN_BYTES;
    &line[line.floor_char_boundary(start)..]
}

/// Returns the text on one row, with visible control characters and line breaks.
fn one_row(text: &str) -> String {
    visible(text).replace('\n', "↵").replace('\t', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn rows(typed: &str, open_line: &str, state: &str) -> Vec<String> {
        let terminal = Arc::new(Terminal::new(File::open("/dev/null").unwrap()));
        let mut typed_ahead = TypeAheadBuffer::default();
        for line in typed.split_inclusive('\r') {
            typed_ahead.take(line.as_bytes());
        }
        ScreenFooter { terminal, typed: typed_ahead, open_line: open_line.into(), state: state.into(), keyboard: None }
            .rows(21)
    }

    #[test]
    fn each_screen_row_fits_the_width_and_has_no_control_characters() {
        for (typed, open_line, state, expected) in [
            ("", "", "", &["> "][..]),
            ("hello", "The answer", "thinking", &["The answer", "thinking", "> hello"]),
            ("one\rtwo\\\r2\rthree", "", "", &["queued: one", "queued: two↵2", "> three"]),
            (
                "1\r2\r3\r4\r5\r6\r",
                "",
                "",
                &["queued: 1", "queued: 2", "queued: 3", "queued: 4", "queued: 2 more", "> "],
            ),
            ("", "abcdefghijklmnopqrstuvwxyz", "", &["abcdefghijklmnopqrst", "uvwxyz", "> "]),
            (
                "abcdefghijklmnopqrstuvwxyz",
                "",
                "abcdefghijklmnopqrstuvwxyz",
                &["abcdefghijklmnopqr…", "> …klmnopqrstuvwxyz"],
            ),
            ("ä", "ää\u{1b}[2J", "\u{202e}", &["ää\\u{1b}[2J", "\\u{202e}", "> ä"]),
        ] {
            let rows = rows(typed, open_line, state);
            assert_eq!(rows, expected);
            assert!(rows.iter().all(|row| columns(row) <= 20), "{rows:?}");
        }
        for length in [0, 1, OPEN_BYTES, 2 * OPEN_BYTES - 1, 2 * OPEN_BYTES, 1_000_001] {
            let line = "x".to_owned() + &"ä".repeat(length / 2);
            let end = end_of_open_line(&line);
            assert!(line.ends_with(end) && end.len() >= line.len().min(OPEN_BYTES), "{length}");
            assert!(end.len() <= 2 * OPEN_BYTES + 3, "{length}");
        }
        let endless = rows("", &"x".repeat(1_000), "");
        assert_eq!(endless.len(), OPEN_ROWS + 1);
    }
}
