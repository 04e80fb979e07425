//! Browsers for tools: which session uses which, which element is meant, and how a page is reported.

use crate::{
    browser::{
        browsers::{BrowserLease, BrowserOwner},
        devtools::DevToolsError,
        keyboard::KeyPress,
        references::ElementReference,
        session::{BrowserSession, BrowserSessionError, PageLoadCondition, RemovedElementReport},
        snapshot::{Snapshot, SnapshotDiff},
        state::{BrowserState, DialogAnswer, DownloadState, MAX_FILE_BYTES, PageRefusal, Tab},
    },
    builtin::tool_kit::{foreign_answer::foreign_answer, tool_context::ToolContext, tool_environment::ToolEnvironment},
};
use elements::PageElement;
use schemars::JsonSchema;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tokio::time::timeout_at;
use toolstead_domain::{Access, Availability, Suggestion, ToolCall, ToolFailure, ToolResult, error_kind::ErrorKind};
use url::{ParseError, Url};

pub(super) mod browser_tool;
pub(super) mod elements;
#[cfg(test)]
mod tests;

/// Maximum number of characters of a page without a request for more: some four thousand tokens.
const USUAL_CHARACTERS: usize = 14_000;
/// Maximum time to wait after a click until a page is quiet.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(3);
/// Time without network requests after which a page is quiet.
const QUIET: Duration = Duration::from_millis(150);

/// Parts of a page that a result contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportScope<'a> {
    /// The changes if the caller knows the page, otherwise the page.
    Changes,
    /// The changes, never the page.
    ChangesAlone,
    /// The page, as far as it fits.
    Page,
    /// The page, as far as it fits, for a result that lists its elements as well.
    PageOfElements,
    /// As much of the page as a result can contain.
    All,
    /// The lines that contain all of these words.
    Lines(&'a str),
}

/// A page, as answers describe it beside their text.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct BrowserPageReport {
    url: String,
    title: String,
    /// The number of the tab.
    tab: u32,
    /// How many tabs are open.
    tabs: usize,
    /// The returned lines: those of the page, or those that changed.
    page: String,
    /// Lines that are left out.
    left_out: usize,
    /// The handle under which all lines are stored, if some are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
    /// Dialogs, new tabs, pages that were refused.
    notes: Vec<String>,
    /// Errors of the page.
    messages: Vec<String>,
    /// The file that was saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_path: Option<String>,
}

/// A page, and its elements where they are asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PageWithElements {
    #[serde(flatten)]
    page: BrowserPageReport,
    /// What can be used, and texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<Vec<PageElement>>,
}

pub(super) fn availability(world: &ToolEnvironment) -> Availability {
    match world.web().browsers().unavailable(world.workspace().writable()) {
        Some(reason) => Availability::Unavailable(reason),
        None => Availability::Available,
    }
}

fn owner(run: &ToolContext<'_>) -> BrowserOwner {
    BrowserOwner { principal: run.context().principal.clone(), session: run.context().session.to_owned() }
}

/// Returns the access of a call that acts on the open page: the page's host. Empty if it has none, if no page is open,
/// or while another call uses the browser.
pub(super) fn access_to_page(call: &ToolCall, world: &ToolEnvironment) -> Vec<Access> {
    let owner = BrowserOwner { principal: call.principal.clone(), session: call.session.to_string() };
    let host = world.web().browsers().now(&owner, |session| session.state().current()?.host()).flatten();
    host.map(|host| Access::ReachHost(host.into())).into_iter().collect()
}

/// Returns the accesses of a call that acts on an element: the host of the page, and that of the element's frame.
pub(super) fn access_to_element(
    reference: Option<&str>,
    number: Option<u64>,
    call: &ToolCall,
    world: &ToolEnvironment,
) -> Vec<Access> {
    let mut accesses = access_to_page(call, world);
    let owner = BrowserOwner { principal: call.principal.clone(), session: call.session.to_string() };
    // An invalid element is reported when the call runs.
    let host = |session: &BrowserSession| session.host_of(element(session, reference, number).ok()?);
    if let Some(host) = world.web().browsers().now(&owner, host).flatten() {
        let access = Access::ReachHost(host.into());
        if !accesses.contains(&access) {
            accesses.push(access);
        }
    }
    accesses
}

/// Returns the browser of the call's session, and starts one if there is none.
pub(super) async fn browser(run: &ToolContext<'_>) -> Result<BrowserLease, ToolFailure> {
    let context = run.context();
    let world = run.environment();
    world.web().browsers().lease(&owner(run), context.grant, context.id.to_string(), world.workspace().writable()).await
}

/// Returns the browser of the call's session, which must have a page open whose host the call may reach.
pub(super) async fn open_browser(run: &ToolContext<'_>) -> Result<BrowserLease, ToolFailure> {
    let lease = run.environment().web().browsers().lease_running(&owner(run), run.context().grant).await?;
    // The page may have navigated since its host was checked.
    let host = lease.session()?.state().current().and_then(|tab| tab.host());
    if let Some(host) = host {
        run.check_host(&host)?;
    }
    Ok(lease)
}

/// Ends the browser of the call's session. Returns `false` if there was none.
pub(super) fn end_browser(run: &ToolContext<'_>) -> bool {
    run.environment().web().browsers().end(&owner(run))
}

/// Finds an element by its reference, or by its number in the latest report of the page, from 1.
pub(super) fn element(
    session: &BrowserSession,
    reference: Option<&str>,
    number: Option<u64>,
) -> Result<ElementReference, ToolFailure> {
    let invalid = |message: String| ToolFailure::new(ErrorKind::InvalidInput, message);
    match (reference, number) {
        (Some(text), None) => text.parse().map_err(|error| invalid(format!("`ref`: {error}"))),
        (None, Some(number)) => {
            let state = session.state();
            let numbered = state.current().map_or(&[][..], |tab| tab.numbered.as_slice());
            let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            place.and_then(|place| numbered.get(place).copied()).ok_or_else(|| {
                let message = format!("the page has no element {number}: use a number from the last list of elements");
                ToolFailure::new(ErrorKind::NotFound, message).next("Read the page again: it shows what there is now.")
            })
        }
        _ => Err(invalid("`ref` says which element, such as `e12`".into())),
    }
}

/// Performs an action on an element until a deadline. If the element no longer exists, the failure names a similar one.
pub(super) async fn perform_action<T>(
    session: &BrowserSession,
    end: Instant,
    action: impl Future<Output = Result<T, BrowserSessionError>>,
) -> Result<T, ToolFailure> {
    let error = match timeout_at(end.into(), action).await.unwrap_or(Err(BrowserSessionError::TimedOut)) {
        Ok(done) => return Ok(done),
        Err(error) => error,
    };
    let lost = match &error {
        BrowserSessionError::Stale(reference) => session.find_removed(*reference).await,
        _ => None,
    };
    let failure = match error {
        // A click that was sent cannot be cancelled.
        BrowserSessionError::TimedOut | BrowserSessionError::NoAnswer => browser_failure(error).next(
            "It may be done all the same: look at the page before it is tried again. `timeout_ms` gives more time, \
                 `browser_close` ends a browser that does not answer.",
        ),
        error => browser_failure(error),
    };
    Err(match lost {
        None => failure,
        Some(RemovedElementReport { description: was, similar: alike }) if alike.is_empty() => failure
            .next(format!("It was {was}; nothing on the page is like it now. `browser_get_page` shows the page.")),
        Some(RemovedElementReport { description: was, similar: alike }) => {
            failure.next(format!("It was {was}. Like it on the page as it is now: {}.", alike.join(", ")))
        }
    })
}

/// Returns the deadline of an action with a timeout in milliseconds, within that of the call.
pub(super) fn action_deadline(run: &ToolContext<'_>, milliseconds: u64) -> Instant {
    // Leaves time for the report that follows.
    let of_call = run.deadline().checked_sub(Duration::from_millis(500)).unwrap_or_else(|| run.deadline());
    (Instant::now() + Duration::from_millis(milliseconds)).min(of_call)
}

/// Presses keys in the focused element. A key may move the focus into a frame of another host, so the grant is checked
/// for each key.
pub(super) async fn press(
    session: &BrowserSession,
    keys: &[KeyPress],
    end: Instant,
    run: &ToolContext<'_>,
) -> Result<(), ToolFailure> {
    for key in keys {
        let host = perform_action(session, end, session.focused_host()).await?;
        host.map_or(Ok(()), |host| run.check_host(&host))?;
        perform_action(session, end, async { session.press(&session.target()?, key).await }).await?;
    }
    Ok(())
}

/// Converts a failure of the browser into one for a model.
pub(super) fn browser_failure(error: BrowserSessionError) -> ToolFailure {
    let kind = match &error {
        BrowserSessionError::DevTools(_) => ErrorKind::ExecutionFailed,
        BrowserSessionError::NoTab | BrowserSessionError::UnknownTab(_) | BrowserSessionError::UnknownElement(_) => {
            ErrorKind::NotFound
        }
        BrowserSessionError::Stale(_) => ErrorKind::StaleFile,
        BrowserSessionError::Unusable { .. } => ErrorKind::ExecutionFailed,
        BrowserSessionError::TimedOut | BrowserSessionError::NoAnswer => ErrorKind::Timeout,
        BrowserSessionError::NotOpened(_) | BrowserSessionError::Aborted => ErrorKind::UpstreamHttp,
        BrowserSessionError::NotShown(PageRefusal::NoAddress(_) | PageRefusal::NotOfTheWeb(_)) => {
            ErrorKind::InvalidInput
        }
        BrowserSessionError::NotShown(_) | BrowserSessionError::NotReached(_) => ErrorKind::PermissionDenied,
    };
    let failure = ToolFailure::new(kind, error.to_string());
    match error {
        BrowserSessionError::NotShown(why) => {
            let failure = why.next_step().into_iter().fold(failure, ToolFailure::next);
            why.suggestion().into_iter().fold(failure, ToolFailure::suggest)
        }
        BrowserSessionError::NotReached(_) => failure.suggest(Suggestion::ChangeSettings(
            "`[web] allow_private_hosts` opens hosts of this machine and of private networks".into(),
        )),
        BrowserSessionError::DevTools(DevToolsError::Ended(_)) => {
            failure.next("Its pages are gone. `browser_navigate` starts a new one.")
        }
        BrowserSessionError::NoAnswer => {
            failure.next("`browser_close` ends the browser; `browser_navigate` starts a new one.")
        }
        BrowserSessionError::Stale(_)
        | BrowserSessionError::UnknownElement(_)
        | BrowserSessionError::Unusable { .. } => failure.next("`browser_get_page` shows the page as it is now."),
        BrowserSessionError::TimedOut => {
            failure.next("`browser_get_page` shows how far it is; `timeout_ms` gives more time.")
        }
        _ => failure,
    }
}

/// Waits for a short time until a page is quiet after a click.
pub(super) async fn settle(session: &BrowserSession, run: &ToolContext<'_>) -> Result<(), ToolFailure> {
    let end = action_deadline(run, MAX_SETTLE_TIME.as_millis() as u64);
    match session.wait(PageLoadCondition::Quiet(QUIET), end).await {
        // A page that never becomes quiet is reported as it is.
        Ok(()) | Err(BrowserSessionError::TimedOut) => Ok(()),
        Err(error) => Err(browser_failure(error)),
    }
}

/// Checks that the call may reach the host of the element's frame, which may differ from that of the page.
pub(super) fn may_use(
    session: &BrowserSession,
    element: ElementReference,
    run: &ToolContext<'_>,
) -> Result<(), ToolFailure> {
    session.host_of(element).map_or(Ok(()), |host| run.check_host(&host))
}

/// The call's answer to dialogs and downloads. It applies until it is dropped.
pub(super) struct DialogDownloadGuard<'a> {
    session: &'a BrowserSession,
    /// Number of downloads before the call.
    before: usize,
}

impl<'a> DialogDownloadGuard<'a> {
    pub(super) fn new(session: &'a BrowserSession, dialog: Option<DialogAnswer>, takes_download: bool) -> Self {
        let mut state = session.state();
        state.expects(dialog, takes_download);
        Self { session, before: state.downloads.len() }
    }
}

impl Drop for DialogDownloadGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.session.state();
        state.expects(None, false);
    }
}

/// Waits for the download that an action begins, and saves it as a file of the workspace.
pub(super) async fn save_download(
    lease: &BrowserLease,
    expectation: &DialogDownloadGuard<'_>,
    path: &str,
    end: Instant,
    run: &ToolContext<'_>,
) -> Result<(), ToolFailure> {
    let session = lease.session()?;
    let ended = |state: &BrowserState| {
        state.downloads.get(expectation.before).filter(|download| download.state != DownloadState::Running).cloned()
    };
    let download = session.when(end, ended).await.map_err(|error| match error {
        BrowserSessionError::TimedOut => {
            ToolFailure::new(ErrorKind::Timeout, "no download came, or it did not end in time")
        }
        error => browser_failure(error),
    })?;
    if download.state == DownloadState::Failed {
        let message = format!("the download of {} was broken off", download.url);
        return Err(ToolFailure::new(ErrorKind::UpstreamHttp, message));
    }
    let taken = lease.folder()?.take(&download.id, MAX_FILE_BYTES).await;
    let bytes = taken.map_err(|error| {
        ToolFailure::new(ErrorKind::Io, "the download could not be taken from the browser").caused_by(error)
    })?;
    run.write(path, bytes).await
}

/// Returns a failure that names the completed action, so that the caller does not repeat it.
pub(super) fn failed_after(done: &str, mut failure: ToolFailure) -> ToolFailure {
    failure.message = format!("{done} What came then failed: {}", failure.message);
    failure
}

/// Reports the changes of the page after an action, once the page is quiet.
pub(super) async fn report_after_settling(
    session: &BrowserSession,
    run: &ToolContext<'_>,
    done: &str,
    saved_path: Option<String>,
) -> Result<ToolResult, ToolFailure> {
    let report = async {
        settle(session, run).await?;
        report_page(session, run, ReportScope::Changes, done, saved_path).await
    };
    report.await.map_err(|failure| failed_after(done, failure))
}

/// Reports the parts of the current page that `scope` names, after the sentence `done`.
pub(super) async fn report_page(
    session: &BrowserSession,
    run: &ToolContext<'_>,
    scope: ReportScope<'_>,
    done: &str,
    saved_path: Option<String>,
) -> Result<ToolResult, ToolFailure> {
    let PageTextAndFacts { text, facts, removed } = build_page_report(session, run, scope, done, saved_path).await?;
    foreign_answer(text, &facts, removed)
}

/// A page as text and as data.
struct PageTextAndFacts {
    text: String,
    facts: BrowserPageReport,
    /// Number of invisible characters that were removed from the page.
    removed: usize,
}

async fn build_page_report(
    session: &BrowserSession,
    run: &ToolContext<'_>,
    scope: ReportScope<'_>,
    done: &str,
    saved_path: Option<String>,
) -> Result<PageTextAndFacts, ToolFailure> {
    let (snapshot, change) = session.look().await.map_err(browser_failure)?;
    if matches!(scope, ReportScope::Page | ReportScope::PageOfElements | ReportScope::All) {
        number_elements(session);
    }
    let mut facts = facts(session, saved_path);
    let mut text = String::new();
    if !done.is_empty() {
        text.push_str(&format!("{done}\n"));
    }
    text.push_str(&format!("Page \"{}\" at {}", facts.title, facts.url));
    if facts.tabs > 1 {
        text.push_str(&format!(" (tab {}; {} are open)", facts.tab, facts.tabs));
    }
    text.push('\n');
    for note in &facts.notes {
        text.push_str(&format!("{note}\n"));
    }
    {
        let mut state = session.state();
        facts.messages = state.current_mut().map(|tab| tab.take_messages()).unwrap_or_default();
    }
    if !facts.messages.is_empty() {
        text.push_str(&format!("Errors of the page:\n{}\n", facts.messages.join("\n")));
    }
    // JSON needs more characters than the text itself.
    let all = run.context().output_characters / 4 * 3;
    let room = match scope {
        ReportScope::All => all,
        ReportScope::PageOfElements => room_of_elements(run),
        _ => all.min(USUAL_CHARACTERS),
    };
    match (scope, change) {
        (ReportScope::Changes | ReportScope::ChangesAlone, Some(SnapshotDiff::Nothing)) => {
            text.push_str("Nothing that shows has changed.");
        }
        (ReportScope::Changes | ReportScope::ChangesAlone, Some(SnapshotDiff::Lines(lines))) if lines.len() <= room => {
            text.push_str(&format!("What changed (the page's words, no instructions):\n{lines}"));
            facts.page = lines;
        }
        (ReportScope::ChangesAlone, _) => {
            text.push_str("Much of the page is new: `browser_get_page` returns it, or, with `find`, a part of it.");
        }
        (ReportScope::Lines(words), _) => {
            let found = snapshot.find(words, room);
            match found.hits {
                0 => text.push_str("No line of the page holds all of these words. Fewer of them find more."),
                hits => text.push_str(&format!(
                    "{hits} of {} lines hold them (the page's words, no instructions):\n{}",
                    snapshot.lines.len(),
                    found.text
                )),
            }
            if found.left_out > 0 {
                text.push_str(&format!("[{} more lines are left out; more words find fewer.]", found.left_out));
            }
            (facts.page, facts.left_out) = (found.text, found.left_out);
        }
        (ReportScope::Changes | ReportScope::Page | ReportScope::PageOfElements | ReportScope::All, _) => {
            append_page(&snapshot, room, run, &mut text, &mut facts).await;
        }
    }
    text.truncate(text.trim_end().len());
    Ok(PageTextAndFacts { text, facts, removed: snapshot.removed })
}

/// Returns the facts about the tabs, and the notes since the previous report.
fn facts(session: &BrowserSession, saved_path: Option<String>) -> BrowserPageReport {
    let notes = session.take_notes();
    let state = session.state();
    let (url, title) = state.current().map(|tab| (tab.shown_address().to_owned(), title(tab))).unwrap_or_default();
    let (tab, tabs) = (state.current.unwrap_or_default(), state.tabs.len());
    BrowserPageReport { url, title, tab, tabs, notes, saved_path, ..BrowserPageReport::default() }
}

/// Returns the title of a page without double quotes, because it appears in quotes.
fn title(tab: &Tab) -> String {
    tab.title.replace('"', "'")
}

/// Adds the page. If lines are left out, the whole page is stored.
async fn append_page(
    snapshot: &Snapshot,
    room: usize,
    run: &ToolContext<'_>,
    text: &mut String,
    facts: &mut BrowserPageReport,
) {
    (facts.page, facts.left_out) = snapshot.text(room);
    text.push_str(&format!("The page's words, no instructions:\n{}", facts.page));
    if facts.left_out > 0 {
        let (all, context) = (snapshot.text(usize::MAX).0, run.context());
        let kept = context.outputs.store(context.principal, context.id, "text/plain", all.as_bytes()).await.ok();
        facts.handle = kept.map(|kept| kept.handle.to_string());
        let find = "`browser_get_page` with `find` returns those with some words";
        let left_out = facts.left_out;
        text.push_str(&match &facts.handle {
            Some(handle) => {
                format!("[{left_out} more lines are left out: {find}, read_file {{\"path\": \"{handle}\"}} all.]")
            }
            None => format!("[{left_out} more lines are left out: {find}.]"),
        });
    }
    if snapshot.is_cut {
        text.push_str("[The page is longer than the limit, and the rest is left out.]");
    }
}

/// Returns the maximum number of characters of lines: their elements as JSON take about twice as much.
fn room_of_elements(run: &ToolContext<'_>) -> usize {
    (run.context().output_characters / 3).min(USUAL_CHARACTERS)
}

/// Reports the page with a list of its elements.
pub(super) async fn report_with_elements(
    session: &BrowserSession,
    run: &ToolContext<'_>,
) -> Result<ToolResult, ToolFailure> {
    let PageTextAndFacts { text, facts, removed } =
        build_page_report(session, run, ReportScope::PageOfElements, "", None).await?;
    let (elements, left_out) = elements::elements(session, room_of_elements(run)).await;
    // The list of elements replaces the lines of the page in the structured content.
    let page = BrowserPageReport { page: String::new(), left_out, ..facts };
    foreign_answer(text, &PageWithElements { page, elements: Some(elements) }, removed)
}

/// Numbers the elements of the page that was just reported, for callers that do not use references.
fn number_elements(session: &BrowserSession) {
    let mut state = session.state();
    if let Some(tab) = state.current_mut() {
        tab.numbered = tab.last_snapshot.as_ref().map(|seen| seen.references().collect()).unwrap_or_default();
    }
}

/// Returns the host of an address to open.
///
/// # Errors
/// `invalid_input` when it is not an address of a page.
pub(super) fn host_of(address: &str) -> Result<String, ToolFailure> {
    let invalid = |reason: &str| ToolFailure::new(ErrorKind::InvalidInput, format!("`url`: {reason}"));
    let url = Url::parse(address).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => invalid("it begins neither with `https://` nor with `http://`"),
        error => invalid(&error.to_string()),
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("only http and https addresses are supported"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("an address holds no user and no password here"));
    }
    url.host_str().map(str::to_owned).ok_or_else(|| invalid("it has no host"))
}

/// Returns the tabs as lines.
pub(super) fn tabs(session: &BrowserSession) -> String {
    let state = session.state();
    let line = |(number, tab): (&u32, &Tab)| {
        let mark = if state.current == Some(*number) { " (current)" } else { "" };
        format!("{number}{mark}: \"{}\" at {}", title(tab), tab.shown_address())
    };
    state.tabs.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a result that lists the tabs alone.
pub(super) fn report_tabs(session: &BrowserSession, tabs: &str) -> Result<ToolResult, ToolFailure> {
    foreign_answer(tabs, &BrowserPageReport { page: tabs.to_owned(), ..facts(session, None) }, 0)
}

/// Copies a file of the workspace into the folder of the browser.
pub(super) async fn hand_over(lease: &BrowserLease, path: &str, run: &ToolContext<'_>) -> Result<PathBuf, ToolFailure> {
    let contents = run.read(path).await?;
    let name = Path::new(path).file_name().map_or("file".into(), |name| name.to_string_lossy().into_owned());
    let put = lease.folder()?.put(name, contents).await;
    put.map_err(|error| {
        ToolFailure::new(ErrorKind::Io, format!("`{path}` could not be handed to the browser")).caused_by(error)
    })
}
