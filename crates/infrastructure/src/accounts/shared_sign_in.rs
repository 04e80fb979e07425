//! Sign-in that several calls share: one page, one outcome.

use super::vault::TokenLookupKey;
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    task::AbortHandle,
};
use toolstead_domain::{Caller, CredentialsError, InputRequest, NotAnswered};
use url::Url;
use uuid::Uuid;

/// Sign-ins in progress that calls wait for, by token key.
#[derive(Debug, Default)]
pub(super) struct SharedSignIns(Mutex<HashMap<TokenLookupKey, Arc<SharedSignIn>>>);

type SignInResult = Result<(), CredentialsError>;

/// Shared sign-in. It continues on its own once a user has agreed to open its page, even if the call that asked ends.
#[derive(Debug)]
pub(super) struct SharedSignIn {
    page: Url,
    outcome: watch::Sender<Option<SignInResult>>,
    working: AbortHandle,
    /// Locked by the call whose client has been asked to open the page.
    turn: AsyncMutex<()>,
    calls: Mutex<SignInWaitState>,
}

#[derive(Debug, Default)]
struct SignInWaitState {
    waiting: usize,
    was_accepted: bool,
}

/// Waiting call. When the last one is dropped and no user has opened the page, the sign-in ends.
pub(super) struct WaitingCallGuard(Arc<SharedSignIn>);

impl SharedSignIns {
    /// Joins the sign-in in progress, or begins one.
    pub(super) fn join<E>(
        &self,
        key: TokenLookupKey,
        begin: impl FnOnce() -> Result<SharedSignIn, E>,
    ) -> Result<WaitingCallGuard, E> {
        let mut all = lock(&self.0);
        if let Some(waiting) = all.get(&key).and_then(SharedSignIn::joined) {
            return Ok(waiting);
        }
        let shared = Arc::new(begin()?);
        lock(&shared.calls).waiting += 1;
        all.insert(key, shared.clone());
        Ok(WaitingCallGuard(shared))
    }
}

impl SharedSignIn {
    /// Creates a sign-in on `page`, and runs `work`, which waits for its outcome, in a task that does not end with the
    /// calls.
    pub(super) fn begin(page: Url, work: impl Future<Output = SignInResult> + Send + 'static) -> Self {
        let (outcome, _) = watch::channel(None);
        let sender = outcome.clone();
        let working = tokio::spawn(async move {
            let reached = work.await;
            sender.send_replace(Some(reached));
        });
        Self { page, outcome, working: working.abort_handle(), turn: AsyncMutex::default(), calls: Mutex::default() }
    }

    /// Adds a waiting call unless the sign-in is over. The last call to leave ends it under the same lock.
    fn joined(self: &Arc<Self>) -> Option<WaitingCallGuard> {
        let mut calls = lock(&self.calls);
        if self.is_over() {
            return None;
        }
        calls.waiting += 1;
        Some(WaitingCallGuard(self.clone()))
    }

    fn is_over(&self) -> bool {
        self.outcome.borrow().is_some() || self.working.is_finished()
    }

    async fn wait_for_outcome(&self) -> SignInResult {
        let mut outcome = self.outcome.subscribe();
        let reached = outcome.wait_for(Option::is_some).await.ok().and_then(|reached| reached.clone());
        reached
            .unwrap_or_else(|| Err(CredentialsError::Failed("the sign-in ended because of an internal error".into())))
    }

    /// Ends the sign-in for all waiting calls with this outcome, unless there is one already. Returns `outcome`.
    fn end(&self, outcome: CredentialsError) -> CredentialsError {
        self.working.abort();
        self.outcome.send_if_modified(|reached| {
            let is_open = reached.is_none();
            if is_open {
                *reached = Some(Err(outcome.clone()));
            }
            is_open
        });
        outcome
    }
}

impl WaitingCallGuard {
    /// Asks the client of this call to send its user to the page, once no other call's client is being asked, and waits
    /// for the outcome. If the user declines, the sign-in ends for all calls.
    pub(super) async fn ask_user(
        self,
        caller: &dyn Caller,
        about: &str,
        sign_in: &(dyn Fn(&str) -> CredentialsError + Sync),
    ) -> SignInResult {
        let shared = &self.0;
        let _turn = tokio::select! {
            biased;
            outcome = shared.wait_for_outcome() => return outcome,
            turn = shared.turn.lock() => turn,
        };
        let id = Uuid::new_v4().to_string();
        let host = shared.page.host_str().unwrap_or_default();
        let request = InputRequest {
            method: "elicitation/create".into(),
            params: json!({
                "mode": "url",
                "url": shared.page.as_str(),
                "elicitationId": id,
                "message": format!("Sign in for {about}. The page is at `{host}`."),
            }),
        };
        let answer = tokio::select! {
            biased;
            // The user signed in before the client answered.
            outcome = shared.wait_for_outcome() => {
                caller.elicitation_completed(&id);
                return outcome;
            }
            answer = caller.ask(request) => answer,
        };
        let action = answer.map(|answer| answer.0["action"].as_str().unwrap_or_default().to_owned());
        match action.as_deref() {
            // This only confirms that the page is being opened.
            Ok("accept") => {
                lock(&shared.calls).was_accepted = true;
                let outcome = shared.wait_for_outcome().await;
                caller.elicitation_completed(&id);
                outcome
            }
            Ok("decline") => Err(shared.end(CredentialsError::Unavailable("the user declined to sign in".into()))),
            Ok("cancel") => Err(shared.end(CredentialsError::Unavailable("the user did not sign in".into()))),
            Ok(_) => Err(sign_in("The client gave an invalid answer to the sign-in request")),
            Err(NotAnswered::Unsupported) => Err(sign_in("You are not signed in")),
            Err(why) => Err(sign_in(&format!("You are not signed in, and {why}"))),
        }
    }
}

impl Drop for WaitingCallGuard {
    fn drop(&mut self) {
        let mut calls = lock(&self.0.calls);
        calls.waiting -= 1;
        if calls.waiting == 0 && !calls.was_accepted {
            self.0.end(CredentialsError::SignIn("no call waits for the sign-in any more".into()));
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds the lock.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
