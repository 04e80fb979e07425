#!/usr/bin/env python3
"""Runs a command at a terminal of its own, and presses Enter whenever it waits: a person who agrees to all that is proposed.

    at_terminal.py COMMAND ARG…

What the command writes goes to stdout, and its exit code is ours.
"""

import os
import pty
import select
import sys

QUIET_SECONDS = 0.2  # a command that said something and then stays silent for so long waits for an answer
AGAIN_SECONDS = 1.0  # what was pressed before a question was whole may have been passed over


def main() -> int:
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    patience = None
    while True:
        readable, _, _ = select.select([terminal], [], [], patience)
        if not readable:
            os.write(terminal, b"\r")
            patience = AGAIN_SECONDS
            continue
        try:
            written = os.read(terminal, 65536)
        except OSError:  # Linux's way to say that the last one at the terminal has gone
            written = b""
        if not written:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(1, written)
        patience = QUIET_SECONDS


if len(sys.argv) < 2:
    sys.exit(__doc__)
sys.exit(main())
