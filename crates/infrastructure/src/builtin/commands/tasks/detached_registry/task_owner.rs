//! The owner's side: a process that knows the secret receives the output of the task and may control it, until the task
//! has ended and is recorded.

use super::frame::{Frame, FrameReader, TaskMetadata, send};
use crate::{
    builtin::commands::{capture::Capture, command, command::CommandEnd, tasks::BackgroundTask},
    sandbox::detached_task_store::{DetachedTaskSocket, DetachedTaskStore},
};
use futures::FutureExt;
use rustix::process::geteuid;
use std::{
    future::Future,
    io::{self, BufWriter, Write},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{JoinSet, spawn_blocking},
    time::{sleep, timeout},
};

/// Maximum number of bytes of output in one frame.
const CHUNK: usize = 64 << 10;
/// Time for a new connection to send the secret.
const SECRET_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the followers of a task to receive its end. Later they read the record.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Pause after a connection could not be accepted for want of descriptors.
const RETRY: Duration = Duration::from_millis(200);

/// Creates the record of a task, and returns a future that serves followers until the task has ended.
pub(super) fn keep(
    place: DetachedTaskStore,
    task: Arc<BackgroundTask>,
    begun: DetachedTaskSocket,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let DetachedTaskSocket { number, secret, listener } = begun;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    append_frames(&place, number, &[Frame::Task(TaskMetadata::of(&task))])?;
    Ok(async move {
        let (recorded, is_recorded) = watch::channel(None);
        let secret: Arc<str> = secret.into();
        let mut followers = JoinSet::new();
        let serve = |followers: &mut JoinSet<()>, stream: UnixStream| {
            // Other users cannot enter the folder; this check is a second barrier.
            if stream.peer_cred().is_ok_and(|peer| peer.uid() == geteuid().as_raw()) {
                followers.spawn(serve_follower(stream, task.clone(), secret.clone(), is_recorded.clone()));
            }
        };
        let ended = task.command.ended();
        tokio::pin!(ended);
        let end = loop {
            tokio::select! {
                end = &mut ended => break end,
                come = listener.accept() => match come {
                    Ok((stream, _)) => serve(&mut followers, stream),
                    Err(_) => sleep(RETRY).await,
                },
                Some(_) = followers.join_next() => {}
            }
        };
        let (recorded_task, recorded_end, at) = (task.clone(), end.clone(), place.clone());
        match spawn_blocking(move || record(&at, number, &recorded_task, recorded_end)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the end of a detached task was not recorded"),
            Err(error) => tracing::warn!(%error, "the end of a detached task was not recorded"),
        }
        recorded.send_replace(Some(end));
        while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
            serve(&mut followers, stream);
        }
        place.close(number);
        let _ = timeout(LAST_WORDS, async { while followers.join_next().await.is_some() {} }).await;
    })
}

/// Appends frames to a record. Blocks.
pub(super) fn append_frames(place: &DetachedTaskStore, number: u64, frames: &[Frame]) -> io::Result<()> {
    if frames.is_empty() {
        return Ok(());
    }
    let lines = frames.iter().map(Frame::line).collect::<io::Result<Vec<_>>>()?;
    // In one write, so that frames of two processes do not mix.
    place.append(number)?.write_all(&lines.concat())
}

/// Writes everything that is retained of an ended task to its record. Blocks.
fn record(place: &DetachedTaskStore, number: u64, task: &BackgroundTask, end: CommandEnd) -> io::Result<()> {
    let mut record = BufWriter::new(place.append(number)?);
    let capture = &task.command.capture;
    let mut at = 0;
    loop {
        let (start, bytes) = capture.read(at, CHUNK)?;
        if bytes.is_empty() {
            break;
        }
        for (frame, bytes) in parts(capture, start, &bytes) {
            record.write_all(&frame.line()?)?;
            record.write_all(bytes)?;
        }
        at = start + bytes.len() as u64;
    }
    for frame in state(task).into_iter().chain([Frame::End(end)]) {
        record.write_all(&frame.line()?)?;
    }
    record.flush()
}

/// Splits output that was printed at a position into frames, each with adjacent bytes of one stream.
fn parts<'a>(capture: &Capture, start: u64, bytes: &'a [u8]) -> impl Iterator<Item = (Frame, &'a [u8])> + use<'a> {
    let turns = capture.turns_in(start, bytes.len());
    turns.into_iter().map(move |(stream, range)| {
        let place = start + range.start as u64;
        (Frame::Output { stream, place, bytes: range.len() }, &bytes[range])
    })
}

/// Returns the frames that say how far the output was read, and that the end of the task was reported, if it was.
fn state(task: &BackgroundTask) -> Vec<Frame> {
    let looked = Frame::Looked(task.cursor.load(Ordering::Relaxed));
    [Some(looked), task.end_reported.is_set().then_some(Frame::Told)].into_iter().flatten().collect()
}

/// Serves one follower.
async fn serve_follower(
    stream: UnixStream,
    task: Arc<BackgroundTask>,
    secret: Arc<str>,
    recorded: watch::Receiver<Option<CommandEnd>>,
) {
    let (reader, writer) = stream.into_split();
    let mut frames = FrameReader::of(reader);
    match timeout(SECRET_TIMEOUT, frames.line()).await {
        Ok(Ok(received)) if received == *secret => {}
        _ => return,
    }
    let (hearing, telling) = (execute_orders(frames, &task), send_updates(writer, &task, recorded));
    tokio::pin!(hearing, telling);
    let mut tells = true;
    loop {
        tokio::select! {
            // Orders that arrived before the follower disconnected still count, so all of them are read.
            () = &mut hearing => return,
            _ = &mut telling, if tells => tells = false,
        }
    }
}

/// Executes the orders of a follower.
async fn execute_orders(mut frames: FrameReader<OwnedReadHalf>, task: &BackgroundTask) {
    while let Ok(Some((frame, bytes))) = frames.next().await {
        let command = &task.command;
        match frame {
            Frame::Signal(signal) => command.signal(signal),
            Frame::Stop => command.stop(),
            Frame::Kill => command.kill(),
            // The follower received any reason against writing when it started to follow.
            Frame::Input { .. } => drop(command.write(Some(bytes), false)),
            Frame::CloseInput => drop(command.write(None, true)),
            Frame::Looked(place) => task.advance_cursor(place),
            Frame::Told => {
                task.end_reported.set_once();
            }
            Frame::Task(_) | Frame::Output { .. } | Frame::UpToDate | Frame::End(_) => {}
        }
    }
}

/// Sends the recorded state, all output and the end of the task.
async fn send_updates(
    mut to: OwnedWriteHalf,
    task: &BackgroundTask,
    mut recorded: watch::Receiver<Option<CommandEnd>>,
) -> io::Result<()> {
    let capture = &task.command.capture;
    let mut grows = capture.subscribe_total();
    for frame in state(task) {
        send(&mut to, &frame, &[]).await?;
    }
    let mut at = send_output_from(&mut to, capture, 0).await?;
    send(&mut to, &Frame::UpToDate, &[]).await?;
    let end = loop {
        tokio::select! {
            Ok(end) = recorded.wait_for(Option::is_some) => break end.clone(),
            Ok(()) = grows.changed() => {}
            else => break None,
        }
        at = send_output_from(&mut to, capture, at).await?;
    };
    send_output_from(&mut to, capture, at).await?;
    match end {
        Some(end) => send(&mut to, &Frame::End(end), &[]).await,
        None => Ok(()),
    }
}

/// Sends the output from a position on, and returns the position after it.
async fn send_output_from(to: &mut OwnedWriteHalf, capture: &Arc<Capture>, mut at: u64) -> io::Result<u64> {
    loop {
        let (start, bytes) = command::read(capture, at, CHUNK).await.map_err(io::Error::other)?;
        if bytes.is_empty() {
            return Ok(at);
        }
        for (frame, bytes) in parts(capture, start, &bytes) {
            send(to, &frame, bytes).await?;
        }
        at = start + bytes.len() as u64;
    }
}
