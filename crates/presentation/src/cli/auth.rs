//! `toolstead auth login|status|logout|import`.

mod page_sign_in;
mod servers;

use self::page_sign_in::{SignInBrowser, pasted_lines_for, signed_in};
use super::{
    CommandResult,
    confirmation::is_confirmed,
    exit::{CommandError, Exit},
    global::GlobalFlags,
    named_principal::principal,
    output::{StdoutWriter, note, table, visible},
};
use crate::{
    composition_root::accounts_alone,
    config::{Config, trust::programs::out_of_reach_of_tools},
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;
use toolstead_domain::Principal;
use toolstead_infrastructure::{
    accounts::{
        credentials::{GrantStatus, OAuthAccounts, PrincipalAccountStatus, TokenRevocationReport, UnreadableTokens},
        grant::{GRANTS, GrantDefinition},
    },
    sandbox::browser::UserBrowserOpener,
};

/// Name of the service with accounts.
const GOOGLE: &str = "google";

/// Signs in to services and MCP servers, shows who is signed in, and signs out.
#[derive(Debug, Args)]
pub struct AuthCommand {
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
        /// `google`, or an MCP server of the configuration; `server:NAME` is always a server
        #[arg(value_name = "NAME")]
        target: String,
        #[command(flatten)]
        chosen: GoogleGrantArgs,
        /// Opens no browser: prints the address of the page, and reads the address of the last page or its code
        #[arg(long)]
        no_browser: bool,
    },
    /// Shows the grants of the principal and their expiry
    Status {
        /// Only this service or MCP server
        #[arg(value_name = "NAME")]
        target: Option<String>,
    },
    /// Revokes the grant at the issuer and deletes the tokens
    Logout {
        /// `google`, or an MCP server of the configuration; `server:NAME` is always a server
        #[arg(value_name = "NAME")]
        target: String,
        #[command(flatten)]
        chosen: GoogleGrantArgs,
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

#[derive(Debug, Args)]
struct GoogleGrantArgs {
    /// Only this grant of `google`: `gmail` or `calendar`. Default: both
    #[arg(long, value_name = "GRANT", value_parser = grant)]
    grant: Option<&'static GrantDefinition>,
}

impl GoogleGrantArgs {
    /// Returns the server that `target` names; `None` for the service.
    fn server(&self, target: &str, config: &Config) -> Result<Option<servers::SignInServer>, CommandError> {
        if target == GOOGLE {
            return Ok(None);
        }
        if self.grant.is_some() {
            return Err(CommandError::Usage(
                "`--grant` is for `google` only, because a server has one grant: omit it".into(),
            ));
        }
        servers::SignInServer::named(target, config).map(Some)
    }

    fn all(&self) -> Vec<&'static GrantDefinition> {
        self.grant.map_or_else(|| GRANTS.to_vec(), |one| vec![one])
    }
}

fn grant(name: &str) -> Result<&'static GrantDefinition, String> {
    let names = || GRANTS.map(|grant| format!("`{}`", grant.name)).join(", ");
    GrantDefinition::named(name).ok_or_else(|| format!("unknown grant `{name}`; use one of {}", names()))
}

impl AuthCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let principal = principal(self.principal.as_deref())?;
        let config = global.load()?;
        let accounts = accounts_alone(&config);
        match self.command {
            Command::Login { target, chosen, no_browser } => {
                let method = match no_browser {
                    true => SignInBrowser::Pasting,
                    false => SignInBrowser::Browser(browser(&config)),
                };
                match chosen.server(&target, &config)? {
                    Some(server) => server.login(&principal, &method, global.json, output).await,
                    None => login(&accounts, &principal, &chosen.all(), &method, global.json, output).await,
                }
            }
            Command::Status { target } => {
                let servers = servers::servers_for(target.as_deref(), &config)?;
                let accounts = target.as_deref().is_none_or(|target| target == GOOGLE).then_some(&accounts);
                status(accounts, &servers, &principal, global.json, output).await
            }
            Command::Logout { target, chosen } => match chosen.server(&target, &config)? {
                Some(server) => server.logout(&principal, global.json, output).await,
                None => logout(&accounts, &principal, &chosen.all(), global.json, output).await,
            },
            Command::Import { place, yes } => {
                let places = if place.is_empty() { vec![config.folders.start.clone()] } else { place };
                import(&accounts, &principal, places, yes, global.json, output).await
            }
        }
    }
}

/// Returns the browser of the user on this machine. Programs in locations that tools can write to are ignored.
pub(super) fn browser(config: &Config) -> Option<UserBrowserOpener> {
    let environment = &config.environment;
    let of_program = out_of_reach_of_tools(&config.mcp_servers, &config.roots, environment);
    UserBrowserOpener::find(of_program, |name| environment.get(name).map(str::to_owned))
}

async fn login(
    accounts: &OAuthAccounts,
    principal: &Principal,
    grants: &[&'static GrantDefinition],
    method: &SignInBrowser,
    as_json: bool,
    output: &mut StdoutWriter,
) -> CommandResult {
    // One reader for all pages: a second one would lose a line to the first.
    let mut lines = pasted_lines_for(method);
    let mut all = Vec::new();
    for grant in grants {
        let sign_in = accounts.begin(principal, grant)?;
        let signed_in = signed_in(sign_in, grant.about, method, &mut lines).await?;
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

async fn status(
    accounts: Option<&OAuthAccounts>,
    servers: &[servers::SignInServer],
    principal: &Principal,
    as_json: bool,
    output: &mut StdoutWriter,
) -> CommandResult {
    let PrincipalAccountStatus { signed_in, unreadable } = match accounts {
        Some(accounts) => accounts.status(principal).await?,
        None => PrincipalAccountStatus { signed_in: Vec::new(), unreadable: Vec::new() },
    };
    let mut all: Vec<Value> = signed_in.iter().map(to_json).collect();
    for server in servers {
        all.extend(server.status(principal).await?);
    }
    if as_json {
        let of_unreadable = |one: &UnreadableTokens| json!({"resource": one.resource, "error": one.error.to_string()});
        let all: Vec<Value> = all.into_iter().chain(unreadable.iter().map(of_unreadable)).collect();
        output.json(&json!({"accounts": all}))?;
    } else {
        let text = |row: &Value, member: &str| row[member].as_str().unwrap_or_default().to_owned();
        let rows = all.iter().map(|row| {
            let until = match (row["is_renewable"].as_bool(), row["expires_at"].as_str()) {
                (Some(true), _) => "renewed automatically".to_owned(),
                (_, Some(end)) => end.to_owned(),
                (_, None) => "unknown".to_owned(),
            };
            let scopes = row["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let scopes = scopes.collect::<Vec<_>>().join(" ");
            let cells = [text(row, "grant"), text(row, "issuer"), text(row, "origin"), until, scopes];
            cells.iter().map(|cell| visible(cell)).collect::<Vec<_>>()
        });
        match (all.is_empty(), unreadable.is_empty()) {
            (true, true) => output.line(
                "No account is signed in. `toolstead auth login NAME` signs in to `google` or to an MCP server.",
            )?,
            (true, false) => {}
            (false, _) => output.line(&table(&["GRANT", "ISSUER", "SERVICE", "UNTIL", "SCOPES"], rows))?,
        }
        for UnreadableTokens { resource, error } in &unreadable {
            let named = resource.as_ref().map(|resource| format!("{resource}: ")).unwrap_or_default();
            output.line(&visible(&format!("{named}{error}")))?;
        }
    }
    Ok(if unreadable.is_empty() { Exit::Done } else { Exit::Unmet })
}

async fn logout(
    accounts: &OAuthAccounts,
    principal: &Principal,
    grants: &[&'static GrantDefinition],
    as_json: bool,
    output: &mut StdoutWriter,
) -> CommandResult {
    let (mut all, mut is_kept_there) = (Vec::new(), false);
    for grant in grants {
        let name = grant.name;
        let signed_out = accounts.sign_out(principal, grant).await?;
        if as_json && signed_out.is_empty() {
            all.push(json!({"grant": name, "was_signed_in": false, "is_revoked": false, "error": null}));
        } else if signed_out.is_empty() {
            output.line(&format!("{name}: was not signed in."))?;
        }
        for TokenRevocationReport { issuer, origin, revoked } in &signed_out {
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
    accounts: &OAuthAccounts,
    principal: &Principal,
    places: Vec<PathBuf>,
    yes: bool,
    as_json: bool,
    output: &mut StdoutWriter,
) -> CommandResult {
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

fn to_json(signed_in: &GrantStatus) -> Value {
    json!({
        "grant": signed_in.grant, "issuer": signed_in.issuer, "origin": signed_in.origin, "scopes": signed_in.scopes,
        "expires_at": signed_in.expires_at.map(|end| end.to_string()), "is_renewable": signed_in.is_renewable,
    })
}
