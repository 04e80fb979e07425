//! The supported browser programs, and the reports of their ends.

use super::{SHOP, end, rig, rig_with};
use crate::{
    browser::{
        actions::PageCondition,
        devtools::{CommandTarget, DevToolsError},
        program,
        session::BrowserSessionError,
    },
    sandbox::writable_roots::WritableRoots,
};
use serde_json::json;
use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};
use toolstead_domain::sandbox_policy::SYSTEM_PATH;

/// Debian packages with a browser. Their wrapper scripts have the same names.
const PACKAGES: [&str; 2] = ["chromium-headless-shell", "chromium"];
/// Environment variable with the packages that must be installed. CI lists both.
pub(super) const REQUIRED: &str = "TEST_BROWSERS";

/// Returns the browser of this Debian package.
///
/// # Errors
/// The reason why there is none.
pub(super) fn installed(package: &str) -> Result<PathBuf, String> {
    program::find(Some(Path::new(package)), SYSTEM_PATH, &WritableRoots::default())
}

/// Opens a page and clicks a button.
async fn does_its_work(program: PathBuf) -> String {
    let rig = rig_with(program, &[("/", SHOP)]).await;
    rig.session.open("http://shop.example/", false, end()).await.unwrap();
    rig.session.click(rig.reference("button \"Buy\"").await, false).await.unwrap();
    rig.session.wait_for(&PageCondition::Text("Thanks,".into()), end()).await.unwrap();
    // A full browser contacts services of its maker by itself.
    assert_eq!(rig.network.resolved().into_iter().find(|name| name != "shop.example"), None);
    rig.session.product().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_installed_browser_package_opens_a_page_and_handles_a_click() {
    let required = env::var(REQUIRED).unwrap_or_default();
    let mut tried = 0;
    for package in PACKAGES {
        match installed(package) {
            Ok(program) => {
                assert_eq!(program, Path::new("/usr/lib/chromium").join(package), "{package}");
                let product = does_its_work(program).await;
                assert!(product.contains("Chrome "), "{package}: {product}");
                tried += 1;
            }
            Err(reason) => {
                let is_required = required.split_whitespace().any(|name| name == package);
                assert!(!is_required, "`{REQUIRED}` names `{package}`: {reason}");
            }
        }
    }
    assert!(tried > 0, "install `chromium-headless-shell` or `chromium`: tests/peers/setup.sh does");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_outside_system_folders_starts_without_its_wrapper_and_reads_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let (installation, links) = (top.join("opt/google/chrome"), top.join("bin"));
    fs::create_dir_all(&installation).unwrap();
    fs::create_dir_all(&links).unwrap();
    let real = PACKAGES.iter().find_map(|package| installed(package).ok()).unwrap();
    // Like Chrome with its resources, this program reads a file in its own folder.
    let chrome = "#!/bin/sh\n. \"${0%/*}/resources\"\nexec \"$BROWSER_PROGRAM\" \"$@\"\n";
    for (name, text) in [
        ("google-chrome", "#!/bin/sh\necho 'the wrapper was started' >&2\nexit 1\n"),
        ("chrome", chrome),
        ("resources", &*format!("BROWSER_PROGRAM={}\n", real.display())),
    ] {
        fs::write(installation.join(name), text).unwrap();
        fs::set_permissions(installation.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    symlink("../opt/google/chrome/google-chrome", links.join("google-chrome-stable")).unwrap();
    let program = program::find(None, links.to_str().unwrap(), &WritableRoots::default()).unwrap();
    assert_eq!(program, installation.join("chrome"));
    let product = does_its_work(program).await;
    assert!(product.contains("Chrome "), "{product}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_crashes_is_reported_with_its_exit_status() {
    let rig = rig(&[("/", SHOP)]).await;
    rig.session.open("http://shop.example/", false, end()).await.unwrap();
    let crashed = rig.session.command(&CommandTarget(None), "Browser.crash", json!({})).await;
    let Err(BrowserSessionError::DevTools(DevToolsError::Ended(ending))) = crashed else { panic!("{crashed:?}") };
    assert!(ending.exit.is_some(), "{ending}");
    // A later call fails for the same reason.
    let later = rig.session.open("http://shop.example/", false, end()).await;
    assert_eq!(later, Err(DevToolsError::Ended(ending).into()));
}
