"""Starts a save, cuts the power of its file system after a while, and repeats what the saver said."""

import fcntl
import os
import struct
import subprocess
import sys
import time

# EXT4_IOC_SHUTDOWN with NOLOGFLUSH: what has not reached the medium by now never will.
SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, 2

place, delay, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
folder = os.open(place, os.O_RDONLY)
saver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
saver.stdout.readline()
start = time.perf_counter()
if delay >= 0:
    while time.perf_counter() - start < delay:
        pass
    fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
said = saver.stdout.read().strip()
print(said.splitlines()[-1] if said else "nothing")
print(time.perf_counter() - start)
