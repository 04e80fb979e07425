//! Reading and writing of whole files for tools, with the same checks as `read_file` and `write_file`.

use crate::builtin::{
    files::{
        change_set::{ChangeSet, recording::ChangeRecorder},
        content::OpenContent,
        etag::digest_of,
        source::on_source,
    },
    tool_kit::tool_context::ToolContext,
};
use crate::sandbox::workspace::write::WriteOptions;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

impl ToolContext<'_> {
    /// Reads a whole file, or a stored output by its handle. The file then counts as read by the session.
    ///
    /// # Errors
    /// `not_found`, `permission_denied` where the call may not read it, `too_large` beyond `files.result_bytes`.
    pub async fn read(&self, path: &str) -> Result<Vec<u8>, ToolFailure> {
        let (recording, limit) = (ChangeRecorder::of(self), self.environment().files().limits().result_bytes);
        let read = move |files: &_, source| {
            let mut content = OpenContent::open(source, files)?;
            let bytes = content.read_whole(limit, "a file")?;
            if let Some(real) = content.real.as_ref().filter(|_| content.is_unchanged()) {
                recording.mark_read(real, digest_of(&bytes));
            }
            Ok(bytes)
        };
        on_source(path.to_owned(), self, read).await
    }

    /// Writes a whole file and creates missing folders above it. The change is recorded in the journal before it is
    /// made, so that `undo` reverts it with all other changes of the call. An event is published, and the file counts
    /// as read by the session.
    ///
    /// Include the path in the accesses of the call, because accesses that require approval must be known before the
    /// call runs.
    ///
    /// # Errors
    /// `permission_denied` where the call may not write it, `stale_file` if it was changed elsewhere since this session
    /// read it, and any error of the system. Nothing is changed then.
    pub async fn write(&self, path: &str, contents: impl Into<Vec<u8>>) -> Result<(), ToolFailure> {
        let (path, contents, recording) = (path.to_owned(), contents.into(), ChangeRecorder::of(self));
        self.on_files(move |files| {
            let mut set = ChangeSet::take(files, &[&path])?;
            if let Some(now) = set.digest(0, recording.limit())?
                && set.is_stale(0, now, &recording)?
            {
                let message = format!("`{}` has changed since it was read", set.shown(0));
                return Err(ToolFailure::new(ErrorKind::StaleFile, message)
                    .next("Nothing was written; read it again, and decide again what to write."));
            }
            set.put(0, contents, WriteOptions { create_folders: true, overwrite: true, mode: None });
            set.commit(&recording, false).map(|_| ())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::{prelude::*, tests::Bench};

    #[derive(Deserialize, JsonSchema)]
    struct Copy {
        from: String,
        to: String,
    }

    /// Returns a tool that copies a file twice. `says` determines whether it declares that it writes.
    fn copying(says: bool) -> CustomTool {
        let copy = tool_fn("copy", "Copies a file.", |copy: Copy, run| {
            Box::pin(async move {
                let content = run.read(&copy.from).await?;
                run.write(&copy.to, content.clone()).await?;
                run.write(&format!("{}.bak", copy.to), content).await?;
                Ok("copied".to_owned())
            })
        });
        copy.touches(move |copy: Copy, world| {
            Box::pin(async move {
                let mut accesses = vec![Access::ReadPath(world.access(&copy.from).await?)];
                if says {
                    accesses.push(Access::WritePath(world.access(&copy.to).await?));
                    accesses.push(Access::WritePath(world.access(&format!("{}.bak", copy.to)).await?));
                }
                Ok(accesses.into())
            })
        })
    }

    fn copied(bench: &Bench, from: &str, to: &str) -> Result<ToolResult, ToolFailure> {
        bench.call("copy", json!({"from": from, "to": to}))
    }

    #[test]
    fn one_undo_reverts_all_files_that_a_run_wrote() {
        let bench = Bench::new().adding(copying(true));
        bench.put("a", "one");
        bench.put("b", "before");
        copied(&bench, "a", "b").unwrap();
        assert_eq!((bench.get("b"), bench.get("b.bak")), (b"one".to_vec(), b"one".to_vec()));
        assert!(["a", "b", "b.bak"].iter().all(|name| bench.known(name).is_some()), "the session has seen them");
        bench.call("undo", json!({})).unwrap();
        assert_eq!((bench.get("b"), bench.exists("b.bak")), (b"before".to_vec(), false));
        assert_eq!(bench.get("a"), b"one");
    }

    #[test]
    fn a_run_cannot_write_undeclared_files_or_read_denied_files() {
        let bench = Bench::new().adding(copying(false));
        bench.put("a", "one");
        assert_eq!(copied(&bench, "a", "b").unwrap_err().kind, ErrorKind::PermissionDenied);
        assert!(!bench.exists("b"));
        let bench = Bench::with_deny(&["Read(secret)", "Edit(locked)"]).adding(copying(true));
        bench.put("a", "one");
        bench.put("secret", "x");
        for (from, to) in [("secret", "b"), ("a", "locked"), ("a", "../outside")] {
            assert_eq!(copied(&bench, from, to).unwrap_err().kind, ErrorKind::PermissionDenied, "{from} {to}");
            assert!(!bench.exists(to));
        }
        assert_eq!(copied(&bench, "none", "b").unwrap_err().kind, ErrorKind::NotFound);
    }

    #[test]
    fn a_run_does_not_overwrite_a_file_that_changed_since_it_was_read() {
        let bench = Bench::new().adding(copying(true));
        bench.put("a", "one");
        bench.put("b", "read");
        bench.saw("b");
        bench.put("b", "changed");
        assert_eq!(copied(&bench, "a", "b").unwrap_err().kind, ErrorKind::StaleFile);
        assert_eq!((bench.get("b"), bench.exists("b.bak")), (b"changed".to_vec(), false));
    }
}
