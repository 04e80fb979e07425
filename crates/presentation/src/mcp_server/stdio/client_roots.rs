//! Uses the folders of the client (MCP 2025-11-25, client/roots) as roots of the workspace, if no root is configured.
//!
//! The application is built once they are known. A folder that is new on this machine is used only after the user has
//! approved it. Until then calls wait, and lists are answered without it.

use super::server_handle::CurrentServerState;
use crate::{
    app::App,
    mcp_server::{
        McpServer,
        client_caller::{ClientCaller, NotificationTarget},
        log_threshold::LogThreshold,
        questions::PendingQuestions,
        server_identity::ServerIdentity,
    },
};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use toolstead_application::CancelSignal;
use toolstead_domain::{Caller, ClientCapability, ClientProfile, InputRequest, InputResponse};
use toolstead_infrastructure::mcp::wire::lines::LineSender;
use url::Url;

/// Maximum time for a client to list its folders. The request is sent at the beginning, and the client answers it
/// without asking the user.
const NAMING: Duration = Duration::from_secs(5);
/// Maximum number of folders of a client that are considered.
const MAX_FOLDERS: usize = 32;
/// Answer that allows tools to use a folder.
const YES: &str = "yes";
/// Answer that does not allow it.
const NO: &str = "no";

/// Builds the application once its roots are known.
#[async_trait(?Send)]
pub trait AppLauncher {
    /// Sorts the folders of a client into trusted and new ones. Omits repetitions and folders that may not be roots.
    async fn sort(&self, folders: Vec<PathBuf>) -> FoldersByTrust;

    /// Stores the user's approval of a folder.
    async fn trust(&self, folder: PathBuf);

    /// Builds an application with these roots in addition to the configured ones. Returns `None` if that fails. Earlier
    /// applications continue until they are closed.
    async fn open(&self, roots: Vec<PathBuf>) -> Option<App>;

    /// Closes every application immediately.
    async fn close_all(&self);

    /// Closes all applications but the newest, each after its running calls have ended.
    async fn retire(&self);
}

/// Resolved folders, in the order of the client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoldersByTrust {
    /// Folders that the user approved.
    pub trusted: Vec<PathBuf>,
    /// Folders that the user has not approved yet.
    pub new: Vec<PathBuf>,
}

/// Event of a connection that concerns the client's folders.
#[derive(Debug)]
pub(super) enum RootsEvent {
    /// The client cannot name folders.
    WithoutRoots,
    /// The client can now be asked for its folders, or they have changed.
    RootsChanged(Arc<ClientProfile>),
    /// The input has ended, so the client cannot answer anymore.
    InputEnded,
}

/// Sender of events about the client's folders.
#[derive(Debug)]
pub(super) struct RootsEventSender {
    pub(super) events: mpsc::Sender<RootsEvent>,
    pub(super) stages: watch::Sender<CurrentServerState>,
}

impl RootsEventSender {
    /// Sends an event. If the folders may change, no call starts until the new ones are known.
    pub(super) fn send(&self, occasion: RootsEvent) {
        if matches!(occasion, RootsEvent::RootsChanged(_)) {
            self.stages.send_modify(|stage| stage.is_asking = true);
        }
        // If the queue is full, it already contains an equivalent event.
        let _ = self.events.try_send(occasion);
    }
}

/// Follows the folders of one client.
pub(super) struct ClientRootsWatcher<'a> {
    pub(super) workplace: &'a dyn AppLauncher,
    pub(super) identity: ServerIdentity,
    /// Name of the view that is served; `None`: all tools.
    pub(super) view: Option<String>,
    /// Maximum time that the first list of tools waits for upstream servers.
    pub(super) first_list_waits: Duration,
    pub(super) stages: watch::Sender<CurrentServerState>,
    pub(super) lines: LineSender,
    pub(super) questions: Arc<PendingQuestions>,
    /// Maximum time for the user to answer.
    pub(super) patience: Duration,
}

/// State that is retained between rounds of questions.
#[derive(Debug, Default)]
struct ClientRootDecisions {
    /// Roots of the newest application; `None` before the first one.
    open: Option<Vec<PathBuf>>,
    /// Folders that the user declined, until the connection ends.
    declined: BTreeSet<PathBuf>,
}

/// Events of the connection, in order.
struct RootsEventReceiver {
    events: mpsc::Receiver<RootsEvent>,
    next: Option<RootsEvent>,
}

/// Error: the application could not be built.
struct AppBuildError;

impl RootsEventReceiver {
    async fn next(&mut self) -> Option<RootsEvent> {
        match self.next.take() {
            Some(next) => Some(next),
            None => self.events.recv().await,
        }
    }

    /// Waits for the answer to a question. Returns `None` if an event arrives first, which makes the answer obsolete.
    async fn unless_new<T>(&mut self, question: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            next = self.events.recv() => {
                self.next = Some(next.unwrap_or(RootsEvent::InputEnded));
                None
            }
            answer = question => Some(answer),
        }
    }
}

impl ClientRootsWatcher<'_> {
    /// Runs until the connection ends or the application cannot be built.
    pub(super) async fn follow(self, events: mpsc::Receiver<RootsEvent>) {
        let mut events = RootsEventReceiver { events, next: None };
        let mut known = ClientRootDecisions::default();
        while let Some(occasion) = events.next().await {
            let opened = match occasion {
                RootsEvent::InputEnded if known.open.is_some() => {
                    self.stages.send_modify(|stage| stage.is_asking = false);
                    Ok(())
                }
                RootsEvent::InputEnded | RootsEvent::WithoutRoots => self.open(Vec::new(), &mut known, false).await,
                RootsEvent::RootsChanged(client) => self.consult(&client, &mut known, &mut events).await,
            };
            if opened.is_err() {
                return;
            }
        }
    }

    /// Asks the client for its folders, and the user for approval of new ones. Opens the application with the trusted
    /// and the approved folders. Stops if a new event arrives.
    async fn consult(
        &self,
        client: &Arc<ClientProfile>,
        known: &mut ClientRootDecisions,
        events: &mut RootsEventReceiver,
    ) -> Result<(), AppBuildError> {
        let caller = ClientCaller::new(
            None,
            LogThreshold::Request(None),
            CancelSignal::new(),
            NotificationTarget::Lines(self.lines.clone()),
        )
        .with_questions(self.questions.clone(), client.clone());
        let question = InputRequest { method: "roots/list".into(), params: Value::Null };
        let Some(named) = events.unless_new(timeout(NAMING, caller.ask(question))).await else { return Ok(()) };
        let named = match named {
            Ok(Ok(answer)) => folders(&answer),
            Ok(Err(_)) | Err(_) => {
                tracing::warn!("the client did not name the folders that it works in: start with `--root DIR`");
                Vec::new()
            }
        };
        let FoldersByTrust { trusted, mut new } = self.workplace.sort(named).await;
        new.retain(|folder| !known.declined.contains(folder));
        let can_ask = ClientCapability::Elicitation.is_declared(&client.capabilities);
        if !new.is_empty() && !can_ask {
            let listed: Vec<String> = new.iter().map(|folder| folder.display().to_string()).collect();
            let listed = listed.join(", ");
            tracing::warn!("no approver is available to allow tools to work in {listed}: start with `--root DIR`");
            new.clear();
        }
        // Calls need not wait for the approval if there is already a folder to work in.
        self.open(trusted.clone(), known, trusted.is_empty() && !new.is_empty()).await?;
        if new.is_empty() {
            return Ok(());
        }
        let answer = events.unless_new(timeout(self.patience, caller.ask(form(&new)))).await;
        let Some(answer) = answer else { return Ok(()) };
        let yes = answer.ok().and_then(Result::ok).map(|answer| agreed(&answer, &new)).unwrap_or_default();
        known.declined.extend(new.iter().filter(|folder| !yes.contains(folder)).cloned());
        for folder in &yes {
            self.workplace.trust(folder.clone()).await;
        }
        self.open(trusted.into_iter().chain(yes).collect(), known, false).await
    }

    /// Replaces the application by one with these roots, unless it has them already. If a root is removed, first closes
    /// every earlier application.
    async fn open(
        &self,
        roots: Vec<PathBuf>,
        known: &mut ClientRootDecisions,
        is_asking: bool,
    ) -> Result<(), AppBuildError> {
        if known.open.as_ref() == Some(&roots) {
            self.stages.send_modify(|stage| stage.is_asking = is_asking);
            return Ok(());
        }
        let loses_some = known.open.iter().flatten().any(|root| !roots.contains(root));
        if loses_some {
            // If roots are removed, no call may start or continue in them.
            self.stages.send_modify(|stage| stage.is_asking = true);
            self.workplace.close_all().await;
        }
        known.open = None;
        let app = self.workplace.open(roots.clone()).await.ok_or(AppBuildError)?;
        known.open = Some(roots);
        let server =
            Arc::new(McpServer::new(app, self.identity.clone(), self.first_list_waits).with_view(self.view.as_deref()));
        self.stages.send_replace(CurrentServerState { server: Some(server), is_asking });
        self.workplace.retire().await;
        Ok(())
    }
}

/// Returns the folders that a client listed. URIs that are not local folders are skipped.
fn folders(answer: &InputResponse) -> Vec<PathBuf> {
    let roots = answer.0.get("roots").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let uris = roots.iter().take(MAX_FOLDERS).filter_map(|root| root.get("uri")?.as_str());
    let folder = |uri: &str| {
        let folder = folder(uri);
        if folder.is_none() {
            tracing::warn!(uri, "a root of the client is not a folder of this machine");
        }
        folder
    };
    uris.filter_map(folder).collect()
}

/// Returns the path of a `file:` URI. Rejects a URI with a query or a fragment, because part of its path is missing,
/// for example if `?` and `#` were not encoded.
fn folder(uri: &str) -> Option<PathBuf> {
    let uri = Url::parse(uri).ok().filter(|uri| uri.scheme() == "file")?;
    if uri.query().is_some() || uri.fragment().is_some() || !matches!(uri.host_str(), None | Some("" | "localhost")) {
        return None;
    }
    uri.to_file_path().ok().filter(|path| !path.as_os_str().as_encoded_bytes().contains(&0))
}

fn field(index: usize) -> String {
    format!("folder_{}", index + 1)
}

/// Returns the form that asks the user to approve these folders, with one field per folder.
fn form(folders: &[PathBuf]) -> InputRequest {
    let mut lines = vec!["May tools work in these folders, which your client works in?".to_owned()];
    let mut fields = Map::new();
    for (index, folder) in folders.iter().enumerate() {
        lines.push(format!("{}. {}", index + 1, folder.display()));
        let schema = json!({
            "type": "string",
            "title": format!("{}. {}", index + 1, folder.display()),
            "description": format!(
                "{YES}: tools may read here, and change files as far as the rules allow, now and whenever a client works \
                 here; {NO}: they may not"
            ),
            "enum": [NO, YES],
            "default": NO,
        });
        fields.insert(field(index), schema);
    }
    let required: Vec<String> = fields.keys().cloned().collect();
    let params = json!({
        "message": lines.join("\n"),
        "requestedSchema": {"type": "object", "properties": fields, "required": required},
    });
    InputRequest { method: "elicitation/create".into(), params }
}

/// Returns the folders that the user approved. Only an `accept` with the approval in the folder's own field approves
/// it.
fn agreed(answer: &InputResponse, folders: &[PathBuf]) -> Vec<PathBuf> {
    let accepted = answer.0.get("action").is_some_and(|action| action == "accept");
    let said = |index| answer.0.get("content").and_then(|content| content.get(field(index)));
    let agreed =
        folders.iter().enumerate().filter(|(index, _)| accepted && said(*index).is_some_and(|said| said == YES));
    agreed.map(|(_, folder)| folder.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_folder(uri: &str, expected: Option<&str>) {
        assert_eq!(folder(uri), expected.map(PathBuf::from), "{uri}");
    }

    #[test]
    fn only_a_file_uri_of_this_machine_names_a_folder() {
        check_folder("file:///home/ada/my%20project", Some("/home/ada/my project"));
        check_folder("file://localhost/w", Some("/w"));
        check_folder("file:///w/../etc", Some("/etc"));
        for uri in [
            "https://example.com/w",
            "file://other/w",
            "file:///w?x",
            "file:///w#x",
            "file:///w%00",
            "/w",
            "w",
            "",
            "vscode-remote://ssh/w",
        ] {
            check_folder(uri, None);
        }
    }

    #[test]
    fn malformed_client_roots_are_skipped_and_their_number_is_limited() {
        let named = |answer: Value| folders(&InputResponse(answer));
        assert_eq!(
            named(json!({"roots": [{"uri": "file:///a", "name": "x"}, {"uri": 1}, 2, {}]})),
            [PathBuf::from("/a")]
        );
        for answer in [json!(null), json!([]), json!({}), json!({"roots": {}}), json!({"roots": "file:///a"})] {
            assert!(named(answer).is_empty());
        }
        let many: Vec<Value> = (0..1000).map(|number| json!({"uri": format!("file:///{number}")})).collect();
        assert_eq!(named(json!({"roots": many})).len(), MAX_FOLDERS);
    }

    #[test]
    fn a_folder_is_approved_only_by_a_yes_in_its_own_field() {
        let folders = ["/a", "/b"].map(PathBuf::from);
        let check = |answer: Value, expected: &[&str]| {
            let agreed: Vec<PathBuf> = agreed(&InputResponse(answer.clone()), &folders);
            assert_eq!(agreed, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{answer}");
        };
        check(json!({"action": "accept", "content": {"folder_1": "no", "folder_2": "yes"}}), &["/b"]);
        check(json!({"action": "accept", "content": {"folder_1": "yes", "folder_2": "yes"}}), &["/a", "/b"]);
        for answer in [
            json!({"action": "decline", "content": {"folder_1": "yes"}}),
            json!({"content": {"folder_1": "yes"}}),
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {"folder_1": true, "folder_2": ["yes"], "folder_3": "yes"}}),
            json!({"action": "accept", "content": {"folder_1": "YES", "folder_2": ""}}),
            json!("accept"),
            json!(null),
        ] {
            check(answer, &[]);
        }
    }
}
