//! The input line of a chat: editing, recall of earlier inputs with the arrow keys, and multiple lines.

use super::chat_line::COMMANDS;
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
use toolstead_domain::invisible_characters::displaces_text;

const PROMPT: &str = "> ";
const CONTINUATION_PROMPT: &str = "… ";
/// Control sequence that ends bracketed paste mode. The editor sends it, too, unless it is interrupted.
const NO_MARKED_PASTE: &[u8] = b"\x1b[?2004l";

/// Result of reading an input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatInput {
    /// A text, which may have several lines.
    Text(String),
    /// The user leaves: Ctrl-D, or Ctrl-C on an empty line.
    Leaves,
}

/// Reads one text that starts with `draft`. `known` are the earlier inputs, oldest first; `commands` are the commands
/// of command files. Dropping the future restores the terminal.
pub(super) async fn read(known: &[String], commands: Vec<String>, draft: String) -> io::Result<ChatInput> {
    let _kept = SavedTerminalModes::of_process();
    let (sender, typed) = oneshot::channel();
    let known = known.to_vec();
    // A separate thread that is not joined at the end.
    std::thread::spawn(move || drop(sender.send(text(&known, commands, &draft))));
    typed.await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
}

/// Saved modes of the terminal, which are restored on drop.
struct SavedTerminalModes(Option<(File, Termios)>);

impl SavedTerminalModes {
    fn of_process() -> Self {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok();
        Self(terminal.and_then(|terminal| tcgetattr(&terminal).ok().map(|modes| (terminal, modes))))
    }
}

impl Drop for SavedTerminalModes {
    fn drop(&mut self) {
        if let Some((terminal, modes)) = &mut self.0 {
            // If the terminal no longer exists, nothing has to be restored.
            let _ = tcsetattr(&*terminal, OptionalActions::Now, modes);
            let _ = terminal.write_all(NO_MARKED_PASTE);
        }
    }
}

fn text(known: &[String], commands: Vec<String>, draft: &str) -> io::Result<ChatInput> {
    let config = Config::builder().behavior(Behavior::PreferTerm).auto_add_history(false);
    let config = config.max_history_size(known.len().max(1)).map_err(io::Error::other)?.build();
    let mut history = MemHistory::with_config(&config);
    for text in known {
        history.add(text).map_err(io::Error::other)?;
    }
    // Created for each input, because the editor handles the signals of the process while it exists.
    let mut editor = Editor::with_history(config, history).map_err(io::Error::other)?;
    editor.set_helper(Some(EditorHelper { commands, ..EditorHelper::default() }));
    let (mut text, mut draft) = (String::new(), draft);
    loop {
        let prompt = if text.is_empty() { PROMPT } else { CONTINUATION_PROMPT };
        match editor.readline_with_initial(prompt, (std::mem::take(&mut draft), "")) {
            Ok(line) => match line.strip_suffix('\\') {
                Some(line) => {
                    text.push_str(line);
                    text.push('\n');
                }
                None => return Ok(ChatInput::Text(text + &line)),
            },
            Err(ReadlineError::Interrupted) => {
                let is_empty = editor.helper().is_none_or(|typing| typing.is_empty.get());
                if is_empty && text.is_empty() {
                    return Ok(ChatInput::Leaves);
                }
                text.clear();
            }
            Err(ReadlineError::Eof) => return Ok(ChatInput::Leaves),
            // The terminal was resized, or another program used it: the line is drawn again.
            Err(ReadlineError::Signal(_)) => {}
            Err(ReadlineError::Io(error)) => return Err(error),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

/// Helper of the editor, which records if the line is empty and completes commands for the Tab key.
#[derive(Debug, Default)]
struct EditorHelper {
    is_empty: Cell<bool>,
    /// Commands of command files, with their slashes.
    commands: Vec<String>,
}

impl Helper for EditorHelper {}
impl Highlighter for EditorHelper {}
impl Validator for EditorHelper {}

impl Hinter for EditorHelper {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.is_empty.set(line.is_empty());
        None
    }
}

impl Completer for EditorHelper {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..position).unwrap_or_default();
        let names = COMMANDS.iter().map(|(name, ..)| *name).chain(self.commands.iter().map(String::as_str));
        let fitting = names.filter(|name| typed.starts_with('/') && name.starts_with(typed));
        // The editor prints names unescaped, and names of files may contain any character.
        let fitting = fitting.filter(|name| !name.chars().any(displaces_text));
        Ok((0, fitting.map(str::to_owned).collect()))
    }
}
