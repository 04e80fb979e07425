//! The folders that the client works in (MCP 2025-11-25, client/roots), as the roots of the workspace, where nothing else
//! gives one.
//!
//! The application is made when they are known. A folder that is new to this machine counts only once a person said yes
//! to it; meanwhile calls wait, and lists are answered without it.

use super::served::Stage;
use crate::{
    app::App,
    mcp_server::{
        McpServer,
        client_caller::{ClientCaller, Outlet},
        log_threshold::LogThreshold,
        questions::Questions,
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
use toolstead_application::cancel_signal::CancelSignal;
use toolstead_domain::{
    client_capability::Capability,
    client_profile::ClientProfile,
    ports::caller::{Caller, InputRequest, InputResponse},
};
use toolstead_infrastructure::mcp::wire::lines::LineSender;
use url::Url;

/// How long a client has to name its folders. It is asked at the beginning, and answers without asking anybody.
const NAMING: Duration = Duration::from_secs(5);
/// Folders of one client that are looked at.
const MAX_FOLDERS: usize = 32;
/// What a person answers to let tools into a folder.
const YES: &str = "yes";
/// What keeps them out.
const NO: &str = "no";

/// Makes the application once it is known what it may work in.
#[async_trait(?Send)]
pub trait Workplace {
    /// Sorts the folders that a client named: those that may be roots at all, without repetitions.
    async fn sort(&self, folders: Vec<PathBuf>) -> SortedFolders;

    /// Keeps a person's yes to a folder.
    async fn trust(&self, folder: PathBuf);

    /// Makes the application with these roots beside the configured ones; `None` where it cannot be made. The ones made
    /// before go on until they are told to end.
    async fn open(&self, roots: Vec<PathBuf>) -> Option<App>;

    /// Ends every application, at once.
    async fn close_all(&self);

    /// Ends all applications but the newest, each when the calls that run in it have ended.
    async fn retire(&self);
}

/// Folders by their real paths, in the order of the client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SortedFolders {
    /// Those that somebody said yes to.
    pub trusted: Vec<PathBuf>,
    /// Those that nobody said yes to yet.
    pub new: Vec<PathBuf>,
}

/// What a connection tells of its client.
#[derive(Debug)]
pub(super) enum Occasion {
    /// It names no folders.
    WithoutRoots,
    /// It may be asked now, or its folders are others now.
    Named(Arc<ClientProfile>),
    /// It sends no more, so that it will not answer.
    Gone,
}

/// Where a connection tells it.
#[derive(Debug)]
pub(super) struct Folders {
    pub(super) occasions: mpsc::Sender<Occasion>,
    pub(super) stages: watch::Sender<Stage>,
}

impl Folders {
    /// From now on no call begins where the client may work no longer.
    pub(super) fn tell(&self, occasion: Occasion) {
        if matches!(occasion, Occasion::Named(_)) {
            self.stages.send_modify(|stage| stage.is_asking = true);
        }
        // Where more wait than can be heard, one of them says the same.
        let _ = self.occasions.try_send(occasion);
    }
}

/// Follows the folders of one client.
pub(super) struct ClientRoots<'a> {
    pub(super) workplace: &'a dyn Workplace,
    pub(super) identity: ServerIdentity,
    /// How long the first list waits for servers.
    pub(super) first_list_waits: Duration,
    pub(super) stages: watch::Sender<Stage>,
    pub(super) lines: LineSender,
    pub(super) questions: Arc<Questions>,
    /// How long a person has to answer.
    pub(super) patience: Duration,
}

/// What is kept from one round of questions to the next.
#[derive(Debug, Default)]
struct Known {
    /// The roots of the newest application; `None` before the first.
    open: Option<Vec<PathBuf>>,
    /// What a person said no to, until the connection ends.
    declined: BTreeSet<PathBuf>,
}

/// What the connection tells, one thing after the other.
struct News {
    occasions: mpsc::Receiver<Occasion>,
    next: Option<Occasion>,
}

/// The application cannot be made.
struct NotOpened;

impl News {
    async fn next(&mut self) -> Option<Occasion> {
        match self.next.take() {
            Some(next) => Some(next),
            None => self.occasions.recv().await,
        }
    }

    /// What the question leads to, unless there is something new first: then nobody waits for the answer any more.
    async fn unless_new<T>(&mut self, question: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            next = self.occasions.recv() => {
                self.next = Some(next.unwrap_or(Occasion::Gone));
                None
            }
            answer = question => Some(answer),
        }
    }
}

impl ClientRoots<'_> {
    /// Goes on until the connection ends, or the application cannot be made.
    pub(super) async fn follow(self, occasions: mpsc::Receiver<Occasion>) {
        let mut news = News { occasions, next: None };
        let mut known = Known::default();
        while let Some(occasion) = news.next().await {
            let opened = match occasion {
                Occasion::Gone if known.open.is_some() => {
                    self.stages.send_modify(|stage| stage.is_asking = false);
                    Ok(())
                }
                Occasion::Gone | Occasion::WithoutRoots => self.open(Vec::new(), &mut known, false).await,
                Occasion::Named(client) => self.consult(&client, &mut known, &mut news).await,
            };
            if opened.is_err() {
                return;
            }
        }
    }

    /// Asks the client for its folders, and a person for those that are new.
    async fn consult(&self, client: &Arc<ClientProfile>, known: &mut Known, news: &mut News) -> Result<(), NotOpened> {
        let caller = ClientCaller::new(
            None,
            LogThreshold::Request(None),
            CancelSignal::new(),
            Outlet::Lines(self.lines.clone()),
        )
        .asking(self.questions.clone(), client.clone());
        let question = InputRequest { method: "roots/list".into(), params: Value::Null };
        let Some(named) = news.unless_new(timeout(NAMING, caller.ask(question))).await else { return Ok(()) };
        let named = match named {
            Ok(Ok(answer)) => folders(&answer),
            Ok(Err(_)) | Err(_) => {
                tracing::warn!("the client did not name the folders that it works in: start with `--root DIR`");
                Vec::new()
            }
        };
        let SortedFolders { trusted, mut new } = self.workplace.sort(named).await;
        new.retain(|folder| !known.declined.contains(folder));
        let can_ask = Capability::Elicitation.is_declared(&client.capabilities);
        if !new.is_empty() && !can_ask {
            let listed: Vec<String> = new.iter().map(|folder| folder.display().to_string()).collect();
            let listed = listed.join(", ");
            tracing::warn!("nobody can be asked whether tools may work in {listed}: start with `--root DIR`");
            new.clear();
        }
        // With some folder to work in nobody need wait for another.
        self.open(trusted.clone(), known, trusted.is_empty() && !new.is_empty()).await?;
        if new.is_empty() {
            return Ok(());
        }
        let answer = news.unless_new(timeout(self.patience, caller.ask(form(&new)))).await;
        let Some(answer) = answer else { return Ok(()) };
        let yes = answer.ok().and_then(Result::ok).map(|answer| agreed(&answer, &new)).unwrap_or_default();
        known.declined.extend(new.iter().filter(|folder| !yes.contains(folder)).cloned());
        for folder in &yes {
            self.workplace.trust(folder.clone()).await;
        }
        self.open(trusted.into_iter().chain(yes).collect(), known, false).await
    }

    /// Puts an application with these roots in the place of the one that there is.
    async fn open(&self, roots: Vec<PathBuf>, known: &mut Known, is_asking: bool) -> Result<(), NotOpened> {
        if known.open.as_ref() == Some(&roots) {
            self.stages.send_modify(|stage| stage.is_asking = is_asking);
            return Ok(());
        }
        let loses_some = known.open.iter().flatten().any(|root| !roots.contains(root));
        if loses_some {
            // Nothing begins, and nothing goes on, where the client no longer works.
            self.stages.send_modify(|stage| stage.is_asking = true);
            self.workplace.close_all().await;
        }
        known.open = None;
        let app = self.workplace.open(roots.clone()).await.ok_or(NotOpened)?;
        known.open = Some(roots);
        let server = Arc::new(McpServer::new(app, self.identity.clone(), self.first_list_waits));
        self.stages.send_replace(Stage { server: Some(server), is_asking });
        self.workplace.retire().await;
        Ok(())
    }
}

/// The folders that a client named. What is no folder of this machine is passed over.
fn folders(answer: &InputResponse) -> Vec<PathBuf> {
    let roots = answer.0.get("roots").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let uris = roots.iter().take(MAX_FOLDERS).filter_map(|root| root.get("uri")?.as_str());
    let folder = |uri: &str| {
        let folder = folder(uri);
        if folder.is_none() {
            tracing::warn!(uri, "the client works in what is no folder of this machine");
        }
        folder
    };
    uris.filter_map(folder).collect()
}

/// The path of a `file:` URI. One with a query or a fragment has lost a part of its path, as happens where `?` and `#`
/// were not encoded.
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

/// The question, with one field a folder.
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

/// The folders that the person said yes to. Only an `accept` says any, and only in a folder's own field.
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
    fn what_a_client_names_is_taken_apart_with_care() {
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
    fn only_a_yes_in_its_own_field_lets_tools_into_a_folder() {
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
