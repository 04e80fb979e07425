use embedding::forecast::Forecast;
use toolstead_presentation::prelude::*;

fn main() -> ExitCode {
    // Must be first, before any thread exists: helper processes of this program start here and do not return.
    enter_if_helper();
    mcp_server(|app| app.tool(typed(Forecast)))
}
