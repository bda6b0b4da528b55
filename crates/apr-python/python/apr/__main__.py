"""The program `apr`: the command of this name, and `python -m apr`."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from ._native import run_cli


def main() -> NoReturn:
    """Runs the program with the arguments of this process. Streams, signals and exit codes are the program's."""
    # A file opened under the number of a closed stream would get what is meant for the stream.
    while (place := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(place)
    # What a program is started with: Python's handler would wait until the program is done.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_cli(["apr", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
