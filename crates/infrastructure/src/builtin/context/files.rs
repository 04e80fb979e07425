//! Files of the workspace as resources.

use super::{
    InvalidBuiltInContext, members,
    path_completion::{PartialPath, entries},
    unknown_argument,
};
use crate::{
    builtin::{
        files::{
            file_uri,
            sniff::{FileKindByContent, media_type, sniff},
        },
        tool_kit::{blocking::on_blocking_thread, tool_environment::ToolEnvironment},
    },
    sandbox::workspace::{granted_workspace::GrantedWorkspace, stop::StopCondition},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use toolstead_domain::{Access, CallContext, CompletionRequest, ResourceTemplate, ToolFailure};

/// Template of all files.
const TEMPLATE: &str = "file:///{path}";
/// Variable of the template.
const VARIABLE: &str = "path";

/// Files that calls may read, by their URIs.
#[derive(Debug)]
pub(super) struct FileResources {
    world: ToolEnvironment,
}

impl FileResources {
    pub(super) fn new(world: ToolEnvironment) -> Self {
        Self { world }
    }

    /// Returns the template; none if there are no roots.
    pub(super) fn templates(&self) -> Result<Vec<ResourceTemplate>, InvalidBuiltInContext> {
        if self.world.workspace().start().is_none() {
            return Ok(Vec::new());
        }
        let definition = json!({
            "uriTemplate": TEMPLATE,
            "name": "file",
            "title": "File of the workspace",
            "description": "A file below the roots of the workspace: text as text, anything else as base64. `path` is the \
                absolute path without its first slash, percent-encoded.",
        });
        let wrong = |error: toolstead_domain::context::InvalidContextDefinition| InvalidBuiltInContext {
            what: format!("template `{TEMPLATE}`"),
            reason: error.to_string(),
        };
        Ok(vec![ResourceTemplate::new(members(definition)).map_err(wrong)?])
    }

    pub(super) async fn accesses(&self, uri: &str) -> Result<Vec<Access>, ToolFailure> {
        Ok(vec![Access::ReadPath(self.world.access(&file_uri::path_of(uri)?).await?)])
    }

    /// Returns MCP's `TextResourceContents` or `BlobResourceContents`.
    pub(super) async fn content(&self, uri: &str, context: &CallContext<'_>) -> Result<Value, ToolFailure> {
        let path = file_uri::path_of(uri)?;
        let (at_most, uri) = (self.world.files().limits().text_bytes, uri.to_owned());
        self.on_files(context, move |files| {
            let bytes = files.find(&path)?.read(at_most)?;
            let name = path.rsplit('/').next().unwrap_or_default();
            let kind = sniff(&bytes, true, name);
            let media_type = media_type(&kind, &bytes, name);
            let text = match kind {
                FileKindByContent::Text(encoding) => {
                    bytes.get(encoding.mark_bytes()..).and_then(|bytes| encoding.decode_exactly(bytes))
                }
                // A notebook is JSON, and that text is its content.
                FileKindByContent::Document(_) => std::str::from_utf8(&bytes).ok().map(Into::into),
                FileKindByContent::Image(_) | FileKindByContent::Binary(_) => None,
            };
            Ok(match text {
                Some(text) => json!({"uri": uri, "mimeType": media_type, "text": text}),
                None => json!({"uri": uri, "mimeType": media_type, "blob": BASE64_STANDARD.encode(&bytes)}),
            })
        })
        .await
    }

    /// Returns the access to the folder of a partial path, if it is below a root. Nothing above the roots is listed.
    pub(super) async fn completion_accesses(&self, value: &str) -> Result<Vec<Access>, ToolFailure> {
        let folder = PartialPath::parse(value).map(|typed| typed.folder());
        let Some(folder) = folder.filter(|folder| self.world.workspace().contains(folder.as_ref())) else {
            return Ok(Vec::new());
        };
        Ok(vec![Access::ReadPath(self.world.access(&folder).await?)])
    }

    /// Returns the entries of the folder that begin with the rest of the partial path, and their number; outside of the
    /// roots, the roots that begin with the partial path. A missing folder has none.
    pub(super) async fn values(
        &self,
        completion: &CompletionRequest,
        context: &CallContext<'_>,
    ) -> Result<(Vec<String>, usize), ToolFailure> {
        if completion.argument != VARIABLE {
            return Err(unknown_argument(&completion.argument, [VARIABLE].into_iter()));
        }
        let Some(typed) = PartialPath::parse(&completion.value) else { return Ok((Vec::new(), 0)) };
        if !self.world.workspace().contains(typed.folder().as_ref()) {
            let roots = context.grant.roots().all().filter_map(|root| root.to_str());
            return Ok(typed.roots(roots));
        }
        self.on_files(context, move |files| Ok(entries(&typed, files))).await
    }

    async fn on_files<T: Send + 'static>(
        &self,
        context: &CallContext<'_>,
        work: impl FnOnce(&GrantedWorkspace) -> Result<T, ToolFailure> + Send + 'static,
    ) -> Result<T, ToolFailure> {
        let stop = StopCondition::at(context.deadline);
        let _abandon = stop.when_dropped();
        let granted = GrantedWorkspace::new(self.world.workspace().clone(), context.grant.clone(), stop);
        on_blocking_thread(move || work(&granted)).await
    }
}
