//! The program `tool`, available to commands that tools are offered to. It is this executable, and uses nothing but its
//! arguments and the socket of its run.
//!
//! ```text
//! tool NAME [JSON | - | --field value …]    calls a tool and prints its whole result
//! tool NAME --help | tool --list | tool --help
//! ```

mod arguments;
mod printing;

use crate::sandbox::offered_tools;
use arguments::{ToolCommand, fields, parse_command};
use serde_json::{Value, json};
use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    process,
};

const USAGE: &str = "\
Calls the tools that this command may use, and prints their whole results.

  tool --list                      lists them
  tool NAME --help                 describes one
  tool NAME '{\"field\": \"value\"}'   calls it; `-` in place of the JSON reads it from standard input
  tool NAME --field value --flag --list a --list b
                                   calls it by fields; `-` as the value of a text reads standard input

A structured result is one line of JSON, any other is text. Errors go to standard error. Exit codes: 0 done; 1 the tool
failed; 2 wrong arguments; 3 refused by permission; 4 unknown or unavailable; 5 timed out or cancelled; 6 a budget is
used up; 70 a fault of Toolstead.";

/// Exit codes for wrong arguments, unavailable tools, and a cancelled call.
const USAGE_CODE: u8 = 2;
const UNAVAILABLE: u8 = 4;
const CANCELLED_CODE: u8 = 5;

/// Runs `tool` and ends the process, if this process is that program. Otherwise returns.
pub(crate) fn enter() {
    if !offered_tools::is_program() {
        return;
    }
    let words: Result<Vec<String>, _> = env::args_os().skip(1).map(|word| word.into_string()).collect();
    let done = match words {
        Ok(words) => run(&words, &mut io::stdin().lock(), &mut io::stdout().lock()),
        Err(_) => Err(ErrorExit::usage("an argument is not valid UTF-8")),
    };
    let code = match done {
        Ok(()) => 0,
        Err(ErrorExit { code, message }) => {
            // Standard error is closed as well: there is no way to report it.
            let _ = writeln!(io::stderr(), "tool: {message}");
            code
        }
    };
    process::exit(code.into());
}

/// A message and an exit code other than 0.
#[derive(Debug)]
struct ErrorExit {
    code: u8,
    message: String,
}

impl ErrorExit {
    fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE_CODE, message: message.into() }
    }
}

fn run(words: &[String], stdin: &mut impl Read, stdout: &mut impl Write) -> Result<(), ErrorExit> {
    let text = match parse_command(words)? {
        ToolCommand::Usage => USAGE.to_owned(),
        ToolCommand::List => printing::list(&send_request(&json!({"list": true}))?),
        ToolCommand::Help(name) => printing::help(&send_request(&json!({"list": name}))?),
        ToolCommand::Call(name, given) => {
            let arguments = match given {
                arguments::ArgumentSource::Json(text) => arguments::object(&text)?,
                arguments::ArgumentSource::Input => arguments::object(&read(stdin)?)?,
                arguments::ArgumentSource::Fields(words) => {
                    let listed = send_request(&json!({"list": name}))?;
                    fields(words, &listed["tools"][0]["inputSchema"], &mut || read(stdin))?
                }
            };
            printing::result(&send_request(&json!({"call": name, "arguments": arguments}))?)?
        }
    };
    let ending = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(ending.as_bytes()))
        .and_then(|()| stdout.flush())
    {
        // The reader has closed the pipe.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(ErrorExit { code: 70, message: format!("the result could not be written: {error}") })
        }
        _ => Ok(()),
    }
}

fn read(stdin: &mut impl Read) -> Result<String, ErrorExit> {
    let mut text = String::new();
    let read = stdin.read_to_string(&mut text);
    read.map_err(|error| ErrorExit::usage(format!("standard input could not be read: {error}")))?;
    Ok(text)
}

/// Sends one request, and returns its answer.
fn send_request(request: &Value) -> Result<Value, ErrorExit> {
    let over = |code, what: &str| ErrorExit {
        code,
        message: format!("{what}: the call that this program belongs to has ended, and with it the access to tools"),
    };
    let mut socket = UnixStream::connect(offered_tools::SOCKET)
        .map_err(|error| over(UNAVAILABLE, &format!("no tools are available ({error})")))?;
    let sent = writeln!(socket, "{request}");
    let mut line = Vec::new();
    // A request that was only partly read may have an answer that gives the reason.
    let received = BufReader::new(&socket).read_until(b'\n', &mut line);
    if received.is_err() || line.is_empty() {
        let reason = sent.err().or(received.err()).map_or(String::new(), |error| format!(" ({error})"));
        return Err(over(CANCELLED_CODE, &format!("there was no answer{reason}")));
    }
    let answer: Value = serde_json::from_slice(&line)
        .map_err(|error| ErrorExit { code: 70, message: format!("the answer is invalid: {error}") })?;
    match answer.get("error") {
        None => Ok(answer),
        Some(error) => Err(printing::failure(error)),
    }
}

/// Test binaries have their own `main`. This runs before it, as the first line of Toolstead's `main` does.
#[cfg(test)]
#[expect(unsafe_code, reason = "only the linker can put something before `main`")]
mod test_door {
    extern "C" fn before_main() {
        super::enter();
    }

    #[used]
    #[unsafe(link_section = ".init_array")]
    static BEFORE_MAIN: extern "C" fn() = before_main;
}
