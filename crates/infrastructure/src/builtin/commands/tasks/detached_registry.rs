//! Detached tasks of sessions that continue in other processes. The process that started a task owns it; later
//! processes follow it by its socket, or read its record ([`DetachedTaskStore`]).
//!
//! Both describe a task by the same frames: a line of JSON each, followed by bytes for some of them.

mod frame;
mod task_owner;

use self::{
    frame::{Frame, FrameReader, TaskMetadata, send},
    task_owner::{append_frames, keep},
};
use super::{BackgroundTask, TaskId, TaskKind};
use crate::{
    builtin::{
        commands::{
            capture::Capture,
            command::{CommandControl, CommandEnd, CommandHandle, CommandOwnerChannels, OnceFlag},
            programs::CommandSettings,
        },
        files::read_state::SessionKey,
    },
    sandbox::detached_task_store::{DetachedTaskSocket, DetachedTaskStore},
};
use futures::future::join_all;
use std::{
    future::{Future, poll_fn},
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncWriteExt},
    net::{UnixStream, unix::OwnedWriteHalf},
    sync::{oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use toolstead_domain::{Principal, Timestamp, ToolFailure, error_kind::ErrorKind};

/// Timeout of each part of the owner's answer to a new follower.
const TIME_TO_ANSWER: Duration = Duration::from_secs(15);
/// Time to send the final state to the owner.
const FAREWELL: Duration = Duration::from_secs(2);

/// Detached tasks of this process and of others.
#[derive(Debug)]
pub(super) struct DetachedTaskRegistry {
    place: DetachedTaskStore,
    /// `true` if this process may own detached tasks.
    pub(super) outlives: bool,
    owned: Mutex<JoinSet<()>>,
}

/// Connection to a task that another process owns or owned.
#[derive(Debug)]
pub(super) struct RemoteTaskConnection {
    number: u64,
    /// Position up to which the output was read, as recorded when the task was found. Only a later one is sent to the
    /// owner.
    cursor: u64,
    end_reported: bool,
    /// Connection to the owner, if the task was running when it was found.
    connection: Mutex<Option<RemoteOwnerConnection>>,
}

#[derive(Debug)]
struct RemoteOwnerConnection {
    final_state: oneshot::Sender<Vec<Frame>>,
    work: JoinHandle<()>,
}

/// State of a task according to the frames received so far.
#[derive(Debug)]
struct TaskStateReplica {
    capture: Arc<Capture>,
    ended: watch::Sender<Option<CommandEnd>>,
    cursor: u64,
    end_reported: bool,
}

impl DetachedTaskRegistry {
    pub(super) fn new(place: DetachedTaskStore, outlives: bool) -> Self {
        Self { place, outlives, owned: Mutex::default() }
    }

    pub(super) fn owns_any(&self) -> bool {
        !self.keepers().is_empty()
    }

    /// Reserves a number for a task, creates its record, and listens on its socket.
    pub(super) fn begin(&self) -> Result<DetachedTaskSocket, ToolFailure> {
        self.place.begin().map_err(record_failure)
    }

    /// Records a task, and serves its followers until it has ended.
    pub(super) fn keep(&self, task: &Arc<BackgroundTask>, begun: DetachedTaskSocket) -> Result<(), ToolFailure> {
        let number = begun.number;
        let keeping = keep(self.place.clone(), task.clone(), begun).map_err(|error| {
            self.place.close(number);
            record_failure(error)
        })?;
        self.keepers().spawn(keeping);
        Ok(())
    }

    /// Returns once all detached tasks that this process owns have ended and are recorded. Dropping the future changes
    /// nothing.
    pub(super) async fn ended(&self) {
        while poll_fn(|context| self.keepers().poll_join_next(context)).await.is_some() {}
    }

    /// Finds the tasks whose numbers are not in `known`. Skips a task whose record does not describe it, and logs one
    /// that cannot be reached.
    pub(super) async fn find_unknown(
        &self,
        known: &[u64],
        settings: &CommandSettings,
        now: Timestamp,
    ) -> io::Result<Vec<BackgroundTask>> {
        let place = self.place.clone();
        let numbers = tokio::task::spawn_blocking(move || place.numbers()).await.map_err(io::Error::other)??;
        let mut met = Vec::new();
        for number in numbers.into_iter().filter(|number| !known.contains(number)) {
            match find_task(&self.place, number, settings, now).await {
                Ok(task) => met.extend(task),
                Err(error) => tracing::warn!(number, %error, "skipped an unreachable detached task"),
            }
        }
        Ok(met)
    }

    /// Sends or records the state that this process has set for tasks of other processes, and closes the connections.
    pub(super) async fn disconnect(&self, tasks: &[Arc<BackgroundTask>]) {
        join_all(tasks.iter().filter_map(|task| Some((task, task.remote.as_ref()?))).map(async |(task, far)| {
            let mut news = Vec::new();
            let looked = task.cursor.load(Ordering::Relaxed);
            news.extend((looked > far.cursor).then_some(Frame::Looked(looked)));
            news.extend((task.end_reported.is_set() && !far.end_reported).then_some(Frame::Told));
            let following = far.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
            match following {
                Some(following) if task.command.end().is_none() => {
                    if following.final_state.send(news).is_ok() {
                        let _ = timeout(FAREWELL, following.work).await;
                    }
                }
                // The record of an ended task is complete.
                _ => {
                    let (place, number) = (self.place.clone(), far.number);
                    let noting = tokio::task::spawn_blocking(move || append_frames(&place, number, &news));
                    if let Ok(Err(error)) = noting.await {
                        tracing::warn!(%error, "the read position of a detached task was not recorded");
                    }
                }
            }
        }))
        .await;
    }

    fn keepers(&self) -> MutexGuard<'_, JoinSet<()>> {
        // No code panics while it holds this lock.
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn record_failure(error: io::Error) -> ToolFailure {
    let message = format!("the task cannot be detached, because it cannot be recorded: {error}");
    ToolFailure::new(ErrorKind::Io, message).caused_by(error)
}

/// Finds one task: by its socket while it runs, otherwise by its record. `None` if it has not started.
async fn find_task(
    place: &DetachedTaskStore,
    number: u64,
    settings: &CommandSettings,
    now: Timestamp,
) -> io::Result<Option<BackgroundTask>> {
    let mut record = FrameReader::of(File::from_std(place.record(number)?));
    let secret = record.line().await?;
    // Without a portrait the task is about to start, or never started.
    let Some((Frame::Task(portrait), _)) = record.next().await? else { return Ok(None) };
    let capture = Arc::new(Capture::new(settings.spool_folder.clone(), settings.kept_bytes));
    let age = u64::try_from(now.0.saturating_sub(portrait.started_at)).unwrap_or(0);
    let started = Instant::now().checked_sub(Duration::from_micros(age)).unwrap_or_else(Instant::now);
    let (command, channels) = CommandHandle::remote(capture.clone(), portrait.process, started, portrait.takes_input);
    let CommandOwnerChannels { ended, orders, texts } = channels;
    let mut heard = TaskStateReplica { capture, ended, cursor: 0, end_reported: false };
    let live = match connect_to_owner(place, number, &secret, &mut heard).await {
        Ok(stream) => Some(stream),
        Err(_) if has_lost_owner(place, number) => {
            heard.rest_of(&mut record, place, number).await;
            None
        }
        // The task may be running: to report it as lost would remove its socket.
        Err(error) => return Err(error),
    };
    let (looked, end_reported) = (heard.cursor, heard.end_reported);
    let following = live.map(|(frames, writer)| {
        let (farewell, left) = oneshot::channel();
        let reading = follow(heard, frames, place.clone(), number);
        let work = tokio::spawn(poll_both(reading, send_orders(writer, orders, texts, left)));
        RemoteOwnerConnection { final_state: farewell, work }
    });
    let is_told = OnceFlag::default();
    if end_reported {
        is_told.set_once();
    }
    Ok(Some(BackgroundTask {
        id: TaskId(number),
        kind: TaskKind::Shell,
        owner: SessionKey { principal: portrait.principal(), session: portrait.session },
        is_detached: true,
        text: portrait.text,
        description: portrait.description,
        started_at: Timestamp(portrait.started_at),
        command: Arc::new(command),
        cursor: AtomicU64::new(looked),
        end_reported: is_told,
        remote: Some(RemoteTaskConnection { number, cursor: looked, end_reported, connection: Mutex::new(following) }),
    }))
}

/// Returns `true` if the owner is certainly gone: its socket does not exist, or refuses connections.
fn has_lost_owner(place: &DetachedTaskStore, number: u64) -> bool {
    let gone = |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
    place.connect(number).is_err_and(gone)
}

/// Connects to the owner, and receives everything that was printed so far.
async fn connect_to_owner(
    place: &DetachedTaskStore,
    number: u64,
    secret: &str,
    heard: &mut TaskStateReplica,
) -> io::Result<(FrameReader<tokio::net::unix::OwnedReadHalf>, OwnedWriteHalf)> {
    let stream = place.connect(number)?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    let (reader, mut writer) = stream.into_split();
    writer.write_all(format!("{secret}\n").as_bytes()).await?;
    let mut frames = FrameReader::of(reader);
    while let Some((frame, bytes)) = timeout(TIME_TO_ANSWER, frames.next()).await?? {
        match frame {
            Frame::UpToDate => return Ok((frames, writer)),
            frame => heard.apply(frame, bytes).await,
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

impl TaskStateReplica {
    async fn apply(&mut self, frame: Frame, bytes: Vec<u8>) {
        match frame {
            Frame::Output { stream, place, .. } => {
                let capture = self.capture.clone();
                // Fails only during shutdown of the runtime.
                let _ = tokio::task::spawn_blocking(move || capture.append_at(place, stream, &bytes)).await;
            }
            Frame::Looked(place) => self.cursor = self.cursor.max(place),
            Frame::Told => self.end_reported = true,
            Frame::End(end) => drop(self.ended.send_replace(Some(end))),
            Frame::Task(_)
            | Frame::UpToDate
            | Frame::Signal(_)
            | Frame::Stop
            | Frame::Kill
            | Frame::Input { .. }
            | Frame::CloseInput => {}
        }
    }

    /// Reads the rest of the record. A task whose record has no end is recorded as lost.
    async fn rest_of<R: AsyncRead + Unpin>(
        &mut self,
        record: &mut FrameReader<R>,
        place: &DetachedTaskStore,
        number: u64,
    ) {
        // A truncated record ends at its last whole frame.
        while let Ok(Some((frame, bytes))) = record.next().await {
            self.apply(frame, bytes).await;
        }
        if self.ended.borrow().is_some() {
            return;
        }
        place.close(number);
        if let Err(error) = append_frames(place, number, &[Frame::End(CommandEnd::for_lost_owner())]) {
            tracing::warn!(%error, "the loss of a detached task was not recorded");
        }
        self.ended.send_replace(Some(CommandEnd::for_lost_owner()));
    }
}

/// Receives frames until the task has ended. If its owner is gone, reads the rest of the record.
async fn follow(
    mut heard: TaskStateReplica,
    mut frames: FrameReader<tokio::net::unix::OwnedReadHalf>,
    place: DetachedTaskStore,
    number: u64,
) {
    while let Ok(Some((frame, bytes))) = frames.next().await {
        heard.apply(frame, bytes).await;
        if heard.ended.borrow().is_some() {
            return;
        }
    }
    // The owner is gone. Its record contains the result.
    let rest = async {
        let mut record = FrameReader::of(File::from_std(place.record(number)?));
        record.line().await?;
        heard.rest_of(&mut record, &place, number).await;
        io::Result::Ok(())
    };
    if rest.await.is_err() {
        heard.ended.send_replace(Some(CommandEnd::for_lost_owner()));
    }
}

/// Sends orders and input for the task to its owner, until this process leaves.
async fn send_orders(
    mut writer: OwnedWriteHalf,
    mut orders: tokio::sync::mpsc::UnboundedReceiver<CommandControl>,
    mut texts: tokio::sync::mpsc::Receiver<Vec<u8>>,
    mut left: oneshot::Receiver<Vec<Frame>>,
) {
    loop {
        // In this order: a text comes before the end of the input, and everything before the final state. If the owner
        // no longer reads, it is gone, which the reading side detects.
        tokio::select! {
            biased;
            Some(text) = texts.recv() => {
                let _ = send(&mut writer, &Frame::Input { bytes: text.len() }, &text).await;
            }
            Some(order) = orders.recv() => {
                let frame = match order {
                    CommandControl::Signal(signal) => Frame::Signal(signal),
                    // The owner watches the timeout as well.
                    CommandControl::Stop | CommandControl::TimeOut => Frame::Stop,
                    CommandControl::Kill => Frame::Kill,
                    CommandControl::CloseInput => Frame::CloseInput,
                };
                let _ = send(&mut writer, &frame, &[]).await;
            }
            news = &mut left => {
                for frame in news.unwrap_or_default() {
                    let _ = send(&mut writer, &frame, &[]).await;
                }
                return;
            }
        }
    }
}

/// Polls both futures until `writing` ends; `reading` may end before.
async fn poll_both(reading: impl Future<Output = ()>, writing: impl Future<Output = ()>) {
    tokio::pin!(reading, writing);
    let mut reads = true;
    loop {
        tokio::select! {
            () = &mut writing => return,
            () = &mut reading, if reads => reads = false,
        }
    }
}

impl TaskMetadata {
    fn of(task: &BackgroundTask) -> Self {
        Self {
            principal: task.owner.principal.id().to_owned(),
            session: task.owner.session.clone(),
            text: task.text.clone(),
            description: task.description.as_ref().map(|text| text.chars().take(1000).collect()),
            started_at: task.started_at.0,
            process: task.command.process,
            takes_input: task.command.takes_input(),
        }
    }

    /// Returns the principal. The folder belongs to one principal, so its record names that one.
    fn principal(&self) -> Principal {
        if self.principal == Principal::local().id() {
            return Principal::local();
        }
        Principal::token(self.principal.trim_start_matches("token:"))
    }
}

#[cfg(test)]
mod tests;
