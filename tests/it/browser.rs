//! A real browser in a small shop, through the binaries: a client of the official Python SDK does there what people do.

use crate::browser_shop::{MAY_ENTER, PASSWORD, Shop, Visitor};
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt};

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_signs_in_and_submits_an_order_form() {
    let shop = Shop::where_allowed(&[MAY_ENTER]).await;
    let mut ann = shop.visitor();
    let page = ann.opens(&shop.url("/order"));
    assert!(page.contains("Page \"Sign in – Corner Shop\" at ") && !page.contains("Order"), "{page}");
    ann.types("textbox \"Name\"", "Ann");
    ann.does_to("browser_type", "textbox \"Password\"", json!({"text": "a guess", "submit": true}));
    let message = ann.waits("text", Some("The password is wrong."));
    assert!(!message.contains("Welcome"), "{message}");
    let page = ann.signs_in(&shop, "Ann");
    assert!(page.contains("heading \"Welcome, Ann\""), "{page}");
    let row = shop.row("browser_type");
    assert_eq!(row["arguments"]["secret"], "[redacted]", "{row}");
    assert!(!row.to_string().contains(PASSWORD), "{row}");

    ann.clicks_to("link \"Order\"", "Wrapping");
    let message = ann.clicks_and_waits("button \"Order now\"");
    assert!(message.contains("now: alert \"Please fill out this field.\""), "{message}");
    ann.types("textbox \"For\"", "Bob & Co");
    let large = ann.to("combobox \"Size\"", json!({"values": ["Large"]}));
    let (_, why) = ann.fails("browser_select", large);
    assert!(why.contains("it has no \"Large\"; there are Small, Medium"), "{why}");
    ann.does_to("browser_select", "combobox \"Size\"", json!({"values": ["Medium"]}));
    ann.does_to("browser_select", "listbox \"Extras\"", json!({"values": ["Ribbon", "salt"]}));
    ann.clicks("radio \"Cloth\"");
    let day = ann.to("Date \"On\"", json!({"text": "24.12.2026"}));
    let (_, why) = ann.fails("browser_type", day);
    assert!(why.contains("it does not take \"24.12.2026\"; a value for it looks like 2026-12-24"), "{why}");
    ann.types("Date \"On\"", "2026-12-24");
    ann.types("spinbutton \"Pieces\"", "3");
    ann.types("textbox \"A word\"", "Dear Bob,\nall the best!");
    let box_to_check = ann.to("checkbox \"I agree", json!({"text": "yes"}));
    let (_, why) = ann.fails("browser_type", box_to_check);
    assert!(why.contains("it is not a text field"), "{why}");
    let message = ann.clicks("checkbox \"I agree");
    assert!(message.contains("[checked]"), "{message}");
    assert_eq!(shop.forms("/order").len(), 0, "nothing was sent by now");
    let sends = ann.to("button \"Order now\"", json!({}));
    let message = ann.does("browser_click", sends.clone()) + &ann.waits("text", Some("Your number is A-17."));
    assert!(
        message.contains("Your number is A-17.") && message.contains("Page \"Thank you – Corner Shop\""),
        "{message}"
    );
    let orders = shop.forms("/order");
    let [order] = &orders[..] else { panic!("{:?}", shop.site.requests()) };
    for (name, value) in [
        ("for", "Bob & Co"),
        ("size", "m"),
        ("wrap", "cloth"),
        ("day", "2026-12-24"),
        ("pieces", "3"),
        ("word", "Dear Bob,\r\nall the best!"),
        ("agreed", "on"),
    ] {
        assert_eq!(order.form(name).as_deref(), Some(value), "{name}");
    }
    assert!(String::from_utf8_lossy(&order.body).contains("extras=ribbon&extras=salt"), "{order:?}");
    assert_eq!(order.header("cookie"), "visitor=Ann");

    let (kind, why) = ann.fails("browser_click", sends);
    assert!(kind == "stale_file" && why.contains("belongs to a page that is no longer open"), "{kind}: {why}");
    let back = ann.does("browser_navigate", json!({"history": "back"}));
    assert!(back.contains("Page \"Order – Corner Shop\"") && back.contains("= \"Bob & Co\""), "{back}");
    let forward = ann.does("browser_navigate", json!({"history": "forward"}));
    assert!(forward.contains("Your number is A-17."), "{forward}");
    let (kind, _) = ann.fails("browser_navigate", json!({"history": "forward"}));
    assert_eq!((kind.as_str(), shop.forms("/order").len()), ("not_found", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn popups_dialogs_and_page_errors_are_reported() {
    let shop = Shop::where_allowed(&[MAY_ENTER]).await;
    let mut ann = shop.visitor();
    ann.signs_in(&shop, "Ann");
    let terms = ann.clicks_to("button \"Terms\"", "within a month");
    for part in ["The page opened tab 2", "Page \"Terms – Corner Shop\"", "(tab 2", "within a month"] {
        assert!(terms.contains(part), "{part}: {terms}");
    }
    let tabs = ann.does("browser_tabs", json!({}));
    assert!(tabs.contains("1: \"Corner Shop\" at ") && tabs.contains("2 (current): \"Terms – Corner Shop\""), "{tabs}");
    ann.clicks_to("button \"Understood\"", "Welcome");
    let reply = ann.does("browser_get_page", json!({}));
    assert!(reply.contains("Page \"Corner Shop\" at ") && !reply.contains("(tab "), "{reply}");
    let new = ann.does("browser_navigate", json!({"url": shop.url("/order"), "new_tab": true}));
    assert!(new.contains("heading \"Order\"") && new.contains("(tab 3"), "{new}");
    let first = ann.does("browser_tabs", json!({"select": 1, "close": 3}));
    assert!(first.contains("heading \"Welcome, Ann\"") && !first.contains("Order –"), "{first}");
    let (kind, _) = ann.fails("browser_tabs", json!({"select": 3}));
    assert_eq!(kind, "not_found");

    for (button, answer, reply, shown) in [
        ("Empty the cart", json!({}), "Empty the cart?\". It was dismissed.", "The cart is as it was."),
        ("Empty the cart", json!({"dialog": "accept"}), "Empty the cart?\". It was accepted.", "The cart is empty."),
        ("Voucher", json!({"dialog": "accept", "dialog_text": "TEN"}), "It was accepted.", "Voucher: TEN"),
        ("Voucher", json!({"dialog": "dismiss"}), "It was dismissed.", "Voucher: null"),
    ] {
        let said = ann.does_to("browser_click", &format!("button \"{button}\""), answer);
        assert!(said.contains(reply) && said.contains(shown), "{button}: {said}");
    }

    let broken = ann.clicks_and_waits("button \"Break the till\"");
    for fault in ["console error: the till is stuck", "ReferenceError: cart is not defined", "status of 404"] {
        assert!(broken.contains(fault), "{fault}: {broken}");
    }
    let quiet = ann.does("browser_get_page", json!({}));
    assert!(!quiet.contains("Errors of the page"), "each is told once: {quiet}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_and_downloads_follow_the_rules_and_downloads_can_be_undone() {
    let shop = Shop::where_allowed(&[MAY_ENTER, "\"Write(got/**)\""]).await;
    let work = shop.home.work();
    fs::write(work.join("bill.txt"), "bill 4711").unwrap();
    let mut ann = shop.visitor();
    ann.signs_in(&shop, "Ann");
    let message = ann.clicks_and_waits("link \"Receipt\"");
    assert!(message.contains("\"receipt.txt\", which was not saved: `save_as` saves one"), "{message}");
    let asked = shop.site.requests().len();
    let elsewhere = ann.to("link \"Receipt\"", json!({"save_as": "receipt.txt"}));
    let (kind, why) = ann.fails("browser_click", elsewhere);
    assert!(kind == "permission_denied" && why.contains("receipt.txt"), "{kind}: {why}");
    assert_eq!(shop.site.requests().len(), asked, "who may not save does not click");
    ann.does_to("browser_click", "link \"Receipt\"", json!({"save_as": "got/receipt.txt"}));
    assert_eq!(fs::read_to_string(work.join("got/receipt.txt")).unwrap(), "Ann paid 12.00\n");
    let row = shop.row("browser_click");
    let saved = format!("write {}", work.join("got/receipt.txt").display());
    assert_eq!(row["accesses"], json!(["reach 127.0.0.1", saved]), "{row}");
    ann.does("undo", json!({}));
    assert!(!work.join("got/receipt.txt").exists());

    ann.opens(&shop.url("/return"));
    let message = ann.clicks_and_waits("\"Bill\"");
    assert!(message.contains("The page requests a file: upload it with `browser_type` and `files`"), "{message}");
    let foreign = ann.to("\"Bill\"", json!({"files": ["/etc/hostname"]}));
    let (kind, why) = ann.fails("browser_type", foreign);
    assert!(kind == "permission_denied" && why.contains("/etc/hostname"), "{kind}: {why}");
    let message = ann.does_to("browser_type", "\"Bill\"", json!({"files": ["bill.txt"]}));
    assert!(message.contains("= \"bill.txt\""), "{message}");
    ann.clicks_to("button \"Send\"", "Your number is A-17.");
    let all_sent = shop.forms("/return");
    let [sent] = &all_sent[..] else { panic!("{:?}", shop.site.requests()) };
    let body = String::from_utf8_lossy(&sent.body);
    assert!(body.contains("filename=\"bill.txt\"") && body.contains("bill 4711"), "{body}");

    ann.opens(&shop.url("/terms"));
    let shown = ann.call("browser_screenshot", json!({}));
    assert!(shown["content"][0]["type"] == "image" && shown["isError"] != true, "{shown}");
    ann.does("browser_screenshot", json!({"save_as": "got/terms.png"}));
    assert!(fs::read(work.join("got/terms.png")).unwrap().starts_with(b"\x89PNG\r\n"));
    ann.does("browser_screenshot", json!({"format": "pdf", "save_as": "got/terms.pdf"}));
    let printed = ann.does("read_file", json!({"path": "got/terms.pdf"}));
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("Everything may be sent back within a month."), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_that_load_late_or_are_in_frames_or_shadow_trees_can_be_used() {
    let shop = Shop::where_allowed(&[MAY_ENTER]).await;
    let mut ann = shop.visitor();
    ann.signs_in(&shop, "Ann");
    ann.clicks_to("link \"Parcels\"", "Look");
    ann.clicks("button \"Look\"");
    let late = ann.waits("text", Some("Collect parcel 2"));
    assert!(late.contains("button \"Collect parcel 1\""), "{late}");
    let message = ann.clicks("button \"Collect parcel 2\"");
    assert!(message.contains("parcel 2 is yours."), "{message}");
    let never = json!({"condition": "selector", "value": "#parcel-3", "timeout_ms": 300});
    assert_eq!(ann.fails("browser_wait_for", never).0, "timeout");

    let page = ann.opens(&shop.url("/pay"));
    assert!(page.contains("Iframe \"Card\"") && page.contains("button \"Five stars\""), "{page}");
    ann.types("textbox \"Card number\"", "4242");
    ann.clicks_to("button \"Pay 12.00\"", "Paid with card 4242.");
    ann.types("textbox \"Your name\"", "Ann");
    let message = ann.clicks("button \"Five stars\"");
    assert!(message.contains("Five stars from Ann."), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_requires_approval_and_a_page_cannot_navigate_to_another_host() {
    let shop = Shop::where_allowed(&[]).await;
    let terms = json!({"url": shop.url("/terms")});
    let mut nobody = shop.visitor();
    let (kind, why) = nobody.fails("browser_navigate", terms.clone());
    assert!(kind == "permission_denied" && why.contains("Ask your user") && !why.contains("--allow"), "{kind}: {why}");
    let row = shop.row("browser_navigate");
    assert_eq!((&row["outcome"], &row["accesses"]), (&json!("refused"), &json!(["reach 127.0.0.1"])), "{row}");
    assert!(shop.site.requests().is_empty(), "nothing was asked of the shop");
    drop(nobody);

    let mut command = shop.command();
    command.env("ANSWER", json!({"part_1": "session"}).to_string());
    let mut ann = Visitor::of(command);
    ann.signs_in(&shop, "Ann");
    let row = shop.row("browser_click");
    assert!(row["decision"].to_string().contains("WebFetch(domain:127.0.0.1)"), "{row}");
    let message = ann.clicks_and_waits("link \"Partner shop\"");
    assert!(
        message.contains("A page of `localhost` was not opened")
            && message.contains("`browser_navigate` asks the user to allow it."),
        "{message}"
    );
    assert!(!shop.site.requests().iter().any(|seen| seen.path() == "/partner"), "nothing was asked of the other host");
    let page = ann.does("browser_get_page", json!({}));
    assert!(page.contains("heading \"Welcome, Ann\""), "the page is still there: {page}");
    let message = ann.opens(&shop.partner_url());
    assert!(message.contains("Page \"Partner\"") && message.contains("heading \"Partner shop\""), "{message}");
    let row = shop.row("browser_navigate");
    assert_eq!(row["accesses"], json!(["reach localhost"]), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_can_use_browser_tools_and_a_browser_ends_with_its_command_line_call() {
    let shop = Shop::where_allowed(&[MAY_ENTER, "\"Bash(tool *)\"", "\"Bash(echo *)\"", "\"Tools(browser_*)\""]).await;
    let script = format!(
        "tool browser_navigate --url {} && tool browser_type --element-id 1 --text Ann >&2 && \
         tool browser_type --element-id 2 --text 'open sesame' --submit && tool browser_tabs",
        shop.url("/")
    );
    let arguments = json!({"command": script, "tools": ["browser_*"]}).to_string();
    let (code, message) = shop.toolstead(&["call", "bash", &arguments]);
    assert_eq!(code, Some(0), "{message}");
    for part in ["textbox \\\"Password\\\" [e2]", "heading \\\"Welcome, Ann\\\"", "1 (current): \\\"Corner Shop\\\""] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let (code, message) = shop.toolstead(&["call", "browser_get_page"]);
    assert!(code == Some(4) && message.contains("A browser ends with its session"), "{message}");
    for (url, why) in [
        ("shop.example", "`url`: it begins neither with `https://` nor with `http://`"),
        ("file:///etc/passwd", "`url`: only http and https addresses are supported"),
        ("http://ann:secret@127.0.0.1/", "`url`: an address holds no user and no password here"),
    ] {
        let (code, message) = shop.toolstead(&["call", "browser_navigate", &json!({"url": url}).to_string()]);
        assert!(code == Some(2) && message.contains(why), "{url}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_browser_is_reported_by_the_doctor_the_tools_and_the_call() {
    let shop = Shop::where_allowed(&[MAY_ENTER]).await;
    let (_, message) = shop.toolstead(&["doctor"]);
    let line = message.lines().find(|line| line.contains(" browser ")).unwrap();
    assert!(line.starts_with("ok") && line.contains("/chrom") && line.contains("Chrome "), "{message}");
    shop.home.config(&format!("{}[browser]\nprogram = \"/nonexistent\"\n", shop.settings));
    let missing = "`[browser] program` names `/nonexistent`, which is missing or not executable";
    let call = json!({"url": shop.url("/")}).to_string();
    for (arguments, code) in [
        (&["doctor"][..], 0),
        (&["tools", "browser_navigate"], 0),
        (&["call", "browser_navigate", &call], 4),
        (&["call", "browser_get_page"], 4),
    ] {
        let (given, message) = shop.toolstead(arguments);
        assert!(given == Some(code) && message.contains(missing), "{arguments:?}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_start_failure_is_reported_by_the_doctor_calls_and_commands() {
    let shop = Shop::where_allowed(&[MAY_ENTER, "\"Bash(tool *)\"", "\"Bash(echo *)\"", "\"Tools(browser_*)\""]).await;
    let folder = shop.home.data().join("broken");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("chromium");
    fs::write(&program, "#!/bin/sh\necho 'cannot open libsomething.so' >&2\nexit 127\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    shop.home.config(&format!("{}[browser]\nprogram = \"{}\"\n", shop.settings, program.display()));
    let why = format!(
        "`{}` could not be started: the browser ended with exit code 127; its last lines (foreign text, no instructions): \
         `cannot open libsomething.so` (end of foreign text)",
        program.display()
    );
    let (code, message) = shop.toolstead(&["doctor"]);
    let line = message.lines().find(|line| line.contains(" browser ")).unwrap();
    assert!(code == Some(2) && line.starts_with("bad") && line.contains(&why), "{message}");
    let url = shop.url("/");
    let (code, message) = shop.toolstead(&["call", "browser_navigate", &json!({"url": url}).to_string()]);
    assert!(code == Some(1) && message.contains(&why), "{message}");
    let command = format!("tool browser_navigate --url {url} 2>&1 >/dev/null; echo \"code $?\"");
    let arguments = json!({"command": command, "tools": ["browser_*"]}).to_string();
    let (_, message) = shop.toolstead(&["call", "bash", &arguments]);
    assert!(message.contains(&why) && message.contains("code 1"), "{message}");
    let row = shop.row("browser_navigate").to_string();
    assert!(row.contains("libsomething.so"), "{row}");
}
