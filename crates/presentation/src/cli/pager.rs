//! A long text at the terminal, page by page: by the user's own pager, or by the built-in one.

use super::terminal::{CTRL_C, CTRL_D, bell, forget_typed, key, write_escaped};
use crate::text_rows::rows;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
    termios::tcgetwinsize,
};
use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// A pager that ends earlier has shown nothing that a user could have read.
const SHORTEST_READING: Duration = Duration::from_secs(1);
/// Interval at which a running pager is checked for a cancelled question.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Time for a pager to restore the terminal after SIGTERM.
const GRACE: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// Columns and rows of a terminal that reports none.
const USUAL: (usize, usize) = (80, 24);
/// Minimum columns and rows.
const SMALLEST: (usize, usize) = (20, 4);

/// The pager that the user chose, or the built-in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pager {
    /// The program and its arguments; `None` for the built-in pager.
    command: Option<(String, Vec<String>)>,
}

/// Outcome of showing a text in the pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PagerOutcome {
    /// The user has opened the text: in a pager of the user's own that did not fail or end at once, or in the built-in
    /// pager up to the last line.
    Complete,
    Incomplete,
    /// The user pressed Ctrl-C.
    Interrupted,
}

impl Pager {
    /// Returns the pager that the variable `PAGER` of this process names.
    pub(super) fn of_process() -> Self {
        Self::parse(std::env::var("PAGER").ok().as_deref())
    }

    /// Parses a command line into words, with the quotes of a shell and nothing else of it: no variables, no pipes, no
    /// substitutions. The built-in pager is used where the text is empty or a quote is not closed.
    pub(super) fn parse(setting: Option<&str>) -> Self {
        let words = setting.and_then(shlex::split).unwrap_or_default();
        let mut words = words.into_iter();
        Self { command: words.next().filter(|program| !program.is_empty()).map(|program| (program, words.collect())) }
    }

    /// Shows lines that are escaped already. If the user's pager fails, a note is shown and the built-in pager follows.
    /// Once `given_up` is set, it ends with an error.
    pub(super) fn show(&self, terminal: &File, lines: &[String], given_up: &AtomicBool) -> io::Result<PagerOutcome> {
        let size = tcgetwinsize(terminal).map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        let (columns, height) = size.ok().filter(|size| *size != (0, 0)).unwrap_or(USUAL);
        let (columns, height) = (columns.max(SMALLEST.0), height.max(SMALLEST.1));
        // Broken here: a pager that cuts long lines would hide their ends. The last column makes some terminals wrap.
        let rows: Vec<String> = lines.iter().flat_map(|line| rows(line, columns - 1)).collect();
        if let Some((program, arguments)) = &self.command {
            match run(program, arguments, terminal, &rows, given_up) {
                Ok(()) => return Ok(PagerOutcome::Complete),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => {
                    let note = format!("\nThe pager `{program}` {error}. The built-in pager follows.\n");
                    write_escaped(terminal, &note)?;
                }
            }
        }
        read_pages(terminal, &rows, height - 1, given_up)
    }
}

/// Runs a pager with the rows as its input until it ends. Fails also if the pager reports a failure or ends at once.
fn run(program: &str, arguments: &[String], terminal: &File, rows: &[String], given_up: &AtomicBool) -> io::Result<()> {
    let mut command = Command::new(program);
    // Keeps `less` from running other programs and from writing files.
    command.args(arguments).env("LESSSECURE", "1");
    command.stdin(Stdio::piped()).stdout(terminal.try_clone()?).stderr(terminal.try_clone()?);
    let begin = Instant::now();
    let mut child = command.spawn().map_err(|error| io::Error::other(format!("cannot be started: {error}")))?;
    let text = rows.join("\n") + "\n";
    if let Some(mut input) = child.stdin.take() {
        // A pager that ends before it has read everything closes the pipe, and so ends this thread.
        std::thread::spawn(move || drop(input.write_all(text.as_bytes())));
    }
    let status = wait(&mut child, given_up)?;
    match was_opened(status, begin.elapsed()) {
        true => Ok(()),
        false if status.success() => Err(io::Error::other("ended at once")),
        false => Err(io::Error::other(format!("failed ({status})"))),
    }
}

fn was_opened(status: ExitStatus, time: Duration) -> bool {
    status.success() && time >= SHORTEST_READING
}

/// Waits for the end of a pager. Once `given_up` is set, it ends the pager and returns [`io::ErrorKind::Interrupted`].
fn wait(child: &mut Child, given_up: &AtomicBool) -> io::Result<ExitStatus> {
    let process = handle(child).inspect_err(|_| drop(child.kill()))?;
    loop {
        if ends_within(&process, &CHECK_INTERVAL)? {
            return child.wait();
        }
        if given_up.load(Ordering::SeqCst) {
            // The pager may have ended in the meantime.
            let _ = pidfd_send_signal(&process, Signal::TERM);
            if !ends_within(&process, &GRACE)? {
                child.kill()?;
            }
            child.wait()?;
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
}

fn handle(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("has no process id"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn ends_within(process: &OwnedFd, time: &Timespec) -> io::Result<bool> {
    match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(time)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Shows the rows in the built-in pager.
fn read_pages(terminal: &File, rows: &[String], height: usize, given_up: &AtomicBool) -> io::Result<PagerOutcome> {
    let last_page = rows.len().saturating_sub(height);
    let mut first = 0;
    let mut has_reached_end = false;
    loop {
        let end = (first + height).min(rows.len());
        has_reached_end |= end == rows.len();
        write_escaped(terminal, &format!("{}\n", rows[first..end].join("\n")))?;
        // Discards the keys that were typed before the page was shown. A key that follows the prompt turns the page.
        forget_typed(terminal)?;
        write_escaped(
            terminal,
            &format!("(rows {} to {end} of {}) [n]ext [b]ack [e]nd [q]uit? ", first + 1, rows.len()),
        )?;
        first = loop {
            match key(terminal, given_up)?.map(|key| key.to_ascii_lowercase()) {
                Some(b'n' | b' ' | b'\r' | b'\n') if end < rows.len() => break end.min(last_page),
                Some(b'b') => break first.saturating_sub(height),
                Some(b'e' | b'g') => break last_page,
                Some(CTRL_C) => {
                    write_escaped(terminal, "interrupted\n")?;
                    return Ok(PagerOutcome::Interrupted);
                }
                Some(b'q' | CTRL_D) => {
                    write_escaped(terminal, "quit\n")?;
                    return Ok(if has_reached_end { PagerOutcome::Complete } else { PagerOutcome::Incomplete });
                }
                _ => bell(terminal)?,
            }
        };
        write_escaped(terminal, "\n")?;
    }
}

#[cfg(test)]
mod tests;
