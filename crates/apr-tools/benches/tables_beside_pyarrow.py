"""`apr predict` on a large Parquet file beside pyarrow and NumPy with the same linear model.

    python tables_beside_pyarrow.py --apr PATH [--rows 32000000]

Needs NumPy and pyarrow. Writes a file of 16 columns of 32-bit floats (row groups of 500,000 rows, zstd) to a temporary folder, trains a linear
regression on a small table, and prints processor time and peak of memory of both. `apr` writes a line of text for each row, the peer reads
batches of 8,192 rows and writes 32-bit floats.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

WIDTH = 16
GROUP = 500_000

PEER = """
import sys
import numpy as np
import pyarrow.parquet as pq

weights, constant = np.arange(1, 17, dtype="f4"), np.float32(3)
with open(sys.argv[2], "wb") as out:
    for batch in pq.ParquetFile(sys.argv[1]).iter_batches(8192):
        x = np.column_stack([column.to_numpy() for column in batch.columns])
        out.write((x @ weights + constant).astype("f4").tobytes())
"""


def measured(command):
    """Processor seconds and peak of memory in MB of a command."""
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{command} failed: {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def write(folder, rows):
    """Writes the large table and a small one that its model is trained on."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"f{column}" for column in range(WIDTH)]
    random = np.random.default_rng(1)
    x = random.standard_normal((200, WIDTH)).astype("f4")
    y = x @ np.arange(1, WIDTH + 1) + 3
    header = ",".join([*names, "y"])
    np.savetxt(folder / "small.csv", np.column_stack([x, y]), delimiter=",", header=header, comments="")
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pq.ParquetWriter(folder / "large.parquet", schema, compression="zstd") as writer:
        for begin in range(0, rows, GROUP):
            count = min(GROUP, rows - begin)
            columns = [pa.array(random.standard_normal(count).astype("f4")) for _ in names]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=GROUP)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apr", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=32_000_000)
    parser.add_argument("--write", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        write(args.write, args.rows)
        return
    apr = args.apr.resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        # Another process: the peak of memory of a child is at least that of the process that starts it.
        subprocess.run([sys.executable, __file__, "--write", folder, "--rows", str(args.rows)], check=True)
        model, path = folder / "model.apr", folder / "large.parquet"
        small = ["--data", folder / "small.csv", "--target", "y", "-o", model]
        subprocess.run([apr, "train", "linear-regression", *small], check=True, capture_output=True)
        print(f"{args.rows} rows, {path.stat().st_size / 1e9:.2f} GB")
        commands = {
            "apr predict": [apr, "predict", model, "-i", path, "-o", folder / "apr.txt"],
            "pyarrow and NumPy": [sys.executable, "-c", PEER, path, folder / "peer.txt"],
        }
        for name, command in commands.items():
            seconds, memory = measured(command)
            print(f"{name}: {seconds:.1f} s of processor time, {args.rows / seconds / 1e6:.2f} million rows a second, {memory:.0f} MB")


if __name__ == "__main__":
    main()
