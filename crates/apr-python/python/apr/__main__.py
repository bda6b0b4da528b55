"""`python -m apr`: the program `apr`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import NoReturn

from ._program import MISSING, find, run_cli

# The program's own, for a command line that asks for what cannot be.
_USAGE = 2


def main() -> NoReturn:
    """Becomes the program, with the arguments of this process. Streams, signals and exit codes are the program's."""
    args = ["apr", *sys.argv[1:]]
    if run_cli is not None:
        _run_here(args)
    program = find()
    if program is None:
        print(f"error[cli-usage]: {MISSING}", file=sys.stderr)
        sys.exit(_USAGE)
    if os.name == "posix":
        os.execv(program, args)
    sys.exit(subprocess.run([program, *args[1:]], check=False).returncode)


def _run_here(args: list[str]) -> NoReturn:
    assert run_cli is not None
    # A file opened under the number of a closed stream would get what is meant for the stream.
    while (place := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(place)
    # Ctrl-C ends the program there and then; Python's handler would wait until it is done.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_cli(args))


if __name__ == "__main__":
    main()
