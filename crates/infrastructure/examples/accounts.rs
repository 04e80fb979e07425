//! Signs in to Google on a page, and prints what was granted. Tokens lie sealed in a folder of the caller's choice:
//!
//! `cargo run -p toolstead-infrastructure --example accounts -- CLIENT_ID FOLDER < CLIENT_SECRET`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::timeout;
use toolstead_domain::{Credentials, Principal, Secret, ports::credentials::ProtectedResource};
use toolstead_infrastructure::{
    accounts::{
        credentials::{AccountsParts, OAuthAccounts},
        grant::GMAIL,
        oauth_client::OAuthClient,
        vault::Vault,
    },
    egress::{connector::SystemNetwork, host::HostPatterns},
    system_clock::SystemClock,
    web::web_client::WebClient,
};
use url::Url;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [client_id, folder] = words.as_slice() else {
        return Err("usage: accounts CLIENT_ID FOLDER < CLIENT_SECRET".into());
    };
    let mut client_secret = String::new();
    std::io::stdin().read_line(&mut client_secret)?;
    let folder = PathBuf::from(folder);
    let service = Url::parse("https://gmail.googleapis.com")?;
    let accounts = OAuthAccounts::new(AccountsParts {
        client: Ok(OAuthClient {
            issuer: "https://accounts.google.com".into(),
            client_id: client_id.clone(),
            client_secret: Secret::new(client_secret.trim()),
            authorization_url: Url::parse("https://accounts.google.com/o/oauth2/v2/auth")?,
            token_url: Url::parse("https://oauth2.googleapis.com/token")?,
            revocation_url: Url::parse("https://oauth2.googleapis.com/revoke")?,
        }),
        services: vec![(&GMAIL, service.clone())],
        vault: Ok(Vault::open(folder.join("accounts"), folder.join("secrets.key"))?),
        reach: WebClient::new(Arc::new(SystemNetwork::default()), HostPatterns::default()),
        clock: Arc::new(SystemClock),
        patience: Duration::from_secs(120),
    });
    let person = Principal::local();
    let sign_in = accounts.begin(&person, &GMAIL)?;
    println!("Open this page:\n{}", sign_in.page());
    let came = timeout(Duration::from_secs(120), sign_in.wait_for_code()).await??;
    println!("granted: {}", sign_in.finish(came).await?.scopes.join(" "));
    // What every request to the service bears; they are renewed when they are asked for.
    let gmail = ProtectedResource { grant: GMAIL.name.into(), origin: service.origin().ascii_serialization().into() };
    for (name, _) in accounts.headers(&person, &gmail).await? {
        println!("a request has the header {name}");
    }
    Ok(())
}
