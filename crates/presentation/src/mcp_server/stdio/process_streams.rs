//! Reserves stdin and stdout of this process for the protocol.

use rustix::fs::{FileType, Mode, OFlags};
use std::{
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncWrite},
    net::unix::pipe,
};

/// The two ends of a stdio connection.
pub struct ProcessStreams {
    /// Stream from the client.
    pub input: Box<dyn AsyncRead + Unpin + Send>,
    /// Stream to the client.
    pub output: Box<dyn AsyncWrite + Unpin + Send>,
}

impl fmt::Debug for ProcessStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessStreams").finish_non_exhaustive()
    }
}

/// Takes stdin and stdout for the protocol. From then on, everything that this process or its children print to stdout
/// goes to stderr, and stdin is empty for them. The original streams continue under private descriptors that no child
/// inherits. Must be called once, before anything else may print, inside a tokio runtime.
///
/// If the streams are not pipes (sockets, a terminal, files), they are read and written by threads that cannot be
/// interrupted. The process must then end with `std::process::exit` or `Runtime::shutdown_background`, and not by
/// waiting for the runtime.
///
/// # Errors
/// The error of the operating system if a descriptor could not be duplicated.
pub fn claim_process_streams() -> io::Result<ProcessStreams> {
    let (stdin, stdout) = claim()?;
    let input: Box<dyn AsyncRead + Unpin + Send> = match reopen_pipe(stdin.as_fd(), OFlags::RDONLY) {
        Some(pipe) => Box::new(pipe::Receiver::from_owned_fd(pipe)?),
        None => Box::new(File::from_std(stdin.into())),
    };
    let output: Box<dyn AsyncWrite + Unpin + Send> = match reopen_pipe(stdout.as_fd(), OFlags::WRONLY) {
        Some(pipe) => Box::new(pipe::Sender::from_owned_fd(pipe)?),
        None => Box::new(File::from_std(stdout.into())),
    };
    Ok(ProcessStreams { input, output })
}

/// Returns the original stdin and stdout under new descriptors with close-on-exec. Replaces stdin by `/dev/null` and
/// stdout by stderr.
fn claim() -> io::Result<(OwnedFd, OwnedFd)> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((stdin, stdout))
}

/// Opens the pipe behind a descriptor again, so that it can be made non-blocking without affecting others: parents and
/// children share its flags with this process, and with `2>&1` so does stderr. Returns `None` if the descriptor is not
/// a pipe or cannot be opened again, for example because it belongs to another user.
fn reopen_pipe(fd: BorrowedFd<'_>, access: OFlags) -> Option<OwnedFd> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(fd).ok()?.st_mode);
    if kind != FileType::Fifo {
        return None;
    }
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        env,
        io::Write,
        process::{Command, Stdio},
    };
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const IN_CHILD: &str = "TOOLSTEAD_TEST_CLAIMS_STDOUT";
    const PROTOCOL: &str = "<protocol>";

    /// Run in a process of its own by the test below, since it changes the process's stdout.
    fn child() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let echoed = runtime.block_on(async {
            let mut streams = claim_process_streams().unwrap();
            io::stdout().write_all(b"noise of a tool\n").unwrap();
            Command::new("echo").arg("noise of a child").status().unwrap();
            let mut input = vec![0; PROTOCOL.len()];
            streams.input.read_exact(&mut input).await.unwrap();
            streams.output.write_all(&input).await.unwrap();
            streams.output.flush().await.unwrap();
            input
        });
        assert_eq!(echoed, PROTOCOL.as_bytes());
    }

    #[test]
    fn only_the_protocol_reaches_stdout() {
        if env::var_os(IN_CHILD).is_some() {
            return child();
        }
        let name = "mcp_server::stdio::process_streams::tests::only_the_protocol_reaches_stdout";
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(IN_CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(PROTOCOL.as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        // What the test runner itself prints before the claim is there, too.
        assert!(output.status.success() && stdout.ends_with(PROTOCOL), "{stdout}\n{stderr}");
        assert!(!stdout.contains("noise"), "{stdout}");
        assert!(stderr.contains("noise of a tool") && stderr.contains("noise of a child"), "{stderr}");
    }
}
