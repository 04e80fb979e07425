//! The keyboard of the terminal while a turn runs. Keys are read one by one, and the terminal does not echo them.

use super::terminal::Terminal;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    time::{Duration, Instant},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::MutexGuard,
    time::timeout,
};

const ESCAPE: u8 = 0x1b;
/// Maximum time between the bytes of one key, for slow connections. After it, an escape is a key of its own.
const ONE_KEY: Duration = Duration::from_millis(500);

/// The keyboard. Dropping it restores the modes of the terminal.
#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: AsyncFd<File>,
    before: Termios,
    keys: Termios,
    /// Bytes that were read but not returned yet. They end with an escape.
    unread: Vec<u8>,
    read_at: Instant,
}

impl Keyboard {
    /// Takes the keyboard of the controlling terminal. Ctrl-C remains a signal. Must be called while no question is
    /// open.
    ///
    /// # Errors
    /// The error of the operating system, or an error if another program has the terminal.
    pub(super) fn of_process() -> io::Result<Self> {
        Self::of(OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/tty")?)
    }

    #[expect(unsafe_code, reason = "the runtime has no safe way to wait for a descriptor")]
    fn of(terminal: File) -> io::Result<Self> {
        // The system would stop a background process that changes the terminal.
        if !is_in_front(&terminal) {
            return Err(io::Error::other("the terminal belongs to another program at the moment"));
        }
        let before = tcgetattr(&terminal)?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        // SAFETY: The file owns its descriptor, which is neither replaced nor closed while it is registered.
        let terminal = unsafe { AsyncFd::register_with_interest(terminal, Interest::READABLE) }?;
        let keyboard = Self { terminal, before, keys, unread: Vec::new(), read_at: Instant::now() };
        tcsetattr(keyboard.terminal.get_ref(), OptionalActions::Now, &keyboard.keys)?;
        Ok(keyboard)
    }

    /// Sets the modes of this keyboard again if they were changed: a shell changes them while this process is stopped
    /// (Ctrl-Z). Does nothing while another program has the terminal. Must be called while no question is open.
    pub(super) fn renew(&self) {
        let terminal = self.terminal.get_ref();
        let line_modes = LocalModes::ICANON | LocalModes::ECHO;
        if is_in_front(terminal) && tcgetattr(terminal).is_ok_and(|modes| modes.local_modes.intersects(line_modes)) {
            // If the terminal no longer exists, nothing has to be set.
            let _ = tcsetattr(terminal, OptionalActions::Now, &self.keys);
        }
    }

    /// Returns the bytes of the keys that arrived together. With `turn` it waits until no question is open and returns
    /// the turn on that terminal as well, so that no question opens before the keys are shown. `turn` is `None` if the
    /// caller already holds the turn. No turn is returned for keys that end with an escape. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// The error of the operating system, also if the terminal no longer exists.
    pub(super) async fn read<'t>(
        &mut self,
        turn: Option<&'t Terminal>,
    ) -> io::Result<(Vec<u8>, Option<MutexGuard<'t, ()>>)> {
        loop {
            let mut ready = match self.unread.is_empty() {
                true => self.terminal.readable().await?,
                false => {
                    match timeout(ONE_KEY.saturating_sub(self.read_at.elapsed()), self.terminal.readable()).await {
                        Ok(ready) => ready?,
                        Err(_) => return Ok((std::mem::take(&mut self.unread), None)),
                    }
                }
            };
            let guard = match turn {
                Some(terminal) => Some(terminal.quiet().await),
                None => None,
            };
            let mut bytes = [0; 4096];
            match ready.try_io(|terminal| terminal.get_ref().read(&mut bytes)) {
                Ok(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(Ok(read)) => self.unread.extend_from_slice(&bytes[..read]),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(Err(error)) => return Err(error),
                // The answer to a question consumed all bytes.
                Err(_) => continue,
            }
            self.read_at = Instant::now();
            if self.unread.last() != Some(&ESCAPE) {
                return Ok((std::mem::take(&mut self.unread), guard));
            }
        }
    }
}

/// Returns `false` if another program has the terminal at the moment.
fn is_in_front(terminal: &File) -> bool {
    !tcgetpgrp(terminal).is_ok_and(|in_front| in_front != rustix::process::getpgrp())
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // If the terminal no longer exists, nothing has to be restored.
        let _ = tcsetattr(self.terminal.get_ref(), OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::{ffi::OsStr, io::Write, os::unix::ffi::OsStrExt};

    /// Returns the user's end of a terminal, and a way to open the other end.
    fn pty() -> (File, impl Fn() -> File) {
        let hands = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&hands).unwrap();
        unlockpt(&hands).unwrap();
        let name = ptsname(&hands, Vec::new()).unwrap();
        let open = move || {
            let path = OsStr::from_bytes(name.to_bytes());
            let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap()
        };
        (hands.into(), open)
    }

    #[tokio::test]
    async fn keys_are_read_immediately_except_while_a_question_is_open() {
        let (mut hands, open) = pty();
        let terminal = Terminal::new(open());
        let mut keyboard = Keyboard::of(open()).unwrap();
        hands.write_all(b"a").unwrap();
        let (bytes, turn) = keyboard.read(Some(&terminal)).await.unwrap();
        assert_eq!(bytes, b"a");
        assert!(turn.is_some() && terminal.quiet_now().is_none(), "no question opens before the key is shown");
        drop(turn);
        let question = terminal.quiet().await;
        hands.write_all(b"o").unwrap();
        let waiting = timeout(Duration::from_millis(200), keyboard.read(Some(&terminal))).await;
        assert!(waiting.is_err(), "the key is an answer");
        // The question reads its answer.
        let mut answer = [0];
        (&open()).read_exact(&mut answer).unwrap();
        drop(question);
        hands.write_all(b"b").unwrap();
        assert_eq!(keyboard.read(Some(&terminal)).await.unwrap().0, b"b");
    }

    #[tokio::test]
    async fn an_escape_key_waits_for_its_sequence_and_terminal_modes_are_restored() {
        let (mut hands, open) = pty();
        let modes = || tcgetattr(open()).unwrap().local_modes;
        let before = modes();
        let mut keyboard = Keyboard::of(open()).unwrap();
        assert!(!modes().intersects(LocalModes::ICANON | LocalModes::ECHO) && modes().contains(LocalModes::ISIG));
        hands.write_all(b"\x1b").unwrap();
        hands.write_all(b"[A").unwrap();
        assert_eq!(keyboard.read(None).await.unwrap().0, b"\x1b[A");
        hands.write_all(b"\x1b").unwrap();
        assert_eq!(keyboard.read(None).await.unwrap().0, b"\x1b");
        // As a shell does when the process is stopped.
        tcsetattr(open(), OptionalActions::Now, &keyboard.before).unwrap();
        keyboard.renew();
        assert!(!modes().intersects(LocalModes::ICANON | LocalModes::ECHO));
        drop(keyboard);
        assert_eq!(modes(), before);
    }
}
