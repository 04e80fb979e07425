//! Sign-in to MCP servers.

use super::page_sign_in::{SignInBrowser, pasted_lines_for, signed_in};
use crate::cli::{
    CommandResult,
    exit::{CommandError, Exit},
    output::{StdoutWriter, note, visible},
};
use crate::{composition_root::upstream_accounts_alone, config::Config};
use serde_json::{Value, json};
use toolstead_domain::Principal;
use toolstead_infrastructure::{
    accounts::credentials::TokenRevocationReport,
    upstream_auth::{stored_grants::UpstreamGrantSummary, upstream_accounts::UpstreamServerCredentials},
};

/// Prefix that distinguishes a server from a service.
const SERVER: &str = "server:";

/// MCP server that principals can sign in to.
pub(super) struct SignInServer {
    name: String,
    accounts: UpstreamServerCredentials,
}

/// Returns the servers that `target` names; all servers over HTTP without an `Authorization` header if it is absent,
/// and none for a service.
pub(super) fn servers_for(target: Option<&str>, config: &Config) -> Result<Vec<SignInServer>, CommandError> {
    match target {
        Some(super::GOOGLE) => Ok(Vec::new()),
        Some(target) => Ok(vec![SignInServer::named(target, config)?]),
        None => {
            let servers = config.mcp_servers.iter().filter_map(|server| {
                let accounts = upstream_accounts_alone(server, config)?;
                Some(SignInServer { name: server.name.to_string(), accounts })
            });
            Ok(servers.collect())
        }
    }
}

impl SignInServer {
    /// Finds the server of the configuration with this name, which may begin with `server:`.
    pub(super) fn named(target: &str, config: &Config) -> Result<Self, CommandError> {
        let name = target.strip_prefix(SERVER).unwrap_or(target);
        let Some(server) = config.mcp_servers.iter().find(|server| server.name.as_str() == name) else {
            let known: Vec<String> = config.mcp_servers.iter().map(|server| format!("`{}`", server.name)).collect();
            let servers = if known.is_empty() { "none is configured".into() } else { known.join(", ") };
            return Err(CommandError::NotFound(format!(
                "`{name}` is neither a service (`google`) nor an MCP server ({servers})"
            )));
        };
        if let Err(reason) = &server.transport {
            return Err(CommandError::Usage(format!("the MCP server `{name}` cannot be used: {reason}")));
        }
        let accounts = upstream_accounts_alone(server, config).ok_or_else(|| {
            CommandError::Usage(format!(
                "there is nothing to sign in to at the MCP server `{name}`: only servers with a `url`, and without an \
                 `Authorization` header, accept a sign-in"
            ))
        })?;
        Ok(Self { name: name.to_owned(), accounts })
    }

    pub(super) async fn login(
        &self,
        principal: &Principal,
        method: &SignInBrowser,
        as_json: bool,
        output: &mut StdoutWriter,
    ) -> CommandResult {
        let sign_in = self.accounts.begin(principal).await?;
        let about = format!("the MCP server `{}`", self.name);
        let grant = signed_in(sign_in, &about, method, &mut pasted_lines_for(method)).await?;
        match as_json {
            true => output.json(&json!({"signed_in": [self.to_json(&grant)]}))?,
            false => output.line(&visible(&format!("Signed in: {} (at {}).", self.name, grant.issuer)))?,
        }
        if *principal != Principal::local() {
            note(
                "The lists of the server are read with the sign-in of the local user. If there is none, sign in without \
                 `--principal`, too.",
            );
        }
        Ok(Exit::Done)
    }

    pub(super) async fn status(&self, principal: &Principal) -> Result<Vec<Value>, CommandError> {
        Ok(self.accounts.grants(principal).await?.iter().map(|grant| self.to_json(grant)).collect())
    }

    pub(super) async fn logout(
        &self,
        principal: &Principal,
        as_json: bool,
        output: &mut StdoutWriter,
    ) -> CommandResult {
        let signed_out = self.accounts.sign_out(principal).await?;
        let grant = format!("{SERVER}{}", self.name);
        let mut all = Vec::new();
        if signed_out.is_empty() {
            all.push(json!({"grant": grant, "was_signed_in": false, "is_revoked": false, "error": null}));
        }
        for TokenRevocationReport { issuer, origin, revoked } in &signed_out {
            all.push(json!({
                "grant": grant, "issuer": issuer, "origin": origin, "was_signed_in": true,
                "is_revoked": revoked.is_ok(), "error": revoked.as_ref().err(),
            }));
        }
        if as_json {
            output.json(&json!({"signed_out": all}))?;
        } else if signed_out.is_empty() {
            output.line(&visible(&format!("{}: was not signed in.", self.name)))?;
        } else {
            for TokenRevocationReport { issuer, revoked, .. } in &signed_out {
                let name = &self.name;
                output.line(&visible(&match revoked {
                    Ok(()) => format!("{name}: signed out, and {issuer} revoked the grant."),
                    Err(why) => format!("{name}: signed out here, but {issuer} did not revoke the grant: {why}."),
                }))?;
            }
        }
        Ok(if signed_out.iter().any(|one| one.revoked.is_err()) { Exit::Unmet } else { Exit::Done })
    }

    fn to_json(&self, grant: &UpstreamGrantSummary) -> Value {
        json!({
            "grant": format!("{SERVER}{}", self.name), "issuer": grant.issuer, "origin": grant.resource,
            "scopes": grant.scopes, "missing_scopes": grant.missing_scopes,
            "expires_at": grant.expires_at.map(|end| end.to_string()), "is_renewable": grant.is_renewable,
        })
    }
}
