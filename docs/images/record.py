#!/usr/bin/env python3
"""Records a session of the command line as `terminal.svg`, the picture of the README.

    docs/images/record.py target/release/toolstead

The commands run in a pseudo terminal with a new home and a new workspace, both of which are temporary.
They need `curl`, and a system on which `toolstead doctor` reports sandbox tier 1.
The picture is a still, so that every viewer shows all of it.
"""

import fcntl, html, os, pty, re, select, shlex, struct, sys, tempfile, termios
from pathlib import Path

COLUMNS, ROWS = 104, 60
CHARACTER, LINE, MARGIN = 8.43, 18, 18
SECONDS = 60

# A command, and the key that answers its approval request.
SESSION = [
    ("""toolstead call edit_file '{"path": "main.rs", "old_text": "hello", "new_text": "goodbye"}'""", "o"),
    ("""toolstead call read_file '{"path": "/etc/shadow"}'""", None),
    ("""toolstead --allow 'Bash(curl *)' call bash '{"command": "curl -sS https://example.com"}'""", None),
    ("toolstead executions list", None),
]

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
STYLE = """\
text { fill: #d4d8de }
.prompt { fill: #56d364 } .command { fill: #ffffff; font-weight: bold } .bold { font-weight: bold } .dim { fill: #9aa4b0 }
.red { fill: #ff8f87 } .green { fill: #56d364 } .yellow { fill: #e3b341 } .blue { fill: #79c0ff }
.magenta { fill: #d2a8ff } .cyan { fill: #56d4dd }"""
COLORS = ["dim", "red", "green", "yellow", "blue", "magenta", "cyan", ""]


def run(command, answer, environment, folder):
    """Runs a command in a pseudo terminal and returns its output. The answer is typed at the first question."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.chdir(folder)
        words = shlex.split(command)
        os.execvpe(words[0], words, environment)
    output = b""
    while True:
        if not select.select([terminal], [], [], SECONDS)[0]:
            sys.exit(f"`{command}` printed nothing for {SECONDS} seconds after:\n{output.decode()}")
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux reports the end of a terminal as an error.
            part = b""
        if not part:
            os.waitpid(child, 0)
            # A line of progress that was erased is not part of the final screen.
            return re.sub(r"[^\n]*\r\x1b\[K", "", output.decode().replace("\r\n", "\n"))
        output += part
        if answer and output.endswith(b"? "):
            os.write(terminal, answer.encode())
            answer = None


def spans(text):
    """Yields the visible pieces of a text with the class of their color. Other control sequences are dropped."""
    style = ""
    for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", text.expandtabs(8)):
        if not piece.startswith("\x1b"):
            yield style, piece
        elif piece.endswith("m"):
            for code in map(int, re.findall(r"\d+", piece) or ["0"]):
                if code in (0, 39):
                    style = ""
                elif code in (1, 2):
                    style = "bold" if code == 1 else "dim"
                elif code // 10 in (3, 9) and code % 10 < len(COLORS):
                    style = COLORS[code % 10]


class Screen:
    """What the terminal shows: texts with their row, column and style."""

    def __init__(self):
        self.row, self.column, self.texts = 0, 0, []

    def show(self, style, text):
        for part in re.findall(r"\n|[^\n]+", text):
            if part == "\n":
                self.row, self.column = self.row + 1, 0
                continue
            while part:
                if self.column == COLUMNS:
                    self.row, self.column = self.row + 1, 0
                shown, part = part[: COLUMNS - self.column], part[COLUMNS - self.column :]
                if shown.strip():
                    indent = len(shown) - len(shown.lstrip())
                    self.texts.append((self.row, self.column + indent, style, shown.strip()))
                self.column += len(shown)

    def svg(self):
        width, height = round(COLUMNS * CHARACTER) + 2 * MARGIN, self.row * LINE + 2 * MARGIN
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="{FONT}" font-size="14">',
            f"<style>\n{STYLE}\n</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="#161b22" stroke="#57606a"/>',
        ]
        for row, column, style, text in self.texts:
            x, y, length = MARGIN + column * CHARACTER, MARGIN + row * LINE + 13, len(text) * CHARACTER
            name = f' class="{style}"' if style else ""
            # `textLength` aligns columns in every font.
            lines.append(
                f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}"{name} xml:space="preserve">'
                f"{html.escape(text, quote=False)}</text>"
            )
        return "\n".join([*lines, "</svg>\n"])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        home, workspace = Path(folder, "home"), Path(folder, "app")
        home.mkdir()
        workspace.mkdir()
        Path(workspace, "main.rs").write_text('fn main() {\n    println!("hello");\n}\n')
        path = f"{program.parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8", "TZ": "UTC"}
        screen = Screen()
        for command, answer in SESSION:
            if screen.row > 0:
                screen.show("", "\n")
            screen.show("prompt", "$ ")
            screen.show("command", command + "\n")
            output = run(command, answer, environment, workspace).lstrip("\n")
            for style, text in spans(output.replace(str(workspace), "/srv/app").replace(str(home), "/home/me")):
                screen.show(style, text)
    Path(__file__).with_name("terminal.svg").write_text(screen.svg())


main()
