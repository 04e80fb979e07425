use embedding::forecast::Forecast;
use toolstead_presentation::prelude::*;

fn main() -> ExitCode {
    // Must be first, before any thread: child processes of this program start here.
    enter_if_helper();
    mcp_server(|app| app.tool(typed(Forecast)))
}
