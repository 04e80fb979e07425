//! Web servers for tests through the binaries: plain HTTP at 127.0.0.1, and TLS by an authority that the program trusts by
//! `SSL_CERT_FILE`.

use crate::binaries::{Home, stderr};
use std::path::{Path, PathBuf};
use toolstead_infrastructure::web::testing::AUTHORITY;
pub(crate) use toolstead_infrastructure::web::testing::{ReceivedRequest, Reply, TestServer};

/// Writes the authority's certificate there, and names the file: the value of `SSL_CERT_FILE`.
pub(crate) fn authority_file(folder: &Path) -> PathBuf {
    let file = folder.join("authority.pem");
    std::fs::write(&file, AUTHORITY).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tls_server_is_trusted_only_through_the_authority_that_the_environment_names() {
    let server = TestServer::tls(|_| Reply::new(404, "no MCP here")).await;
    let home = Home::new();
    let config = home.config(&format!("[mcp_servers.far]\nurl = {:?}\n", server.url("/mcp").as_str()));
    let authority = authority_file(&home.work());
    for (authority, requests) in [(None, 0), (Some(&authority), 1)] {
        let mut command = home.toolstead(&["--config", config.to_str().unwrap(), "tools", "list"]);
        command.envs(authority.map(|file| ("SSL_CERT_FILE", file)));
        let output = command.output().unwrap();
        assert_eq!(server.requests().len().min(1), requests, "{}", stderr(&output));
    }
    assert_eq!(server.requests()[0].path(), "/mcp");
}
