//! Signs in to an MCP server on a page, and prints what was granted. The grant is stored in the given folder:
//!
//! `cargo run -p toolstead-infrastructure --example upstream_auth -- URL FOLDER`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{Credentials, Principal};
use toolstead_infrastructure::{
    accounts::vault::Vault,
    egress::{connector::SystemNetwork, host::HostPatterns},
    system_clock::SystemClock,
    upstream_auth::{
        settings::{SignInSettings, UpstreamAuth},
        upstream_accounts::{UpstreamServerCredentials, UpstreamServerCredentialsParts},
    },
    web::web_client::WebClient,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, folder] = words.as_slice() else { return Err("usage: upstream_auth URL FOLDER".into()) };
    let folder = PathBuf::from(folder);
    let accounts = UpstreamServerCredentials::new(UpstreamServerCredentialsParts {
        server: url.parse()?,
        auth: UpstreamAuth::OAuth(SignInSettings::default()),
        vault: Ok(Vault::open(folder.join("accounts"), folder.join("secrets.key"))?),
        web: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        clock: Arc::new(SystemClock),
    });
    let user = Principal::local();
    let sign_in = accounts.begin(&user).await?;
    println!("Open this page:\n{}", sign_in.page());
    let code = timeout(Duration::from_secs(120), sign_in.wait_for_code()).await??;
    println!("granted: {}", sign_in.finish(code).await?.scopes.join(" "));
    for (name, _) in accounts.headers(&user, &accounts.resource()).await? {
        println!("a request has the header {name}");
    }
    Ok(())
}
