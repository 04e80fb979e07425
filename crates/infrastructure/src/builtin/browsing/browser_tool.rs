//! The common code of the tools for the browser of a session: a tool defines only its arguments and its action.

use crate::builtin::{
    browsing::{BrowserPageReport, access_to_element, access_to_page, availability, host_of},
    tool_kit::{
        built_in_tool::BuiltInTool, foreign_answer::foreign_output_schema, tool_context::ToolContext,
        tool_environment::ToolEnvironment,
    },
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use toolstead_domain::{Access, Availability, Category, ToolAnnotations, ToolCall, ToolFailure, ToolResult};

/// A tool for the browser of a session. It is a [`BuiltInTool`].
pub trait BrowserTool: Send + Sync + 'static {
    /// See [`BuiltInTool::NAME`].
    const NAME: &'static str;
    /// See [`BuiltInTool::TITLE`].
    const TITLE: &'static str;
    /// See [`BuiltInTool::DESCRIPTION`].
    const DESCRIPTION: &'static str;
    /// See [`BuiltInTool::BRIEF`].
    const BRIEF: &'static str;
    /// See [`BuiltInTool::KEYWORDS`].
    const KEYWORDS: &'static str;
    /// See [`BuiltInTool::EXAMPLE`].
    const EXAMPLE: &'static str;
    /// `true` for a tool that does not change the page.
    const IS_READ_ONLY: bool = false;
    /// Type of the arguments.
    type Input: DeserializeOwned + JsonSchema + Send + Sync;

    /// Returns what a call touches, by default the open page alone.
    fn touches<'a>(&self, input: &'a Self::Input) -> BrowserCallAccesses<'a> {
        let _ = input;
        BrowserCallAccesses::default()
    }

    /// Returns the timeout that the call requests, in milliseconds; `None` for the default.
    fn milliseconds(&self, input: &Self::Input) -> Option<u64> {
        let _ = input;
        None
    }

    /// Returns the schema of the structured result, by default that of pages; `None` if the tool declares none.
    fn output_schema(&self) -> Option<Value> {
        Some(foreign_output_schema::<BrowserPageReport>())
    }

    /// Runs a call.
    ///
    /// # Errors
    /// A failure for the model.
    fn run(
        &self,
        input: Self::Input,
        run: &ToolContext<'_>,
    ) -> impl Future<Output = Result<ToolResult, ToolFailure>> + Send;
}

/// Accesses of a call on a browser.
#[derive(Debug, Clone, Copy, Default)]
pub struct BrowserCallAccesses<'a> {
    pub(in crate::builtin) target: BrowserCallTarget<'a>,
    /// Files of the workspace that the call reads.
    pub(in crate::builtin) reads: &'a [String],
    /// File that the call writes.
    pub(in crate::builtin) writes: Option<&'a str>,
}

/// Target whose host a call on a browser reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum BrowserCallTarget<'a> {
    /// The open page.
    #[default]
    Page,
    /// The page and the frame that contains an element: by its reference, or by its number.
    Element(Option<&'a str>, Option<u64>),
    /// Another address.
    Address(&'a str),
    /// No host.
    NoHost,
}

impl<T: BrowserTool> BuiltInTool for T {
    const NAME: &'static str = T::NAME;
    const TITLE: &'static str = T::TITLE;
    const DESCRIPTION: &'static str = T::DESCRIPTION;
    const BRIEF: &'static str = T::BRIEF;
    const CATEGORY: Category = Category::Web;
    const TAGS: &'static [&'static str] = &["browser"];
    const KEYWORDS: &'static str = T::KEYWORDS;
    const ANNOTATIONS: ToolAnnotations = ToolAnnotations {
        read_only_hint: Some(T::IS_READ_ONLY),
        destructive_hint: Some(!T::IS_READ_ONLY),
        idempotent_hint: Some(false),
        open_world_hint: Some(true),
    };
    const EXAMPLE: &'static str = T::EXAMPLE;
    type Input = T::Input;

    fn output_schema(&self) -> Option<Value> {
        BrowserTool::output_schema(self)
    }

    fn availability(&self, world: &ToolEnvironment) -> Availability {
        availability(world)
    }

    async fn accesses_of(
        &self,
        input: &Self::Input,
        call: &ToolCall,
        world: &ToolEnvironment,
    ) -> Result<Vec<Access>, ToolFailure> {
        let BrowserCallAccesses { target: place, reads, writes } = self.touches(input);
        let mut accesses = match place {
            BrowserCallTarget::Page => access_to_page(call, world),
            BrowserCallTarget::Element(reference, number) => access_to_element(reference, number, call, world),
            BrowserCallTarget::Address(url) => vec![Access::ReachHost(host_of(url)?.into())],
            BrowserCallTarget::NoHost => Vec::new(),
        };
        for path in reads {
            accesses.push(Access::ReadPath(world.access(path).await?));
        }
        if let Some(path) = writes {
            accesses.push(Access::WritePath(world.access(path).await?));
        }
        Ok(accesses)
    }

    fn requested_time(&self, input: &Self::Input) -> Option<Duration> {
        // Leaves time for the report that follows.
        self.milliseconds(input).map(|wanted| Duration::from_millis(wanted + 5_000))
    }

    async fn run(&self, input: Self::Input, run: &ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        BrowserTool::run(self, input, run).await
    }
}
