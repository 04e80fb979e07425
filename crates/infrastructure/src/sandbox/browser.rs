//! The user's web browser. It is started as an independent process and continues when this program ends.

use crate::sandbox::file_size_signal;
use std::{
    collections::BTreeMap,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};
use url::{Host, Url};

/// Variables that a browser needs to find its screen, in addition to those of every child.
const SCREEN: [&str; 11] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_CURRENT_DESKTOP",
    "XDG_SESSION_TYPE",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
    "DBUS_SESSION_BUS_ADDRESS",
];
/// Variable that names a browser.
const BROWSER: &str = "BROWSER";
/// Program that opens a page in the browser of the desktop.
const OPENER: &str = "xdg-open";
/// Placeholder for the address in the words of [`BROWSER`].
const ADDRESS: &str = "%s";
/// Maximum length of an address, in bytes. The user has to open a longer one.
const MAX_ADDRESS: usize = 8 << 10;

/// Program that opens pages in the user's own web browser, unlike the automated browser of the `browser` module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserBrowserOpener {
    program: PathBuf,
    words: Vec<String>,
    environment: BTreeMap<String, String>,
}

/// Reason why a page was not opened in the user's web browser.
#[derive(Debug, thiserror::Error)]
pub enum UserBrowserError {
    /// The address is neither `https` nor an `http` address of this machine, or it is too long or contains a user.
    #[error("only an `https` address is opened, or an `http` address of this machine, and none with a user in it")]
    Address,
    /// The program cannot be started.
    #[error("`{}` cannot be started: {source}", program.display())]
    Start {
        /// Path of the program.
        program: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl UserBrowserOpener {
    /// Returns the first existing program of `$BROWSER` (commands separated by colons, with `%s` for the address), or
    /// else `xdg-open` if there is a screen. Programs are searched on the `PATH` of `environment`. They receive that
    /// environment and the variables of the screen, which `of_process` reads, and nothing else. Blocks.
    pub fn find(environment: BTreeMap<String, String>, of_process: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let path = environment.get("PATH").cloned().unwrap_or_default();
        let screen = SCREEN.iter().filter_map(|name| Some(((*name).to_owned(), of_process(name)?)));
        let mut environment = environment;
        environment.extend(screen);
        let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| environment.contains_key(*name));
        let named = of_process(BROWSER).unwrap_or_default();
        let usual = has_screen.then_some(OPENER);
        // The value is not passed to a shell: blanks separate words, and no other character is special.
        named.split(':').chain(usual).find_map(|command| {
            let mut words = command.split_ascii_whitespace().map(str::to_owned);
            let program = found(&words.next()?, &path)?;
            Some(Self { program, words: words.collect(), environment: environment.clone() })
        })
    }

    /// Opens a page, and returns once the program has been started.
    ///
    /// # Errors
    /// [`UserBrowserError`].
    pub fn open(&self, page: &Url) -> Result<(), UserBrowserError> {
        if !is_fit(page) {
            return Err(UserBrowserError::Address);
        }
        let mut command = Command::new(&self.program);
        let mut is_said = false;
        for word in &self.words {
            is_said |= word.contains(ADDRESS);
            command.arg(word.replace(ADDRESS, page.as_str()));
        }
        if !is_said {
            command.arg(page.as_str());
        }
        command.env_clear().envs(&self.environment).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in this terminal must not end the browser.
        command.process_group(0);
        file_size_signal::restore_in(&mut command);
        let started = command.spawn();
        let mut child = started.map_err(|source| UserBrowserError::Start { program: self.program.clone(), source })?;
        // The exit status is ignored, but the process must be reaped.
        thread::spawn(move || drop(child.wait()));
        Ok(())
    }
}

fn is_fit(page: &Url) -> bool {
    let is_here = match page.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => return false,
    };
    let is_plain = page.username().is_empty() && page.password().is_none();
    let is_web = page.scheme() == "https" || (page.scheme() == "http" && is_here);
    is_web && is_plain && page.as_str().len() <= MAX_ADDRESS
}

fn found(program: &str, path: &str) -> Option<PathBuf> {
    let is_there = |file: &Path| file.is_absolute() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    let is_program = |file: &Path| is_there(file) && file.is_file();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| is_program(file));
    }
    path.split(':').map(|folder| Path::new(folder).join(program)).find(|file| is_program(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt, sync::mpsc, time::Duration};

    #[track_caller]
    fn check(page: &str, expected: bool) {
        assert_eq!(Url::parse(page).is_ok_and(|page| is_fit(&page)), expected, "{page}");
    }

    #[test]
    fn the_browser_opens_only_https_pages_and_local_http_pages() {
        check("https://accounts.example/o?x=1", true);
        check("http://127.0.0.1:8080/auth", true);
        check("http://localhost/auth", true);
        check("http://[::1]:9/auth", true);
        check("http://accounts.example/", false);
        check("https://a@accounts.example/", false);
        check("file:///etc/passwd", false);
        check("javascript:alert(1)", false);
        check("-headless", false);
        check("data:text/html,x", false);
        check(&format!("https://a.example/{}", "x".repeat(MAX_ADDRESS)), false);
    }

    fn browser(environment: &[(&str, &str)], path: &str) -> Option<UserBrowserOpener> {
        let given = |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        UserBrowserOpener::find(BTreeMap::from([("PATH".to_owned(), path.to_owned())]), given)
    }

    #[test]
    fn the_browser_variable_precedes_the_desktop_browser_which_needs_a_display() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["xdg-open", "other"] {
            let file = folder.path().join(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = folder.path().to_str().unwrap();
        let program = |environment: &[(&str, &str)]| {
            browser(environment, path).map(|one| one.program.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(program(&[]), None);
        assert_eq!(program(&[("DISPLAY", ":0")]).as_deref(), Some("xdg-open"));
        assert_eq!(program(&[("WAYLAND_DISPLAY", "w"), ("BROWSER", "other --new %s")]).as_deref(), Some("other"));
        assert_eq!(program(&[("BROWSER", "none-such:other")]).as_deref(), Some("other"));
        assert_eq!(program(&[("BROWSER", "./other")]), None);
    }

    #[test]
    fn the_address_is_one_argument_without_a_shell_and_secrets_are_not_inherited() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe) = (folder.path().join("browser"), folder.path().join("told"));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        fs::write(&file, format!("#!/bin/sh\n{{ printf '%s|' \"$@\"; env; }} > {}\n", pipe.display())).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let named = format!("{} --page=%s -n", file.display());
        let environment = [("BROWSER", named.as_str()), ("DISPLAY", ":7"), ("GOOGLE_CLIENT_SECRET", "s3cr3t")];
        let browser = browser(&environment, "/usr/bin:/bin").unwrap();
        browser.open(&Url::parse("https://a.example/?x=$(id)&y='`id`'").unwrap()).unwrap();
        let (sender, outcome) = mpsc::channel();
        thread::spawn(move || sender.send(fs::read_to_string(pipe).unwrap()));
        let outcome = outcome.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(outcome.starts_with("--page=https://a.example/?x=$(id)&y=%27`id`%27|-n|"), "{outcome}");
        assert!(outcome.contains("DISPLAY=:7") && !outcome.contains("s3cr3t"), "{outcome}");
    }
}
