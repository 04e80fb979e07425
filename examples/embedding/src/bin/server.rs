use embedding::forecast::Forecast;
use toolstead_presentation::prelude::*;

fn main() -> ExitCode {
    // First of all, before there is a thread: children that are this same program begin here.
    enter_if_helper();
    mcp_server(|app| app.tool(typed(Forecast)))
}
