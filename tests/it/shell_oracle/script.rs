//! Random scripts, from a grammar and from slips of the keyboard.

/// The logging programs. Those that start with `n` fail.
pub(super) const STUBS: &[&str] = &["bar", "foo", "good", "no", "nope", "rm", "zap"];

/// The logging program that starts what `EDITOR` says.
pub(super) const EDIT: &str = "edit";

/// A small random number generator (splitmix64): a seed is a script, on every machine.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// A script. How wild it is differs, so that many are understood.
pub(super) fn script(random: &mut Random) -> String {
    let wild = [0, 0, 3, 10, 40][random.below(5)];
    let mut writer = Writer { random, wild };
    let mut text = writer.statements(3);
    if text.contains('&') && writer.random.percent(50) {
        text.push_str("\nwait");
    }
    if random.percent(25) {
        for _ in 0..1 + random.below(3) {
            slip(random, &mut text);
        }
    }
    text
}

/// Changes one place of the text.
fn slip(random: &mut Random, text: &mut String) {
    const PIECES: &[&str] = &[
        ";", "&", "|", "(", ")", "<", ">", "$", "`", "'", "\"", "\\", "{", "}", "#", "!", "\n", " ", "*", "=", "\\\n",
        "$(", "))", "<<", "zap", "&&", "||", " zap ", ";zap;", "[", "]", "0", "2>", "!", ":", "~", "-", "$'", "$\"",
        "\t", "@(", "((", "<<<", ",",
    ];
    let mut characters: Vec<char> = text.chars().collect();
    let at = random.below(characters.len() + 1);
    match random.below(4) {
        0 if at < characters.len() => {
            characters.remove(at);
        }
        1 if at < characters.len() => {
            let other = random.below(characters.len());
            characters.swap(at, other);
        }
        _ => {
            let piece: Vec<char> = random.pick(PIECES).chars().collect();
            characters.splice(at..at, piece);
        }
    }
    *text = characters.into_iter().collect();
}

struct Writer<'r> {
    random: &'r mut Random,
    /// Percentage of choices of the kind that is hard to analyse.
    wild: usize,
}

impl Writer<'_> {
    fn is_wild(&mut self) -> bool {
        let wild = self.wild;
        self.random.percent(wild)
    }

    fn statements(&mut self, depth: usize) -> String {
        let mut text = self.statement(depth);
        for _ in 0..self.random.below(3) {
            let separator = self.random.pick(&[
                "; ",
                ";",
                "\n",
                " && ",
                "&&",
                " || ",
                " | ",
                "|",
                " |& ",
                " & ",
                " \\\n && ",
                " # zap\n",
                "\n\n",
                " |\n",
                " &&\n",
            ]);
            // A here-document ends at its line's end.
            let separator = if text.contains("<<") && !text.ends_with('\n') { "\n" } else { separator };
            let separator = if text.ends_with('\n') { "" } else { separator };
            let next = self.statement(depth);
            text = format!("{text}{separator}{next}");
        }
        text
    }

    /// A statement for a place where a here-document would not end.
    fn inline(&mut self, depth: usize) -> String {
        let text = self.simple(depth);
        if text.contains("<<") { "foo inline".into() } else { text }
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.percent(55) {
            return self.simple(depth);
        }
        let depth = depth - 1;
        let end = |text: &str| if text.ends_with('\n') { "" } else { ";" };
        match self.random.below(16) {
            0 => format!("({})", self.statements(depth) + "\n"),
            1 => {
                let body = self.statements(depth);
                format!("{{ {body}{} }}", end(&body))
            }
            2 => {
                let (condition, body) = (self.inline(depth), self.statements(depth));
                format!("if {condition}; then {body}{} fi", end(&body))
            }
            3 => {
                let (condition, body, other) = (self.inline(depth), self.inline(depth), self.inline(depth));
                format!("if {condition}\nthen {body}\nelif {other}; then zap\nelse\n{other}\nfi")
            }
            4 => {
                let (words, body) = (self.arguments(depth), self.statements(depth));
                format!("for v in a {words}; do {body}{} done", end(&body))
            }
            5 => {
                let (condition, body) = (self.inline(depth), self.statements(depth));
                let keyword = self.random.pick(&["while", "until"]);
                format!("{keyword} {condition}; do {body}{} break; done", end(&body))
            }
            6 => {
                let (value, body, other) = (self.argument(depth), self.inline(depth), self.inline(depth));
                let pattern = self.random.pick(&["a", "*", "a|b", "(x", "'a b'", "[ab]*", "\"$v\""]);
                format!("case {value} in {pattern}) {body};; *) {other};; esac")
            }
            7 => format!("! {}", self.inline(depth)),
            8 => {
                let target = self.random.pick(&["sub", "'sub'", "./sub", "missing", "$v", "-"]);
                format!("cd {target}{}{}", self.random.pick(&[" && ", "; ", "\n"]), self.statement(depth))
            }
            9 => format!(
                "{} > {}",
                self.inline(depth),
                self.random.pick(&["out", "'o t'", "/dev/null", "$v", "sub/out"])
            ),
            10 => format!("{}=({} b)", self.random.pick(&["a", "list"]), self.argument(depth)),
            11 => {
                let test = self.random.pick(&[
                    "[ a = a ]",
                    "[[ a == a* ]]",
                    "[ -f out ]",
                    "test -n \"$v\"",
                    "[[ -n $v && a < b ]]",
                    "[[ a =~ ^a$ ]]",
                ]);
                format!("{test} && {}", self.inline(depth))
            }
            12 => {
                let body = self.inline(depth);
                match self.random.below(10) {
                    5 => format!("foo -m \"$(cat <<'EOF'\na \"$({body})\" 'b)\nEOF\n)\" && {body}"),
                    6 => format!("good && foo x - <<'EOF' && {body}\nbody\nEOF\n"),
                    7 => format!("foo -zap<<EOF\nbody\nEOF\n{body}"),
                    8 => format!("foo > out <<< x y; {body}"),
                    9 => format!("cat <({body}) < <({body})"),
                    0 => format!("foo x <<EOF\nbody $v\nEOF\n{body}"),
                    1 => format!("foo x <<'EOF'\nbody $({body})\nEOF\n"),
                    2 => "foo x <<EOF | zap\nbody\nEOF\n".to_owned(),
                    3 => format!("foo <<-E a b > out\n\tbody\n\tE\n{body}"),
                    _ => format!("foo <<E && {body}\nbody\nE\n"),
                }
            }
            13 if self.is_wild() => self.wild(depth),
            14 if self.is_wild() => self.wild(depth),
            _ => {
                let (one, two) = (self.inline(depth), self.inline(depth));
                format!("{one} | {two}")
            }
        }
    }

    /// Writes a script that cannot be analysed from the syntax tree alone.
    fn wild(&mut self, depth: usize) -> String {
        let inner = self.inline(depth.saturating_sub(1)).replace('\'', "");
        let stub = self.random.pick(STUBS);
        match self.random.below(46) {
            40 => format!("xargs env <<< '{stub} x'"),
            41 => format!("xargs -n1 timeout 5 <<< {stub}"),
            42 => format!("xargs sh -c <<< {stub}"),
            43 => format!("xargs -I{{}} sh -c 'foo {{}}' <<< ';{stub}'"),
            44 => format!("touch ';{stub}'; find . -exec sh -c 'foo {{}}' ';'"),
            45 => format!("env sh <<< '{inner}'"),
            0 => format!("eval '{inner}'"),
            1 => format!(". /dev/stdin <<< '{inner}'"),
            2 => format!("trap '{inner}' EXIT"),
            3 => format!("exec {stub}"),
            4 => format!("command {stub} x"),
            5 => format!("builtin eval '{inner}'"),
            6 => format!("printf -v 'a[$({inner})]' x"),
            7 => format!("read 'a[$({inner})]' <<< x"),
            8 => format!("test -v 'a[$({inner})]'"),
            9 => format!("[[ -v 'a[$({inner})]' ]]"),
            10 => format!("unset 'a[$({inner})]'"),
            11 => format!("let 'a[$({inner})]=1'"),
            12 => format!("declare 'a[$({inner})]=1'"),
            13 => format!("hash -p $PATH/{stub} good; good"),
            14 => format!("shopt -s expand_aliases\nalias good={stub}\ngood"),
            15 => format!("mapfile -C {stub} -c 1 a <<< x"),
            16 => format!("compgen -C {stub} x"),
            17 => format!("PS4='$({inner})'; set -x; :"),
            18 => format!("x='$({inner})'; : ${{x@P}}"),
            19 => format!("time {inner}"),
            20 => format!("coproc {stub} x; wait"),
            21 => format!("bash -c '{inner}'"),
            22 => format!("sh -c '{inner}' x y"),
            23 => format!("xargs {stub} y <<< x"),
            24 => format!("env A=1 {stub} x"),
            25 => format!("find . -exec {stub} {{}} ';'"),
            26 => format!("bash <<< '{inner}'"),
            27 => format!("echo '{inner}' | bash"),
            28 => format!("f() {{ {inner}; }}; f"),
            29 => format!("x={stub}; $x y"),
            30 => format!("{{{stub},x}}"),
            31 => format!("$(echo {stub}) x"),
            32 => format!("(( a[$({inner})] ))"),
            33 => format!("x='a[$({inner})]'; echo $((x))"),
            34 => {
                let test = self.random.pick(&[
                    "x -eq 1",
                    "(-v $x)",
                    "\"\"||-v $x",
                    "a&&-v $x",
                    "!(-v $x)",
                    "a -nt b ||-R $x",
                    "0 -eq x&&a",
                    "a && ($x -eq 0)",
                ]);
                format!("x='a[$({inner})]'; [[ {test} ]]")
            }
            35 => format!("set -- {stub} x; \"$@\""),
            36 => format!("timeout 5 {stub} x"),
            37 => format!("nice -n 1 {stub} x"),
            38 => format!("foo <<E\n$({inner})\nE\n"),
            _ => format!("env -i $PATH/{stub} x | xargs bash -c '{inner}'"),
        }
    }

    fn simple(&mut self, depth: usize) -> String {
        if self.is_wild() {
            return self.wild(depth);
        }
        let stub = self.random.pick(STUBS);
        let assignment = match self.random.below(20) {
            0 => "LANG=C ".to_owned(),
            1 => format!("v={} ", self.argument(depth)),
            2 => "A=1 ".to_owned(),
            _ => String::new(),
        };
        let wrapper = self.random.pick(&[
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "time ",
            "timeout 5 ",
            "nohup ",
            "nice -n 2 ",
            "env ",
            "> out ",
        ]);
        let name = match self.random.below(12) {
            0 => format!("'{stub}'"),
            1 => format!("\"{stub}\""),
            2 => format!("{}''{}", &stub[..1], &stub[1..]),
            3 => format!("\\{stub}"),
            4 => format!("$'{stub}'"),
            5 => format!("$'\\x{:02x}{}'", stub.as_bytes()[0], &stub[1..]),
            _ => stub.to_owned(),
        };
        let arguments = self.arguments(depth);
        let redirection = self.random.pick(&[
            "",
            "",
            "",
            "",
            "",
            "",
            " 2>&1",
            " > out",
            " 2>/dev/null",
            " < /dev/null",
            " >> out more",
            " &> out",
            " >| out",
            " <<< word",
            " 2>&1 > out x",
        ]);
        match self.random.below(36) {
            30 | 31 => self.editor(depth),
            32 | 33 => self.files(),
            34 => self.pattern().to_owned(),
            0 => format!("v={}", self.argument(depth)),
            1 => format!("echo {arguments}{redirection}"),
            2 => format!("export LANG=C; {name}"),
            3 => format!("printf '%s' {arguments}"),
            _ => format!("{assignment}{wrapper}{name} {arguments}{redirection}"),
        }
    }

    /// A variable that says what a later program starts.
    fn editor(&mut self, depth: usize) -> String {
        const VALUES: &[&str] =
            &["zap", "'zap x'", "\"zap 'a b'\"", "'foo a; zap'", "zap\\ y", "\"$v\"", "'zap $v'", "$'zap b'", "''"];
        let (value, arguments) = (self.random.pick(VALUES), self.arguments(depth));
        let stub = self.random.pick(STUBS);
        match self.random.below(16) {
            0 | 1 => format!("EDITOR={value} edit {arguments}"),
            2 => format!("EDITOR={value} nohup edit {arguments}"),
            3 => format!("EDITOR={value}; export EDITOR; edit {arguments}"),
            4 => format!("export EDITOR={value}; edit {arguments}"),
            5 => format!("export v EDITOR={value} && edit"),
            6 => format!("export \"EDITOR={stub} x\"\nedit {arguments}"),
            7 => format!("export 'EDITOR={stub}'; edit"),
            8 => format!("declare -x EDITOR={value}; edit"),
            9 => format!("export EDITOR=; for EDITOR in {value} {stub}; do edit; done"),
            10 => format!("export EDITOR; read -r EDITOR <<< {value}; edit"),
            11 => format!("env EDITOR={value} edit {arguments}"),
            12 => format!("export EDITOR={}; EDITOR+={}; edit", &stub[..1], &stub[1..]),
            13 => format!("export EDITOR; printf -v EDITOR {value}; edit"),
            14 => format!("export EDITOR; : ${{EDITOR:={stub}}}; edit"),
            _ => format!("v={value}; export EDITOR=$v; edit"),
        }
    }

    /// A program that changes the files that it names.
    fn files(&mut self) -> String {
        const NAMES: &[&str] =
            &["out", "sub/out", "'o t'", "made", "sub/made", "./out", "o\\ t", "\"a;b\"", "mad*", "sub"];
        let (one, two) = (self.random.pick(NAMES), self.random.pick(NAMES));
        match self.random.below(8) {
            0 => format!("touch {one} {two}"),
            1 => format!("touch -c {one} -- {two}"),
            2 => format!("mkdir -p sub/new && touch {one}"),
            3 => format!("touch {one} && cp {one} {two}"),
            4 => format!("touch {one}; mv {one} {two}"),
            5 => format!("cd sub && touch {one}"),
            6 => format!("A=1 touch {one}; cp -r {one} {two}"),
            _ => format!("sh -c 'touch {}'", one.replace('\'', "")),
        }
    }

    /// Patterns that become options, and others that do not.
    fn pattern(&mut self) -> &'static str {
        self.random.pick(&[
            "sort a *made",
            "sort -u --o*",
            "sort [-]-o*",
            "sort out ?-o*",
            "sort sub/*",
            "sort {a,--output=made}",
            "touch made1; cp made1 *sub",
            "touch made1; mv made1 ?-t*",
            "touch made1; cp made1 s*",
        ])
    }

    fn arguments(&mut self, depth: usize) -> String {
        let count = self.random.below(4);
        (0..count).map(|_| self.argument(depth)).collect::<Vec<_>>().join(" ")
    }

    fn argument(&mut self, depth: usize) -> String {
        const FIXED: &[&str] = &[
            "a",
            "b",
            "--opt",
            "-x",
            "a=b",
            "'; zap'",
            "\"a;b\"",
            "\\;",
            "'a b'",
            "a#b",
            "x/y",
            "\"a\\\"; zap \\\"\"",
            "$'a\\'; zap'",
            "a\\ b",
            "''",
            "{}",
            "a,b",
            "@",
            "%",
            "\"it's\"",
            "'\"'",
            "-",
            "--",
            "=",
            "==",
            "a:b",
            "]",
            "a\\\\",
            "'\\'",
            "\"\\\\\"",
            "\"a\nb\"",
            "'# c'",
            "$",
            "a$",
            "^",
            "!",
            "1",
            "12x",
            "+x",
            "a\\\nb",
            "\\\n",
            "x{y",
            "\"`\"\\`\"",
            "\\$v",
            "\"\\$(zap)\"",
            "'$(zap)'",
            "\"a'b\"",
            "$'\\t'",
        ];
        let fixed = !self.random.percent(12) || depth == 0;
        if fixed {
            return self.random.pick(FIXED).replace("\"`\"\\`\"", "a\\`b");
        }
        let depth = depth - 1;
        match self.random.below(if self.wild > 0 { 18 } else { 8 }) {
            0 => format!("$({})", self.inline(depth)),
            1 => format!("\"$({})\"", self.inline(depth)),
            2 => format!("\"x $({}) y\"", self.statements(depth).replace("<<", "")),
            3 => "$v".to_owned(),
            4 => "\"$v\"".to_owned(),
            5 => "${v:-a}".to_owned(),
            6 => format!("\"${{v}}$({})\"", self.inline(depth)),
            7 => "*".to_owned(),
            8 => format!("`{}`", self.inline(depth)),
            9 => format!("\"`{}`\"", self.inline(depth)),
            10 => format!("${{v:-$({})}}", self.inline(depth)),
            11 => format!("$((1 + $({} >&2; echo 1)))", self.inline(depth)),
            12 => format!("<({})", self.inline(depth)),
            13 => "{a,b}".to_owned(),
            14 => format!("$((a[$({})]))", self.inline(depth)),
            15 => "~".to_owned(),
            16 => format!("${{v/$({})/x}}", self.inline(depth)),
            _ => format!(">({})", self.inline(depth)),
        }
    }
}
