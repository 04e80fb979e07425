//! One registry owns tasks, others follow them, as in separate processes.

use super::*;
use crate::{
    builtin::commands::{
        capture::OutputStream,
        command::{EndCause, ExcessPolicy},
        programs::StartedProgram,
        tasks::{NewTask, TaskStatus, Tasks},
    },
    sandbox::launcher::{ChildInput, LaunchSpec, Launcher},
};
use regex::Regex;
use std::path::Path;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use toolstead_domain::SandboxPolicy;

const NOW: Timestamp = Timestamp(1_772_366_400_000_000);

struct House {
    folder: TempDir,
    keeper: Tasks,
}

fn place(folder: &Path, workspace: &str) -> DetachedTaskStore {
    DetachedTaskStore::of(folder, &Principal::local(), Path::new(workspace))
}

fn viewer() -> SessionKey {
    SessionKey { principal: Principal::local(), session: "cli-1".into() }
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keeper = Tasks::for_continuing_session(place(folder.path(), "/w"), true);
        Self { folder, keeper }
    }

    /// Starts a task of this script; the capture retains `kept_bytes` bytes.
    async fn keep(&self, script: &str, kept_bytes: u64) -> Arc<BackgroundTask> {
        let spec = LaunchSpec {
            program: "bash".into(),
            args: ["-c", script].map(str::to_owned).into(),
            working_dir: "/".into(),
            input: ChildInput::Pipe,
            policy: SandboxPolicy::open(CommandSettings::default().environment),
        };
        let child = Launcher::start().unwrap().launch(spec).await.unwrap();
        let started = StartedProgram { child, proxy: None, is_terminal: false, widening_note: None, tools: None };
        let capture = Capture::new(self.folder.path().into(), kept_bytes);
        let command = Arc::new(CommandHandle::of(started, capture, None, ExcessPolicy::DropsOldest, None, true));
        let new = NewTask {
            kind: TaskKind::Shell,
            owner: viewer(),
            is_detached: true,
            text: script.into(),
            description: Some("a test".into()),
            started_at: NOW,
            command,
        };
        self.keeper.add(new).unwrap()
    }

    /// Returns the registry of another process in the same workspace.
    async fn follower(&self) -> Tasks {
        self.follower_in("/w").await
    }

    async fn follower_in(&self, workspace: &str) -> Tasks {
        let tasks = Tasks::for_continuing_session(place(self.folder.path(), workspace), false);
        let settings = CommandSettings { spool_folder: self.folder.path().into(), ..CommandSettings::default() };
        tasks.find_detached(&settings, NOW).await.unwrap();
        tasks
    }
}

fn printed(task: &BackgroundTask) -> (u64, Vec<u8>) {
    task.command.capture.read(0, 1 << 20).unwrap()
}

async fn line(task: &BackgroundTask, pattern: &str) {
    let found = task.command.find_line(&Regex::new(pattern).unwrap()).await.unwrap();
    assert!(found.is_some(), "no line fits {pattern}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_registry_can_find_follow_write_to_and_stop_a_detached_task() {
    let house = House::new();
    let kept =
        house.keep("echo up; read -r text; echo got \"$text\"; read -r text; echo end of input; sleep 300", 1 << 20);
    let kept = kept.await;
    line(&kept, "up").await;
    assert!(house.keeper.has_detached());

    let follower = house.follower().await;
    let task = follower.find(&viewer(), "task_1").unwrap();
    assert_eq!(
        (task.status(), task.facts().pid, task.describe()),
        (TaskStatus::Running, kept.facts().pid, kept.describe())
    );
    assert_eq!(printed(&task), (0, b"up\n".to_vec()));
    task.command.write(Some(b"one\n".to_vec()), false).unwrap();
    line(&task, "got one").await;
    task.advance_cursor(3);
    follower.close().await;
    assert_eq!(kept.status(), TaskStatus::Running, "who goes ends nothing");

    let follower = house.follower().await;
    let task = follower.find(&viewer(), "task_1").unwrap();
    assert_eq!(printed(&task), (0, b"up\ngot one\n".to_vec()));
    assert_eq!(task.cursor.load(Ordering::Relaxed), 3, "the last look is known");
    task.command.write(None, true).unwrap();
    line(&task, "end of input").await;
    task.command.stop();
    let end = task.command.ended().await;
    assert_eq!((end.cause, &end), (EndCause::Stopped, &kept.command.ended().await));
    house.keeper.wait_for_detached().await;
    task.mark_reported_to(&viewer());
    follower.close().await;

    // From its record, as it was.
    let follower = house.follower().await;
    let task = follower.find(&viewer(), "task_1").unwrap();
    assert_eq!(printed(&task), printed(&kept));
    assert_eq!((task.command.end(), task.facts().ended_at), (kept.command.end(), kept.facts().ended_at));
    assert!(!follower.has_notifications(&viewer()), "its end was told");
    assert!(house.follower_in("/v").await.visible(&viewer()).is_empty(), "another workspace has none");
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_and_records_keep_the_newest_output_with_its_offset_and_stream() {
    let house = House::new();
    let script = "for i in {1..3000}; do echo out $i; echo err $i >&2; done; echo done; read -r text";
    let kept = house.keep(script, 20_000).await;
    line(&kept, "^done$").await;
    let follower = house.follower().await;
    let running = follower.find(&viewer(), "task_1").unwrap();
    kept.command.write(None, true).unwrap();
    kept.command.ended().await;
    house.keeper.wait_for_detached().await;
    running.command.ended().await;
    let follower = house.follower().await;
    let ended = follower.find(&viewer(), "task_1").unwrap();

    let (start, bytes) = printed(&kept);
    assert!(start > 0 && bytes.len() == 20_000, "{start}");
    for other in [&running, &ended] {
        assert!(printed(other) == (start, bytes.clone()));
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let of = |task: &BackgroundTask| task.command.capture.of_stream(stream, start, &bytes);
            assert!(of(other) == of(&kept), "{stream:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_keeper_ended_is_reported_as_lost_to_current_and_new_followers() {
    let house = House::new();
    house.keep("echo up; sleep 300", 1 << 20).await;
    let follower = house.follower().await;
    let followed = follower.find(&viewer(), "task_1").unwrap();
    let House { folder, keeper } = house;
    // As `kill -9` would.
    drop(keeper);
    assert_eq!(followed.command.ended().await.cause, EndCause::Lost);
    assert!(followed.describe().contains("is lost"), "{}", followed.describe());
    let keeper = Tasks::for_continuing_session(place(folder.path(), "/w"), true);
    let house = House { folder, keeper };
    for _ in 0..2 {
        let task = house.follower().await.find(&viewer(), "task_1").unwrap();
        assert_eq!((task.status(), task.facts().ended_at), (TaskStatus::Failed, None));
    }
    // Its number is not given again.
    let next = house.keep("read -r text", 1 << 20).await;
    assert_eq!(next.id.to_string(), "task_2");
    next.command.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unresponsive_keeper_does_not_block_followers_or_lose_its_task() {
    let house = House::new();
    let begun = place(house.folder.path(), "/w").begin().unwrap();
    let portrait = TaskMetadata {
        principal: viewer().principal.id().into(),
        session: viewer().session,
        text: "sleep".into(),
        description: None,
        started_at: NOW.0,
        process: 1,
        takes_input: false,
    };
    append_frames(&place(house.folder.path(), "/w"), begun.number, &[Frame::Task(portrait)]).unwrap();
    // A stopped process still has its socket, but never answers.
    let follower = timeout(Duration::from_secs(60), house.follower()).await.expect("it goes on without an answer");
    assert!(follower.visible(&viewer()).is_empty());
    assert!(place(house.folder.path(), "/w").connect(begun.number).is_ok(), "its socket stays");
    let mut record = FrameReader::of(File::from_std(place(house.folder.path(), "/w").record(begun.number).unwrap()));
    record.line().await.unwrap();
    assert!(matches!(record.next().await.unwrap(), Some((Frame::Task(_), _))));
    assert!(record.next().await.unwrap().is_none(), "nothing is said of its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_the_secret_cannot_read_output_or_stop_the_task() {
    let house = House::new();
    let kept = house.keep("echo secret; read -r text", 1 << 20).await;
    line(&kept, "secret").await;
    let stream = place(house.folder.path(), "/w").connect(1).unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut stream = UnixStream::from_std(stream).unwrap();
    stream.write_all(b"guessed\n\"stop\"\n").await.unwrap();
    let mut heard = Vec::new();
    // It may end with an error, as what was said is not read.
    let _ = stream.read_to_end(&mut heard).await;
    assert_eq!((heard.as_slice(), kept.status()), (&b""[..], TaskStatus::Running));
    kept.command.kill();
}

#[test]
fn a_task_that_would_end_with_its_call_is_rejected_with_a_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = |outlives| Tasks::for_continuing_session(place(folder.path(), "/w"), outlives);
    for (tasks, is_detached, hint) in [
        (tasks(false), false, Some("Add `\"detach\": true`")),
        (tasks(true), false, Some("Add `\"detach\": true`")),
        (tasks(false), true, Some("Run the command in the foreground instead: the call then lasts until it ends.")),
        (tasks(true), true, None),
        (Tasks::default(), false, None),
        (Tasks::default(), true, None),
    ] {
        let refusal = tasks.check_life(is_detached).err().map(|failure| failure.text());
        assert_eq!(refusal.is_some(), hint.is_some(), "{refusal:?}");
        assert!(hint.is_none_or(|hint| refusal.is_some_and(|said| said.contains(hint))));
    }
}
