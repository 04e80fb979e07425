//! Detached tasks of sessions that go on from process to process: the process that started one keeps it, and later ones
//! follow it by its socket or read its record ([`DetachedTasks`]).
//!
//! Both tell a task by the same frames: a line of JSON each, and behind some of them so many bytes.

mod frame;
mod keeping;

use self::{
    frame::{Frame, Frames, Portrait, send},
    keeping::{keep, written},
};
use super::{Kind, Task, TaskId};
use crate::{
    builtin::{
        commands::{
            capture::Capture,
            command::{Command, Elsewhere, End, Once, Order},
            programs::CommandSettings,
        },
        files::seen_files::Viewer,
    },
    sandbox::detached::{Begun, DetachedTasks},
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
use toolstead_domain::{
    error_kind::ErrorKind, ports::clock::Timestamp, principal::Principal, tool_failure::ToolFailure,
};

/// A keeper has so long for each part of its answer to who comes.
const TIME_TO_ANSWER: Duration = Duration::from_secs(15);
/// What is told to the keeper at last has so long to leave.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where detached tasks are kept.
#[derive(Debug)]
pub(super) struct Kept {
    place: DetachedTasks,
    /// Whether this process may keep some.
    pub(super) outlives: bool,
    keepers: Mutex<JoinSet<()>>,
}

/// The way to a task that another process keeps, or kept.
#[derive(Debug)]
pub(super) struct Far {
    number: u64,
    /// What was known when it was met, and need not be said again.
    looked: u64,
    told: bool,
    /// Where it still ran.
    following: Mutex<Option<Following>>,
}

#[derive(Debug)]
struct Following {
    farewell: oneshot::Sender<Vec<Frame>>,
    work: JoinHandle<()>,
}

/// What frames have told of a task so far.
#[derive(Debug)]
struct Heard {
    capture: Arc<Capture>,
    ended: watch::Sender<Option<End>>,
    looked: u64,
    told: bool,
}

impl Kept {
    pub(super) fn new(place: DetachedTasks, outlives: bool) -> Self {
        Self { place, outlives, keepers: Mutex::default() }
    }

    pub(super) fn keeps_any(&self) -> bool {
        !self.keepers().is_empty()
    }

    /// Takes a number for a task.
    pub(super) fn begin(&self) -> Result<Begun, ToolFailure> {
        self.place.begin().map_err(not_kept)
    }

    /// Keeps a task from now on to its end.
    pub(super) fn keep(&self, task: &Arc<Task>, begun: Begun) -> Result<(), ToolFailure> {
        let number = begun.number;
        let keeping = keep(self.place.clone(), task.clone(), begun).map_err(|error| {
            self.place.close(number);
            not_kept(error)
        })?;
        self.keepers().spawn(keeping);
        Ok(())
    }

    /// Returns when all that are kept here have ended. Dropping this changes nothing.
    pub(super) async fn ended(&self) {
        while poll_fn(|context| self.keepers().poll_join_next(context)).await.is_some() {}
    }

    /// The tasks that are not known here yet. One whose record says nothing of it is passed over.
    pub(super) async fn meet(
        &self,
        known: &[u64],
        settings: &CommandSettings,
        now: Timestamp,
    ) -> io::Result<Vec<Task>> {
        let place = self.place.clone();
        let numbers = tokio::task::spawn_blocking(move || place.numbers()).await.map_err(io::Error::other)??;
        let mut met = Vec::new();
        for number in numbers.into_iter().filter(|number| !known.contains(number)) {
            match meet(&self.place, number, settings, now).await {
                Ok(task) => met.extend(task),
                Err(error) => tracing::warn!(number, %error, "a detached task cannot be reached, and is passed over"),
            }
        }
        Ok(met)
    }

    /// Says what has become known here of tasks that others keep, and lets go of them.
    pub(super) async fn leave(&self, tasks: &[Arc<Task>]) {
        join_all(tasks.iter().filter_map(|task| Some((task, task.far.as_ref()?))).map(async |(task, far)| {
            let mut news = Vec::new();
            let looked = task.cursor.load(Ordering::Relaxed);
            news.extend((looked > far.looked).then_some(Frame::Looked(looked)));
            news.extend((task.told.is_done() && !far.told).then_some(Frame::Told));
            let following = far.following.lock().unwrap_or_else(PoisonError::into_inner).take();
            match following {
                Some(following) if task.command.end().is_none() => {
                    if following.farewell.send(news).is_ok() {
                        let _ = timeout(FAREWELL, following.work).await;
                    }
                }
                // Its record is complete.
                _ => {
                    let (place, number) = (self.place.clone(), far.number);
                    let noting = tokio::task::spawn_blocking(move || written(&place, number, &news));
                    if let Ok(Err(error)) = noting.await {
                        tracing::warn!(%error, "what was seen of a detached task is not on record");
                    }
                }
            }
        }))
        .await;
    }

    fn keepers(&self) -> MutexGuard<'_, JoinSet<()>> {
        // Nothing panics while it is held.
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_kept(error: io::Error) -> ToolFailure {
    let message = format!("the task cannot be detached, because it cannot be put on record: {error}");
    ToolFailure::new(ErrorKind::Io, message).caused_by(error)
}

/// Meets one task, by its socket where it runs, else by its record.
async fn meet(
    place: &DetachedTasks,
    number: u64,
    settings: &CommandSettings,
    now: Timestamp,
) -> io::Result<Option<Task>> {
    let mut record = Frames::of(File::from_std(place.record(number)?));
    let secret = record.line().await?;
    // Without a portrait it is about to begin, or never did.
    let Some((Frame::Task(portrait), _)) = record.next().await? else { return Ok(None) };
    let capture = Arc::new(Capture::new(settings.spool_folder.clone(), settings.kept_bytes));
    let age = u64::try_from(now.0.saturating_sub(portrait.started_at)).unwrap_or(0);
    let started = Instant::now().checked_sub(Duration::from_micros(age)).unwrap_or_else(Instant::now);
    let (command, elsewhere) = Command::elsewhere(capture.clone(), portrait.process, started, portrait.takes_input);
    let Elsewhere { ended, orders, texts } = elsewhere;
    let mut heard = Heard { capture, ended, looked: 0, told: false };
    let live = match greet(place, number, &secret, &mut heard).await {
        Ok(stream) => Some(stream),
        Err(_) if is_left(place, number) => {
            heard.rest_of(&mut record, place, number).await;
            None
        }
        // It may run: to tell it as lost would take its socket from it.
        Err(error) => return Err(error),
    };
    let (looked, told) = (heard.looked, heard.told);
    let following = live.map(|(frames, writer)| {
        let (farewell, left) = oneshot::channel();
        let reading = follow(heard, frames, place.clone(), number);
        let work = tokio::spawn(both(reading, obey(writer, orders, texts, left)));
        Following { farewell, work }
    });
    let is_told = Once::default();
    if told {
        is_told.first();
    }
    Ok(Some(Task {
        id: TaskId(number),
        kind: Kind::Shell,
        owner: Viewer { principal: portrait.principal(), session: portrait.session },
        is_detached: true,
        text: portrait.text,
        description: portrait.description,
        started_at: Timestamp(portrait.started_at),
        command: Arc::new(command),
        cursor: AtomicU64::new(looked),
        told: is_told,
        far: Some(Far { number, looked, told, following: Mutex::new(following) }),
    }))
}

/// Whether the keeper is gone for certain: its socket, or whoever listened there.
fn is_left(place: &DetachedTasks, number: u64) -> bool {
    let gone = |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
    place.connect(number).is_err_and(gone)
}

/// Comes to the keeper, and hears all that was printed so far.
async fn greet(
    place: &DetachedTasks,
    number: u64,
    secret: &str,
    heard: &mut Heard,
) -> io::Result<(Frames<tokio::net::unix::OwnedReadHalf>, OwnedWriteHalf)> {
    let stream = place.connect(number)?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    let (reader, mut writer) = stream.into_split();
    writer.write_all(format!("{secret}\n").as_bytes()).await?;
    let mut frames = Frames::of(reader);
    while let Some((frame, bytes)) = timeout(TIME_TO_ANSWER, frames.next()).await?? {
        match frame {
            Frame::UpToDate => return Ok((frames, writer)),
            frame => heard.hear(frame, bytes).await,
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

impl Heard {
    async fn hear(&mut self, frame: Frame, bytes: Vec<u8>) {
        match frame {
            Frame::Output { stream, place, .. } => {
                let capture = self.capture.clone();
                // Fails only while the runtime goes down.
                let _ = tokio::task::spawn_blocking(move || capture.append_at(place, stream, &bytes)).await;
            }
            Frame::Looked(place) => self.looked = self.looked.max(place),
            Frame::Told => self.told = true,
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

    /// What the record tells; a task whose record does not come to an end is lost.
    async fn rest_of<R: AsyncRead + Unpin>(&mut self, record: &mut Frames<R>, place: &DetachedTasks, number: u64) {
        // A record that is cut off ends where it is.
        while let Ok(Some((frame, bytes))) = record.next().await {
            self.hear(frame, bytes).await;
        }
        if self.ended.borrow().is_some() {
            return;
        }
        place.close(number);
        if let Err(error) = written(place, number, &[Frame::End(End::lost())]) {
            tracing::warn!(%error, "that a detached task is lost is not on record");
        }
        self.ended.send_replace(Some(End::lost()));
    }
}

/// Hears on until the task has ended.
async fn follow(
    mut heard: Heard,
    mut frames: Frames<tokio::net::unix::OwnedReadHalf>,
    place: DetachedTasks,
    number: u64,
) {
    while let Ok(Some((frame, bytes))) = frames.next().await {
        heard.hear(frame, bytes).await;
        if heard.ended.borrow().is_some() {
            return;
        }
    }
    // The keeper is gone. What it left says how.
    let rest = async {
        let mut record = Frames::of(File::from_std(place.record(number)?));
        record.line().await?;
        heard.rest_of(&mut record, &place, number).await;
        io::Result::Ok(())
    };
    if rest.await.is_err() {
        heard.ended.send_replace(Some(End::lost()));
    }
}

/// Hands over what is to be done to the task, until the farewell.
async fn obey(
    mut writer: OwnedWriteHalf,
    mut orders: tokio::sync::mpsc::UnboundedReceiver<Order>,
    mut texts: tokio::sync::mpsc::Receiver<Vec<u8>>,
    mut left: oneshot::Receiver<Vec<Frame>>,
) {
    loop {
        // In this order: a text comes before the end of the input, and everything before the farewell. A keeper that does
        // not hear any more is gone, which shows elsewhere.
        tokio::select! {
            biased;
            Some(text) = texts.recv() => {
                let _ = send(&mut writer, &Frame::Input { bytes: text.len() }, &text).await;
            }
            Some(order) = orders.recv() => {
                let frame = match order {
                    Order::Signal(signal) => Frame::Signal(signal),
                    // The process that keeps it watches its time as well.
                    Order::Stop | Order::TimeOut => Frame::Stop,
                    Order::Kill => Frame::Kill,
                    Order::CloseInput => Frame::CloseInput,
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

/// Reads as long as there is something to write.
async fn both(reading: impl Future<Output = ()>, writing: impl Future<Output = ()>) {
    tokio::pin!(reading, writing);
    let mut reads = true;
    loop {
        tokio::select! {
            () = &mut writing => return,
            () = &mut reading, if reads => reads = false,
        }
    }
}

impl Portrait {
    fn of(task: &Task) -> Self {
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

    /// The folder is one principal's, and that is whose record it is.
    fn principal(&self) -> Principal {
        if self.principal == Principal::local().id() {
            return Principal::local();
        }
        Principal::token(self.principal.trim_start_matches("token:"))
    }
}

#[cfg(test)]
mod tests;
