//! The vault on a real disk.

use super::*;
use proptest::prelude::*;
use std::{
    fs::{self, Permissions},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
};
use tempfile::TempDir;
use toolstead_domain::{Secret, Timestamp};

struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self) -> Result<Vault, VaultError> {
        Vault::open(self.path("data/accounts"), self.path("config/secrets.key"))
    }

    fn vault(&self) -> Vault {
        self.open().unwrap()
    }

    fn record(&self, key: &TokenLookupKey) -> PathBuf {
        self.path("data/accounts").join(record_name(key))
    }
}

fn key(principal: &Principal, resource: &str) -> TokenLookupKey {
    TokenLookupKey {
        principal: principal.clone(),
        issuer: "https://accounts.example".into(),
        resource: format!("{resource} https://{resource}.example"),
    }
}

fn mail() -> TokenLookupKey {
    key(&Principal::local(), "mail")
}

fn tokens(access: &str) -> Tokens {
    Tokens {
        access_token: Secret::new(access),
        refresh_token: Some(Secret::new(format!("{access}-refresh"))),
        expires_at: Some(Timestamp(1_767_600_000_000_000)),
        scopes: vec!["https://scopes.example/read".into()],
        registration: None,
    }
}

fn close(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn stored_tokens_survive_reopening_the_vault_and_are_encrypted_on_disk() {
    let home = Home::new();
    assert_eq!(home.vault().get(&mail()).await.unwrap(), None);
    assert!(!home.path("config/secrets.key").exists(), "looking makes no key");
    home.vault().put(&mail(), tokens("hunter2")).await.unwrap();
    assert_eq!(home.vault().get(&mail()).await.unwrap(), Some(tokens("hunter2")));
    let record = fs::read_to_string(home.record(&mail())).unwrap();
    assert!(!record.contains("hunter2") && !record.contains("scopes"), "{record}");
    assert_eq!(mode(&home.record(&mail())), 0o600);
    assert_eq!((mode(&home.path("config/secrets.key")), mode(&home.path("data/accounts"))), (0o600, 0o700));
    assert_eq!(fs::read(home.path("config/secrets.key")).unwrap().len(), 32);
    home.vault().put(&mail(), tokens("hunter2")).await.unwrap();
    assert_ne!(fs::read_to_string(home.record(&mail())).unwrap(), record, "each write has a nonce of its own");
    assert!(home.vault().remove(&mail()).await.unwrap());
    assert!(!home.vault().remove(&mail()).await.unwrap());
    assert_eq!(home.vault().get(&mail()).await.unwrap(), None);
}

#[tokio::test]
async fn a_principal_cannot_read_or_list_tokens_of_another_principal() {
    let home = Home::new();
    let vault = home.vault();
    let (ann, bob) = (Principal::token("ann"), Principal::token("bob"));
    vault.put(&key(&ann, "mail"), tokens("ann's")).await.unwrap();
    vault.put(&key(&ann, "calendar"), tokens("ann's days")).await.unwrap();
    assert_eq!(vault.get(&key(&bob, "mail")).await.unwrap(), None);
    assert_eq!(vault.list(&bob).await.unwrap().keys, []);
    assert_eq!(vault.list(&ann).await.unwrap().keys, [key(&ann, "calendar"), key(&ann, "mail")]);
}

#[tokio::test]
async fn a_record_copied_to_another_key_does_not_open() {
    let home = Home::new();
    let vault = home.vault();
    let ann = Principal::token("ann");
    let hers = key(&ann, "mail");
    vault.put(&hers, tokens("ann's")).await.unwrap();
    let text = fs::read_to_string(home.record(&hers)).unwrap();
    for (other, rewritten) in [
        (key(&Principal::token("bob"), "mail"), text.replace("token:ann", "token:bob")),
        (key(&ann, "calendar"), text.replace("mail", "calendar")),
        (
            TokenLookupKey { issuer: "https://other.example".into(), ..hers.clone() },
            text.replace("https://accounts.example", "https://other.example"),
        ),
    ] {
        for content in [&text, &rewritten] {
            fs::write(home.record(&other), content).unwrap();
            close(&home.record(&other), 0o600);
            let error = vault.get(&other).await.unwrap_err();
            assert!(matches!(error, VaultError::Damaged(_)), "{error}");
            assert!(error.to_string().contains("sign in again"), "{error}");
        }
    }
    assert_eq!(vault.get(&hers).await.unwrap(), Some(tokens("ann's")));
}

#[tokio::test]
async fn a_modified_record_is_reported_left_in_place_and_replaced_by_the_next_put() {
    let home = Home::new();
    let vault = home.vault();
    vault.put(&mail(), tokens("a")).await.unwrap();
    let whole = fs::read_to_string(home.record(&mail())).unwrap();
    for content in [
        String::new(),
        "{}".into(),
        "[".repeat(4096),
        whole[..whole.len() / 2].into(),
        whole.replace("\"version\":1", "\"version\":2"),
        whole.replace("\"sealed\":\"", "\"sealed\":\"AAAA"),
        whole.replace("\"nonce\":\"", "\"nonce\":\"AAAA"),
        "x".repeat(70 << 10),
    ] {
        fs::write(home.record(&mail()), &content).unwrap();
        let error = vault.get(&mail()).await.unwrap_err();
        assert!(matches!(error, VaultError::Damaged(_) | VaultError::Folder(_)), "{error}");
        assert_eq!(fs::read_to_string(home.record(&mail())).unwrap(), content);
        assert_eq!(vault.list(&Principal::token("ann")).await.unwrap().keys, []);
    }
    vault.put(&mail(), tokens("b")).await.unwrap();
    assert_eq!(vault.get(&mail()).await.unwrap(), Some(tokens("b")));
}

#[tokio::test]
async fn an_unreadable_record_is_listed_separately_from_the_others() {
    for (break_it, expected) in [
        ((|file| close(file, 0o644)) as fn(&Path), "chmod 600"),
        (|file| fs::write(file, "{}").unwrap(), "delete it and sign in again"),
        (|file| fs::write(file, "x".repeat(70 << 10)).unwrap(), "more than"),
        (
            |file| {
                fs::remove_file(file).unwrap();
                symlink("/etc/passwd", file).unwrap();
            },
            "it is a link",
        ),
    ] {
        let home = Home::new();
        let (vault, days) = (home.vault(), key(&Principal::local(), "calendar"));
        vault.put(&mail(), tokens("a")).await.unwrap();
        vault.put(&days, tokens("b")).await.unwrap();
        break_it(&home.record(&mail()));
        let listed = vault.list(&Principal::local()).await.unwrap();
        assert_eq!(listed.keys, [days]);
        let [message] = listed.unreadable.as_slice() else { panic!("{expected}: {listed:?}") };
        let message = message.to_string();
        assert!(message.contains(expected) && message.contains(&record_name(&mail())), "{message}");
    }
}

#[tokio::test]
async fn a_missing_or_different_key_is_reported_with_advice_to_sign_in_again() {
    let home = Home::new();
    let (vault, file) = (home.vault(), home.path("config/secrets.key"));
    vault.put(&mail(), tokens("a")).await.unwrap();
    let real = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let error = home.vault().get(&mail()).await.unwrap_err();
    assert!(matches!(error, VaultError::KeyLost(_)) && error.to_string().contains("sign in again"), "{error}");
    fs::write(&file, [7; 32]).unwrap();
    close(&file, 0o600);
    let error = vault.get(&mail()).await.unwrap_err();
    assert!(matches!(error, VaultError::OtherKey(_)) && error.to_string().contains("sign in again"), "{error}");
    fs::write(&file, real).unwrap();
    assert_eq!(vault.get(&mail()).await.unwrap(), Some(tokens("a")));
    // After a new sign-in the vault uses another key.
    fs::remove_file(&file).unwrap();
    vault.put(&mail(), tokens("b")).await.unwrap();
    assert_eq!(vault.get(&mail()).await.unwrap(), Some(tokens("b")));
}

#[tokio::test]
async fn an_unsafe_or_malformed_key_file_is_refused_with_a_reason() {
    for (lay_out, expected) in [
        (
            (|file: &Path| {
                fs::write(file, [7; 32]).unwrap();
                close(file, 0o640);
            }) as fn(&Path),
            "chmod 600",
        ),
        (
            |file| {
                fs::write(file, [7; 31]).unwrap();
                close(file, 0o600);
            },
            "31 bytes instead of 32",
        ),
        (
            |file| {
                fs::write(file, [7; 4096]).unwrap();
                close(file, 0o600);
            },
            "more than",
        ),
        (
            |file| {
                let other = file.with_file_name("other");
                fs::write(&other, [7; 32]).unwrap();
                close(&other, 0o600);
                symlink(other, file).unwrap();
            },
            "it is a link",
        ),
        (|file| fs::create_dir(file).unwrap(), "it is not a file"),
        (
            |file| {
                fs::write(file, [7; 32]).unwrap();
                close(file, 0o600);
                // Only root can change the owner of a file.
                if std::os::unix::fs::chown(file, Some(12345), None).is_err() {
                    fs::remove_file(file).unwrap();
                    symlink("/etc/passwd", file).unwrap();
                }
            },
            if rustix::process::geteuid().is_root() { "belongs to user 12345" } else { "it is a link" },
        ),
    ] {
        let home = Home::new();
        let vault = home.vault();
        fs::create_dir_all(home.path("config")).unwrap();
        lay_out(&home.path("config/secrets.key"));
        let error = home.open().unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("secrets.key"), "{error}");
        // A vault that was opened before does not use it either.
        let error = vault.put(&mail(), tokens("a")).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!home.record(&mail()).exists());
    }
}

#[tokio::test]
async fn a_folder_that_others_see_or_that_is_a_link_is_refused() {
    let home = Home::new();
    home.vault().put(&mail(), tokens("a")).await.unwrap();
    close(&home.path("data/accounts"), 0o755);
    assert!(home.open().unwrap_err().to_string().contains("chmod 700"));
    close(&home.path("data/accounts"), 0o700);
    fs::rename(home.path("data/accounts"), home.path("data/elsewhere")).unwrap();
    symlink(home.path("data/elsewhere"), home.path("data/accounts")).unwrap();
    assert!(matches!(home.open().unwrap_err(), VaultError::Folder(VaultFolderError::NoFolder(_))));
}

#[tokio::test]
async fn a_link_in_place_of_a_record_is_not_followed_and_is_replaced_by_a_new_record() {
    let home = Home::new();
    let vault = home.vault();
    vault.put(&mail(), tokens("a")).await.unwrap();
    let aside = home.path("aside");
    fs::rename(home.record(&mail()), &aside).unwrap();
    let before = fs::read(&aside).unwrap();
    symlink(&aside, home.record(&mail())).unwrap();
    assert!(vault.get(&mail()).await.unwrap_err().to_string().contains("it is a link"));
    vault.put(&mail(), tokens("b")).await.unwrap();
    assert_eq!((vault.get(&mail()).await.unwrap(), fs::read(&aside).unwrap()), (Some(tokens("b")), before));
}

#[tokio::test]
async fn rejects_tokens_and_keys_that_are_too_large() {
    let home = Home::new();
    let error = home.vault().put(&mail(), tokens(&"a".repeat(40 << 10))).await.unwrap_err();
    assert!(matches!(error, VaultError::TooLarge(_)), "{error}");
    let long = TokenLookupKey { resource: "r".repeat(5000), ..mail() };
    assert!(matches!(home.vault().put(&long, tokens("a")).await.unwrap_err(), VaultError::TooLarge(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_updates_of_the_same_tokens_are_serialized() {
    let home = Home::new();
    let vault = home.vault();
    vault.put(&mail(), tokens("0")).await.unwrap();
    let all = (0..20).map(|_| {
        // Each task has a vault of its own, like another process.
        let vault = home.vault();
        tokio::spawn(async move { vault.update(&mail(), one_more).await.unwrap() })
    });
    for done in all.collect::<Vec<_>>() {
        done.await.unwrap();
    }
    assert_eq!(vault.get(&mail()).await.unwrap(), Some(tokens("20")));
}

/// Increments the number that is stored as a token.
async fn one_more(before: Option<Tokens>) -> Result<(Option<Tokens>, ()), VaultError> {
    let count: u32 = before.unwrap().access_token.expose().parse().unwrap();
    tokio::task::yield_now().await;
    Ok((Some(tokens(&(count + 1).to_string())), ()))
}

#[tokio::test]
async fn an_update_may_keep_change_or_remove_tokens_and_a_failure_changes_nothing() {
    let home = Home::new();
    let vault = home.vault();
    let message = vault.update::<_, VaultError, _>(&mail(), async |before| Ok((before, "nothing"))).await.unwrap();
    assert_eq!((message, vault.get(&mail()).await.unwrap()), ("nothing", None));
    vault.update::<_, VaultError, _>(&mail(), async |_| Ok((Some(tokens("a")), ()))).await.unwrap();
    let failed = vault.update::<(), VaultError, _>(&mail(), async |_| Err(VaultError::Busy)).await;
    assert!(matches!(failed, Err(VaultError::Busy)));
    assert_eq!(vault.get(&mail()).await.unwrap(), Some(tokens("a")));
    vault.update::<_, VaultError, _>(&mail(), async |_| Ok((None, ()))).await.unwrap();
    assert_eq!(vault.get(&mail()).await.unwrap(), None);
}

/// Environment variable that makes a test of this file the process that is killed, or that runs concurrently.
const WRITES_IN: &str = "VAULT_TEST_WRITES_IN";

/// Returns this test program as a process that stores tokens and reports each time that they are stored.
fn writer(home: &Home) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["accounts::vault::tests::a_killed_process_leaves_complete_tokens_and_no_held_lock", "--exact"]);
    command.arg("--nocapture").env(WRITES_IN, home.folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[tokio::test]
async fn a_killed_process_leaves_complete_tokens_and_no_held_lock() {
    if let Some(folder) = std::env::var_os(WRITES_IN) {
        let folder = PathBuf::from(folder);
        let vault = Vault::open(folder.join("data/accounts"), folder.join("config/secrets.key")).unwrap();
        for round in 0.. {
            let access = round.to_string().repeat(2000);
            vault.put(&mail(), Tokens { access_token: Secret::new(access), ..tokens("") }).await.unwrap();
            writeln!(io::stdout(), "put {round}").unwrap();
        }
    }
    let home = Home::new();
    for rounds in 1..6 {
        let mut child = writer(&home).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let puts = lines.map(Result::unwrap).filter(|line| line.contains("put ")).take(rounds).count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(puts, rounds);
        let left = home.vault().get(&mail()).await.unwrap().unwrap();
        let text = left.access_token.expose();
        let round = &text[..text.len() / 2000];
        assert!(!round.is_empty() && text == round.repeat(2000), "{round}");
        home.vault().put(&mail(), tokens("after")).await.unwrap();
        assert_eq!(home.vault().get(&mail()).await.unwrap(), Some(tokens("after")));
    }
    let names: Vec<_> = fs::read_dir(home.path("data/accounts")).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(names.len(), 2, "the record and its lock: {names:?}");
}

#[tokio::test]
async fn processes_that_start_concurrently_share_one_key() {
    let home = Home::new();
    let mut children: Vec<_> = (0..4).map(|_| writer(&home).spawn().unwrap()).collect();
    for child in &mut children {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("put ")));
    }
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(home.vault().get(&mail()).await.unwrap().is_some());
    let files: Vec<_> = fs::read_dir(home.path("config")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["secrets.key"]);
}

proptest! {
    #[test]
    fn a_corrupted_record_never_opens_with_different_tokens(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..400) {
        let home = Home::new();
        let sealing = SealingKey::read_or_make(&home.path("key")).unwrap();
        prop_assert!(sealed::open(&bytes, &mail(), &sealing).is_err());
        let record = sealed::seal(&tokens("a"), &mail(), &sealing).unwrap();
        let mut changed = record.clone();
        let at = at % changed.len();
        changed[at] ^= bytes.pop().unwrap_or(1) | 1;
        if let Ok(opened) = sealed::open(&changed, &mail(), &sealing) {
            // The plain-text part is used only for lists.
            prop_assert_eq!(opened, tokens("a"));
        }
    }
}
