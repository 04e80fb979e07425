//! `toolstead doctor`.

use super::{
    CommandResult,
    exit::{CommandError, Exit, chain},
    global::GlobalFlags,
    output::{StdoutWriter, on_one_line},
    servers::foreign_servers,
};
use crate::{
    composition_root::{RunningApp, ServerSelection},
    config::{
        Config,
        sections::{idle_rules, models::ModelSelectionError},
    },
};
use clap::Args;
use serde_json::json;
use std::time::Duration;
use toolstead_domain::{Availability, ExecutionFilter, ProviderState, error_kind::ErrorKind};
use toolstead_infrastructure::{
    browser::browsers::CheckedBrowser,
    models::KeySource,
    sandbox::{
        control_group, kernel,
        launcher::Launcher,
        self_test::{self, SandboxTier},
    },
    services::settings::ServiceSettings,
};

/// Checks the surroundings.
#[derive(Debug, Args)]
pub struct DoctorCommand {}

/// Maximum time for the start of the browser, and for its answer.
const BROWSER_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckVerdict {
    Good,
    Worth,
    Bad,
}

struct Finding {
    verdict: CheckVerdict,
    what: &'static str,
    said: String,
}

impl DoctorCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let mut findings = kernel_findings();
        let composition = global.compose_and_print_notes(ServerSelection::All).await;
        let allows_tier_2 = composition.as_ref().is_ok_and(|one| one.config.sandbox.allows_tier_2());
        findings.push(sandbox_finding(allows_tier_2).await);
        findings.push(groups_finding());
        match composition {
            Ok(composition) => {
                findings.extend(application_findings(&composition).await);
                composition.close().await;
            }
            Err(failed) => findings.push(Finding { verdict: CheckVerdict::Bad, what: "start", said: chain(&failed) }),
        }
        show(&findings, global.json, output)?;
        Ok(if findings.iter().any(|one| one.verdict == CheckVerdict::Bad) { Exit::Problems } else { Exit::Done })
    }
}

fn kernel_findings() -> Vec<Finding> {
    let feature = |what, present: bool, needed: CheckVerdict, missing: &str| match present {
        true => Finding { verdict: CheckVerdict::Good, what, said: "available".into() },
        false => Finding { verdict: needed, what, said: missing.into() },
    };
    let features = kernel::features();
    let landlock = match features.landlock_abi {
        Some(version) => {
            Finding { verdict: CheckVerdict::Good, what: "Landlock", said: format!("available, ABI {version}") }
        }
        None => Finding {
            verdict: CheckVerdict::Worth,
            what: "Landlock",
            said: "missing: the mounts alone keep files closed".into(),
        },
    };
    vec![
        feature("openat2", features.openat2, CheckVerdict::Bad, "missing: file tools need Linux 5.6 or later"),
        landlock,
        feature(
            "user namespaces",
            features.user_namespaces,
            CheckVerdict::Worth,
            "missing: they are needed to confine commands",
        ),
    ]
}

async fn sandbox_finding(allows_tier_2: bool) -> Finding {
    let what = "sandbox";
    let launcher = match Launcher::start() {
        Ok(launcher) => launcher.allowing_tier_2(allows_tier_2),
        Err(error) => return Finding { verdict: CheckVerdict::Bad, what, said: chain(&error) },
    };
    let tier = self_test::tier(&launcher).await;
    let verdict = match &tier {
        SandboxTier::First { notes } if notes.is_empty() => CheckVerdict::Good,
        SandboxTier::First { .. } | SandboxTier::Second { .. } => CheckVerdict::Worth,
        SandboxTier::Third { .. } => CheckVerdict::Bad,
    };
    Finding { verdict, what, said: tier.to_string() }
}

fn groups_finding() -> Finding {
    let bounds = control_group::tried();
    let verdict =
        if bounds.as_ref().is_ok_and(|bounds| bounds.memory) { CheckVerdict::Good } else { CheckVerdict::Worth };
    let said = match bounds {
        Ok(bounds) => bounds.to_string(),
        Err(reason) => {
            format!("none, so that memory is bounded for each process and not for all of a command: {reason}")
        }
    };
    Finding { verdict, what: "control groups", said }
}

async fn application_findings(composition: &RunningApp) -> Vec<Finding> {
    let config = &composition.config;
    let good = |what, said| Finding { verdict: CheckVerdict::Good, what, said };
    let mut findings =
        vec![good("configuration", format!("{} files, {} rules", config.files.len(), config.permissions.rules.len()))];
    let waiting = config.waiting_permissions().into_iter();
    findings.extend(waiting.map(|said| Finding { verdict: CheckVerdict::Worth, what: "trust", said }));
    let idle = idle_rules::of_commands(config).into_iter().map(|problem| problem.to_string());
    findings.extend(idle.map(|said| Finding { verdict: CheckVerdict::Worth, what: "rules", said }));
    findings.push(match config.roots.start() {
        Some(_) => {
            good("roots", config.roots.all().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", "))
        }
        None => Finding {
            verdict: CheckVerdict::Worth,
            what: "roots",
            said: "none: start in a project's folder or with `--root DIR`".into(),
        },
    });
    findings.extend(model_finding(config));
    findings.push(services_finding(config));
    if config.sandbox.requires_landlock && kernel::features().landlock_abi.is_none() {
        let said = "`sandbox.require` names Landlock, which this kernel does not have: nothing is run confined".into();
        findings.push(Finding { verdict: CheckVerdict::Bad, what: "sandbox", said });
    }
    let trail = composition.app.list_executions.list(&ExecutionFilter { limit: 1, ..Default::default() }).await;
    findings.push(match trail {
        Ok(_) => good("database", config.database.url.place()),
        Err(error) => Finding { verdict: CheckVerdict::Bad, what: "database", said: chain(&error) },
    });
    composition.reached().await;
    findings.push(good("tools", format!("{}", composition.app.registry.snapshot().tools().len())));
    findings.extend(browser_finding(composition).await);
    for server in &composition.servers {
        let status = server.status();
        findings.push(match status.state {
            ProviderState::Ready => {
                good("MCP server", format!("{}: ready, {} tools", status.name, status.tools.unwrap_or(0)))
            }
            other => {
                Finding { verdict: CheckVerdict::Bad, what: "MCP server", said: format!("{}: {other}", status.name) }
            }
        });
    }
    if let count @ 1.. = foreign_servers::importable(config) {
        let said = format!("MCP servers that can be imported: {count} (`toolstead servers found` lists them)");
        findings.push(good("other programs", said));
    }
    for server in config.mcp_servers.iter().filter(|server| !server.disabled) {
        if let Err(reason) = &server.transport {
            findings.push(Finding {
                verdict: CheckVerdict::Bad,
                what: "MCP server",
                said: format!("{}: {reason}", server.name),
            });
        }
    }
    findings
}

/// Reports the default model and its key, without a request to the provider. Returns `None` if no model is configured.
fn model_finding(config: &Config) -> Option<Finding> {
    let worth = |said: String| Some(Finding { verdict: CheckVerdict::Worth, what: "model", said });
    match config.model(None) {
        Err(ModelSelectionError::NoneConfigured { .. }) => None,
        Err(error) => worth(error.to_string()),
        Ok(model) => match &model.key {
            KeySource::Missing(what_to_do) => worth(format!("`{}` has no key: {what_to_do}", model.name)),
            _ => {
                let said = format!("{} ({}); `toolstead models --check` tries it", model.name, model.model);
                Some(Finding { verdict: CheckVerdict::Good, what: "model", said })
            }
        },
    }
}

/// Starts the browser once and reports the result. If the browser tools are unavailable, it reports only the reason.
/// Returns `None` if they are switched off.
async fn browser_finding(composition: &RunningApp) -> Option<Finding> {
    let snapshot = composition.app.registry.snapshot();
    let tool = &snapshot.tools().iter().find(|one| one.own.name().as_str() == "browser_navigate")?.own;
    let (verdict, said) = match &tool.availability {
        _ if !tool.enabled => return None,
        Availability::Unavailable(reason) => (CheckVerdict::Worth, format!("pages are unavailable: {reason}")),
        Availability::Available => match composition.check_browser(BROWSER_LIMIT).await {
            Ok(CheckedBrowser { program, product }) => {
                (CheckVerdict::Good, format!("{}, {product}", program.display()))
            }
            Err(failure) if failure.kind == ErrorKind::Unavailable => (CheckVerdict::Worth, failure.message),
            Err(failure) => {
                let said = format!(
                    "{}. Install `chromium-headless-shell` or `chromium` anew, or name another program in `[browser] \
                     program`",
                    failure.message
                );
                (CheckVerdict::Bad, said)
            }
        },
    };
    Some(Finding { verdict, what: "browser", said })
}

/// Reports which services are usable and which are not set up. The notes of the configuration report why a configured
/// service is unusable.
fn services_finding(config: &Config) -> Finding {
    let ServiceSettings { search, gmail, calendar, linkedin, anthropic_admin } = &config.outside.services;
    let all = [
        ("search", search.is_ok()),
        ("Gmail", gmail.is_ok()),
        ("Google Calendar", calendar.is_ok()),
        ("LinkedIn", linkedin.is_ok()),
        ("Anthropic usage", anthropic_admin.is_ok()),
    ];
    let named = |is_there: bool| {
        let names: Vec<&str> = all.iter().filter(|(_, there)| *there == is_there).map(|(name, _)| *name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let missing = named(false).map(|names| format!("not set up: {names} (`toolstead tools --all` says why)"));
    let said = named(true).into_iter().chain(missing).collect::<Vec<_>>().join("; ");
    Finding { verdict: CheckVerdict::Good, what: "services", said }
}

fn show(findings: &[Finding], as_json: bool, output: &mut StdoutWriter) -> Result<(), CommandError> {
    let word = |verdict| match verdict {
        CheckVerdict::Good => "ok",
        CheckVerdict::Worth => "note",
        CheckVerdict::Bad => "bad",
    };
    if as_json {
        let all = findings.iter().map(|one| json!({"verdict": word(one.verdict), "what": one.what, "said": one.said}));
        return Ok(output.json(&json!({"findings": all.collect::<Vec<_>>()}))?);
    }
    for one in findings {
        output.line(&on_one_line(&format!("{:<5} {:<16} {}", word(one.verdict), one.what, one.said)))?;
    }
    Ok(())
}
