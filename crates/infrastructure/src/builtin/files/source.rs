//! The source that a path names: a file of the workspace, or a stored output by its handle.

use crate::{
    builtin::tool_kit::{tool_context::ToolContext, tool_environment::ToolEnvironment},
    sandbox::workspace::{file_handle::FileHandle, granted_workspace::GrantedWorkspace},
};
use toolstead_domain::{
    Access, OutputHandle, StoreError, StoredContent, StoredOutput, ToolFailure, error_kind::ErrorKind,
};

/// A source to read. A bare handle (`o17`) names an output and never a file: such a file is `./o17`.
pub(crate) enum FileOrOutput {
    /// A file, a folder, or another entry that the path leads to.
    File(FileHandle),
    /// An output, and its content from the beginning.
    Output(StoredOutput, Box<dyn StoredContent>),
}

impl FileOrOutput {
    /// Returns the path as it is shown, or the handle.
    pub(crate) fn name(&self, files: &GrantedWorkspace) -> String {
        match self {
            Self::File(found) => files.workspace().shown(&found.path().lexical),
            Self::Output(stored, _) => stored.handle.to_string(),
        }
    }
}

/// Parses a path as a handle.
pub(crate) fn handle_in(path: &str) -> Option<OutputHandle> {
    path.parse().ok()
}

/// Returns the accesses of reading a path. A handle has none, because outputs are available only to their owners.
pub(crate) async fn accesses(path: &str, world: &ToolEnvironment) -> Result<Vec<Access>, ToolFailure> {
    match handle_in(path) {
        Some(_) => Ok(Vec::new()),
        None => Ok(vec![Access::ReadPath(world.access(path).await?)]),
    }
}

/// Works on the source that a path names, as [`ToolContext::on_files`] does.
///
/// # Errors
/// `not_found` when there is no such file or output, and the failure of the work.
pub(crate) async fn on_source<T: Send + 'static>(
    path: String,
    run: &ToolContext<'_>,
    work: impl FnOnce(&GrantedWorkspace, FileOrOutput) -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    let output = match handle_in(&path) {
        Some(handle) => Some(opened(handle, run).await?),
        None => None,
    };
    run.on_files(move |files| {
        let source = match output {
            Some((stored, content)) => FileOrOutput::Output(stored, content),
            None => FileOrOutput::File(files.find(&path)?),
        };
        work(files, source)
    })
    .await
}

async fn opened(
    handle: OutputHandle,
    run: &ToolContext<'_>,
) -> Result<(StoredOutput, Box<dyn StoredContent>), ToolFailure> {
    let failed = |error: StoreError| {
        ToolFailure::new(ErrorKind::Io, format!("the stored output `{handle}` could not be read")).caused_by(error)
    };
    let context = run.context();
    let stored = context.outputs.find(context.principal, handle).await.map_err(failed)?;
    let content = context.outputs.open(context.principal, handle).await.map_err(failed)?;
    stored.zip(content).ok_or_else(|| {
        let message = format!("there is no stored output `{handle}`: it has expired, or was not stored for you");
        ToolFailure::new(ErrorKind::NotFound, message)
            .next(format!("Call the tool again that made it; a file of that name is `./{handle}`."))
    })
}

#[cfg(test)]
mod tests {
    use crate::builtin::tests::Bench;
    use serde_json::json;
    use std::collections::BTreeSet;
    use toolstead_domain::error_kind::ErrorKind;

    #[test]
    fn a_bare_handle_names_a_stored_output_and_a_path_with_a_folder_names_a_file() {
        let bench = Bench::new();
        let handle = bench.keep("text/plain", "kept\n");
        bench.put(&handle, "file\n");
        assert_eq!(bench.text("read_file", json!({"path": &handle})), "     1\tkept");
        assert_eq!(bench.text("read_file", json!({"path": format!("./{handle}")})), "     1\tfile");
    }

    #[test]
    fn listed_paths_that_resemble_handles_are_prefixed_so_that_tools_can_read_them() {
        let bench = Bench::new();
        for name in ["o17", "~", "~notes"] {
            bench.put(name, format!("word {name}\n"));
        }
        bench.put("o18/o17", "word below\n");
        bench.put("o0", "no handle\n");
        let read = |path: &str| bench.text("read_file", json!({"path": path}));
        let globbed = bench.text("glob", json!({"pattern": "**"}));
        let found: BTreeSet<&str> = globbed.lines().collect();
        assert_eq!(found, BTreeSet::from(["./o17", "./~", "./~notes", "o0", "o18/o17"]));
        let files = bench.text("grep", json!({"pattern": "word", "output_mode": "files_with_matches"}));
        let found: BTreeSet<&str> =
            files.lines().filter(|line| line.contains(['o', '~']) && !line.contains(' ')).collect();
        assert_eq!(found, BTreeSet::from(["./o17", "./~", "./~notes", "o18/o17"]));
        for path in found {
            assert!(read(path).contains("word"), "{path}");
        }
        let matched = bench.text("grep", json!({"pattern": "word o17"}));
        assert_eq!(matched, "./o17:1:word o17");
        let listed = bench.call("list_directory", json!({"path": "."})).unwrap();
        assert_eq!(listed.joined_text(), "./\n  o0\n  ./o17\n  ./o18/\n  ./~\n  ./~notes");
        let paths = listed.structured_content().unwrap()["entries"].as_array().unwrap().clone();
        let paths: Vec<&str> = paths.iter().map(|entry| entry["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["o0", "./o17", "./o18", "./~", "./~notes"]);
        assert_eq!(bench.text("list_directory", json!({"path": "./o18"})), "./o18/\n  ./o17");
        let info = bench.call("file_info", json!({"path": "./o17"})).unwrap();
        assert_eq!(info.structured_content().unwrap()["path"], "./o17");
    }

    #[test]
    fn reading_a_stored_output_is_not_subject_to_file_rules() {
        let bench = Bench::with_deny(&["Read(**)"]);
        let handle = bench.keep("text/plain", "kept\n");
        assert!(bench.call_unchecked("read_file", json!({"path": &handle})).unwrap().is_empty());
        assert_eq!(bench.text("read_file", json!({"path": &handle})), "     1\tkept");
    }

    #[test]
    fn an_unknown_handle_is_rejected_with_a_suggestion() {
        let bench = Bench::new();
        bench.put("o7", "file\n");
        let failure = bench.call("read_file", json!({"path": "o7"})).unwrap_err();
        assert_eq!(
            (failure.kind, failure.text().as_str()),
            (
                ErrorKind::NotFound,
                "there is no stored output `o7`: it has expired, or was not stored for you. Call the tool again that \
                 made it; a file of that name is `./o7`."
            )
        );
    }
}
