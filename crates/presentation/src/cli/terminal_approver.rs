//! Asks the person at the terminal.

use crate::approval_question::{ApprovalQuestion, Row};
use async_trait::async_trait;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::getpgrp,
    termios::{
        LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
    },
};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Mutex, oneshot};
use toolstead_domain::ports::approver::{Approval, ApprovalRequest, ApprovalScope, Approver, Unattended};

/// Who answered, for the audit trail.
const PERSON: &str = "the person at the terminal";
/// The width that every terminal has.
const WIDTH: usize = 80;
/// Where a line goes on that does not fit.
const INDENT: usize = 6;
/// How often the one who reads looks whether somebody still waits for the answer.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long the bytes of one key may lie apart, also on a slow line. What comes within it after an escape belongs to it.
const ONE_KEY: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
const ESCAPE: u8 = 0x1b;
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;

/// Puts each question to a terminal and reads the answer from it, one key a part. One question at a time.
///
/// It is the controlling terminal and not standard input, which may be the arguments of the call.
#[derive(Debug)]
pub struct TerminalApprover {
    terminal: Arc<File>,
    patience: Duration,
    turn: Mutex<()>,
}

impl TerminalApprover {
    /// Asks on the controlling terminal of this process, if there is one.
    pub fn of_process(patience: Duration) -> Arc<dyn Approver> {
        match OpenOptions::new().read(true).write(true).open("/dev/tty") {
            Ok(terminal) => Arc::new(Self::new(terminal, patience)),
            Err(_) => Arc::new(Unattended),
        }
    }

    /// Asks on this terminal, and waits so long for an answer.
    pub fn new(terminal: File, patience: Duration) -> Self {
        Self { terminal: Arc::new(terminal), patience, turn: Mutex::default() }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: ApprovalRequest<'_>) -> Approval {
        let Some(question) = ApprovalQuestion::of(&request) else { return Approval::Unattended };
        let asked = async {
            let _turn = self.turn.lock().await;
            let keys = Keys::of(self.terminal.clone())?;
            let (sender, answer) = oneshot::channel();
            let (terminal, given_up) = (self.terminal.clone(), keys.given_up.clone());
            // A thread of its own: nobody waits for it at the end, and it looks by itself whether it is still wanted.
            std::thread::spawn(move || drop(sender.send(put(&terminal, &question, &given_up))));
            answer.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
        };
        match tokio::time::timeout(self.patience, asked).await {
            Ok(Ok(Some(scopes))) => Approval::Granted { by: PERSON.into(), scopes },
            Ok(Ok(None)) => Approval::Denied { by: PERSON.into() },
            Ok(Err(error)) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "the terminal cannot be asked");
                Approval::Unattended
            }
            Err(_) => Approval::TimedOut,
        }
    }
}

/// A terminal that gives key by key, without signals, for as long as this lives. Dropping it takes the question back.
struct Keys {
    terminal: Arc<File>,
    before: Termios,
    given_up: Arc<AtomicBool>,
}

impl Keys {
    fn of(terminal: Arc<File>) -> io::Result<Self> {
        // In the background the system would stop the process, and a person looks at something else.
        if tcgetpgrp(&terminal).is_ok_and(|in_front| in_front != getpgrp()) {
            return Err(io::Error::other("the terminal belongs to another program at the moment"));
        }
        let before = tcgetattr(&terminal)?;
        let mut keys = before.clone();
        // Ctrl-C is a key that says no, and not the end of the program.
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        let keys_of_terminal = Self { terminal, before, given_up: Arc::default() };
        tcsetattr(&keys_of_terminal.terminal, OptionalActions::Now, &keys)?;
        // What was typed before the question was seen is no answer to it.
        tcflush(&keys_of_terminal.terminal, QueueSelector::IFlush)?;
        Ok(keys_of_terminal)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::SeqCst);
        // A terminal that is gone needs nothing any more.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Asks about each part; `None` for a no.
fn put(terminal: &File, question: &ApprovalQuestion, given_up: &AtomicBool) -> io::Result<Option<Vec<ApprovalScope>>> {
    let mut output = terminal;
    output.write_all(shown(question).as_bytes())?;
    // What was typed before the question stood there is no answer to it.
    tcflush(terminal, QueueSelector::IFlush)?;
    let mut scopes = Vec::new();
    for (index, row) in question.rows.iter().enumerate() {
        let choices: Vec<String> = std::iter::once("[d]eny".to_owned())
            .chain(row.scopes.iter().map(|scope| format!("[{}]{}", &scope.as_str()[..1], &scope.as_str()[1..])))
            .collect();
        write!(output, "{}. {}? ", index + 1, choices.join(" "))?;
        output.flush()?;
        let scope = loop {
            match key(terminal, given_up)?.and_then(|key| chosen(key, &row.scopes)) {
                Some(chosen) => break chosen,
                None => output.write_all(b"\x07")?,
            }
        };
        writeln!(output, "{}", scope.map_or("deny", ApprovalScope::as_str))?;
        match scope {
            Some(scope) => scopes.push(scope),
            None => return Ok(None),
        }
    }
    Ok(Some(scopes))
}

/// What a key says; `None` for one that says nothing here. Enter says no.
fn chosen(key: u8, scopes: &[ApprovalScope]) -> Option<Option<ApprovalScope>> {
    match key.to_ascii_lowercase() {
        b'd' | b'n' | b'\r' | b'\n' | CTRL_C | CTRL_D => Some(None),
        b'y' => Some(Some(ApprovalScope::Once)),
        key => scopes.iter().copied().find(|scope| scope.as_str().as_bytes().first() == Some(&key)).map(Some),
    }
}

/// The next key that is a character; `None` for any other, which is read to its end, so that no part of it counts.
/// An end of input is an error: nobody is there.
fn key(terminal: &File, given_up: &AtomicBool) -> io::Result<Option<u8>> {
    loop {
        if given_up.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let Some(first) = byte_within(terminal, &GLANCE)? else { continue };
        match first {
            ESCAPE => rest_of_sequence(terminal)?,
            // The first byte of a character outside of ASCII says how many follow.
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

/// Reads what follows an escape: the sequence of a function key (ECMA-48, 5.4; xterm, "PC-Style Function Keys"), a text
/// that was pasted, or the key that was pressed together with Alt.
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
                    // The console of Linux has a second bracket before the letter of a function key.
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

/// Reads a pasted text to its end, or until nothing more comes.
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

/// The next byte, if one comes in time.
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

/// The question in lines of at most [`WIDTH`] characters. Only our own lines begin at the left edge.
fn shown(question: &ApprovalQuestion) -> String {
    let mut text = String::from("\n");
    wrapped(&mut text, "", &question.heading);
    for (index, Row { what, why, covers, .. }) in question.rows.iter().enumerate() {
        wrapped(&mut text, &format!("{}. ", index + 1), what);
        wrapped(&mut text, "   Why: ", why);
        if let Some(covers) = covers {
            wrapped(&mut text, "   For longer than once: ", covers);
        }
    }
    for fact in question.facts.iter().chain(&question.change) {
        wrapped(&mut text, "", fact);
    }
    text
}

/// The line behind its label; what does not fit goes on further to the right. A line ends at a blank, or within a word
/// that is longer than a line, with a backslash behind it.
fn wrapped(text: &mut String, label: &str, line: &str) {
    let mut column = label.chars().count();
    text.push_str(label);
    for word in line.split_inclusive(' ') {
        let (letters, is_followed) = (word.trim_end_matches(' '), word.ends_with(' '));
        if column > INDENT && column + columns(letters) > WIDTH && columns(letters) <= WIDTH - INDENT {
            column = next_line(text);
        }
        let mut left = columns(letters);
        for c in letters.chars() {
            // The last column is for the backslash.
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

fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// A wide character takes two columns; one that only may be wide leaves a column free.
fn width(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

#[cfg(test)]
mod tests;
