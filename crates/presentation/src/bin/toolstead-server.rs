//! The launcher of the server: replaces itself with `toolstead`, the program beside it, under the name
//! `toolstead-server`.
//!
//! Both names share one program, so that the code is compiled, linked and stored once.

use std::{
    env, io,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitCode},
};

/// Name under which `toolstead` serves MCP over HTTP.
const SERVER: &str = "toolstead-server";
/// Exit code for a fault of the installation.
const FAULT: u8 = 70;

fn main() -> ExitCode {
    let error = match program() {
        // Returns only if the program could not be started.
        Ok(program) => {
            let error = Command::new(&program).arg0(SERVER).args(env::args_os().skip(1)).exec();
            format!(
                "cannot start `{}`: {error}; install `toolstead` and `{SERVER}` in the same folder",
                program.display().to_string().escape_debug()
            )
        }
        Err(error) => format!("cannot find the folder of `{SERVER}`: {error}; is /proc mounted?"),
    };
    // Standard error may be closed; the exit code reports the failure as well.
    let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("error: {error}\n"));
    ExitCode::from(FAULT)
}

/// Returns the path of `toolstead` in the folder of this program.
fn program() -> io::Result<PathBuf> {
    Ok(env::current_exe()?.with_file_name("toolstead"))
}
