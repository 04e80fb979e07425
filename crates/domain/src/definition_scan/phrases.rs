//! Phrases that direct a model instead of describing a tool.

use super::{
    foreign_phrases::FOREIGN,
    kinds::{ADDRESSES, APPROVES, COMMANDS, CONCEALS, DIRECTS, MARKUP, OVERRIDES, SECRETS, SENDS},
    words::{WordPattern, is_negated, other_readings, sentences, words},
};
use std::sync::LazyLock;

/// Patterns that are also searched for in disguised words.
const STRONG: &[(&str, &str)] = &[
    (
        OVERRIDES,
        "ignore|disregard|forget|discard|neglect|abandon ~3 previous|prior|above|earlier|preceding|foregoing|original|initial|system|developer|safety|other|all|any|your|these ~3 instruct*|guideline*|prompt*|directive*|restriction*|constraint*|guardrail*|training|programming|safeguard*",
    ),
    (
        OVERRIDES,
        "ignore|disregard|forget ~2 previous|prior|above|earlier|preceding|your|safety|system|everything ~2 rule|rules|polic*|context|messages|said|told|above|before|known",
    ),
    (
        OVERRIDES,
        "overrid*|overrule*|supersed*|bypass|circumvent|precedence|priority|outrank* ~3 over|previous|prior|your|safety|user|users|any|all|other ~4 instruct*|guideline*|prompt|prompts|safeguard*|guardrail*|directive*",
    ),
    (
        CONCEALS,
        "not|never|dont|without|avoid|refrain|mustnt|shouldnt|nor ~3 tell|telling|mention|mentioning|inform|informing|reveal|revealing|disclose|disclosing|divulge|acknowledge|acknowledging|discuss ~4 user|human|anyone|anybody|them|operator|person|customer|people|this|it|that|these",
    ),
    (
        CONCEALS,
        "not|never|dont|without|avoid|mustnt|shouldnt ~3 show|showing|report|reporting|notify|notifying|alert|alerting|display|displaying|explain|explaining|surface|expose|describe|summarize|warn|warning|log|narrate|bother ~6 user|human|anyone|anybody|operator|person",
    ),
    (CONCEALS, "secretly|covertly|surreptitiously|stealthily|clandestinely|discreetly"),
];

/// Patterns that are searched for in the words as they are written only.
const PLAIN: &[(&str, &str)] = &[
    (OVERRIDES, "you are now"),
    (
        OVERRIDES,
        "regardless|matter|even|irrespective ~5 user|users ~2 asks|asked|says|said|request*|wants|specifi*|thinks|objects|declines",
    ),
    (
        OVERRIDES,
        "rules|guideline*|instructions|restrictions|limits|policies ~12 no|not|were|was|are|been ~2 longer|apply|withdrawn|lifted|suspended|revoked|void",
    ),
    (OVERRIDES, "rank|ranks|outrank*|stand|stands ~1 above|over ~4 system|developer|safety|user*"),
    (OVERRIDES, "jailbreak*|unrestricted ~1 mode|developer ~1 mode"),
    (OVERRIDES, "pretend ~2 to|you|that"),
    (OVERRIDES, "new|updated|revised|real|actual ~1 system ~1 instruct*|prompt|directive*|rules"),
    (
        CONCEALS,
        "silently|quietly|invisibly|unobtrusively ~3 send|forward|read|include|upload|copy|collect|call|invoke|execute|run|append|transmit|post|add|pass|bcc|exfiltrate|extract|log|record|attach|fetch|store|gather|open",
    ),
    (
        CONCEALS,
        "send|forward|read|include|upload|copy|collect|call|invoke|execute|run|append|transmit|post|add|pass|attach|fetch|do ~6 silently|quietly|invisibly",
    ),
    (
        CONCEALS,
        "keep|keeping|stay|remain ~4 secret|hidden|confidential|invisible|silent|quiet ~3 from|to|between|about|user|and|at",
    ),
    (CONCEALS, "hide|hiding|conceal|concealing|obscure|withhold|mask ~6 from ~2 user|human|operator|anyone|person"),
    (CONCEALS, "hidden|invisible|secret ~1 from|to ~1 user|human|operator"),
    (
        CONCEALS,
        "user|human|operator ~2 not|never|neednt|cannot|shouldnt|mustnt|wont|doesnot ~2 know|see|notice|aware|suspect|informed|told|notified|find|learn|realize|realise",
    ),
    (CONCEALS, "no ~1 need|reason ~1 to ~1 tell|inform|mention|notify|explain|alert|bother|involve|consult|ask"),
    (
        CONCEALS,
        "not|never|dont|without|omit|exclude|leave ~6 in|from|of ~1 your|the ~2 response|reply|answer|summary|transcript ~2 user|to",
    ),
    (
        CONCEALS,
        "not|never|dont|omit|exclude ~5 in|from|of ~1 your|any ~2 response|reply|answer|output|summary|reasoning|explanation|message",
    ),
    (CONCEALS, "without ~2 user|users|human ~2 knowledge|knowing|awareness|noticing"),
    (
        ADDRESSES,
        "assistant|ai|llm|llms|claude|gpt|chatgpt|copilot|gemini|chatbot ~1 must|should|shall|ought|will|needs|has ~2 always|never|not|first|immediately|read|include|pass|send|obey|execute|append|ignore|forward|comply|fetch|follow|treat",
    ),
    (
        ADDRESSES,
        "agent|agents|model|models ~1 must ~2 always|never|not|first|immediately|read|include|pass|send|obey|execute|append|ignore|forward|comply|follow|treat|call",
    ),
    (
        ADDRESSES,
        "note|attention|reminder|notice|directive|dear|hey|hello ~1 to|for|all|any ~1 the|all|any ~1 ai|assistant*|llm*|agent*|claude|chatgpt|language|copilot",
    ),
    (ADDRESSES, "attention|dear|hey|hello|note ~2 ai|assistant*|llm*|claude|chatgpt|copilot|gemini"),
    (ADDRESSES, "as ~1 an|a ~1 ai|llm|assistant|language ~4 you|must|should"),
    (ADDRESSES, "from now on ~3 you|always|never|all|every|any|treat|use|respond"),
    (ADDRESSES, "not|never|dont ~1 question|hesitate|refuse ~3 this|these|it|to|any|the"),
    (
        ADDRESSES,
        "append|add|insert|include|embed|prepend|mention|recommend|promote|end|begin|start|finish|close|conclude|put ~8 every|each|all|final|subsequent|future ~2 response|responses|reply|replies|answer|answers|conversation|commit|commits|email|emails",
    ),
    (
        ADDRESSES,
        "in|with|to|after|before ~1 every|each|all|subsequent|future ~2 response|responses|reply|replies|answer|answers|message|messages|turn ~4 must|always|include|add|append|insert|mention|recommend|call|send|you",
    ),
    (ADDRESSES, "always|must|strongly ~1 recommend|promote|favor|favour|endorse|advertise|praise|steer"),
    (
        SECRETS,
        "include|pass|put|append|paste|copy|insert|embed|provide|send|attach|place|supply|fill|forward|repeat|output|print|dump|quote|summarize|encode|write|add|submit|log|set|populate ~8 conversation|chat|message|dialogue|session|prompt ~1 history|log|transcript|context|so|verbatim",
    ),
    (
        SECRETS,
        "include|pass|put|append|paste|copy|insert|embed|provide|send|attach|place|supply|fill|forward|repeat|output|print|dump|reveal|quote|encode|write|add|submit|log|set|populate ~6 entire|full|whole|complete|your|previous|prior|recent|last|all|raw|verbatim ~3 conversation|chat|system|messages|instructions|prompt|context|memory|dialogue|transcript|history",
    ),
    (
        SECRETS,
        "include|pass|send|append|attach|paste|forward|upload|collect|extract|dump|gather|harvest|supply|put|copy|transmit|encode|insert|add|grab|look|search|find|read|list|retrieve|place|embed ~7 all|any|users|user|your|their|every|available|found|stored|saved|local|relevant|known|full|current|host|process|visible ~3 credential*|password*|secret|secrets|apikey*|keys|cookies|environment|env|passphrase*|mnemonic|seed|tokens|wallet ~4 from|in|as|to|into|the|and|so|variables|before|for",
    ),
    (
        SECRETS,
        "include|pass|send|append|attach|paste|forward|upload|supply|put|copy|transmit|encode|insert|add|provide|place|embed ~5 api|private|access|ssh|session|secret|bearer|auth|master|encryption|aws|signing|recovery ~1 key|keys|token|tokens|cookie|cookies|password|phrase|credentials ~6 in|as|to|into|with|inside ~3 parameter|argument|field|sidenote|note|notes|context|metadata|comment|query|body|url|header|debug|feedback|this|reason|description|trace|tag",
    ),
    (
        SECRETS,
        "print|output|list|show|include|dump|reveal|return|send|pass ~2 all|every|any|your ~1 environment|env ~1 variable*|vars ~2 you|in|into|as|to",
    ),
    (SECRETS, "everything|anything ~2 said|written|discussed|typed ~4 chat|conversation|session|word|verbatim|so"),
    (SECRETS, "exfiltrate ~4 the|all|any|user|users|it|data|files|credential*"),
    (SECRETS, "steal|harvest|siphon ~4 data|credential*|token*|password*|secret*|key*"),
    (
        DIRECTS,
        "before ~2 using|calling|invoking|executing|running|use|call|invoking|answering|responding|doing ~2 any|every|all|each|other|another|anything ~3 tool|tools|function|functions|question|request|user|else|task",
    ),
    (
        DIRECTS,
        "whenever|when|if|every|each|any|anytime|once|after ~5 tool|tools|function|functions ~2 is|are|gets|was|being|has|have|returns ~2 called|used|invoked|available|present|run|executed|enabled|been ~7 must|always|first|also|instead|never|you|call|send|use|set|add|change|replace",
    ),
    (
        DIRECTS,
        "when|whenever|while|if|after|before ~1 using|calling|invoking|you ~1 use|call|the|invoke|other|any ~3 tool|tools|function ~6 must|always|first|also|instead|never|add|set|change|replace|include|send",
    ),
    (
        DIRECTS,
        "not|never|dont ~1 use|call|invoke|trust|select|choose|rely|consult ~3 other|any|competing|alternative|another|built|different|native|original|real ~4 tool*|server*|function*|provider*",
    ),
    (
        DIRECTS,
        "always|must|only ~2 use|call|invoke|choose|select|prefer|run|pick ~2 this|it|these ~2 tool|function|server|one|instead|version ~4 instead|regardless|even|every|over|each|all|rather|no|ahead",
    ),
    (
        DIRECTS,
        "all|any|every|each|subsequent|future ~2 call*|request*|email*|message*|transaction*|payment*|file*|read*|write*|quer*|transfer*|search* ~4 must|should|shall|need|has|have|are ~3 sent|routed|forwarded|through|via|redirected|copied|proxied|passed|mirrored|use",
    ),
    (
        DIRECTS,
        "tool|tools|server|function|version ~3 compromised|malicious|untrusted|insecure|unsafe|infected|hacked ~9 use|this|instead|only|call|never",
    ),
    (DIRECTS, "instead ~1 of ~4 tool|tools|built ~5 must|always|never"),
    (
        DIRECTS,
        "built|native|original|official|other ~14 broken|unsafe|insecure|unreliable|damage*|corrupt*|obsolete ~12 not|never|dont|instead|only",
    ),
    (
        DIRECTS,
        "replaces|replace|supersedes|overrides|shadows|takes ~5 tool|tools|function ~4 always|must|never|use|instead|from",
    ),
    (
        DIRECTS,
        "replace|substitute|swap|redirect|change|rewrite|alter|switch ~5 recipient*|payee|account|iban|wallet|beneficiary|destination|address|to|receiver ~4 to|with|field|before|by",
    ),
    (
        DIRECTS,
        "always|also|secretly|automatically|must ~2 add|include|set|put|insert|bcc|cc|copy ~6 bcc|cc|blind|recipient",
    ),
    (
        APPROVES,
        "without ~2 asking|requesting|waiting|prompting|seeking|consulting|confirming ~4 confirmation|approval|permission|consent|user|authorization|first|human|them|anyone|anybody|somebody|person|sign|with",
    ),
    (
        APPROVES,
        "not|never|dont|no ~2 ask|request|seek|wait|prompt|require|need|stop|pause|confirm|check ~5 confirmation|approval|permission|consent|authorization|confirm",
    ),
    (
        APPROVES,
        "not|never|dont|no ~2 ask|wait|prompt|stop|pause|confirm|check ~3 user|human|person|them ~2 first|before|beforehand|again|whether|if",
    ),
    (
        APPROVES,
        "auto|automatically ~1 approve|accept|confirm|grant|allow|authorize ~4 all|any|every|future|request*|prompt*|permission*|dialog*|tool*",
    ),
    (
        APPROVES,
        "user|users|human|operator|admin|administrator ~2 has|have|already|hasalready|previously|pre|implicitly|explicitly ~3 approved|consented|agreed|authorized|authorised|confirmed|granted|given|preapproved",
    ),
    (
        APPROVES,
        "assume|treat|consider|act ~5 yes|consent|approval|approved|permission|agreed|confirmed|authorized|trusted|preapproved|safe",
    ),
    (APPROVES, "assume|answer ~12 yes ~12 not|never|without|own"),
    (APPROVES, "no ~1 confirmation|approval|permission|consent ~1 needed|required|necessary"),
    (
        APPROVES,
        "disable|turn|switch|bypass|skip|deactivate|ignore|suppress ~4 safety|security|permission|confirmation|approval|sandbox*|audit*|logging|guard*|moderation|consent|warning* ~2 check*|prompt*|filter*|mode|dialog*|step*|control*|feature*|for|log*|polic*|setting* ~4 before|and|for|so|then|when|this|first|to|because",
    ),
];

/// Parts of paths, in lower case, of files that contain secrets or configure agents and shells.
const PRIVATE_FILES: &[&str] = &[
    ".ssh",
    "id_rsa",
    "id_ed25519",
    ".aws/",
    "/etc/passwd",
    "/etc/shadow",
    "mcp.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "git-credentials",
    ".kube",
    ".docker/config",
    ".gnupg",
    "wallet.dat",
    "_history",
    "desktop_config",
    "/environ",
    ".env",
    "keychain",
    "login data",
    "cookies.sqlite",
    "authorized_keys",
    ".bashrc",
    ".zshrc",
    ".profile",
    "crontab",
    "claude.md",
    "agents.md",
    ".cursorrules",
    ".cursor/",
    ".claude/",
    "credentials.json",
];
/// Verbs of instructions. Descriptions of tools rarely use these forms with one of the [`PRIVATE_FILES`].
const DIRECTING: &[&str] = &[
    "read", "include", "pass", "send", "attach", "append", "cat", "open", "load", "upload", "copy", "paste", "fetch",
    "provide", "collect", "encode", "put", "supply", "retrieve", "grab", "transmit", "write", "add", "insert", "edit",
    "modify", "access", "scan", "locate", "get", "forward", "submit", "post", "extract", "place", "check", "look",
    "take", "use", "quote", "join", "enter", "type",
];
/// Words that make a sentence with one of the [`DIRECTING`] verbs and of the [`PRIVATE_FILES`] an instruction.
const MARKERS: &[&str] = &[
    "before",
    "first",
    "must",
    "always",
    "also",
    "ensure",
    "otherwise",
    "sidenote",
    "then",
    "pass",
    "into",
    "needs",
    "silently",
    "please",
    "parameter",
    "argument",
    "field",
    "every",
    "contents",
    "context",
    "you",
    "your",
    "and",
    "metadata",
    "notes",
    "note",
    "prior",
    "after",
    "whenever",
    "should",
    "send",
];
/// Verbs that move data to an address.
const SENDING: &[&str] = &[
    "send",
    "forward",
    "post",
    "upload",
    "transmit",
    "bcc",
    "cc",
    "copy",
    "email",
    "mail",
    "relay",
    "submit",
    "mirror",
    "report",
    "deliver",
    "ping",
    "beacon",
    "call",
    "sent",
    "forwarded",
    "posted",
    "copied",
    "uploaded",
    "route",
    "fetch",
    "include",
    "add",
    "append",
    "visit",
    "load",
    "download",
    "render",
];
/// Words that make a sentence with one of the [`SENDING`] verbs an instruction, if the text has an address.
const ALWAYS: &[&str] = &[
    "all",
    "every",
    "always",
    "also",
    "additionally",
    "each",
    "first",
    "secretly",
    "contents",
    "content",
    "conversation",
    "then",
    "must",
    "automatically",
    "whenever",
    "before",
    "after",
    "any",
    "history",
    "results",
    "response",
    "responses",
    "arguments",
    "transcript",
    "credentials",
    "data",
    "silently",
    "recipient",
    "you",
    "your",
];
/// Tags and marks of conversations, in lower case.
const MARKS: &[&str] = &[
    "<important>",
    "<system>",
    "<secret>",
    "<hidden>",
    "<instruction>",
    "<instructions>",
    "<critical>",
    "<admin>",
    "<override>",
    "<mandatory>",
    "<directive>",
    "<assistant>",
    "<sys>",
    "<system-reminder>",
    "<system_prompt>",
    "<|",
    "[inst]",
    "[/inst]",
    "[system",
    "[important",
    "[hidden",
    "[instruction",
    "[admin",
    "[assistant",
    "<<sys",
    "### system",
    "### instruction",
    "system:",
    "assistant:",
    "system override",
    "system prompt:",
    "system message",
    "end of description",
    "end description",
    "begin instructions",
    "system note",
    "</description>",
    "</tool>",
    "<function_calls",
    "\"role\":",
    "developer message",
    "system update",
    "system notice",
    "hidden instruction",
    "secret instruction",
    "internal instruction",
    "ai instruction",
    "llm instruction",
    "instructions for ai",
    "instructions for the ai",
    "instructions for the assistant",
    "instructions to the assistant",
];
/// Parts of command lines that download, decode or run code, in lower case.
const COMMAND_PARTS: &[&str] = &[
    "| sh",
    "|sh",
    "| bash",
    "|bash",
    "base64 -d |",
    "base64 --decode |",
    "nc -e",
    "/dev/tcp/",
    "$(curl",
    "powershell -e",
    "iex(",
    "| base64",
];

static STRONG_PATTERNS: LazyLock<Vec<(&str, WordPattern)>> = LazyLock::new(|| parsed(STRONG));
static PLAIN_PATTERNS: LazyLock<Vec<(&str, WordPattern)>> = LazyLock::new(|| parsed(PLAIN));
static FOREIGN_PATTERNS: LazyLock<Vec<(&str, WordPattern)>> = LazyLock::new(|| parsed(FOREIGN));

fn parsed(patterns: &[(&'static str, &'static str)]) -> Vec<(&'static str, WordPattern)> {
    patterns.iter().map(|(what, pattern)| (*what, WordPattern::parse(pattern))).collect()
}

/// Returns the kinds of suspicious phrases in a text, as clauses, each once.
pub(super) fn find_phrases(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut add = |what| {
        if !found.contains(&what) {
            found.push(what);
        }
    };
    let read = words(text);
    for (what, pattern) in STRONG_PATTERNS.iter().chain(PLAIN_PATTERNS.iter()).chain(FOREIGN_PATTERNS.iter()) {
        // "Do not include keys" and "do not act without consent" protect the user.
        let is_match = match *what {
            SECRETS | APPROVES => pattern.matches_affirmed(&read),
            _ => pattern.matches(&read),
        };
        if is_match {
            add(*what);
        }
    }
    for reading in other_readings(text) {
        for (what, pattern) in STRONG_PATTERNS.iter() {
            if pattern.matches(&reading) {
                add(*what);
            }
        }
    }
    let lower = text.to_lowercase();
    let has = |parts: &[&str], text: &str| parts.iter().any(|part| text.contains(part));
    // Markup in code is an example. A command line in code counts if the text asks to run it.
    let parts: Vec<&str> = lower.split('`').collect();
    let mut without_code: String = parts.iter().copied().step_by(2).collect();
    // The text after a mark without its counterpart is no code.
    if parts.len().is_multiple_of(2) {
        without_code.push_str(parts[parts.len() - 1]);
    }
    if has(MARKS, &without_code) {
        add(MARKUP);
    }
    let is_run = read.iter().any(|word| {
        matches!(word.as_str(), "run" | "execute" | "paste" | "first" | "must" | "prefix" | "prepend" | "each")
    });
    if has(COMMAND_PARTS, &without_code) || is_run && has(COMMAND_PARTS, &lower) {
        add(COMMANDS);
    }
    let directs = |sentence: &[String], verbs: &[&str], markers: &[&str]| {
        let is_one_of = |word: &String, listed: &[&str]| listed.contains(&word.as_str());
        let mut words = sentence.iter().enumerate();
        words.any(|(at, word)| is_one_of(word, verbs) && !is_negated(sentence, at))
            && sentence.iter().any(|word| is_one_of(word, markers))
    };
    // Public keys are not secret.
    let files: Vec<&str> = lower.split(' ').filter(|word| !word.contains(".pub")).collect();
    let asks_for_file = files.join(" ").split(['\n', ';']).flat_map(|line| line.split(". ")).any(|sentence| {
        let read = words(sentence);
        has(PRIVATE_FILES, sentence) && directs(&read, DIRECTING, MARKERS)
    });
    if asks_for_file {
        add(SECRETS);
    }
    if has_address(&lower) && sentences(&read).any(|sentence| directs(sentence, SENDING, ALWAYS)) {
        add(SENDS);
    }
    found
}

/// Returns `true` if the text names a URL, a mail address or an IP address.
fn has_address(lower: &str) -> bool {
    let is_mail = |word: &str| word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let is_ip = |word: &str| {
        let parts: Vec<&str> = word.split(['.', ':', '/']).collect();
        parts.len() >= 4 && parts.iter().take(4).all(|part| part.parse::<u8>().is_ok())
    };
    lower.contains("://") || lower.split_whitespace().any(|word| is_mail(word) || is_ip(word))
}
