#![expect(clippy::disallowed_methods, reason = "the real git is asked")]

use super::{
    parse::{GitSetting, settings},
    *,
};
use std::{fs, path::Path, process::Command};

fn judge(text: &[u8], before: Option<&[u8]>) -> GitConfigCheckResult {
    let known: BTreeSet<GitSetting> =
        before.and_then(settings).into_iter().flatten().map(|placed| placed.setting).collect();
    without(text, &|setting| setting.is_refused(&|_| false) && !known.contains(setting))
}

#[test]
fn only_dangerous_new_git_settings_are_removed() {
    for (before, after, left) in [
        ("", "[user]\n\tname = a\n[core]\n\tbare = false\n", ""),
        ("", "[core]\n\tfsmonitor = ./x\n\tbare = false\n", "core.fsmonitor"),
        ("", "[CORE] FsMonitor = ./x\n", "core.fsmonitor"),
        ("", "[core]\n\teditor = a\\\nb\\\nc\n\tbare = true\n", "core.editor"),
        ("", "[core] bare=true\n[user][core] fsmonitor=x\n", "core.fsmonitor"),
        ("", "[core]\n\tname = a ; \\\n\tfsmonitor = x\n", "core.fsmonitor"),
        ("", "[core]\r\n\tfsmonitor = x\r\n\tbare = true\r\n", "core.fsmonitor"),
        ("", "[core]\n\tfsmonitor\n", "core.fsmonitor"),
        ("", "[a] b = \"c;\\\n\" # \\\n[core] pager = x", "core.pager"),
        ("", "[diff \"a]b\"]\n\ttextconv = x\n", "diff.a]b.textconv"),
        ("", "[diff.x]\n\tcommand = x\n", "diff.x.command"),
        ("", "[filter \"lfs\"]\n\tclean = x\n\tsmudge = y", "filter.lfs.clean filter.lfs.smudge"),
        ("[alias]\n\tst = status\n", "[alias]\n\tst = status\n\tx = !rm\n", "alias.x"),
        ("[core]\n\tpager = less\n", "[core]\n\tpager = ./evil\n", "core.pager"),
        ("", "[remote \"o\"]\n\turl = ext::sh -c x\n\tfetch = +refs\n", "remote.o.url"),
        ("", "[remote \"o\"]\n\turl = git@example.com:a/b\n", ""),
        ("", "[branch \"main\"]\n\tremote = o\n\tmerge = refs/heads/main\n", ""),
        ("", "\u{feff}[include]\n\tpath = x\n", "include.path"),
        ("", "[core]\n;\tfsmonitor = x\n#[core] pager=x\n", ""),
        ("", "[gc]\n\trecentObjectsHook = x\n[imap]\n\ttunnel = x\n", "gc.recentobjectshook imap.tunnel"),
        (
            "",
            "[lfs \"customtransfer.a\"]\n\tpath = x\n[lfs]\n\tstandaloneTransferAgent = a\n",
            "lfs.customtransfer.a.path lfs.standalonetransferagent",
        ),
        ("", "[lfs \"extension.a\"]\n\tclean = x\n[lfs]\n\turl = https://a\n", "lfs.extension.a.clean"),
        ("", "[merge]\n\ttool = ../../x\n\tconflictStyle = diff3\n[diff]\n\tguitool = x\n", "diff.guitool merge.tool"),
        ("", "[gpg \"ssh\"]\n\tprogram = x\n\tallowedSignersFile = y\n", "gpg.ssh.program"),
        ("", "[http]\n\tcookieFile = /x\n\tpostBuffer = 1\n[ssh]\n\tvariant = ssh\n", "http.cookiefile"),
        (
            "",
            "[trailer \"a\"]\n\tcmd = x\n[submodule \"a\"]\n\tupdate = !x\n\tactive = true\n",
            "submodule.a.update trailer.a.cmd",
        ),
        ("", "[protocol]\n\tversion = 2\n[protocol \"ext\"]\n\tallow = always\n", "protocol.ext.allow"),
        (
            "",
            "[branch \"main\"]\n\tremote = ext::x\n\tmergeOptions = -s x\n",
            "branch.main.mergeoptions branch.main.remote",
        ),
        ("", "[remote \"o\"]\n\turl = ssh://a@[fe80::1]/b\n[advice]\n\tignoredHook = false\n", ""),
        ("", "[extensions]\n\tworktreeConfig = true\n[branch \"x\"]\n\tdescription = std::fs\n", ""),
        ("", "[remote \"o\"]\n\tpushurl = foo://x\n\turl = git+ssh://a/b\n", "remote.o.pushurl"),
        ("", "[remote]\n\tpushDefault = foo://x\n[remotes]\n\tall = a b::c\n", "remote.pushdefault remotes.all"),
        ("", "[submodule \"a\"]\n\turl = s3://x\n[remote \"o\"]\n\turl = /a://b\n", "submodule.a.url"),
        ("", "[lfs \"CustomTransfer.a\"]\n\tpath = x\n", "lfs.CustomTransfer.a.path"),
        ("", "[gitflow \"path\"]\n\thooks = x\n[secrets]\n\tproviders = x\n", "gitflow.path.hooks secrets.providers"),
        ("", "[tig \"bind\"]\n\tgeneric = x !y\n[stgit \"alias\"]\n\tx = !y\n", "stgit.alias.x tig.bind.generic"),
        ("", "[branchless \"test.alias\"]\n\tx = y\n", "branchless.test.alias.x"),
        (
            "",
            "[remote \"o\"]\n\tannex-ssh-options = x\n\tannex-rsync-options = y\n\tannex-externaltype = z\n",
            "remote.o.annex-externaltype remote.o.annex-rsync-options remote.o.annex-ssh-options",
        ),
        (
            "",
            "[annex]\n\tweb-options = x\n\tnumcopies = 2\n[annex \"security\"]\n\tallowed-url-schemes = file\n",
            "annex.security.allowed-url-schemes annex.web-options",
        ),
        (
            "",
            "[remote \"o\"]\n\tannex-bup-split-options = x\n\tannex-shell = y\n\tannexUrl = ext::z\n\tannex-uuid = a\n",
            "remote.o.annex-bup-split-options remote.o.annex-shell remote.o.annexurl",
        ),
        ("", "[gcrypt]\n\tgpg-args = x\n[patatt]\n\tgpg-bin = x\n", "gcrypt.gpg-args patatt.gpg-bin"),
        ("", "[rebase]\n\tinstructionFormat = %s%nexec x\n\tautoStash = true\n", "rebase.instructionformat"),
        ("", "[format]\n\toutputDirectory = /x\n\tsuffix = .txt\n", "format.outputdirectory"),
        ("", "[gc]\n\trepackFilterTo = /x\n\tauto = 0\n", "gc.repackfilterto"),
        ("", "[git-p4]\n\tport = rsh:x\n\tuser = a\n", "git-p4.port"),
        ("", "[extensions]\n\trefStorage = files:///x\n\tobjectFormat = sha256\n", "extensions.refstorage"),
        ("", "[extensions]\n\tpartialClone = foo::x\n", "extensions.partialclone"),
        ("", "[extensions]\n\tpartialClone = origin\n[remote \"origin\"]\n\tpromisor = true\n", ""),
        ("", "[remote \"foo::x\"]\n\tpromisor = true\n", "remote.foo::x.promisor"),
        ("", "[extensions]\n\trefStorage = reftable\n[http]\n\tsslVersion = tlsv1.3\n", ""),
        (
            "",
            "[http]\n\tsslCert = pkcs11:x\n\tsslKey = y\n\tproxySSLKey = z\n",
            "http.proxysslkey http.sslcert http.sslkey",
        ),
        ("", "[datalad \"result-hook.a\"]\n\tcall-json = x\n[b4]\n\tx = y\n", "b4.x datalad.result-hook.a.call-json"),
        ("", "[lfs]\n\tstorage = /x\n\tlocksverify = true\n", "lfs.storage"),
        ("", "[lfs \"https://a\"]\n\tstandaloneTransferAgent = a\n", "lfs.https://a.standalonetransferagent"),
        ("", "[color]\n\tpager = true\n[submodule \"a\"]\n\tupdate = rebase\n\turl = ../a\n", ""),
    ] {
        let before = Some(before.as_bytes());
        match judge(after.as_bytes(), before) {
            GitConfigCheckResult::Fine => assert_eq!(left, "", "{after:?}"),
            GitConfigCheckResult::Without { text, out } => {
                assert_eq!(keys(&out).replace(['`', ','], ""), left, "{after:?}");
                assert_eq!(judge(&text, before), GitConfigCheckResult::Fine, "{after:?}");
                let text = String::from_utf8(text).unwrap();
                for kept in ["bare", "conflictStyle", "postBuffer", "active", "allowedSigners", "fetch = ", "st = "] {
                    assert_eq!(after.contains(kept), text.contains(kept), "{text:?}");
                }
            }
            GitConfigCheckResult::Unreadable => panic!("{after:?}"),
        }
    }
}

#[test]
fn a_config_that_git_cannot_read_is_reported_as_unreadable() {
    for text in [
        "[core\n",
        "[core] a = \"b\n",
        "[core] a b\n",
        "[core \"fsmonitor\0\"] x = y\n",
        "\u{b}",
        "[a] b = \\x\n",
        "[a] b\r",
    ] {
        assert_eq!(judge(text.as_bytes(), None), GitConfigCheckResult::Unreadable, "{text:?}");
    }
}

#[test]
fn a_long_section_with_many_settings_is_reported_as_unreadable() {
    let text = format!("[user \"{}\"]\n{}", "x".repeat(1_000), "a\n".repeat(5_000));
    assert_eq!(judge(text.as_bytes(), None), GitConfigCheckResult::Unreadable);
    assert_eq!(judge(&text.as_bytes()[..5_000], None), GitConfigCheckResult::Fine);
}

#[test]
fn a_worktree_setting_is_removed_unless_its_path_is_allowed() {
    for (text, is_fine) in
        [("[core]\n\tworktree = here\n", true), ("[core]\n\tworktree = there\n", false), ("[core] worktree", false)]
    {
        let judged = without(text.as_bytes(), &|setting| setting.is_refused(&|path| path == b"here"));
        assert_eq!(judged == GitConfigCheckResult::Fine, is_fine, "{text}");
    }
}

/// Pieces of settings, most of them whole.
const PIECES: [&str; 36] = [
    "[core]\n",
    "[core]",
    "[user][core]",
    "[CORE] ",
    "[core \"Sub.X\"]\n",
    "[diff \"a\\\"]b\\\\\"]\n",
    "[diff.Old]\n",
    "[remote \t \"o\"]",
    "[x-1.y \"z\"]\n",
    "[]",
    "fsmonitor = ./x\n",
    "fsmonitor\n",
    "FsMonitor=x",
    "\tbare = true ; it is \\\n",
    "  pager = less # \\\n",
    "editor = \"a b\"c\\\n  d\n",
    "url = a\\tb\\n\\\"\\\\ \n",
    "name = \"x ; y\" ; z\n",
    "name = a  \t b  \n",
    "sshCommand = x\r\n",
    "askpass = a\rb\r\r\n",
    "key-1 = \\\r\n more\r\n",
    "; comment \\\n",
    "# comment [core]\n",
    "\n",
    "\r\n",
    "\r",
    " \t",
    "\u{feff}",
    "\u{b}",
    "\u{c}",
    "a = \u{c}b\u{b}\n",
    "a =\n",
    "a = ä\n",
    "a = \"\"\n",
    "a =\"\\\n\"\n",
];
const TOKENS: [&str; 18] =
    ["[", "]", "\"", "\\", "\n", "\r", " ", "\t", "#", ";", "=", ".", "-", "a", "1", "\u{b}", "\\\n", "\u{feff}"];

/// Pseudo-random numbers that are the same in each test run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % most
    }
}

fn generated(numbers: &mut Numbers) -> String {
    let count = 1 + numbers.below(6);
    let mut text = String::new();
    if numbers.below(4) != 0 {
        text.push_str(PIECES[numbers.below(10)]);
    }
    for _ in 0..count {
        text.push_str(PIECES[numbers.below(PIECES.len())]);
    }
    if numbers.below(3) == 0 {
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        text.insert_str(places[numbers.below(places.len())], TOKENS[numbers.below(TOKENS.len())]);
    }
    text
}

/// Returns the settings that git reads in a file, or `None` if it rejects the file.
fn by_git(file: &Path) -> Option<Vec<GitSetting>> {
    let mut git = Command::new("git");
    git.args(["config", "--list", "-z", "-f"]).arg(file).env_clear().env("PATH", std::env::var("PATH").unwrap());
    let output = git.current_dir("/").output().unwrap();
    output.status.success().then(|| {
        let lines = output.stdout.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let setting = |line: &[u8]| match line.iter().position(|byte| *byte == b'\n') {
            Some(end) => GitSetting { key: line[..end].to_vec(), value: Some(line[end + 1..].to_vec()) },
            None => GitSetting { key: line.to_vec(), value: None },
        };
        lines.map(setting).collect()
    })
}

#[test]
fn settings_are_read_as_git_reads_them() {
    // Most of the time is spent starting git.
    let counts = std::thread::scope(|scope| {
        let threads =
            [0x5eed_0001, 0x5eed_0002, 0x5eed_0003, 0x5eed_0004].map(|seed| scope.spawn(move || compare(seed)));
        threads.map(|thread| thread.join().unwrap())
    });
    let readable: usize = counts.iter().map(|(readable, _)| readable).sum();
    let cleaned: usize = counts.iter().map(|(_, cleaned)| cleaned).sum();
    assert!(readable > 500 && cleaned > 200, "{readable} {cleaned}");
}

/// Compares the settings read by this module in 375 generated files with those of git. Returns how many files were
/// valid, and in how many a setting was removed.
fn compare(seed: u64) -> (usize, usize) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let mut numbers = Numbers(seed);
    let (mut readable, mut cleaned) = (0, 0);
    for _ in 0..375 {
        let text = generated(&mut numbers);
        fs::write(&file, &text).unwrap();
        let theirs = by_git(&file);
        let ours =
            settings(text.as_bytes()).map(|found| found.into_iter().map(|placed| placed.setting).collect::<Vec<_>>());
        assert_eq!(ours, theirs, "{text:?}");
        readable += usize::from(ours.is_some());
        if let GitConfigCheckResult::Without { text: rest, .. } = judge(text.as_bytes(), None) {
            cleaned += 1;
            if cleaned % 4 == 0 {
                fs::write(&file, &rest).unwrap();
                let kept = theirs.unwrap().into_iter().filter(|one| !one.is_refused(&|_| false)).collect::<Vec<_>>();
                assert_eq!(by_git(&file), Some(kept), "{text:?} {rest:?}");
            }
        }
    }
    (readable, cleaned)
}
