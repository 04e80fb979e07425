//! The terminal of the user: one question at a time, input of keys and lines, and text that fits its width.

pub(super) use super::columns::columns;
use super::{columns::usable, output::visible};
use crate::text_rows::{rows, width};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Signal, getpgrp, getpid, kill_process},
    termios::{
        LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp,
        tcgetwinsize, tcsetattr,
    },
};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Mutex, MutexGuard, oneshot};

/// Width that every terminal is assumed to have.
pub(super) const WIDTH: usize = 80;
/// Minimum width for which lines are broken.
const MIN_COLUMNS: usize = 10;
/// Indentation of the continuation of a broken line, in columns.
const INDENT: usize = 6;
/// Interval at which a waiting reader checks whether its question was cancelled.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Maximum time between the bytes of one key, for slow connections. Bytes within this time after an escape belong to
/// it.
const ONE_KEY: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
const ESCAPE: u8 = 0x1b;
/// Byte that Ctrl-C sends.
pub(super) const CTRL_C: u8 = 3;
/// Byte that Ctrl-D sends.
pub(super) const CTRL_D: u8 = 4;

/// The controlling terminal. Standard input is not used, because it may contain the arguments of a call.
#[derive(Debug)]
pub struct Terminal {
    file: Arc<File>,
    turn: Mutex<()>,
    /// `true` if this is the controlling terminal of the process, whose Ctrl-C interrupts the process.
    is_controlling: bool,
    /// Number of rows below all other output, which the next text replaces.
    rows_below: AtomicUsize,
}

/// Mode of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputMode {
    /// Single keys, which are not echoed.
    Keys,
    /// Lines, which can be edited before they are sent.
    Lines,
}

/// Reason why a question has no answer.
#[derive(Debug)]
pub(super) enum TerminalQuestionError {
    /// The terminal cannot be used.
    Unavailable,
    /// The timeout expired.
    Late,
}

impl Terminal {
    /// Opens the controlling terminal of this process, if there is one.
    pub fn of_process() -> Option<Arc<Self>> {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        Some(Arc::new(Self { is_controlling: true, ..Self::new(terminal) }))
    }

    /// Creates a terminal from an open file.
    pub fn new(file: File) -> Self {
        Self { file: Arc::new(file), turn: Mutex::default(), is_controlling: false, rows_below: AtomicUsize::new(0) }
    }

    /// Interrupts this process, as Ctrl-C does while no question is open. Returns `false` without effect if this is not
    /// the controlling terminal of the process.
    pub(super) fn interrupt(&self) -> bool {
        self.is_controlling && kill_process(getpid(), Signal::INT).is_ok()
    }

    /// Shows rows below all other output, replacing previous ones. Each must fit the width. The caller must hold the
    /// guard of [`quiet`](Self::quiet).
    pub(super) fn show_below(&self, rows: &[String]) {
        let text = self.cleared_below() + &rows.join("\r\n");
        self.rows_below.store(rows.len(), Ordering::SeqCst);
        // A terminal that no longer exists shows nothing.
        let _ = (&*self.file).write_all(text.as_bytes());
    }

    /// Removes the rows of [`show_below`](Self::show_below), so that text can be written. The caller must hold the
    /// guard of [`quiet`](Self::quiet).
    pub(super) fn clear_below(&self) {
        let text = self.cleared_below();
        let _ = (&*self.file).write_all(text.as_bytes());
    }

    fn cleared_below(&self) -> String {
        match self.rows_below.swap(0, Ordering::SeqCst) {
            0 => String::new(),
            1 => "\r\x1b[J".to_owned(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
        }
    }

    /// Returns the number of columns to write in; [`WIDTH`] if it is unknown.
    pub(super) fn width(&self) -> usize {
        tcgetwinsize(&*self.file).map_or(WIDTH, |size| usable(size.ws_col))
    }

    /// Waits until no question is open. None can open until the returned guard is dropped.
    pub(super) async fn quiet(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Returns the guard of [`quiet`](Self::quiet) without waiting; `None` if a question is open.
    pub(super) fn quiet_now(&self) -> Option<MutexGuard<'_, ()>> {
        self.turn.try_lock().ok()
    }

    /// Asks once no other question is open, and waits at most `patience` for the answer. `put` runs on a separate
    /// thread: it shows the question and reads the answer, and must end once its flag is set. Dropping the future
    /// cancels the question.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        input: InputMode,
        patience: Duration,
        put: impl FnOnce(&File, &AtomicBool) -> io::Result<T> + Send + 'static,
    ) -> Result<T, TerminalQuestionError> {
        let asked = async {
            let turn = self.quiet().await;
            self.ask_in(&turn, input, put).await
        };
        tokio::time::timeout(patience, asked).await.unwrap_or(Err(TerminalQuestionError::Late))
    }

    /// Asks like [`ask`](Self::ask), but within a turn on the terminal, so that no other question can open between two
    /// that belong together. The caller limits the time. Dropping the future cancels the question.
    pub(super) async fn ask_in<T: Send + 'static>(
        &self,
        _turn: &MutexGuard<'_, ()>,
        input: InputMode,
        put: impl FnOnce(&File, &AtomicBool) -> io::Result<T> + Send + 'static,
    ) -> Result<T, TerminalQuestionError> {
        let answer = async {
            self.clear_below();
            let guard = InputModeGuard::of(self.file.clone(), input)?;
            let (sender, answer) = oneshot::channel();
            let (terminal, given_up) = (self.file.clone(), guard.given_up.clone());
            // A separate thread that is not joined at the end of the process. It ends once the question is cancelled.
            std::thread::spawn(move || drop(sender.send(put(&terminal, &given_up))));
            answer.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
        };
        answer.await.map_err(|error| {
            tracing::debug!(error = &error as &dyn std::error::Error, "the terminal cannot be asked");
            TerminalQuestionError::Unavailable
        })
    }
}

/// A terminal that delivers typed bytes without signals. Dropping it restores the modes and cancels the question.
struct InputModeGuard {
    terminal: Arc<File>,
    before: Termios,
    given_up: Arc<AtomicBool>,
}

impl InputModeGuard {
    fn of(terminal: Arc<File>, input: InputMode) -> io::Result<Self> {
        // The system would stop a background process that changes the terminal, and the user is looking at another
        // program.
        if tcgetpgrp(&terminal).is_ok_and(|in_front| in_front != getpgrp()) {
            return Err(io::Error::other("the terminal belongs to another program at the moment"));
        }
        let before = tcgetattr(&terminal)?;
        let mut keys = before.clone();
        // Ctrl-C declines the question and does not end the process.
        keys.local_modes.remove(LocalModes::ISIG);
        match input {
            InputMode::Keys => {
                keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
                keys.special_codes[SpecialCodeIndex::VMIN] = 1;
                keys.special_codes[SpecialCodeIndex::VTIME] = 0;
            }
            InputMode::Lines => {
                // While a turn runs, the input line has disabled these modes.
                keys.local_modes.insert(LocalModes::ICANON | LocalModes::ECHO);
                // Ctrl-C ends a line, so that it is read immediately.
                keys.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
            }
        }
        let keys_of_terminal = Self { terminal, before, given_up: Arc::default() };
        tcsetattr(&keys_of_terminal.terminal, OptionalActions::Now, &keys)?;
        // Input from before the question was shown is not an answer.
        tcflush(&keys_of_terminal.terminal, QueueSelector::IFlush)?;
        Ok(keys_of_terminal)
    }
}

impl Drop for InputModeGuard {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::SeqCst);
        // If the terminal no longer exists, nothing has to be restored.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Reads the next key. Returns `None` for a key that is not an ASCII character; all of its bytes are consumed. The end
/// of the input is an error; so is `given_up`, as [`io::ErrorKind::Interrupted`].
pub(super) fn key(terminal: &File, given_up: &AtomicBool) -> io::Result<Option<u8>> {
    loop {
        if given_up.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let Some(first) = byte_within(terminal, &GLANCE)? else { continue };
        match first {
            ESCAPE => rest_of_sequence(terminal)?,
            // The first byte of a character outside of ASCII determines the number of bytes that follow.
            0xc0.. => {
                for _ in 1..first.leading_ones() {
                    byte_within(terminal, &ONE_KEY)?;
                }
            }
            0x80..0xc0 => {}
            first => return Ok(Some(first)),
        }
        return Ok(None);
    }
}

/// Reads and discards the bytes after an escape: the sequence of a function key (ECMA-48, 5.4; xterm, "PC-Style
/// Function Keys"), pasted text, or the key that was pressed together with Alt.
fn rest_of_sequence(terminal: &File) -> io::Result<()> {
    let next = || byte_within(terminal, &ONE_KEY);
    let mut second = next()?;
    while second == Some(ESCAPE) {
        second = next()?;
    }
    match second {
        Some(b'[') => {
            let mut parameters = Vec::new();
            while let Some(byte) = next()? {
                match byte {
                    // The Linux console sends a second bracket before the letter of a function key.
                    b'[' if parameters.is_empty() => drop(next()?),
                    0x20..=0x3f => {
                        parameters.push(byte);
                        continue;
                    }
                    b'~' if parameters == b"200" => rest_of_paste(terminal)?,
                    _ => {}
                }
                break;
            }
        }
        Some(b'O') => drop(next()?),
        _ => {}
    }
    Ok(())
}

/// Reads and discards pasted text to its end, or until no byte arrives within [`ONE_KEY`].
fn rest_of_paste(terminal: &File) -> io::Result<()> {
    const END: &[u8] = b"\x1b[201~";
    let mut last = Vec::new();
    while let Some(byte) = byte_within(terminal, &ONE_KEY)? {
        last.push(byte);
        if last.ends_with(END) {
            break;
        }
        let surplus = last.len().saturating_sub(END.len());
        last.drain(..surplus);
    }
    Ok(())
}

/// Returns the next byte; `None` if none arrives within `time` or a signal interrupts the wait.
fn byte_within(mut terminal: &File, time: &Timespec) -> io::Result<Option<u8>> {
    let mut ready = [PollFd::new(terminal, PollFlags::IN)];
    match poll(&mut ready, Some(time)) {
        Ok(0) | Err(Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut one = [0];
    match terminal.read(&mut one)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(Some(one[0])),
    }
}

/// A line that the user sent, or the key pressed instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedLine {
    Text(String),
    /// Ctrl-C was pressed.
    Interrupt,
    /// Ctrl-D was pressed on an empty line.
    End,
}

/// Reads the next line. Returns `None` if the user pressed Ctrl-C, or Ctrl-D on an empty line.
pub(super) fn line(terminal: &File, given_up: &AtomicBool) -> io::Result<Option<String>> {
    Ok(match typed_line(terminal, given_up)? {
        TypedLine::Text(text) => Some(text),
        TypedLine::Interrupt | TypedLine::End => None,
    })
}

/// Reads the next line.
pub(super) fn typed_line(terminal: &File, given_up: &AtomicBool) -> io::Result<TypedLine> {
    let mut line = Vec::new();
    loop {
        if given_up.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match byte_within(terminal, &GLANCE) {
            Ok(None) => {}
            Ok(Some(CTRL_C)) => return Ok(TypedLine::Interrupt),
            Ok(Some(b'\n')) => return Ok(TypedLine::Text(String::from_utf8_lossy(&line).into_owned())),
            Ok(Some(byte)) => line.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(match line.is_empty() {
                    true => TypedLine::End,
                    false => TypedLine::Text(String::from_utf8_lossy(&line).into_owned()),
                });
            }
            Err(error) => return Err(error),
        }
    }
}

/// Discards input that was typed but not read yet, because input from before a question is not its answer.
pub(super) fn forget_typed(terminal: &File) -> io::Result<()> {
    Ok(tcflush(terminal, QueueSelector::IFlush)?)
}

/// Breaks the lines of a question for a terminal that is narrower than [`WIDTH`]. The terminal itself would continue
/// them at the left edge, where only lines of Toolstead begin.
pub(super) fn fitted(terminal: &File, text: &str) -> String {
    let columns = tcgetwinsize(terminal).map_or(0, |size| usize::from(size.ws_col));
    match columns {
        0 | WIDTH.. => text.to_owned(),
        columns => {
            text.split('\n').flat_map(|line| rows(line, columns.max(MIN_COLUMNS))).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Writes a text of Toolstead. Control characters in it are escaped, so that no value can control the terminal.
pub(super) fn write_escaped(mut terminal: &File, text: &str) -> io::Result<()> {
    terminal.write_all(visible(text).as_bytes())?;
    terminal.flush()
}

/// Rings the bell for a key that has no meaning at this prompt.
pub(super) fn bell(mut terminal: &File) -> io::Result<()> {
    terminal.write_all(b"\x07")
}

/// Appends a line after its label and breaks it to the width. Continuation lines and lines after a line break are
/// indented. Lines are broken at blanks; a word longer than a line is broken with a backslash.
pub(super) fn wrapped(text: &mut String, label: &str, line: &str) {
    let mut column = label.chars().count();
    text.push_str(label);
    for word in line.split_inclusive(' ') {
        let (letters, is_followed) = (word.trim_end_matches(' '), word.ends_with(' '));
        if column > INDENT && column + columns(letters) > WIDTH && columns(letters) <= WIDTH - INDENT {
            column = next_line(text);
        }
        let mut left = columns(letters);
        for c in letters.chars() {
            if c == '\n' {
                column = next_line(text);
                left -= width(c);
                continue;
            }
            // The last column is reserved for the backslash.
            if column + width(c) >= WIDTH && column + left > WIDTH {
                text.push('\\');
                column = next_line(text);
            }
            text.push(c);
            column += width(c);
            left -= width(c);
        }
        if is_followed && column < WIDTH {
            text.push(' ');
            column += 1;
        }
    }
    text.push('\n');
}

fn next_line(text: &mut String) -> usize {
    text.push('\n');
    text.push_str(&" ".repeat(INDENT));
    INDENT
}
