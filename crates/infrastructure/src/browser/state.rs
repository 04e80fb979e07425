//! The state of a browser's tabs. It is updated by the events of the browser, in their order; nothing here waits.
//!
//! The judge of the latest call decides about each page that a tab loads: a page may navigate by itself later, and that
//! call still led to it.

use crate::browser::{
    accessibility::{BackendNodeId, plain, plain_text},
    devtools::{CommandTarget, DevToolsEvent, ReceivedEvent},
    references::{ElementReference, References},
    removed_lines::RemovedElementLines,
    snapshot::Snapshot,
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fmt,
    sync::Arc,
};
use toolstead_domain::{Suggestion, Verdict};
use url::Url;

/// Maximum number of tabs; further ones are closed at once.
const MAX_TABS: usize = 16;
/// Maximum number of frames that are tracked per tab.
const MAX_FRAMES: usize = 200;
/// Maximum number of requests that are tracked per tab; further ones are ignored.
const MAX_WATCHED: usize = 2_000;
/// Maximum number of messages of a tab, and of notes of a browser, that are stored until they are read.
const MAX_MESSAGES: usize = 20;
/// Maximum size of a file that a page downloads or receives, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 50 << 20;
/// Maximum length of a stored address, in characters.
const MAX_ADDRESS: usize = 2_000;
/// Maximum length of the browser's id of a tab, frame or request, in bytes. Longer ids are ignored.
pub(crate) const MAX_ID_BYTES: usize = 200;
/// Maximum number of different refused pages that are reported. They have a limit of their own, so that a page cannot
/// displace them by other notes.
const MAX_REFUSED: usize = 10;

/// Function that decides about showing pages of a host.
pub(crate) type HostJudge = Arc<dyn Fn(&str) -> Verdict + Send + Sync>;

/// The reason why a page is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PageRefusal {
    /// The text is not an address.
    #[error("`{0}` is not an address of a page")]
    NoAddress(String),
    /// The scheme is neither HTTP nor HTTPS.
    #[error("`{0}` was not opened: only http and https addresses are supported")]
    NotOfTheWeb(String),
    /// No rule allows its host.
    #[error("a page of `{0}` was not opened: its host is not allowed")]
    NotAllowed(String),
    /// A rule denies its host.
    #[error("a page of `{0}` was not opened: a permission rule denies its host")]
    Denied(String),
}

impl PageRefusal {
    /// Returns the next step for a model.
    pub(crate) fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::NoAddress(_) | Self::NotOfTheWeb(_) => None,
            Self::NotAllowed(_) => Some("`browser_navigate` asks the user to allow it."),
            Self::Denied(_) => Some("Your user may change the rules."),
        }
    }

    /// Returns a suggestion of the rule that would allow the page; `None` if a further rule would not help.
    pub(crate) fn suggestion(&self) -> Option<Suggestion> {
        match self {
            Self::NoAddress(_) | Self::NotOfTheWeb(_) | Self::Denied(_) => None,
            Self::NotAllowed(host) => {
                // Rules on domains cannot contain IPv6 addresses.
                let rule = if host.contains(':') { "WebFetch".to_owned() } else { format!("WebFetch(domain:{host})") };
                Some(Suggestion::AllowRules(vec![rule]))
            }
        }
    }

    fn to_note(&self) -> String {
        let text = self.to_string();
        let message = match text.strip_prefix("a page") {
            Some(rest) => format!("A page{rest}."),
            None => format!("{text}."),
        };
        self.next_step().map_or(message.clone(), |next| format!("{message} {next}"))
    }
}

/// The tabs of one browser.
#[derive(Default)]
pub(crate) struct BrowserState {
    pub(crate) tabs: BTreeMap<TabNumber, Tab>,
    /// The tab that calls act on.
    pub(crate) current: Option<TabNumber>,
    pub(crate) references: References,
    pub(crate) downloads: Vec<Download>,
    /// `true` if a call waits for a download. All other downloads are cancelled: they would fill the disk.
    awaits_download: bool,
    /// Answer to the next dialog of a page; `None`: the dialog is dismissed.
    dialog_answer: Option<DialogAnswer>,
    /// Notes for the next result.
    notes: VecDeque<String>,
    /// Refused pages, each with the number of times.
    refused: Vec<(PageRefusal, u64)>,
    /// Number of refusals of pages that are not in `refused`, because it is full.
    further_refused: u64,
    given_tabs: TabNumber,
    judge: Option<HostJudge>,
}

/// Number of a tab for callers: it starts at 1 and is never reused.
pub(crate) type TabNumber = u32;

/// One tab.
#[derive(Debug, Default)]
pub(crate) struct Tab {
    /// Id of the tab in the browser.
    pub(crate) id: String,
    /// Target of commands for this tab.
    pub(crate) target: Option<CommandTarget>,
    pub(crate) url: String,
    /// Host of the latest page with a host, in this tab or in the tab that opened it. That page is the creator of pages
    /// without a host (`about:blank`, `blob:`).
    creator_host: Option<String>,
    pub(crate) title: String,
    pub(crate) main_frame: Option<String>,
    pub(crate) frames: HashMap<String, Frame>,
    pub(crate) is_loading: bool,
    /// Requests without an answer so far.
    pub(crate) open_requests: HashSet<String>,
    /// The last snapshot that a caller received.
    pub(crate) last_snapshot: Option<Snapshot>,
    /// Lines of removed elements that a caller received.
    pub(crate) removed_lines: RemovedElementLines,
    /// References of the page as last shown, in its order, for tool systems that address elements by number.
    pub(crate) numbered: Vec<ElementReference>,
    /// Frame and element by which a page asked for files.
    pub(crate) file_chooser: Option<(String, BackendNodeId)>,
    /// `true` if the current call acts on this tab: its answers to dialogs and downloads apply to this tab, and to tabs
    /// that are opened from it.
    is_meant: bool,
    /// The latest page that was refused in this tab.
    pub(crate) not_shown: Option<PageRefusal>,
    messages: VecDeque<String>,
    left_out: usize,
}

/// A frame of a tab.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    pub(crate) parent: Option<String>,
    /// Id of its document.
    pub(crate) document: String,
    pub(crate) url: String,
    /// Element that contains it, once that is known.
    pub(crate) owner: Option<BackendNodeId>,
    /// Host of the creator of the document if its address has no host; else the host of the latest document that had
    /// one.
    pub(crate) creator_host: Option<String>,
    /// `true` if the document was loaded after the current snapshot was started.
    pub(crate) has_come: bool,
}

/// The answer to a dialog of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DialogAnswer {
    /// OK, with the text for a prompt.
    Accept(Option<String>),
    /// Cancel.
    Dismiss,
}

/// A file that a page made the browser download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Download {
    /// File name in the folder for downloads.
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) state: DownloadState,
}

/// The progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DownloadState {
    Running,
    Done,
    Failed,
}

impl BrowserState {
    /// Replaces the judge.
    pub(crate) fn set_judge(&mut self, judge: HostJudge) {
        self.judge = Some(judge);
    }

    /// Sets the answers of a call to dialogs and downloads of the current tab, and of tabs that are opened from it.
    /// Other tabs do not receive them.
    pub(crate) fn expects(&mut self, dialog: Option<DialogAnswer>, takes_download: bool) {
        (self.dialog_answer, self.awaits_download) = (dialog, takes_download);
        for (number, tab) in &mut self.tabs {
            tab.is_meant = self.current == Some(*number);
        }
    }

    /// Removes and returns the notes since the previous call, including those about refused pages.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        let refused = self.refused.drain(..).map(|(why, times)| match times {
            1 => why.to_note(),
            times => format!("{} ({times} times)", why.to_note()),
        });
        let mut notes: Vec<String> = self.notes.drain(..).chain(refused).collect();
        if self.further_refused > 0 {
            notes.push(format!("Further pages were not opened, {} times.", self.further_refused));
            self.further_refused = 0;
        }
        notes
    }

    /// Returns the refused pages without taking them.
    #[cfg(test)]
    pub(crate) fn refused(&self) -> impl Iterator<Item = &PageRefusal> {
        self.refused.iter().map(|(why, _)| why)
    }

    /// Returns `true` if there are notes.
    #[cfg(test)]
    pub(crate) fn has_notes(&self) -> bool {
        !self.notes.is_empty() || !self.refused.is_empty()
    }

    /// Returns the tab that calls act on.
    pub(crate) fn current(&self) -> Option<&Tab> {
        self.tabs.get(&self.current?)
    }

    /// Returns the tab that calls act on, for changes.
    pub(crate) fn current_mut(&mut self) -> Option<&mut Tab> {
        self.tabs.get_mut(&self.current?)
    }

    fn note(&mut self, note: String) {
        if self.notes.len() >= MAX_MESSAGES {
            self.notes.pop_front();
        }
        self.notes.push_back(note);
    }

    fn refuse(&mut self, why: PageRefusal) {
        if let Some((_, times)) = self.refused.iter_mut().find(|(known, _)| *known == why) {
            *times += 1;
        } else if self.refused.len() < MAX_REFUSED {
            self.refused.push((why, 1));
        } else {
            self.further_refused += 1;
        }
    }

    /// Clears the refusal of the current tab before another page is loaded. The note about it remains.
    pub(crate) fn forget_not_shown(&mut self) {
        if let Some(tab) = self.current_mut() {
            tab.not_shown = None;
        }
    }

    /// Takes the latest refusal of the current tab, and removes the note about it, since the caller reports it.
    pub(crate) fn take_not_shown(&mut self) -> Option<PageRefusal> {
        let why = self.current_mut()?.not_shown.take()?;
        self.refused.retain(|(known, _)| *known != why);
        Some(why)
    }

    /// Returns the tab that receives the commands for this target.
    pub(crate) fn tab_of(&mut self, target: &CommandTarget) -> Option<&mut Tab> {
        self.tabs.values_mut().find(|tab| tab.target.as_ref() == Some(target))
    }

    fn tab_called(&mut self, id: &str) -> Option<&mut Tab> {
        self.tabs.values_mut().find(|tab| tab.id == id)
    }

    /// Applies an event, and sends a command to the browser if that cannot wait.
    pub(crate) fn apply_event(&mut self, heard: &ReceivedEvent<'_>) {
        let event = &heard.event;
        match event.method.as_str() {
            "Target.attachedToTarget" => self.attached(heard),
            "Target.detachedFromTarget" => {
                if let Some(session) = id(&event.params, "sessionId") {
                    self.forget(&CommandTarget(Some(session.into())));
                }
            }
            "Fetch.requestPaused" => self.paused(heard),
            "Page.javascriptDialogOpening" => self.dialog(heard),
            "Page.fileChooserOpened" => self.file_chooser(event),
            "Browser.downloadWillBegin" => self.download_begins(heard),
            "Browser.downloadProgress" => self.download_progressed(heard),
            _ => {
                if let Some(tab) = self.tab_of(&event.target) {
                    tab.apply_event(event);
                    if event.method == "Page.frameNavigated" {
                        let frames = self.tabs.values().flat_map(|tab| tab.frames.values());
                        let documents: HashSet<&str> = frames.map(|frame| frame.document.as_str()).collect();
                        self.references.keep(|document| documents.contains(document));
                    }
                }
            }
        }
    }

    fn attached(&mut self, heard: &ReceivedEvent<'_>) {
        let params = &heard.event.params;
        let Some(session) = id(params, "sessionId") else { return };
        let target = CommandTarget(Some(session.into()));
        let info = params.get("targetInfo").and_then(Value::as_object);
        let info_text = |name| info.and_then(|info| id(info, name)).unwrap_or_default();
        let resume = |target: &CommandTarget| {
            heard.post(target, "Runtime.runIfWaitingForDebugger", json!({}));
        };
        if info_text("type") != "page" {
            // The proxy decides about requests of workers. It permits announced hosts, also those announced by nested
            // workers.
            for (method, params) in announcing() {
                heard.post(&target, method, params);
            }
            return resume(&target);
        }
        if self.tabs.len() >= MAX_TABS {
            heard.post(&CommandTarget(None), "Target.closeTarget", json!({"targetId": info_text("targetId")}));
            return self.note(format!("A page opened a tab; {MAX_TABS} are already open, so it was closed."));
        }
        let documents = json!([{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]);
        for (method, params) in [
            ("Fetch.enable", json!({"patterns": documents})),
            ("Page.enable", json!({})),
            ("Page.setInterceptFileChooserDialog", json!({"enabled": true})),
            ("Page.setLifecycleEventsEnabled", json!({"enabled": true})),
            ("Runtime.enable", json!({})),
            ("Log.enable", json!({})),
            ("Accessibility.enable", json!({})),
            // The window of a full browser has toolbars, which make the page smaller than `--window-size`.
            (
                "Emulation.setDeviceMetricsOverride",
                json!({"width": 1280, "height": 800, "deviceScaleFactor": 0, "mobile": false}),
            ),
        ]
        .into_iter()
        .chain(announcing())
        {
            // A tab whose pages could not be checked never starts to run.
            if !heard.post(&target, method, params) {
                return self.note("A page opened a tab that could not be tracked; it shows nothing.".into());
            }
        }
        self.given_tabs = self.given_tabs.saturating_add(1);
        let number = self.given_tabs;
        let opener = info_text("openerId");
        // A frame of another site controls the page that it opens.
        let frame = info_text("openerFrameId");
        let made_by = self.tab_called(opener).and_then(|opener| opener.host_of_frame(frame).or_else(|| opener.host()));
        // A tab that a call opens has no opener.
        let is_meant = opener.is_empty() || self.tab_called(opener).is_some_and(|opener| opener.is_meant);
        let id = info_text("targetId").to_owned();
        let tab = Tab { id, target: Some(target.clone()), creator_host: made_by, is_meant, ..Tab::default() };
        if !opener.is_empty() {
            self.note(format!("The page opened tab {number}, which is the current one now."));
        }
        self.tabs.insert(number, tab);
        self.current = Some(number);
        resume(&target);
    }

    /// Updates the titles of the tabs from the result of the DevTools command `Target.getTargets`.
    pub(crate) fn named(&mut self, answer: &Value) {
        let targets = answer.get("targetInfos").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for target in targets.iter().filter_map(Value::as_object) {
            if let Some(tab) = text(target, "targetId").and_then(|id| self.tab_called(id)) {
                // The address here may be that of a page which is still loading; that of the current page arrives as an
                // event.
                tab.title = target.get("title").map(plain).unwrap_or_default().replace('"', "'");
            }
        }
    }

    /// Lets a frame continue its request for a document, or aborts the request. Only the document of the tab itself is
    /// checked; documents of inner frames are checked by the proxy, like all other requests.
    fn paused(&mut self, heard: &ReceivedEvent<'_>) {
        let DevToolsEvent { target, params, .. } = &heard.event;
        // A request without an id stays paused.
        let Some(request) = id(params, "requestId") else { return };
        let url = params.get("request").and_then(|request| request.get("url")).and_then(Value::as_str);
        // An unknown frame of an unknown tab is checked like a page.
        let is_main = id(params, "frameId").is_none_or(|frame| {
            self.tab_of(target).is_none_or(|tab| tab.frames.get(frame).is_none_or(|frame| frame.parent.is_none()))
        });
        let refused = match is_main {
            true => self.check_address(url.unwrap_or_default()).err(),
            false => None,
        };
        match refused {
            None => heard.post(target, "Fetch.continueRequest", json!({"requestId": request})),
            Some(why) => {
                if let Some(tab) = self.tab_of(target) {
                    tab.not_shown = Some(why.clone());
                }
                self.refuse(why);
                // The current page remains.
                let reason = json!({"requestId": request, "errorReason": "Aborted"});
                heard.post(target, "Fetch.failRequest", reason)
            }
        };
    }

    /// Checks that the page of a tab may be shown, whatever led to it.
    ///
    /// # Errors
    /// The reason why it may not be shown.
    pub(crate) fn may_be_shown(&mut self, target: &CommandTarget) -> Result<(), PageRefusal> {
        let Some(tab) = self.tab_of(target) else { return Ok(()) };
        if !tab.is_of_web() {
            return Err(PageRefusal::NotOfTheWeb(plain_text(&tab.url)));
        }
        let host = tab.host();
        host.map_or(Ok(()), |host| self.check_host(&host))
    }

    /// Checks that a tab may show this address.
    ///
    /// # Errors
    /// The reason why it may not.
    pub(crate) fn check_address(&self, address: &str) -> Result<(), PageRefusal> {
        let shown = || plain_text(address);
        let url = Url::parse(address).map_err(|_| PageRefusal::NoAddress(shown()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(PageRefusal::NotOfTheWeb(shown()));
        }
        let host = url.host_str().filter(|host| host.len() <= MAX_ID_BYTES * 2);
        self.check_host(host.ok_or_else(|| PageRefusal::NoAddress(shown()))?)
    }

    /// Checks that a tab may show pages of this host.
    ///
    /// # Errors
    /// The reason why it may not.
    pub(crate) fn check_host(&self, host: &str) -> Result<(), PageRefusal> {
        match self.judge.as_ref().map_or(Verdict::Ask, |judge| judge(host)) {
            Verdict::Allow => Ok(()),
            Verdict::Ask => Err(PageRefusal::NotAllowed(host.into())),
            Verdict::Deny => Err(PageRefusal::Denied(host.into())),
        }
    }

    fn dialog(&mut self, heard: &ReceivedEvent<'_>) {
        let DevToolsEvent { target, params, .. } = &heard.event;
        let kind = params.get("type").map_or("alert".into(), plain);
        let said = params.get("message").map(plain).unwrap_or_default().replace('"', "'");
        let answer = match kind.as_str() {
            // A call that navigates the tab intends to leave the page.
            "beforeunload" => DialogAnswer::Accept(None),
            _ if self.tab_of(target).is_some_and(|tab| tab.is_meant) => {
                self.dialog_answer.take().unwrap_or(DialogAnswer::Dismiss)
            }
            _ => DialogAnswer::Dismiss,
        };
        let (accept, prompt, word) = match answer {
            DialogAnswer::Accept(prompt) => (true, prompt, "accepted"),
            DialogAnswer::Dismiss => (false, None, "dismissed"),
        };
        let params = json!({"accept": accept, "promptText": prompt.unwrap_or_default()});
        heard.post(target, "Page.handleJavaScriptDialog", params);
        self.note(format!("The page showed a dialog ({kind}): \"{said}\". It was {word}."));
    }

    fn file_chooser(&mut self, event: &DevToolsEvent) {
        let Some(element) = event.params.get("backendNodeId").and_then(Value::as_i64) else { return };
        let frame = text(&event.params, "frameId").unwrap_or_default().to_owned();
        if let Some(tab) = self.tab_of(&event.target) {
            tab.file_chooser = Some((frame, element));
            self.note(
                "The page requests a file: upload it with `browser_type` and `files` on the same element.".into(),
            );
        }
    }

    fn download_begins(&mut self, heard: &ReceivedEvent<'_>) {
        let params = &heard.event.params;
        let (Some(id), Some(name)) = (id(params, "guid"), params.get("suggestedFilename")) else { return };
        let name = plain(name).replace('"', "'");
        let frame = text(params, "frameId").unwrap_or_default();
        // A tab without a page uses its own id for its frame.
        let mut of_frame = self.tabs.values().filter(|tab| tab.id == frame || tab.frames.contains_key(frame));
        let is_meant = self.awaits_download && of_frame.all(|tab| tab.is_meant);
        if is_meant {
            self.awaits_download = false;
        } else {
            heard.post(&CommandTarget(None), "Browser.cancelDownload", json!({"guid": id}));
            return self
                .note(format!("The page offered the file \"{name}\", which was not saved: `save_as` saves one."));
        }
        let url = params.get("url").map(plain).unwrap_or_default();
        self.downloads.push(Download { id: id.into(), url, state: DownloadState::Running });
    }

    fn download_progressed(&mut self, heard: &ReceivedEvent<'_>) {
        let params = &heard.event.params;
        let id = text(params, "guid").unwrap_or_default();
        let Some(download) = self.downloads.iter_mut().find(|download| download.id == id) else {
            // The download should have been cancelled already, but the command may have been lost.
            if text(params, "state") == Some("inProgress") && id.len() <= MAX_ID_BYTES {
                heard.post(&CommandTarget(None), "Browser.cancelDownload", json!({"guid": id}));
            }
            return;
        };
        let bytes = params.get("receivedBytes").and_then(Value::as_f64).unwrap_or_default();
        download.state = match text(params, "state") {
            Some("completed") => DownloadState::Done,
            Some("canceled") => DownloadState::Failed,
            _ => DownloadState::Running,
        };
        if download.state == DownloadState::Running && bytes > MAX_FILE_BYTES as f64 {
            heard.post(&CommandTarget(None), "Browser.cancelDownload", json!({"guid": id}));
        }
    }

    fn forget(&mut self, target: &CommandTarget) {
        self.tabs.retain(|_, tab| tab.target.as_ref() != Some(target));
        if self.current.is_some_and(|current| !self.tabs.contains_key(&current)) {
            self.current = self.tabs.keys().next_back().copied();
        }
    }
}

impl Tab {
    /// Removes and returns the messages of the page since the previous call.
    pub(crate) fn take_messages(&mut self) -> Vec<String> {
        let mut messages: Vec<String> = self.messages.drain(..).collect();
        if self.left_out > 0 {
            messages.insert(0, format!("{} earlier ones are omitted", self.left_out));
            self.left_out = 0;
        }
        messages
    }

    /// Returns the messages without taking them.
    #[cfg(test)]
    pub(crate) fn messages(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(String::as_str)
    }

    /// Returns the host of the page, which receives what is done in it.
    pub(crate) fn host(&self) -> Option<String> {
        host(&self.url).or_else(|| self.creator_host.clone())
    }

    /// Returns `true` if a tab may show the address: an address of the web, or of a page that a page created.
    fn is_of_web(&self) -> bool {
        let is_shown = |url: Url| matches!(url.scheme(), "http" | "https" | "about" | "blob" | "chrome-error");
        self.url.is_empty() || Url::parse(&self.url).is_ok_and(is_shown)
    }

    /// Returns the address for results, or a text in its place if it is not on the web: a compromised browser may
    /// report any address.
    pub(crate) fn shown_address(&self) -> &str {
        if self.is_of_web() { &self.url } else { "an address that is not on the web" }
    }

    /// Records that the tab shows another page.
    pub(crate) fn shows(&mut self, url: &str) {
        self.url = address(url);
        self.creator_host = self.host();
    }

    fn message(&mut self, message: String) {
        let message = plain_text(&message);
        if self.messages.contains(&message) {
            return;
        }
        if self.messages.len() >= MAX_MESSAGES {
            self.messages.pop_front();
            self.left_out += 1;
        }
        self.messages.push_back(message);
    }

    fn apply_event(&mut self, event: &DevToolsEvent) {
        let params = &event.params;
        match event.method.as_str() {
            "Page.frameNavigated" => self.navigated(params),
            "Page.frameAttached" => {
                if let (Some(frame), Some(parent)) = (id(params, "frameId"), id(params, "parentFrameId"))
                    && !self.frames.contains_key(frame)
                {
                    self.update_frame(frame, Frame { parent: Some(parent.into()), ..Frame::default() });
                }
            }
            "Page.frameDetached" if text(params, "reason") != Some("swap") => {
                self.frames.remove(text(params, "frameId").unwrap_or_default());
            }
            "Page.frameStartedLoading" if self.is_main(params) => self.is_loading = true,
            "Page.frameStoppedLoading" if self.is_main(params) => self.is_loading = false,
            "Runtime.executionContextCreated" => self.context_created(params),
            "Page.navigatedWithinDocument" if self.is_main(params) => {
                self.shows(text(params, "url").unwrap_or_default());
            }
            "Network.requestWillBeSent" => {
                // Requests that stay open on purpose do not show that the page is busy.
                let is_lasting = matches!(text(params, "type"), Some("EventSource" | "WebSocket" | "Ping" | "Media"));
                if let (Some(id), false) = (id(params, "requestId"), is_lasting)
                    && self.open_requests.len() < MAX_WATCHED
                {
                    self.open_requests.insert(id.to_owned());
                }
            }
            // The log also reports failed requests.
            "Network.loadingFinished" | "Network.loadingFailed" => {
                self.open_requests.remove(text(params, "requestId").unwrap_or_default());
            }
            "Runtime.exceptionThrown" => {
                let details = params.get("exceptionDetails");
                let thrown = details.and_then(|details| details.get("exception")?.get("description"));
                let said = thrown.or(details.and_then(|details| details.get("text"))).map(plain).unwrap_or_default();
                self.message(format!("error: {said}"));
            }
            "Runtime.consoleAPICalled" => {
                let kind = text(params, "type").unwrap_or("log");
                if matches!(kind, "error" | "warning" | "assert") {
                    let words = params.get("args").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                    let word =
                        |word: &Value| word.get("value").or(word.get("description")).map(plain).unwrap_or_default();
                    let words: Vec<String> = words.iter().take(10).map(word).collect();
                    self.message(format!("console {kind}: {}", words.join(" ")));
                }
            }
            "Log.entryAdded" => {
                let entry = params.get("entry").and_then(Value::as_object);
                if let Some(entry) = entry.filter(|entry| text(entry, "level") == Some("error")) {
                    let said = entry.get("text").map(plain).unwrap_or_default();
                    let url = text(entry, "url").map(address).unwrap_or_default();
                    self.message(match said.strip_prefix("Failed to load resource: ") {
                        // A full browser requests it for every site, and a headless one never does.
                        Some(_) if url.ends_with("/favicon.ico") => return,
                        Some(why) => format!("request failed: {why} ({url})"),
                        None => format!("error: {said}"),
                    });
                }
            }
            _ => {}
        }
    }

    fn is_main(&self, params: &Map<String, Value>) -> bool {
        text(params, "frameId").is_some_and(|frame| self.is_main_frame(frame))
    }

    /// Returns `true` for the main frame of the tab. Its id is that of the tab, which is known before the tab shows a
    /// page.
    fn is_main_frame(&self, frame: &str) -> bool {
        frame == self.id || self.main_frame.as_deref() == Some(frame)
    }

    fn navigated(&mut self, params: &Map<String, Value>) {
        let Some(frame) = params.get("frame").and_then(Value::as_object) else { return };
        let (Some(id), Some(document)) = (id(frame, "id"), id(frame, "loaderId")) else { return };
        let parent = text(frame, "parentId").map(|parent| parent.chars().take(MAX_ID_BYTES).collect::<String>());
        let url = text(frame, "url").unwrap_or_default().to_owned();
        // A document that a snapshot has read already does not reset the tab.
        let is_known = self.frames.get(id).is_some_and(|frame| frame.document == document);
        if parent.is_none() && !is_known {
            self.frames.clear();
            self.open_requests.clear();
            if let Some(seen) = self.last_snapshot.take() {
                self.removed_lines.keep(seen, &Snapshot::default());
            }
            self.file_chooser = None;
            self.main_frame = Some(id.to_owned());
            self.shows(&url);
        }
        self.update_frame(id, Frame { parent, document: document.to_owned(), url, has_come: true, ..Frame::default() });
    }

    /// Handles a new script context in a frame. The origin of a document without a host is that of the script which
    /// navigated the frame, not necessarily that of the page or frame around it.
    fn context_created(&mut self, params: &Map<String, Value>) {
        let Some(context) = params.get("context").and_then(Value::as_object) else { return };
        let Some(about) = context.get("auxData").and_then(Value::as_object) else { return };
        let (Some(frame), Some(maker)) = (id(about, "frameId"), text(context, "origin").and_then(host)) else { return };
        // An isolated world of Toolstead may have been created before the document.
        if about.get("isDefault") != Some(&Value::Bool(true)) {
            return;
        }
        if self.main_frame.as_deref().unwrap_or(&self.id) == frame && host(&self.url).is_none() {
            self.creator_host = Some(maker.clone());
        }
        if let Some(frame) = self.frames.get_mut(frame).filter(|frame| host(&frame.url).is_none()) {
            frame.creator_host = Some(maker);
        }
    }

    /// Marks the start of a snapshot.
    pub(crate) fn begin_snapshot(&mut self) {
        self.frames.values_mut().for_each(|frame| frame.has_come = false);
    }

    /// Records a frame as read by a snapshot. Returns `false`, and records nothing, if another document was loaded into
    /// the frame since the snapshot began, so that the snapshot is outdated.
    pub(crate) fn record_frame(&mut self, id: &str, frame: Frame, is_page: bool) -> bool {
        if self.frames.get(id).is_some_and(|known| known.has_come && known.document != frame.document) {
            return false;
        }
        if is_page {
            self.main_frame = Some(id.to_owned());
            self.shows(&frame.url);
        }
        self.update_frame(id, frame);
        true
    }

    /// Returns the host that is responsible for a frame: its own, else that of its creator, else that of the frame or
    /// page around it.
    pub(crate) fn host_of_frame(&self, id: &str) -> Option<String> {
        let mut frame = self.frames.get(id)?;
        for _ in 0..MAX_FRAMES {
            match host(&frame.url).or_else(|| frame.creator_host.clone()) {
                Some(host) => return Some(host),
                None => frame = self.frames.get(frame.parent.as_deref()?)?,
            }
        }
        None
    }

    /// Records the current state of a frame; its known element and creator remain if `frame` has none. Ignores a new
    /// frame if there are too many.
    pub(crate) fn update_frame(&mut self, id: &str, frame: Frame) {
        // The element that contains a frame does not change with its document.
        let known = self.frames.get(id);
        let owner = frame.owner.or(known.and_then(|known| known.owner));
        // A frame that navigates itself to a page without a host remains the creator of that page.
        let made_by = host(&frame.url).or_else(|| known.and_then(|known| known.creator_host.clone()));
        let frame = Frame { url: address(&frame.url), owner, creator_host: made_by, ..frame };
        if self.frames.len() < MAX_FRAMES || self.frames.contains_key(id) {
            self.frames.insert(id.to_owned(), frame);
        }
    }
}

/// Returns the commands that make a page or worker announce its requests, and those of the workers that it starts.
fn announcing() -> [(&'static str, Value); 2] {
    [
        ("Network.enable", json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0})),
        ("Target.setAutoAttach", json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})),
    ]
}

/// Returns an address in its stored form: without user and password, and truncated.
fn address(url: &str) -> String {
    // Other texts may contain control characters.
    let Ok(mut parsed) = Url::parse(url) else { return plain_text(url) };
    // Fails for addresses without a host, which have no user.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    String::from(parsed).chars().take(MAX_ADDRESS).collect()
}

/// Returns the host of a web address; for `blob:`, that of its creator.
pub(crate) fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    match url.scheme() {
        "blob" => host_of_page(&Url::parse(url.path()).ok()?),
        // The browser's own error page (`chrome-error://chromewebdata/`).
        "chrome-error" => None,
        _ => host_of_page(&url),
    }
}

fn host_of_page(url: &Url) -> Option<String> {
    let is_web = matches!(url.scheme(), "http" | "https");
    url.host_str().filter(|host| is_web && !host.is_empty()).map(str::to_owned)
}

/// Returns the member with this name as an id; `None` if it is missing, empty or too long.
fn id<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    text(members, name).filter(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES)
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name)?.as_str()
}

impl fmt::Debug for BrowserState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserState").field("tabs", &self.tabs).field("current", &self.current).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_frame_of_a_tab_is_recognized_before_the_first_page_loads() {
        let mut tab = Tab { id: "tab".into(), ..Tab::default() };
        let mut hears = |frame: &str| {
            let Value::Object(params) = json!({"frameId": frame}) else { panic!("it is an object") };
            tab.apply_event(&DevToolsEvent {
                target: CommandTarget(None),
                method: "Page.frameStartedLoading".into(),
                params,
            });
            tab.is_loading
        };
        assert!(!hears("within"));
        assert!(hears("tab"));
        tab.main_frame = Some("later".into());
        assert!(tab.is_main_frame("later") && tab.is_main_frame("tab") && !tab.is_main_frame("within"));
    }

    #[test]
    fn a_refused_page_suggests_a_rule_for_its_host_and_a_general_one_for_ipv6() {
        for (host, rule) in [
            ("shop.example", "WebFetch(domain:shop.example)"),
            ("127.0.0.1", "WebFetch(domain:127.0.0.1)"),
            ("[::1]", "WebFetch"),
        ] {
            let suggestion = PageRefusal::NotAllowed(host.into()).suggestion();
            assert_eq!(suggestion, Some(Suggestion::AllowRules(vec![rule.into()])), "{host}");
        }
    }

    #[test]
    fn a_page_without_a_host_inherits_the_host_of_the_previous_page() {
        let mut tab = Tab::default();
        assert_eq!(tab.host(), None);
        tab.shows("http://ann:secret@shop.example/a");
        assert_eq!((tab.url.as_str(), tab.host()), ("http://shop.example/a", Some("shop.example".into())));
        tab.shows("about:blank");
        assert_eq!(tab.host(), Some("shop.example".into()));
        tab.shows("chrome-error://chromewebdata/");
        assert_eq!(tab.host(), Some("shop.example".into()));
        tab.shows("blob:https://other.example/1-2");
        assert_eq!(tab.host(), Some("other.example".into()));
        tab.shows("chrome-error://chromewebdata/");
        assert_eq!(tab.host(), Some("other.example".into()));
    }

    #[test]
    fn a_frame_without_a_host_inherits_the_host_of_its_parent_frame() {
        let mut tab = Tab::default();
        for (id, parent, url) in [
            ("page", None, "http://shop.example/"),
            ("own", Some("page"), "about:srcdoc"),
            ("ad", Some("page"), "http://ads.example/"),
            ("of-ad", Some("ad"), "about:srcdoc"),
            ("data", Some("of-ad"), "data:text/html,x"),
            ("circle", Some("circle"), "about:blank"),
        ] {
            tab.update_frame(id, Frame { parent: parent.map(str::to_owned), url: url.into(), ..Frame::default() });
        }
        for (frame, host) in [
            ("own", Some("shop.example")),
            ("ad", Some("ads.example")),
            ("of-ad", Some("ads.example")),
            ("data", Some("ads.example")),
            ("circle", None),
            ("nobody", None),
        ] {
            assert_eq!(tab.host_of_frame(frame).as_deref(), host, "{frame}");
        }
    }

    fn hears(tab: &mut Tab, method: &str, params: Value) {
        let Value::Object(params) = params else { panic!("parameters are an object") };
        tab.apply_event(&DevToolsEvent { target: CommandTarget(None), method: method.into(), params });
    }

    fn navigates(tab: &mut Tab, frame: &str, document: &str, url: &str) {
        let parent = (frame != "page").then_some("page");
        let frame = json!({"id": frame, "parentId": parent, "loaderId": document, "url": url});
        hears(tab, "Page.frameNavigated", json!({"frame": frame}));
    }

    fn runs(tab: &mut Tab, frame: &str, origin: &str) {
        let about = json!({"isDefault": true, "frameId": frame});
        let context = json!({"origin": origin, "auxData": about});
        hears(tab, "Runtime.executionContextCreated", json!({"context": context}));
    }

    #[test]
    fn a_hostless_frame_has_the_host_of_its_script_origin_or_else_its_previous_host() {
        let mut tab = Tab::default();
        navigates(&mut tab, "page", "d1", "http://shop.example/");
        navigates(&mut tab, "ad", "d2", "http://ads.example/");
        navigates(&mut tab, "ad", "d3", "data:text/html,<input>");
        runs(&mut tab, "ad", "://");
        assert_eq!(tab.host_of_frame("ad").as_deref(), Some("ads.example"));
        // The page removes it.
        navigates(&mut tab, "ad", "d4", "about:blank");
        runs(&mut tab, "ad", "http://shop.example");
        assert_eq!(tab.host_of_frame("ad").as_deref(), Some("shop.example"));
        // Another site navigates the page away, and writes into it.
        navigates(&mut tab, "page", "d5", "about:blank");
        assert_eq!(tab.host().as_deref(), Some("shop.example"));
        runs(&mut tab, "page", "http://ads.example");
        assert_eq!(tab.host().as_deref(), Some("ads.example"));
        navigates(&mut tab, "page", "d6", "http://shop.example/");
        runs(&mut tab, "page", "http://ads.example");
        assert_eq!(tab.host().as_deref(), Some("shop.example"), "its address says more");
    }

    #[test]
    fn an_outdated_snapshot_does_not_replace_the_current_document_of_a_frame() {
        let mut tab = Tab::default();
        navigates(&mut tab, "page", "d1", "http://shop.example/");
        navigates(&mut tab, "ad", "d2", "about:blank");
        let text_of =
            |document: &str, url: &str| Frame { document: document.into(), url: url.into(), ..Frame::default() };
        let inner = |frame: Frame| Frame { parent: Some("page".into()), ..frame };
        tab.begin_snapshot();
        assert!(tab.record_frame("page", text_of("d1", "http://shop.example/"), true));
        assert!(tab.record_frame("ad", inner(text_of("d2", "about:blank")), false));
        navigates(&mut tab, "ad", "d3", "http://ads.example/");
        assert!(!tab.record_frame("ad", inner(text_of("d2", "about:blank")), false));
        assert_eq!((&*tab.frames["ad"].document, tab.host_of_frame("ad").as_deref()), ("d3", Some("ads.example")));
        navigates(&mut tab, "page", "d4", "http://bank.example/");
        assert!(!tab.record_frame("page", text_of("d1", "http://shop.example/"), true));
        assert_eq!(tab.host().as_deref(), Some("bank.example"));
        // The next snapshot shows the new document.
        tab.begin_snapshot();
        assert!(tab.record_frame("page", text_of("d4", "http://bank.example/"), true));
    }

    #[test]
    fn refused_pages_are_reported_even_after_many_other_notes() {
        let mut state = BrowserState::default();
        for number in 0..15 {
            state.refuse(PageRefusal::NotAllowed(format!("host{number}.example")));
        }
        state.refuse(PageRefusal::NotAllowed("host3.example".into()));
        for _ in 0..100 {
            state.note("The page showed a dialog".into());
        }
        let notes = state.take_notes();
        assert_eq!(notes.len(), MAX_MESSAGES + MAX_REFUSED + 1);
        let third = "A page of `host3.example` was not opened: its host is not allowed. `browser_navigate` asks \
                     the user to allow it. (2 times)";
        assert!(notes.contains(&third.to_owned()), "{notes:?}");
        assert_eq!(notes.last().unwrap(), "Further pages were not opened, 5 times.");
        assert!(state.take_notes().is_empty());
    }

    #[test]
    fn a_long_address_keeps_its_host_and_is_cut() {
        let user = "a".repeat(3_000);
        let kept = address(&format!("http://{user}@evil.example/#{user}"));
        assert_eq!((host(&kept), kept.len()), (Some("evil.example".into()), MAX_ADDRESS));
    }
}
