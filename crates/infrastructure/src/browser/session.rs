//! A running browser: its process, its network access, and the operations on its tabs.

use crate::{
    browser::{
        accessibility::{BackendNodeId, FrameAccessibilityTree, plain_text},
        announcement::requested_address,
        devtools::{CloseHandle, CommandTarget, DevTools, DevToolsError},
        process::BrowserExit,
        process::LastStderrLines,
        program::{BrowserLaunch, BrowserStartError, StartedBrowser},
        references::{ElementNodeId, ElementReference},
        snapshot::{Snapshot, SnapshotDiff},
        state::{BrowserState, Frame, HostJudge, MAX_ID_BYTES, PageRefusal, Tab, TabNumber},
    },
    egress::proxy::EgressProxy,
};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{timeout, timeout_at},
};
use url::Url;

/// Maximum number of frames in a snapshot.
const MAX_FRAMES: usize = 50;
/// Maximum number of nodes in all frames of a snapshot.
const MAX_NODES: usize = 200_000;
/// Maximum time for a page to answer. A page with an endless script never answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(45);
/// Maximum number of refused hosts that are reported one by one.
const MAX_REFUSED: usize = 10;

/// One browser with its tabs. Dropping it ends the browser.
#[derive(Debug)]
pub(crate) struct BrowserSession {
    devtools: DevTools,
    shared: Arc<SharedSessionState>,
    changes: watch::Receiver<u64>,
    /// Folder that the browser shares with Toolstead.
    folder: PathBuf,
    proxy: EgressProxy,
}

#[derive(Debug, Default)]
struct SharedSessionState {
    state: Mutex<BrowserState>,
}

/// The reason why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BrowserSessionError {
    /// The browser has ended, or refused a command.
    #[error(transparent)]
    DevTools(#[from] DevToolsError),
    /// No tab is open.
    #[error("no tab is open: open a page first")]
    NoTab,
    /// The browser has no tab with this number.
    #[error("there is no tab {0}")]
    UnknownTab(TabNumber),
    /// The element no longer exists.
    #[error("{0} belongs to a page that is no longer open: take a new snapshot")]
    Stale(ElementReference),
    /// This reference was never assigned.
    #[error("there is no element {0} on the page: take a new snapshot")]
    UnknownElement(ElementReference),
    /// The element cannot be used.
    #[error("{reference} cannot be used: {reason}")]
    Unusable {
        /// Reference of the element.
        reference: ElementReference,
        /// The reason.
        reason: String,
    },
    /// The operation did not complete before its deadline.
    #[error("it did not appear in time")]
    TimedOut,
    /// The address is a download, or has no content.
    #[error("the address opens no page: it has no content, or is a download, which `save_as` stores")]
    Aborted,
    /// The page was not opened; the text contains the reason.
    #[error("{0}")]
    NotOpened(String),
    /// The page may not be shown.
    #[error(transparent)]
    NotShown(#[from] PageRefusal),
    /// The proxy refused the host of the page.
    #[error("the page was not opened: {0}")]
    NotReached(String),
    /// The page does not answer.
    #[error("the page does not respond: one of its scripts may run in an endless loop")]
    NoAnswer,
}

/// The condition to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageLoadCondition {
    /// The document and everything in it is loaded.
    Loaded,
    /// The page is loaded, and no request of it was open for this time.
    Quiet(Duration),
}

/// A removed element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemovedElementReport {
    /// Its role and name.
    pub(crate) description: String,
    /// Similar lines of the current page.
    pub(crate) similar: Vec<String>,
}

impl BrowserSession {
    /// Starts a browser. Its process must start within `limit`, and be ready within another `limit`.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub(crate) async fn start(
        program: BrowserLaunch,
        judge: HostJudge,
        limit: Duration,
    ) -> Result<Self, BrowserStartError> {
        let folder = program.folder.clone();
        let announced = program.proxy.announced.clone();
        let started = timeout(limit, program.start()).await;
        let silent = BrowserStartError::Silent { limit, lines: LastStderrLines::default() };
        let StartedBrowser { output, input, proxy, process } = started.map_err(|_| silent)??;
        let shared = Arc::<SharedSessionState>::default();
        shared.state().set_judge(judge);
        let (changed, changes) = watch::channel(0);
        let hearing = shared.clone();
        let devtools = DevTools::over(output, input, Some(process.clone()), move |heard| {
            if let (Some(announced), Some(address)) = (&announced, requested_address(&heard.event)) {
                announced.announce(address);
            }
            hearing.state().apply_event(&heard);
            changed.send_modify(|count| *count += 1);
        });
        let session = Self { devtools, shared, changes, folder, proxy };
        match timeout(limit, session.prepare()).await {
            Ok(prepared) => prepared?,
            Err(_) => return Err(BrowserStartError::Silent { limit, lines: process.last_lines() }),
        }
        Ok(session)
    }

    /// Returns the product of the browser and its version, in plain characters.
    ///
    /// # Errors
    /// [`DevToolsError`].
    pub(crate) async fn product(&self) -> Result<String, DevToolsError> {
        let version = self.devtools.call(&CommandTarget(None), "Browser.getVersion", json!({})).await?;
        let product = version.get("product").and_then(Value::as_str).unwrap_or("an unknown product");
        Ok(plain_text(&product.replacen('/', " ", 1)))
    }

    /// Logs how the browser ended, unless Toolstead closed it.
    pub(crate) async fn log_ending(&self) {
        self.devtools.ended().await;
    }

    async fn prepare(&self) -> Result<(), DevToolsError> {
        let browser = CommandTarget(None);
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        self.devtools.call(&browser, "Target.setDiscoverTargets", json!({"discover": true})).await?;
        self.devtools.call(&browser, "Target.setAutoAttach", attach).await?;
        let downloads = json!({"behavior": "allowAndName", "downloadPath": self.folder, "eventsEnabled": true});
        self.devtools.call(&browser, "Browser.setDownloadBehavior", downloads).await?;
        Ok(())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, BrowserState> {
        self.shared.state()
    }

    /// Returns a handle that ends the browser.
    pub(crate) fn close_handle(&self) -> CloseHandle {
        self.devtools.close_handle()
    }

    /// Removes and returns the notes for the next result: events, and hosts that were refused, since the previous call.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        let mut notes = self.state().take_notes();
        let report = self.proxy.take_report();
        let (unannounced, requested): (Vec<_>, Vec<_>) =
            report.refused.into_iter().partition(|refused| refused.is_unannounced);
        let unannounced: u64 = unannounced.iter().map(|refused| refused.times).sum();
        let mut reported = unannounced;
        for refused in requested.iter().take(MAX_REFUSED) {
            reported += refused.times;
            let times = if refused.times > 1 { format!(" ({} times)", refused.times) } else { String::new() };
            notes.push(format!("The page was refused the host {}{times}: {}.", refused.host, refused.reason));
        }
        if report.refusals > reported {
            notes.push(format!("{} more refusals are not listed.", report.refusals - reported));
        }
        if unannounced > 0 {
            notes.push(format!("Connections to hosts that no page requested were refused: {unannounced}."));
        }
        notes
    }

    /// Returns the number of times that the proxy refused the host of this address, and the newest reason; `None` if it
    /// never did.
    fn refusals_of(&self, address: &str) -> Option<(u64, String)> {
        let url = Url::parse(address).ok()?;
        let host = format!("{}:{}", url.host_str()?.trim_matches(['[', ']']), url.port_or_known_default()?);
        let report = self.proxy.report();
        let (times, refused) = report.refusals_of(&host)?;
        Some((times, format!("{}: {}", refused.host, refused.reason)))
    }

    /// Returns `true` if the browser has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.devtools.has_ended()
    }

    /// Opens an address in the current tab or in a new one, and waits until it is loaded.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn open(&self, address: &str, is_new: bool, end: Instant) -> Result<(), BrowserSessionError> {
        self.state().check_address(address)?;
        let refused_before = self.refusals_of(address).map_or(0, |(times, _)| times);
        let current = self.state().current.filter(|_| !is_new);
        let target = match current {
            Some(_) => self.target()?,
            None => self.new_tab(end).await?,
        };
        timeout_at(end.into(), self.ensure_main_frame(&target)).await.map_err(|_| BrowserSessionError::TimedOut)??;
        self.state().forget_not_shown();
        let going = self.devtools.call(&target, "Page.navigate", json!({"url": address}));
        let answer = timeout_at(end.into(), going).await.map_err(|_| BrowserSessionError::TimedOut)??;
        if answer.get("isDownload") == Some(&Value::Bool(true)) {
            return Err(BrowserSessionError::Aborted);
        }
        let refused = self.refusals_of(address).filter(|(times, _)| *times > refused_before);
        if let Some(error) = answer.get("errorText").and_then(Value::as_str).filter(|error| !error.is_empty()) {
            if let Some(why) = self.state().take_not_shown() {
                return Err(why.into());
            }
            return Err(match refused {
                Some((_, why)) => BrowserSessionError::NotReached(why),
                None if error == "net::ERR_ABORTED" => BrowserSessionError::Aborted,
                None => BrowserSessionError::NotOpened(plain_text(error)),
            });
        }
        // Over plain HTTP, the proxy's own answer appears as the page.
        if let Some((_, why)) = refused {
            return Err(BrowserSessionError::NotReached(why));
        }
        self.wait(PageLoadCondition::Loaded, end).await
    }

    /// Waits until the main frame of a tab is known: a page that loads earlier would report neither itself nor its
    /// frames.
    async fn ensure_main_frame(&self, target: &CommandTarget) -> Result<(), BrowserSessionError> {
        let is_known = self.state().tab_of(target).is_none_or(|tab| tab.main_frame.is_some());
        if is_known {
            return Ok(());
        }
        let answer = self.devtools.call(target, "Page.getFrameTree", json!({})).await?;
        if let Some(tab) = self.state().tab_of(target) {
            tab.main_frame = answer.pointer("/frameTree/frame/id").and_then(Value::as_str).map(str::to_owned);
        }
        Ok(())
    }

    async fn new_tab(&self, end: Instant) -> Result<CommandTarget, BrowserSessionError> {
        let created =
            self.devtools.call(&CommandTarget(None), "Target.createTarget", json!({"url": "about:blank"})).await?;
        let id = created.get("targetId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let find = |state: &BrowserState| {
            let (number, tab) = state.tabs.iter().find(|(_, tab)| tab.id == id)?;
            Some((*number, tab.target.clone()?))
        };
        let (number, target) = self.when(end, find).await?;
        self.state().current = Some(number);
        Ok(target)
    }

    /// Returns the target of commands for the current tab.
    ///
    /// # Errors
    /// [`BrowserSessionError::NoTab`].
    pub(crate) fn target(&self) -> Result<CommandTarget, BrowserSessionError> {
        self.state().current().and_then(|tab| tab.target.clone()).ok_or(BrowserSessionError::NoTab)
    }

    /// Makes a tab the current one.
    ///
    /// # Errors
    /// [`BrowserSessionError::UnknownTab`].
    pub(crate) async fn choose(&self, number: TabNumber) -> Result<(), BrowserSessionError> {
        let target = {
            let mut state = self.state();
            let tab = state.tabs.get(&number).ok_or(BrowserSessionError::UnknownTab(number))?;
            let target = tab.target.clone().ok_or(BrowserSessionError::NoTab)?;
            state.current = Some(number);
            target
        };
        self.devtools.call(&target, "Page.bringToFront", json!({})).await?;
        Ok(())
    }

    /// Closes a tab.
    ///
    /// # Errors
    /// [`BrowserSessionError::UnknownTab`].
    pub(crate) async fn close(&self, number: TabNumber, end: Instant) -> Result<(), BrowserSessionError> {
        let id =
            self.state().tabs.get(&number).map(|tab| tab.id.clone()).ok_or(BrowserSessionError::UnknownTab(number))?;
        self.devtools.call(&CommandTarget(None), "Target.closeTarget", json!({"targetId": id})).await?;
        self.when(end, |state| (!state.tabs.contains_key(&number)).then_some(())).await
    }

    /// Waits until the current page is loaded, or idle.
    ///
    /// # Errors
    /// [`BrowserSessionError::TimedOut`].
    pub(crate) async fn wait(&self, until: PageLoadCondition, end: Instant) -> Result<(), BrowserSessionError> {
        let is_loaded = |state: &BrowserState| match state.current() {
            Some(tab) if tab.is_loading => None,
            Some(_) | None => Some(()),
        };
        self.when(end, is_loaded).await?;
        let PageLoadCondition::Quiet(quiet) = until else { return Ok(()) };
        loop {
            let is_still = |state: &BrowserState| {
                let is_still = |tab: &Tab| !tab.is_loading && tab.open_requests.is_empty();
                state.current().is_none_or(is_still).then_some(())
            };
            self.when(end, is_still).await?;
            let busy = |state: &BrowserState| is_still(state).is_none().then_some(());
            let quiet_end = (Instant::now() + quiet).min(end);
            match self.when(quiet_end, busy).await {
                Ok(()) => {}
                Err(BrowserSessionError::TimedOut) if quiet_end < end => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until `is` returns a value for the state.
    ///
    /// # Errors
    /// [`BrowserSessionError::TimedOut`], or an error if the browser ends.
    pub(crate) async fn when<T>(
        &self,
        end: Instant,
        mut is: impl FnMut(&BrowserState) -> Option<T>,
    ) -> Result<T, BrowserSessionError> {
        let mut changes = self.changes.clone();
        let waiting = async {
            loop {
                changes.mark_unchanged();
                if let Some(found) = is(&self.state()) {
                    return Ok(found);
                }
                if changes.changed().await.is_err() {
                    return Err(self.devtools.ended().await.into());
                }
            }
        };
        timeout_at(end.into(), waiting).await.unwrap_or(Err(BrowserSessionError::TimedOut))
    }

    /// Returns the current page, with the changes since the last snapshot that a caller received; `None` if there was
    /// none. The returned snapshot counts as received.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn look(&self) -> Result<(Snapshot, Option<SnapshotDiff>), BrowserSessionError> {
        let (target, snapshot) = self.snapshot().await?;
        let mut state = self.state();
        let Some(tab) = state.current_mut().filter(|tab| tab.target.as_ref() == Some(&target)) else {
            return Ok((snapshot, None));
        };
        let before = tab.last_snapshot.replace(snapshot.clone());
        let change = before.as_ref().map(|before| before.until(&snapshot));
        if let Some(before) = before {
            tab.removed_lines.keep(before, &snapshot);
        }
        Ok((snapshot, change))
    }

    /// Returns the current page. It does not count as received by a caller.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn snapshot(&self) -> Result<(CommandTarget, Snapshot), BrowserSessionError> {
        let looking = async {
            loop {
                let target = self.target()?;
                // The contents of a page must not be shown under the address of another page that it opens meanwhile.
                if let Some(frames) = self.frames(&target).await?
                    && self.target()? == target
                {
                    return Ok::<_, BrowserSessionError>((target, frames));
                }
            }
        };
        let (target, frames) = timeout(ANSWER_TIMEOUT, looking).await.map_err(|_| BrowserSessionError::NoAnswer)??;
        self.name_tabs().await?;
        self.may_be_shown(&target)?;
        let mut state = self.state();
        let snapshot = Snapshot::of(&frames, &mut state.references);
        Ok((target, snapshot))
    }

    /// Checks that the page of a tab may be shown, whatever led to it.
    ///
    /// # Errors
    /// [`BrowserSessionError::NotShown`].
    pub(crate) fn may_be_shown(&self, target: &CommandTarget) -> Result<(), BrowserSessionError> {
        Ok(self.state().may_be_shown(target)?)
    }

    /// Reads the titles of all tabs: no event reports their changes.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn name_tabs(&self) -> Result<(), BrowserSessionError> {
        let answer = self.devtools.call(&CommandTarget(None), "Target.getTargets", json!({})).await?;
        self.state().named(&answer);
        Ok(())
    }

    /// Returns the trees of the page and of its frames, which are requested and parsed one after the other; `None` if
    /// another page was loaded meanwhile.
    async fn frames(&self, target: &CommandTarget) -> Result<Option<Vec<FrameAccessibilityTree>>, BrowserSessionError> {
        if let Some(tab) = self.state().tab_of(target) {
            tab.begin_snapshot();
        }
        let tree_answer = self.devtools.call(target, "Page.getFrameTree", json!({})).await?;
        let mut waiting: Vec<(&Value, bool)> =
            tree_answer.get("frameTree").map(|tree| (tree, true)).into_iter().collect();
        let mut frames: Vec<FrameAccessibilityTree> = Vec::new();
        let mut room = MAX_NODES;
        while let Some((tree, is_page)) = waiting.pop() {
            let children = tree.get("childFrames").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            waiting.extend(children.iter().map(|child| (child, false)));
            let part = |name: &str| tree.get("frame").and_then(|frame| frame.get(name)).and_then(Value::as_str);
            let is_name = |name: &&str| !name.is_empty() && name.len() <= MAX_ID_BYTES;
            let (Some(id), Some(document)) = (part("id").filter(is_name), part("loaderId").filter(is_name)) else {
                continue;
            };
            if frames.len() >= MAX_FRAMES || room == 0 {
                if let Some(page) = frames.first_mut() {
                    page.is_cut = true;
                }
                break;
            }
            let frame = Frame {
                parent: part("parentId").filter(is_name).map(str::to_owned),
                document: document.to_owned(),
                url: part("url").unwrap_or_default().to_owned(),
                ..Frame::default()
            };
            // Frames are read one after the other: this one may have another document by now, with elements of another
            // site.
            if self.state().tab_of(target).is_some_and(|tab| !tab.record_frame(id, frame, is_page)) {
                if is_page {
                    return Ok(None);
                }
                continue;
            }
            let owner = match is_page {
                true => None,
                // A removed frame has no owner, and is omitted.
                false => match self.owner(target, id).await {
                    Some(owner) => Some(owner),
                    None => continue,
                },
            };
            let answer = self.devtools.ask(target, "Accessibility.getFullAXTree", json!({"frameId": id})).await;
            match answer {
                Ok(answer) => {
                    let document: Arc<str> = document.into();
                    let frame =
                        run_blocking(move || Ok(FrameAccessibilityTree::read(document, owner, answer.result(), room)))
                            .await?;
                    room = room.saturating_sub(frame.nodes.len());
                    frames.push(frame);
                }
                Err(error) if is_page => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(Some(frames))
    }

    /// Returns the element that contains a frame. It never changes while the frame exists.
    async fn owner(&self, target: &CommandTarget, frame: &str) -> Option<BackendNodeId> {
        let known = self.state().tab_of(target).and_then(|tab| tab.frames.get(frame)?.owner);
        if known.is_some() {
            return known;
        }
        let answer = self.devtools.call(target, "DOM.getFrameOwner", json!({"frameId": frame})).await.ok()?;
        let owner = answer.get("backendNodeId")?.as_i64();
        if let Some(frame) = self.state().tab_of(target).and_then(|tab| tab.frames.get_mut(frame)) {
            frame.owner = owner;
        }
        owner
    }

    /// Returns the target and the element of a reference, if the current tab still has its document.
    ///
    /// # Errors
    /// [`BrowserSessionError::Stale`], [`BrowserSessionError::UnknownElement`], [`BrowserSessionError::NoTab`].
    pub(crate) fn element(
        &self,
        reference: ElementReference,
    ) -> Result<(CommandTarget, ElementNodeId), BrowserSessionError> {
        let state = self.state();
        let tab = state.current().ok_or(BrowserSessionError::NoTab)?;
        let target = tab.target.clone().ok_or(BrowserSessionError::NoTab)?;
        match state.references.element(reference) {
            Some(element) if tab.frames.values().any(|frame| *frame.document == *element.document) => {
                Ok((target, element.clone()))
            }
            Some(_) => Err(BrowserSessionError::Stale(reference)),
            None if state.references.was_given(reference) => Err(BrowserSessionError::Stale(reference)),
            None => Err(BrowserSessionError::UnknownElement(reference)),
        }
    }

    /// Returns a removed element and similar lines of the current page; `None` if the element is unknown.
    pub(crate) async fn find_removed(&self, reference: ElementReference) -> Option<RemovedElementReport> {
        let gone = {
            let state = self.state();
            let tab = state.current()?;
            let seen = tab.last_snapshot.as_ref().and_then(|seen| seen.line_of(reference));
            seen.or_else(|| tab.removed_lines.line_of(reference)).cloned()?
        };
        let (_, now) = self.snapshot().await.ok()?;
        let named = if gone.name().is_empty() { String::new() } else { format!(" \"{}\"", gone.name()) };
        let alike = now.find_similar(&gone).into_iter().filter(|line| line.reference != Some(reference));
        Some(RemovedElementReport {
            description: format!("{}{named}", gone.role()),
            similar: alike.map(|line| line.text.clone()).collect(),
        })
    }

    /// Returns the host of the frame that contains an element. That host receives the input to the element, whatever
    /// page contains the frame. `None` if the element is not in the current tab, or its frame has no host.
    pub(crate) fn host_of(&self, reference: ElementReference) -> Option<String> {
        let state = self.state();
        let document = &state.references.element(reference)?.document;
        let tab = state.current()?;
        let (frame, _) = tab.frames.iter().find(|(_, frame)| *frame.document == **document)?;
        tab.host_of_frame(frame)
    }

    /// Sends a command to this target, and waits for its answer, at most [`ANSWER_TIMEOUT`].
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn command(
        &self,
        target: &CommandTarget,
        method: &str,
        params: Value,
    ) -> Result<Value, BrowserSessionError> {
        let answer = timeout(ANSWER_TIMEOUT, self.lasting_command(target, method, params)).await;
        answer.unwrap_or(Err(BrowserSessionError::NoAnswer))
    }

    /// Sends a command without a time limit of its own; the caller must limit it.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn lasting_command(
        &self,
        target: &CommandTarget,
        method: &str,
        params: Value,
    ) -> Result<Value, BrowserSessionError> {
        Ok(self.devtools.call(target, method, params).await?)
    }
}

/// Runs long work on a thread where it does not block other tasks.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BrowserSessionError> + Send + 'static,
) -> Result<T, BrowserSessionError> {
    // The join fails only if the work panics.
    spawn_blocking(work).await.unwrap_or(Err(DevToolsError::Ended(BrowserExit::default()).into()))
}

impl SharedSessionState {
    fn state(&self) -> MutexGuard<'_, BrowserState> {
        // A panic would be a bug of Toolstead; the state is still the best that is known.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
