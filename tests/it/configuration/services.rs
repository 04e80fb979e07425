//! `[web]`, `[search]`, `[google]`, `[linkedin]`, `[anthropic_admin]`, `[secrets]`: what they mean, and why a service is
//! not there.

use super::{ADMINISTRATOR, Machine, PROJECT, USER};
use std::path::Path;
use toolstead_infrastructure::{
    egress::host::HostPatterns,
    services::settings::{SearchProvider, ServiceSettings},
};
use toolstead_presentation::config::sections::services::NetworkToolSettings;

const LOCAL: &str = "home/project/toolstead.local.toml";
const NOBODY_SEARCHES: &str = "no search provider is set: `[search] provider` names one (brave, searxng, tavily, exa, \
                               duckduckgo), or `BRAVE_API_KEY` holds a key for Brave";
const NO_CLIENT: &str = "no client is configured: set `[google] client_id` or `GOOGLE_CLIENT_ID`";
const NO_CLIENT_SECRET: &str = "there is no key: set the environment variable `GOOGLE_CLIENT_SECRET`, or say \
                                `google.client_secret_env`";
const NO_ADMIN_KEY: &str = "there is no key: set the environment variable `ANTHROPIC_ADMIN_API_KEY`, or say \
                            `anthropic_admin.api_key_env`";
const LINKEDIN_IS_OFF: &str =
    "it is off: `[linkedin] enabled = true` switches it on, for who accepts the terms of the site";
const KEY_FOR_MODELS: &str = "the key is one for models, and usage takes the key of an administrator (`sk-ant-admin…`)";

fn machine(text: &str, variables: &[(&str, &str)]) -> Machine {
    Machine::with(&[(USER, text)]).variables(variables)
}

/// Each service: its address and what goes there, or why there is none.
fn values_of(outside: &NetworkToolSettings) -> [String; 5] {
    let ServiceSettings { search, gmail, calendar, linkedin, anthropic_admin } = &outside.services;
    let secret = || outside.google.as_ref().map_or("", |client| client.client_secret.expose());
    let search = search.as_ref().map(|search| {
        let key = search.key.as_ref().map_or("none", |key| key.expose());
        let word = SearchProvider::ALL.into_iter().find(|(_, one)| *one == search.provider).unwrap().0;
        format!("{word} at {} with {key}", search.base_url)
    });
    let linkedin = linkedin.as_ref().map(|one| match &one.user_agent {
        Some(name) => format!("{} as {name}", one.base_url),
        None => one.base_url.to_string(),
    });
    let admin = anthropic_admin.as_ref().map(|one| format!("{} with {}", one.base_url, one.key.expose()));
    let of_google =
        |url: &Result<_, String>| url.as_ref().map(|url| format!("{url} with {}", secret())).map_err(Clone::clone);
    [
        search.map_err(Clone::clone),
        of_google(gmail),
        of_google(calendar),
        linkedin.map_err(Clone::clone),
        admin.map_err(Clone::clone),
    ]
    .map(|one| one.unwrap_or_else(|reason| format!("none: {reason}")))
}

#[track_caller]
fn check(machine: &Machine, expected: [&str; 5]) {
    let answer = values_of(&machine.config().outside).map(|one| machine.plain(one));
    assert_eq!(answer, expected.map(str::to_owned));
}

fn none(reason: &str) -> String {
    format!("none: {reason}")
}

#[test]
fn each_unconfigured_service_reports_what_it_requires() {
    let machine = machine("", &[]);
    let reasons = [NOBODY_SEARCHES, NO_CLIENT, NO_CLIENT, LINKEDIN_IS_OFF, NO_ADMIN_KEY].map(none);
    check(&machine, reasons.each_ref().map(String::as_str));
    assert_eq!(machine.config().notes, []);
}

#[test]
fn the_micro_x_variables_configure_search_google_and_anthropic_admin() {
    let machine = machine(
        "",
        &[
            ("GOOGLE_CLIENT_ID", " id.apps \n"),
            ("GOOGLE_CLIENT_SECRET", "GOCSPX-1"),
            ("ANTHROPIC_ADMIN_API_KEY", "sk-ant-admin01-1"),
            ("BRAVE_API_KEY", "BSA-1"),
        ],
    );
    check(
        &machine,
        [
            "brave at https://api.search.brave.com/ with BSA-1",
            "https://gmail.googleapis.com/ with GOCSPX-1",
            "https://www.googleapis.com/ with GOCSPX-1",
            &none(LINKEDIN_IS_OFF),
            "https://api.anthropic.com/ with sk-ant-admin01-1",
        ],
    );
    let google = machine.config().outside.google.unwrap();
    assert_eq!((&*google.client_id, &*google.issuer), ("id.apps", "https://accounts.google.com"));
    let addresses = [google.authorization_url, google.token_url, google.revocation_url].map(|url| url.to_string());
    assert_eq!(
        addresses,
        [
            "https://accounts.google.com/o/oauth2/v2/auth",
            "https://oauth2.googleapis.com/token",
            "https://oauth2.googleapis.com/revoke",
        ]
    );
}

#[test]
fn a_missing_or_wrong_key_makes_its_service_unavailable_and_no_other() {
    let all = [
        ("GOOGLE_CLIENT_ID", "id"),
        ("GOOGLE_CLIENT_SECRET", "word"),
        ("ANTHROPIC_ADMIN_API_KEY", "sk-ant-admin01-1"),
        ("BRAVE_API_KEY", "BSA-1"),
    ];
    for (variable, value, concerned, reason) in [
        ("GOOGLE_CLIENT_SECRET", "", &[1, 2][..], NO_CLIENT_SECRET),
        ("GOOGLE_CLIENT_ID", " ", &[1, 2], NO_CLIENT),
        ("ANTHROPIC_ADMIN_API_KEY", "", &[4], NO_ADMIN_KEY),
        ("ANTHROPIC_ADMIN_API_KEY", "sk-ant-api03-1", &[4], KEY_FOR_MODELS),
        ("ANTHROPIC_ADMIN_API_KEY", "sk-ant-oat01-1", &[4], KEY_FOR_MODELS),
        (
            "ANTHROPIC_ADMIN_API_KEY",
            "sk-ant-admin01-1\r\nX-Evil: 1",
            &[4],
            "the environment variable `ANTHROPIC_ADMIN_API_KEY` does not contain a valid key: it has line breaks or other \
             control characters",
        ),
        ("BRAVE_API_KEY", "", &[0], NOBODY_SEARCHES),
    ] {
        let variables = all.map(|(name, usual)| (name, if name == variable { value } else { usual }));
        let machine = machine("[linkedin]\nenabled = true\n", &variables);
        for (at, outcome) in values_of(&machine.config().outside).iter().enumerate() {
            match concerned.contains(&at) {
                true => assert_eq!(*outcome, none(reason), "{variable}={value}"),
                false => assert!(!outcome.starts_with("none: "), "{variable}={value}: {outcome}"),
            }
        }
        // A variable may be there for another program.
        assert_eq!(machine.config().notes, []);
    }
}

#[test]
fn every_service_configuration_key_takes_effect() {
    let machine = machine(
        r#"
        [web]
        allow_private_hosts = ["wiki.corp.example", "127.0.0.1:8080"]
        proxy = "http://proxy.corp.example:3128"
        respect_robots = true
        [search]
        provider = "searxng"
        base_url = "https://search.corp.example/${PLACE:-a}"
        api_key_env = "SEARCH_KEY"
        [google]
        client_id = "corp"
        client_secret_env = "CORP_SECRET"
        gmail_base_url = "https://mail.corp.example"
        calendar_base_url = "https://calendar.corp.example"
        authorization_url = "https://login.corp.example/auth"
        token_url = "https://login.corp.example/token"
        revocation_url = "https://login.corp.example/revoke"
        [linkedin]
        enabled = true
        base_url = "https://jobs.corp.example"
        user_agent = "corp-jobs/1"
        [anthropic_admin]
        api_key_env = "ADMIN"
        base_url = "https://gateway.corp.example"
        [secrets]
        key_file = "keys/seal"
        "#,
        &[("SEARCH_KEY", "k1"), ("CORP_SECRET", "k2"), ("ADMIN", "sk-ant-admin01-2")],
    );
    check(
        &machine,
        [
            "searxng at https://search.corp.example/a with k1",
            "https://mail.corp.example/ with k2",
            "https://calendar.corp.example/ with k2",
            "https://jobs.corp.example/ as corp-jobs/1",
            "https://gateway.corp.example/ with sk-ant-admin01-2",
        ],
    );
    let outside = machine.config().outside;
    assert_eq!(outside.proxy.unwrap().as_str(), "http://proxy.corp.example:3128/");
    assert!(outside.respects_robots);
    assert_eq!(outside.google.unwrap().issuer, "https://login.corp.example");
    assert_eq!(machine.plain(outside.key_file.unwrap().display()), "~/home/.config/toolstead/keys/seal");
    assert_eq!(machine.config().notes, []);
}

#[test]
fn the_token_key_file_is_forbidden_to_tools() {
    let machine = machine("[secrets]\nkey_file = \"../../project/seal\"\n", &[]);
    let file = machine.path("home/project/seal");
    assert!(machine.config().roots.forbidden.contains(&Path::new(&file).to_owned()));
}

#[test]
fn each_search_provider_has_its_own_address_and_key() {
    let keys = [("BRAVE_API_KEY", "b"), ("TAVILY_API_KEY", "t"), ("EXA_API_KEY", "e"), ("MINE", "m")];
    for (lines, expected) in [
        ("provider = \"brave\"", "brave at https://api.search.brave.com/ with b"),
        ("provider = \"tavily\"", "tavily at https://api.tavily.com/ with t"),
        ("provider = \"exa\"", "exa at https://api.exa.ai/ with e"),
        ("provider = \"duckduckgo\"", "duckduckgo at https://html.duckduckgo.com/ with none"),
        ("provider = \"exa\"\napi_key_env = \"MINE\"", "exa at https://api.exa.ai/ with m"),
        ("provider = \"searxng\"\nbase_url = \"http://127.0.0.1:8888\"", "searxng at http://127.0.0.1:8888/ with none"),
        ("provider = \"searxng\"", "none: `[search] base_url` does not say where the SearXNG server is"),
        (
            "base_url = \"https://h\"",
            "none: `[search] provider` must be one of brave, searxng, tavily, exa or duckduckgo",
        ),
        (
            "api_key_env = \"MINE\"",
            "none: `[search] provider` must be one of brave, searxng, tavily, exa or duckduckgo",
        ),
        ("provider = \"tavily\"\napi_key_env = \"NONE\"", "none: the environment variable `NONE` holds no key: set it"),
    ] {
        let machine = machine(&format!("[search]\n{lines}\n"), &keys);
        assert_eq!(values_of(&machine.config().outside)[0], expected, "{lines}");
    }
}

#[test]
fn default_keys_are_not_sent_to_custom_addresses() {
    let keys = [
        ("BRAVE_API_KEY", "b"),
        ("GOOGLE_CLIENT_ID", "id"),
        ("GOOGLE_CLIENT_SECRET", "g"),
        ("ANTHROPIC_ADMIN_API_KEY", "sk-ant-admin01-1"),
    ];
    let elsewhere = machine(
        r#"
        [search]
        provider = "brave"
        base_url = "https://search.example"
        [google]
        token_url = "https://login.example/token"
        [anthropic_admin]
        base_url = "https://gateway.example"
        "#,
        &keys,
    );
    let nameless = |key: &str| format!("none: there is no key: `{key}` names the environment variable that holds it");
    let google = nameless("google.client_secret_env");
    check(
        &elsewhere,
        [
            "brave at https://search.example/ with none",
            &google,
            &google,
            &none(LINKEDIN_IS_OFF),
            &nameless("anthropic_admin.api_key_env"),
        ],
    );
    // The secret is sent along with tokens that are revoked.
    let revoked_elsewhere = machine("[google]\nrevocation_url = \"https://login.example/revoke\"\n", &keys);
    assert_eq!(values_of(&revoked_elsewhere.config().outside)[1], google);
}

#[test]
fn service_settings_of_a_project_require_trust() {
    let machine = Machine::with(&[(
        PROJECT,
        r#"
        [web]
        allow_private_hosts = ["localhost"]
        proxy = "https://evil.example"
        [search]
        provider = "searxng"
        base_url = "https://evil.example"
        [google]
        client_id = "theirs"
        token_url = "https://evil.example"
        [linkedin]
        enabled = true
        [anthropic_admin]
        base_url = "https://evil.example"
        api_key_env = "OTHER"
        [secrets]
        key_file = "mine"
        "#,
    )])
    .variables(&[
        ("OTHER", "hunter2"),
        ("ANTHROPIC_ADMIN_API_KEY", "sk-ant-admin01-1"),
        ("GOOGLE_CLIENT_SECRET", "s"),
    ]);
    let outside = machine.config().outside;
    let told_here = values_of(&outside).map(|one| machine.plain(one));
    let waits = |reason: &str, key: &str| {
        format!("none: {reason}; `{key}` waits for `toolstead config trust ~/home/project/toolstead.toml`")
    };
    assert_eq!(
        told_here,
        [
            waits(NOBODY_SEARCHES, "search.provider"),
            waits(NO_CLIENT, "google.client_id"),
            waits(NO_CLIENT, "google.client_id"),
            waits(LINKEDIN_IS_OFF, "linkedin.enabled"),
            "https://api.anthropic.com/ with sk-ant-admin01-1".into(),
        ]
    );
    assert!(outside.proxy.is_none() && outside.key_file.is_none() && outside.private_hosts == HostPatterns::default());
    for key in ["web.allow_private_hosts", "web.proxy", "search.base_url", "google.token_url", "secrets.key_file"] {
        assert!(machine.waiting().iter().any(|one| one.starts_with(key)), "{key}: {:?}", machine.waiting());
    }

    machine.trust("toolstead.toml");
    let outside = machine.config().outside;
    let answer = values_of(&outside);
    assert_eq!(answer[0], "searxng at https://evil.example/ with none");
    assert_eq!(answer[3], "https://www.linkedin.com/");
    assert_eq!(answer[4], "https://evil.example/ with hunter2");
    assert!(answer[1].starts_with("none: there is no key: `google.client_secret_env`"), "{}", answer[1]);
    assert!(outside.proxy.is_some() && outside.key_file.is_some() && outside.private_hosts != HostPatterns::default());
}

#[test]
fn service_keys_and_addresses_of_user_and_project_files_are_not_combined() {
    let mine = r#"
        [search]
        provider = "tavily"
        api_key_env = "MINE"
        [google]
        client_id = "mine"
        client_secret_env = "MINE"
        [anthropic_admin]
        api_key_env = "MINE"
        "#;
    let keys = [("MINE", "sk-ant-admin-mine"), ("OTHER", "sk-ant-admin-other"), ("GOOGLE_CLIENT_SECRET", "usual")];
    for file in [PROJECT, LOCAL] {
        let with = |lines: &str| {
            let machine = Machine::with(&[(USER, mine), (file, lines)]).variables(&keys);
            machine.trust(file.rsplit('/').next().unwrap());
            values_of(&machine.config().outside)
        };
        let moved = with(
            "[search]\nprovider = \"tavily\"\nbase_url = \"https://evil.example\"\n\
             [google]\nclient_id = \"theirs\"\ntoken_url = \"https://evil.example\"\n\
             [anthropic_admin]\nbase_url = \"https://evil.example\"\n",
        );
        assert_eq!(moved[0], "tavily at https://evil.example/ with none");
        assert!(moved[1].starts_with("none: there is no key: `google.client_secret_env` names"), "{}", moved[1]);
        assert!(moved[4].starts_with("none: there is no key: `anthropic_admin.api_key_env` names"), "{}", moved[4]);
        let mail = with("[google]\ngmail_base_url = \"https://evil.example\"\n");
        assert_eq!(mail[1], none(NO_CLIENT), "nothing of the client either");
        // Nor does a key that the project names go to the address of the other file.
        let named = with("[search]\napi_key_env = \"OTHER\"\n[anthropic_admin]\napi_key_env = \"OTHER\"\n");
        assert_eq!(named[0], "tavily at https://api.tavily.com/ with sk-ant-admin-mine");
        // Without a configured address, the default one is used.
        assert_eq!(named[4], "https://api.anthropic.com/ with sk-ant-admin-other");
        let client = with("[google]\nclient_id = \"theirs\"\nclient_secret_env = \"OTHER\"\n");
        assert_eq!(client[2], "https://www.googleapis.com/ with sk-ant-admin-other");
    }
    // The address is the administrator's, and the key the user's own.
    let machine = Machine::with(&[
        (ADMINISTRATOR, "[search]\nprovider = \"brave\"\nbase_url = \"https://search.corp.example\"\n"),
        (USER, "[search]\napi_key_env = \"MINE\"\n"),
    ])
    .variables(&keys);
    assert_eq!(values_of(&machine.config().outside)[0], "brave at https://search.corp.example/ with sk-ant-admin-mine");
}

#[test]
fn invalid_service_values_are_reported_with_their_lines() {
    for (section, line, message) in [
        (
            "search",
            "provider = \"brvae\"",
            "`search.provider` must be one of `\"brave\"`, `\"searxng\"`, `\"tavily\"`, `\"exa\"`, `\"duckduckgo\"`",
        ),
        (
            "search",
            "base_url = \"ftp://h\"",
            "`search.base_url` must be a URL that begins with `http://` or `https://`",
        ),
        ("search", "api_key = \"sk-hunter2\"", "unknown key `search.api_key`; did you mean `api_key_env`?"),
        (
            "search",
            "api_key_env = \"sk-hunter2\"",
            "`search.api_key_env`: it must be the name of an environment variable",
        ),
        (
            "google",
            "client_secret = \"GOCSPX-hunter2\"",
            "unknown key `google.client_secret`; did you mean `client_secret_env`?",
        ),
        ("google", "token_url = \"login\"", "`google.token_url` must be a URL that begins with"),
        ("linkedin", "enabled = \"yes\"", "`linkedin.enabled` must be `true` or `false`"),
        ("anthropic_admin", "key = \"sk-ant-admin-hunter2\"", "unknown key `anthropic_admin.key`"),
        ("secrets", "key = \"hunter2\"", "unknown key `secrets.key`; did you mean `key_file`?"),
        ("web", "allow_private_hosts = [\"*\"]", "`web.allow_private_hosts`: "),
        ("web", "proxy = \"http://me:hunter2@proxy\"", "`web.proxy` cannot be used: it has a user"),
        ("web", "proxy = \"http://${NOT_SET}\"", "`web.proxy` cannot be used: "),
    ] {
        let machine = machine(&format!("[{section}]\n{line}\n"), &[]);
        let error = machine.load().map(|_| "no error").unwrap_err().to_string();
        let message = format!("~/home/.config/toolstead/config.toml:2: {message}");
        assert!(machine.plain(&error).starts_with(&message), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn an_unusable_address_is_reported_with_its_line_and_affects_no_other_service() {
    for (lines, at, told_of) in [
        (
            "[search]\nprovider = \"searxng\"\nbase_url = \"https://me:hunter2@h\"",
            0,
            "`search.base_url` cannot be used: it has a user",
        ),
        (
            "[google]\nclient_id = \"a\"\ntoken_url = \"https://h/?key=hunter2\"",
            1,
            "`google.token_url` cannot be used: it has a query",
        ),
        (
            "[google]\nclient_id = \"a\"\nclient_secret_env = \"W\"\ngmail_base_url = \"https://${NOT_SET}\"",
            1,
            "`google.gmail_base_url` cannot be used: ",
        ),
        (
            "[linkedin]\nenabled = true\nbase_url = \"https://h#hunter2\"",
            3,
            "`linkedin.base_url` cannot be used: it has a query or a fragment",
        ),
        (
            "[anthropic_admin]\nbase_url = \"https://hunter2@h\"",
            4,
            "`anthropic_admin.base_url` cannot be used: it has a user",
        ),
    ] {
        let machine = machine(&format!("{lines}\n"), &[("W", "word")]);
        let config = machine.config();
        let reason = &values_of(&config.outside)[at];
        assert!(reason.starts_with(&format!("none: {told_of}")) && !reason.contains("hunter2"), "{reason}");
        let notes: Vec<String> = config.notes.iter().map(|note| machine.plain(note)).collect();
        let is_told =
            |note: &String| note.starts_with("~/home/.config/toolstead/config.toml:") && note.contains(told_of);
        assert!(notes.iter().any(is_told) && !notes.concat().contains("hunter2"), "{notes:?}");
    }
    // One address of Google's does not close the other.
    let machine = machine(
        "[google]\nclient_id = \"a\"\nclient_secret_env = \"W\"\ngmail_base_url = \"https://${NOT_SET}\"\n",
        &[("W", "word")],
    );
    assert_eq!(values_of(&machine.config().outside)[2], "https://www.googleapis.com/ with word");
}

#[test]
fn a_remote_address_that_receives_a_key_without_encryption_is_reported() {
    let lines = |host: &str| {
        format!(
            "[search]\nprovider = \"brave\"\nbase_url = \"http://{host}\"\napi_key_env = \"K\"\n\
             [google]\nclient_id = \"a\"\nclient_secret_env = \"K\"\ncalendar_base_url = \"http://{host}\"\n\
             [anthropic_admin]\napi_key_env = \"K\"\nbase_url = \"http://{host}\"\n\
             [linkedin]\nenabled = true\nbase_url = \"http://{host}\"\n"
        )
    };
    let notes = |host: &str| {
        let machine = machine(&lines(host), &[("K", "key"), ("HOST", "h.example/team-secret")]);
        machine.config().notes.iter().map(|note| machine.plain(note)).collect::<Vec<_>>()
    };
    let text_of = |line: usize, key: &str| {
        format!(
            "~/home/.config/toolstead/config.toml:{line}: what the address of `{key}` is sent goes without encryption, \
             and keys with it"
        )
    };
    let mut expected = [
        text_of(3, "search.base_url"),
        text_of(8, "google.calendar_base_url"),
        text_of(11, "anthropic_admin.base_url"),
    ];
    expected.sort();
    for host in ["h.example", "${HOST}"] {
        let mut found = notes(host);
        found.sort();
        assert_eq!(found, expected);
    }
    for here in ["127.0.0.1:1", "localhost:1", "[::1]:1"] {
        assert_eq!(notes(here), [""; 0], "{here}");
    }
}

#[test]
fn shown_service_settings_contain_no_keys() {
    let machine = machine(
        "[search]\nprovider = \"searxng\"\nbase_url = \"https://me:hunter2@h\"\n\
         [google]\nclient_id = \"GOCSPX-abcdefghijklmnopqrstuvwxyz\"\nclient_secret_env = \"SECRET\"\n",
        &[("SECRET", "hunter2"), ("ANTHROPIC_ADMIN_API_KEY", "sk-ant-admin-hunter2"), ("BRAVE_API_KEY", "hunter2")],
    );
    let config = machine.config();
    let shown: Vec<String> =
        config.resolved.all().iter().map(|one| format!("{} {:?}", one.name(), one.shown())).collect();
    for all in [shown.join("\n"), format!("{:?}", config.outside)] {
        assert!(!all.contains("hunter2"), "{all}");
    }
    assert!(!shown.concat().contains("GOCSPX-abc"), "a secret in the place of a name");
    assert_eq!(machine.setting("google.client_secret_env"), "\"SECRET\" from ~/home/.config/toolstead/config.toml:6");
}
