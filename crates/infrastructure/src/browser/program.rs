//! The browser's program: how it is located, and how it is started in the sandbox.
//!
//! The browser's own sandbox is off: it would need rights that the run does not have. The sandbox of the run replaces
//! it, and the proxy of the run is its only network.

use crate::{
    browser::{
        devtools::DevToolsError,
        process::{BrowserProcess, LastStderrLines},
        wrapper,
    },
    egress::{
        connector::Connector,
        proxy::{EgressProxy, ProxyPolicy},
    },
    sandbox::{
        launcher::{ChildInput, LaunchError, LaunchSpec, Launcher},
        writable_roots::WritableRoots,
    },
};
use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::net::unix::pipe;
use toolstead_domain::{NetworkPolicy, SandboxPolicy};

/// Names of browsers, the one with the fastest start first.
const NAMES: [&str; 5] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/// Starts the browser with the pipes at the descriptors that it expects. Its standard error remains the pipe of the
/// run.
const START: &str = "exec \"$0\" --proxy-server=\"$http_proxy\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null";

/// Arguments of every browser.
const ARGUMENTS: &[&str] = &[
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--user-data-dir=/tmp/profile",
    // Includes loopback and link-local addresses: the proxy decides about them.
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    // Frames of other sites must be part of the tree of their page.
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,\
     AutofillServerCommunication,Prerender2,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,\
     NetworkTimeServiceQuerying,HttpsUpgrades",
    // A full browser contacts services of its maker by itself. It refuses the port of these addresses before it
    // contacts the proxy.
    "--gaia-url=http://127.0.0.1:1",
    "--component-updater=url-source=http://127.0.0.1:1/",
    // A page from this cache is not requested again, so it would not be checked.
    "--disable-back-forward-cache",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    // A full browser blocks popups that a headless one opens. Their pages are checked like all others.
    "--disable-popup-blocking",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-service-autorun",
    "--password-store=basic",
    "--window-size=1280,800",
    "about:blank",
];

/// A browser to start.
#[derive(Debug)]
pub(crate) struct BrowserLaunch {
    pub(crate) launcher: Launcher,
    /// Path of the program, as returned by [`find`].
    pub(crate) file: PathBuf,
    /// Sandbox policy of its run, without the network.
    pub(crate) policy: SandboxPolicy,
    /// Folder that it shares with Toolstead, for downloads and for files that pages receive.
    pub(crate) folder: PathBuf,
    /// Connector to hosts.
    pub(crate) connector: Connector,
    pub(crate) proxy: ProxyPolicy,
}

/// A browser whose process has started.
#[derive(Debug)]
pub(crate) struct StartedBrowser {
    pub(crate) output: pipe::Receiver,
    pub(crate) input: pipe::Sender,
    pub(crate) proxy: EgressProxy,
    pub(crate) process: Arc<BrowserProcess>,
}

/// The reason why a browser did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrowserStartError {
    /// The sandbox or the system refused the start.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The proxy could not be started.
    #[error("could not open the browser's connection to the network")]
    Proxy(#[source] std::io::Error),
    /// Its pipes or its network are missing, as in a sandbox without namespaces.
    #[error("the browser needs a sandbox with a network of its own")]
    NoNetwork,
    /// The browser ended, or refused a command, before it was ready.
    #[error(transparent)]
    NotReady(#[from] DevToolsError),
    /// The browser did not answer within `limit`.
    #[error("the browser started, but did not answer within {} seconds{lines}", limit.as_secs())]
    Silent {
        /// Maximum time of the start.
        limit: Duration,
        /// Last lines of its output.
        lines: LastStderrLines,
    },
}

/// Returns the program of the configured browser, else of the first one found on the machine, if no tool can write to
/// it. Blocks.
///
/// # Errors
/// The reason why there is none, and what to do.
pub(crate) fn find(named: Option<&Path>, path: &str, writable: &WritableRoots) -> Result<PathBuf, String> {
    let named_text = named.map(|named| named.to_string_lossy().into_owned());
    let names: Vec<&str> = match &named_text {
        Some(named) => vec![named],
        None => NAMES.to_vec(),
    };
    let program = |name: &&str| {
        let file = Launcher::find_outside(name, path, writable).0?;
        wrapper::program_of(&file, named.is_none(), writable)
    };
    // A bare name is searched on the `PATH`.
    let is_there = |named: &Path| match named.components().count() {
        1 => env::split_paths(path).any(|folder| wrapper::is_executable(&folder.join(named))),
        _ => wrapper::is_executable(named),
    };
    names.iter().find_map(program).ok_or_else(|| match named {
        Some(named) if is_there(named) => format!(
            "`[browser] program` names `{}`, which cannot be used: it must not be a snap, and tools must not be able to \
             write to it or to the program that it starts",
            named.display()
        ),
        Some(named) => {
            format!("`[browser] program` names `{}`, which is missing or not executable", named.display())
        }
        None => "no browser that starts in the sandbox is installed: install the package `chromium` or \
                 `chromium-headless-shell` (not a snap), or set `[browser] program`"
            .into(),
    })
}

impl BrowserLaunch {
    /// Starts the browser.
    pub(crate) async fn start(self) -> Result<StartedBrowser, BrowserStartError> {
        let mut policy = self.policy;
        // Any nonempty list works, since the proxy decides about hosts.
        policy.write_roots.push(self.folder);
        policy.network = NetworkPolicy::Hosts(vec!["*.invalid".into()]);
        // The sandbox shows only installations on the `PATH`; the browser may be outside of them, such as in
        // `/opt/google/chrome`.
        if let Some(folder) = self.file.parent() {
            let path = policy.environment.entry("PATH".into()).or_default();
            *path = format!("{path}:{}", folder.display());
        }
        let file = self.file.to_string_lossy().into_owned();
        let arguments = ARGUMENTS.iter().map(|argument| (*argument).to_owned());
        let spec = LaunchSpec {
            program: "/bin/sh".into(),
            args: ["-c".to_owned(), START.to_owned(), file].into_iter().chain(arguments).collect(),
            working_dir: "/tmp".into(),
            input: ChildInput::Pipe,
            policy,
        };
        let mut child = self.launcher.launch(spec).await?;
        let (Some(listener), Some(input), Some(output)) = (child.proxy.take(), child.stdin.take(), child.stdout.take())
        else {
            return Err(BrowserStartError::NoNetwork);
        };
        let proxy =
            EgressProxy::start(listener.into(), self.connector, self.proxy).map_err(BrowserStartError::Proxy)?;
        Ok(StartedBrowser { output, input, proxy, process: BrowserProcess::new(self.file, child) })
    }
}
