//! The page of a sign-in: opening it, and waiting for the browser or for a pasted address.

use crate::cli::{
    exit::CommandError,
    output::{note, visible},
};
use async_trait::async_trait;
use std::{
    io::{self, BufRead, IsTerminal, Read},
    time::Duration,
};
use tokio::{sync::mpsc, time::timeout};
use toolstead_infrastructure::{
    accounts::{
        credentials::{GrantStatus, PendingSignIn, SignInRedirectCode},
        sign_in_error::SignInError,
    },
    sandbox::browser::UserBrowserOpener,
    upstream_auth::{
        sign_in::{UpstreamAuthorizationCode, UpstreamSignInAttempt},
        stored_grants::UpstreamGrantSummary,
    },
};
use url::Url;

/// Maximum time to wait for a sign-in in a browser on this machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Maximum time to wait for an address pasted from a browser on another machine.
const PATIENCE_TO_PASTE: Duration = Duration::from_secs(600);
/// Maximum length of a pasted line in bytes.
const MAX_LINE: u64 = 16 << 10;

/// Way to open the sign-in page and return from it.
pub(super) enum SignInBrowser {
    /// The browser of this machine, if there is one.
    Browser(Option<UserBrowserOpener>),
    /// A browser on any machine; the user pastes the address of the last page.
    Pasting,
}

/// Sign-in on a page that the user opens.
#[async_trait]
pub(super) trait PageSignIn: Sized + Send + Sync {
    type Code: Send;
    type Grant;

    fn page(&self) -> &Url;
    async fn wait_for_code(&self) -> Result<Self::Code, CommandError>;
    fn pasted(&self, text: &str) -> Result<Result<Self::Code, &'static str>, CommandError>;
    async fn finish(self, code: Self::Code) -> Result<Self::Grant, CommandError>;
}

#[async_trait]
impl PageSignIn for PendingSignIn {
    type Code = SignInRedirectCode;
    type Grant = GrantStatus;

    fn page(&self) -> &Url {
        self.page()
    }

    async fn wait_for_code(&self) -> Result<SignInRedirectCode, CommandError> {
        Ok(self.wait_for_code().await?)
    }

    fn pasted(&self, text: &str) -> Result<Result<SignInRedirectCode, &'static str>, CommandError> {
        Ok(self.pasted(text)?)
    }

    async fn finish(self, code: SignInRedirectCode) -> Result<GrantStatus, CommandError> {
        Ok(self.finish(code).await?)
    }
}

#[async_trait]
impl PageSignIn for UpstreamSignInAttempt {
    type Code = UpstreamAuthorizationCode;
    type Grant = UpstreamGrantSummary;

    fn page(&self) -> &Url {
        self.page()
    }

    async fn wait_for_code(&self) -> Result<UpstreamAuthorizationCode, CommandError> {
        Ok(self.wait_for_code().await?)
    }

    fn pasted(&self, text: &str) -> Result<Result<UpstreamAuthorizationCode, &'static str>, CommandError> {
        Ok(self.pasted(text)?)
    }

    async fn finish(self, code: UpstreamAuthorizationCode) -> Result<UpstreamGrantSummary, CommandError> {
        Ok(self.finish(code).await?)
    }
}

/// Asks the user to open the page or opens it in the browser, waits for the sign-in to complete, and returns its grant.
pub(super) async fn signed_in<S: PageSignIn>(
    sign_in: S,
    about: &str,
    method: &SignInBrowser,
    lines: &mut mpsc::Receiver<String>,
) -> Result<S::Grant, CommandError> {
    // On a line of its own and in full, so that it can be copied.
    let address = visible(sign_in.page().as_str());
    note(&format!("To sign in for {about}, open this page:\n\n{address}\n"));
    let patience = match method {
        SignInBrowser::Browser(browser) => {
            match browser.as_ref().map(|browser| browser.open(sign_in.page())) {
                Some(Ok(())) => note("The page opens in the browser. Waiting for the sign-in to finish …"),
                Some(Err(why)) => note(&format!("The page could not be opened here: {why}. Open it yourself.")),
                None => note("No browser is available here. Use one on another machine with `--no-browser`."),
            }
            PATIENCE
        }
        SignInBrowser::Pasting => {
            note(
                "It leads to an address at 127.0.0.1, which may show nothing on another machine. Paste that address \
                 here, or the code in it:",
            );
            PATIENCE_TO_PASTE
        }
    };
    let coming = async {
        loop {
            tokio::select! {
                came = sign_in.wait_for_code() => return came,
                Some(line) = lines.recv() => match sign_in.pasted(&line)? {
                    Ok(came) => return Ok(came),
                    Err(_) if line.trim().is_empty() => {}
                    Err(why) => note(&format!("This is not the response to this sign-in: {why}. Paste it again:")),
                },
            }
        }
    };
    let came = timeout(patience, coming).await.map_err(|_| SignInError::Late(patience))??;
    sign_in.finish(came).await
}

/// Returns the lines that the user pastes with this method; none with a browser if standard input is not a terminal.
pub(super) fn pasted_lines_for(method: &SignInBrowser) -> mpsc::Receiver<String> {
    match method {
        SignInBrowser::Pasting => pasted_lines(),
        SignInBrowser::Browser(_) if io::stdin().is_terminal() => pasted_lines(),
        SignInBrowser::Browser(_) => mpsc::channel(1).1,
    }
}

/// Returns the lines of standard input, read by a thread that is never joined.
fn pasted_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match Read::by_ref(&mut input).take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if sender.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_err() => return,
                Ok(_) => {}
            }
        }
    });
    lines
}
