//! The built-in tools: one file a tool, one line in the list below. None imports another.

use crate::builtin::tool_kit::built_in_tool::{AnyTool, BuiltInTool};
use toolstead_domain::ToolAnnotations;

/// Declares the module of each tool and puts the tool into [`all`] and [`NAMES`].
macro_rules! built_in_tools {
    ($($module:ident::$tool:ident,)*) => {
        $(mod $module;)*

        /// Every built-in tool that is compiled in, in the order in which lists show them.
        pub fn all() -> Vec<Box<dyn AnyTool>> {
            vec![$(Box::new($module::$tool)),*]
        }

        /// The name of each built-in tool, and `true` if it takes command lines.
        pub(super) const NAMES: &[(&str, bool)] =
            &[$(($module::$tool::NAME, $module::$tool::TAKES_COMMAND_LINES)),*];

        /// The name and annotations of each built-in tool.
        pub(super) const HINTS: &[(&str, ToolAnnotations)] =
            &[$(($module::$tool::NAME, $module::$tool::ANNOTATIONS)),*];
    };
}

built_in_tools! {
    read_file::ReadFile,
    file_info::FileInfo,
    write_file::WriteFile,
    append_file::AppendFile,
    edit_file::EditFile,
    multi_edit::MultiEdit,
    delete_file::DeleteFile,
    apply_patch::ApplyPatch,
    notebook_edit::NotebookEdit,
    undo::Undo,
    redo::Redo,
    list_directory::ListDirectory,
    glob::Glob,
    grep::Grep,
    bash::Bash,
    run_code::RunCode,
    task_list::TaskList,
    task_output::TaskOutput,
    task_wait::TaskWait,
    task_input::TaskInput,
    task_stop::TaskStop,
    todo_write::TodoWrite,
    todo_read::TodoRead,
    think::Think,
    ask_user::AskUser,
    ask_model::AskModel,
    image_recognition::ImageRecognition,
    web_fetch::WebFetch,
    calendar_list_events::CalendarListEvents,
    calendar_create_event::CalendarCreateEvent,
    calendar_get_event::CalendarGetEvent,
    gmail_search::GmailSearch,
    gmail_read::GmailRead,
    gmail_send::GmailSend,
    linkedin_jobs::LinkedinJobs,
    linkedin_job_detail::LinkedinJobDetail,
    web_search::WebSearch,
    anthropic_usage::AnthropicUsage,
    browser_navigate::BrowserNavigate,
    browser_get_page::BrowserGetPage,
    browser_click::BrowserClick,
    browser_type::BrowserType,
    browser_select::BrowserSelect,
    browser_wait_for::BrowserWaitFor,
    browser_screenshot::BrowserScreenshot,
    browser_tabs::BrowserTabs,
    browser_close::BrowserClose,
    git::Git,
    go_tool::GoTool,
    media_probe::MediaProbe,
    system_info::SystemInfo,
    disk_info::DiskInfo,
    network_info::NetworkInfo,
    current_time::CurrentTime,
    working_directory::WorkingDirectory,
    skill::Skill,
    help::Help,
    echo::Echo,
}
