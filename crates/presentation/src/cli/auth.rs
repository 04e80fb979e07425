//! `toolstead auth login|status|logout|import`.

use super::{
    Outcome,
    confirmation::is_confirmed,
    exit::{CommandError, Exit},
    global::Global,
    named_principal::principal,
    output::{Output, note, table, visible},
};
use crate::{
    composition_root::accounts_alone,
    config::{Config, trust::programs::out_of_reach_of_tools},
};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, IsTerminal, Read},
    path::PathBuf,
    time::Duration,
};
use tokio::{sync::mpsc, time::timeout};
use toolstead_domain::Principal;
use toolstead_infrastructure::{
    accounts::{
        credentials::{AccountStatus, Accounts, SignIn, SignedIn, SignedOut, Unreadable},
        grant::{GRANTS, Grant},
        sign_in_error::SignInError,
    },
    sandbox::browser::Browser,
};

/// Maximum time to wait for a sign-in in a browser on this machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Maximum time to wait for an address pasted from a browser on another machine.
const PATIENCE_TO_PASTE: Duration = Duration::from_secs(600);
/// Maximum length of a pasted line in bytes.
const MAX_LINE: u64 = 16 << 10;

/// Signs in to services, shows who is signed in, and signs out.
#[derive(Debug, Args)]
pub struct Auth {
    #[command(subcommand)]
    command: Command,
    /// The principal: `token:NAME` for the client of a server token. Default: the local user
    #[arg(long, value_name = "PRINCIPAL", global = true)]
    principal: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Signs in on a page that opens in the browser
    Login {
        service: Service,
        #[command(flatten)]
        chosen: GrantSelection,
        /// Opens no browser: prints the address of the page, and reads the address of the last page or its code
        #[arg(long)]
        no_browser: bool,
    },
    /// Shows the grants of each principal and their expiry
    Status,
    /// Revokes the grant at the issuer and deletes the tokens
    Logout {
        service: Service,
        #[command(flatten)]
        chosen: GrantSelection,
    },
    /// Imports the tokens that Micro-X left, after confirmation
    Import {
        /// A file of tokens, a folder that holds one, or a folder that Micro-X was started in. Default: this one
        place: Vec<PathBuf>,
        /// Skips the confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// The issuers of accounts.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Service {
    /// Gmail and Google Calendar
    Google,
}

#[derive(Debug, Args)]
struct GrantSelection {
    /// Only this grant: `gmail` or `calendar`. Default: both
    #[arg(long, value_name = "GRANT", value_parser = grant)]
    grant: Option<&'static Grant>,
}

impl GrantSelection {
    fn all(&self) -> Vec<&'static Grant> {
        self.grant.map_or_else(|| GRANTS.to_vec(), |one| vec![one])
    }
}

fn grant(name: &str) -> Result<&'static Grant, String> {
    let names = || GRANTS.map(|grant| format!("`{}`", grant.name)).join(", ");
    Grant::named(name).ok_or_else(|| format!("unknown grant `{name}`; use one of {}", names()))
}

impl Auth {
    pub(super) async fn run(self, global: &Global, output: &mut Output) -> Outcome {
        let principal = principal(self.principal.as_deref())?;
        let config = global.load()?;
        let accounts = accounts_alone(&config);
        match self.command {
            Command::Login { service: Service::Google, chosen, no_browser } => {
                let browser = if no_browser { None } else { browser(&config) };
                let method = match no_browser {
                    true => SignInMethod::Pasting,
                    false => SignInMethod::Browser(browser),
                };
                login(&accounts, &principal, &chosen.all(), &method, global.json, output).await
            }
            Command::Status => status(&accounts, &principal, global.json, output).await,
            Command::Logout { service: Service::Google, chosen } => {
                logout(&accounts, &principal, &chosen.all(), global.json, output).await
            }
            Command::Import { place, yes } => {
                let places = if place.is_empty() { vec![config.folders.start.clone()] } else { place };
                import(&accounts, &principal, places, yes, global.json, output).await
            }
        }
    }
}

/// Returns the browser of the user on this machine. Programs in locations that tools can write to are ignored.
pub(super) fn browser(config: &Config) -> Option<Browser> {
    let environment = &config.environment;
    let of_program = out_of_reach_of_tools(&config.mcp_servers, &config.roots, environment);
    Browser::find(of_program, |name| environment.get(name).map(str::to_owned))
}

/// Way to open the sign-in page and return from it.
enum SignInMethod {
    /// The browser of this machine, if there is one.
    Browser(Option<Browser>),
    /// A browser on any machine; the user pastes the address of the last page.
    Pasting,
}

async fn login(
    accounts: &Accounts,
    principal: &Principal,
    grants: &[&'static Grant],
    method: &SignInMethod,
    as_json: bool,
    output: &mut Output,
) -> Outcome {
    // One reader for all pages: a second one would lose a line to the first.
    let mut lines = match method {
        SignInMethod::Pasting => pasted_lines(),
        SignInMethod::Browser(_) if io::stdin().is_terminal() => pasted_lines(),
        SignInMethod::Browser(_) => mpsc::channel(1).1,
    };
    let mut all = Vec::new();
    for grant in grants {
        let sign_in = accounts.begin(principal, grant)?;
        let signed_in = signed_in(sign_in, grant, method, &mut lines).await?;
        if !as_json {
            output.line(&visible(&format!("Signed in: {} ({}).", grant.name, grant.about)))?;
        }
        all.push(to_json(&signed_in));
    }
    if as_json {
        output.json(&json!({"signed_in": all}))?;
    }
    Ok(Exit::Done)
}

/// Asks the user to open the page, and waits for the sign-in to complete.
async fn signed_in(
    sign_in: SignIn,
    grant: &Grant,
    method: &SignInMethod,
    lines: &mut mpsc::Receiver<String>,
) -> Result<SignedIn, CommandError> {
    // On a line of its own and in full, so that it can be copied.
    let address = visible(sign_in.page().as_str());
    note(&format!("To sign in for {}, open this page:\n\n{address}\n", grant.about));
    let patience = match method {
        SignInMethod::Browser(browser) => {
            match browser.as_ref().map(|browser| browser.open(sign_in.page())) {
                Some(Ok(())) => note("The page opens in the browser. Waiting for the sign-in to finish …"),
                Some(Err(why)) => note(&format!("The page could not be opened here: {why}. Open it yourself.")),
                None => note("No browser is available here. On another machine, sign in with --no-browser."),
            }
            PATIENCE
        }
        SignInMethod::Pasting => {
            note(
                "It leads to an address at 127.0.0.1, which may show nothing on another machine. Paste that address \
                 here, or the code in it:",
            );
            PATIENCE_TO_PASTE
        }
    };
    let coming = async {
        loop {
            tokio::select! {
                came = sign_in.wait_for_code() => return came,
                Some(line) = lines.recv() => match sign_in.pasted(&line)? {
                    Ok(came) => return Ok(came),
                    Err(_) if line.trim().is_empty() => {}
                    Err(why) => note(&format!("This is not the response to this sign-in: {why}. Paste it again:")),
                },
            }
        }
    };
    let came = timeout(patience, coming).await.map_err(|_| SignInError::Late(patience))??;
    Ok(sign_in.finish(came).await?)
}

/// Returns the lines of standard input, read by a thread that is never joined.
fn pasted_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match Read::by_ref(&mut input).take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if sender.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_err() => return,
                Ok(_) => {}
            }
        }
    });
    lines
}

async fn status(accounts: &Accounts, principal: &Principal, as_json: bool, output: &mut Output) -> Outcome {
    let AccountStatus { signed_in, unreadable } = accounts.status(principal).await?;
    if as_json {
        let of_unreadable = |one: &Unreadable| json!({"resource": one.resource, "error": one.error.to_string()});
        let all: Vec<Value> = signed_in.iter().map(to_json).chain(unreadable.iter().map(of_unreadable)).collect();
        output.json(&json!({"accounts": all}))?;
    } else {
        let rows = signed_in.iter().map(|one| {
            let until = match (one.is_renewable, one.expires_at) {
                (true, _) => "renewed automatically".to_owned(),
                (false, Some(end)) => end.to_string(),
                (false, None) => "unknown".to_owned(),
            };
            let cells = [one.grant.clone(), one.issuer.clone(), one.origin.clone(), until, one.scopes.join(" ")];
            cells.iter().map(|cell| visible(cell)).collect::<Vec<_>>()
        });
        match (signed_in.is_empty(), unreadable.is_empty()) {
            (true, true) => output.line("No account is signed in. `toolstead auth login google` signs in.")?,
            (true, false) => {}
            (false, _) => output.line(&table(&["GRANT", "ISSUER", "SERVICE", "UNTIL", "SCOPES"], rows))?,
        }
        for Unreadable { resource, error } in &unreadable {
            let named = resource.as_ref().map(|resource| format!("{resource}: ")).unwrap_or_default();
            output.line(&visible(&format!("{named}{error}")))?;
        }
    }
    Ok(if unreadable.is_empty() { Exit::Done } else { Exit::Unmet })
}

async fn logout(
    accounts: &Accounts,
    principal: &Principal,
    grants: &[&'static Grant],
    as_json: bool,
    output: &mut Output,
) -> Outcome {
    let (mut all, mut is_kept_there) = (Vec::new(), false);
    for grant in grants {
        let name = grant.name;
        let signed_out = accounts.sign_out(principal, grant).await?;
        if as_json && signed_out.is_empty() {
            all.push(json!({"grant": name, "was_signed_in": false, "is_revoked": false, "error": null}));
        } else if signed_out.is_empty() {
            output.line(&format!("{name}: was not signed in."))?;
        }
        for SignedOut { issuer, origin, revoked } in &signed_out {
            is_kept_there |= revoked.is_err();
            if as_json {
                all.push(json!({
                    "grant": name, "origin": origin, "was_signed_in": true, "is_revoked": revoked.is_ok(),
                    "error": revoked.as_ref().err(),
                }));
                continue;
            }
            output.line(&visible(&match revoked {
                Ok(()) => format!("{name}: signed out, and {issuer} revoked the grant for {origin}."),
                Err(why) => format!(
                    "{name}: signed out here, but {issuer} did not revoke the grant for {origin}: {why}. \
                     Revoke it in the account settings of that service."
                ),
            }))?;
        }
    }
    if as_json {
        output.json(&json!({"signed_out": all}))?;
    }
    Ok(if is_kept_there { Exit::Unmet } else { Exit::Done })
}

/// Shows the accounts that were found, and imports them after confirmation.
async fn import(
    accounts: &Accounts,
    principal: &Principal,
    places: Vec<PathBuf>,
    yes: bool,
    as_json: bool,
    output: &mut Output,
) -> Outcome {
    let plan = accounts.plan_import(places).await?;
    for (path, reason) in &plan.refused {
        note(&visible(&format!("`{}` is left alone: {reason}", path.display())));
    }
    if plan.found.is_empty() {
        return Err(CommandError::NotFound(
            "no importable tokens were found: name the folder that Micro-X was started in, or sign in with \
             `toolstead auth login google`"
                .into(),
        ));
    }
    for found in &plan.found {
        note(&visible(&format!(
            "`{}`: {}, written {}",
            found.path.display(),
            found.grants.join(", "),
            found.written_at
        )));
    }
    if !yes && !is_confirmed("Import these tokens and replace the stored ones? [y]es [n]o ").await {
        return Err(CommandError::Usage("nothing was imported; `--yes` confirms without a terminal".into()));
    }
    let mut all = Vec::new();
    for found in &plan.found {
        accounts.import_tokens(principal, found).await?;
        all.push(json!({"file": found.path.display().to_string(), "grants": found.grants}));
        if !as_json {
            output.line(&visible(&format!("Imported: {}. {}.", found.grants.join(", "), found.advice())))?;
        }
    }
    if as_json {
        output.json(&json!({"taken": all}))?;
    }
    Ok(Exit::Done)
}

fn to_json(signed_in: &SignedIn) -> Value {
    json!({
        "grant": signed_in.grant, "issuer": signed_in.issuer, "origin": signed_in.origin, "scopes": signed_in.scopes,
        "expires_at": signed_in.expires_at.map(|end| end.to_string()), "is_renewable": signed_in.is_renewable,
    })
}
