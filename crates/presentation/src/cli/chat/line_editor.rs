//! The line in which a person writes in a chat: editing, the arrow keys for what was typed before, several lines.

use super::wish::COMMANDS;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::{
    Behavior, Config, Context, Editor, Helper,
    completion::Completer,
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::{History, MemHistory},
    validate::Validator,
};
use std::{
    cell::Cell,
    fs::{File, OpenOptions},
    io::{self, Write},
};
use tokio::sync::oneshot;
use toolstead_domain::unseen::moves;

const PROMPT: &str = "> ";
const GOES_ON: &str = "… ";
/// A terminal marks pasted text until it hears this; the editor says so, too, save where it is left in the middle.
const NO_MARKED_PASTE: &[u8] = b"\x1b[?2004l";

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A text, of several lines perhaps.
    Text(String),
    /// The person leaves: Ctrl-D, or Ctrl-C where nothing was typed.
    Leaves,
}

/// Reads one text, which begins with `draft`. `known` are earlier inputs, oldest first; `commands` are those of command files.
/// Dropping the future leaves the terminal as it was.
pub(super) async fn read(known: &[String], commands: Vec<String>, draft: String) -> io::Result<Typed> {
    let _kept = KeptTerminal::of_process();
    let (sender, typed) = oneshot::channel();
    let known = known.to_vec();
    // A thread of its own: nobody waits for it at the end.
    std::thread::spawn(move || drop(sender.send(text(&known, commands, &draft))));
    typed.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
}

/// The modes of the terminal, which are put back at the end.
struct KeptTerminal(Option<(File, Termios)>);

impl KeptTerminal {
    fn of_process() -> Self {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok();
        Self(terminal.and_then(|terminal| tcgetattr(&terminal).ok().map(|modes| (terminal, modes))))
    }
}

impl Drop for KeptTerminal {
    fn drop(&mut self) {
        if let Some((terminal, modes)) = &mut self.0 {
            // A terminal that is gone needs nothing any more.
            let _ = tcsetattr(&*terminal, OptionalActions::Now, modes);
            let _ = terminal.write_all(NO_MARKED_PASTE);
        }
    }
}

fn text(known: &[String], commands: Vec<String>, draft: &str) -> io::Result<Typed> {
    let config = Config::builder().behavior(Behavior::PreferTerm).auto_add_history(false);
    let config = config.max_history_size(known.len().max(1)).map_err(io::Error::other)?.build();
    let mut history = MemHistory::with_config(&config);
    for text in known {
        history.add(text).map_err(io::Error::other)?;
    }
    // A new one each time: it takes the signals of the process while it lives.
    let mut editor = Editor::with_history(config, history).map_err(io::Error::other)?;
    editor.set_helper(Some(Typing { commands, ..Typing::default() }));
    let (mut text, mut draft) = (String::new(), draft);
    loop {
        let prompt = if text.is_empty() { PROMPT } else { GOES_ON };
        match editor.readline_with_initial(prompt, (std::mem::take(&mut draft), "")) {
            Ok(line) => match line.strip_suffix('\\') {
                Some(line) => {
                    text.push_str(line);
                    text.push('\n');
                }
                None => return Ok(Typed::Text(text + &line)),
            },
            Err(ReadlineError::Interrupted) => {
                let is_empty = editor.helper().is_none_or(|typing| typing.is_empty.get());
                if is_empty && text.is_empty() {
                    return Ok(Typed::Leaves);
                }
                text.clear();
            }
            Err(ReadlineError::Eof) => return Ok(Typed::Leaves),
            // The window has another size, or another program had the terminal: the line is written again.
            Err(ReadlineError::Signal(_)) => {}
            Err(ReadlineError::Io(error)) => return Err(error),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

/// Sees what is being typed, and knows the commands for the Tab key.
#[derive(Debug, Default)]
struct Typing {
    is_empty: Cell<bool>,
    /// Those that people wrote down, with their slashes.
    commands: Vec<String>,
}

impl Helper for Typing {}
impl Highlighter for Typing {}
impl Validator for Typing {}

impl Hinter for Typing {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.is_empty.set(line.is_empty());
        None
    }
}

impl Completer for Typing {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..position).unwrap_or_default();
        let names = COMMANDS.iter().map(|(name, ..)| *name).chain(self.commands.iter().map(String::as_str));
        let fitting = names.filter(|name| typed.starts_with('/') && name.starts_with(typed));
        // The editor shows names as they are, and those of files may hold anything.
        let fitting = fitting.filter(|name| !name.chars().any(moves));
        Ok((0, fitting.map(str::to_owned).collect()))
    }
}
