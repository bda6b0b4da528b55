"""Runs `apr` against an object store on this machine, and compares with what another client sees.

usage: judge_cloud.py APR SCRATCH STORE [PROGRAM]

STORE is `seaweedfs` or `moto`, seen by boto3, `seaweedfs-gcs`, which is SeaweedFS behind an adapter for `gs://`, `azurite`, seen by
azure-storage-blob, or `gcs`, which is fake-gcs-server, seen by its JSON API: PROGRAM is that of the last two. Prints one line for each check and
fails at the first that is not as it should be. The store listens on loopback alone and is ended by its process id.
"""

import base64
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import cloud_google
import cloud_stores
from cloud_stores import BUCKET

APR, SCRATCH, STORE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
KINDS = {"azurite": cloud_stores.Azure, "gcs": cloud_google.FakeGcs, "seaweedfs-gcs": cloud_google.SeaweedAsGoogle}
KIND = KINDS.get(STORE, cloud_stores.S3)
SCHEME = KIND.scheme
MIB = 1 << 20
ODD = "n\u00f6te 1#%.txt"

# All that was printed: no secret may be in it.
printed = []


class Proxy:
    """Passes bytes on, and calls `hook` before the request of this number for a path; without one, its answer is lost."""

    def __init__(self, port, path, number, hook=None, method="GET"):
        self.target, self.request, self.number, self.hook = port, f"{method} {path}".encode(), number, hook
        self.seen, self.lock = 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            lost = threading.Event()
            threading.Thread(target=self.copy, args=(near, far, True, lost), daemon=True).start()
            threading.Thread(target=self.copy, args=(far, near, False, lost), daemon=True).start()

    def copy(self, source, sink, is_request, lost):
        try:
            while chunk := source.recv(1 << 16):
                if is_request and chunk.startswith(self.request):
                    with self.lock:
                        self.seen += 1
                        if self.seen == self.number:
                            self.hook() if self.hook else lost.set()
                if not is_request and lost.is_set():
                    break
                sink.sendall(chunk)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


def environment(store, **changed):
    known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HF_", "GOOGLE_", "AZURE_"))}
    known |= store.variables | {store.ENDPOINT_VAR: f"http://127.0.0.1:{store.port}{store.root}", "HOME": str(SCRATCH)} | changed
    return {name: value for name, value in known.items() if value is not None}


def start(store, *words, **changed):
    words = [str(APR), *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=SCRATCH, env=environment(store, **changed), stdout=pipe, stderr=pipe, text=True)


class Ran:
    def __init__(self, process, what):
        self.stdout, self.stderr = process.communicate(timeout=300)
        self.exit, self.what = process.returncode, what
        printed.extend((self.stdout, self.stderr))

    def expect(self, code, text=""):
        if self.exit != code or text not in self.stdout + self.stderr:
            sys.exit(f"{self.what}: exit {self.exit}, not {code} with `{text}`\n{self.stdout}{self.stderr}")
        return self


def apr(store, *words, expected=0, text="", **changed):
    return Ran(start(store, *words, **changed), " ".join(map(str, words))).expect(expected, text)


def check(condition, what):
    if not condition:
        sys.exit(f"{what}: not so")


def url(key):
    return f"{SCHEME}://{BUCKET}/{key}"


def send(store, folder, key):
    """The files of a folder, by the client of a store that takes nothing from `apr`."""
    if store.writes:
        apr(store, "put", folder, url(key))
        return
    for path in (SCRATCH / folder).rglob("*"):
        if path.is_file():
            store.put(f"{key}/{path.relative_to(SCRATCH / folder)}", path.read_bytes())


def model(path, tensors, seed=1):
    """A safetensors file of `tensors`: names with counts of F32 values, small and finite."""
    header, offset = {"__metadata__": {"licence": "MIT"}}, 0
    for name, (rows, columns) in tensors.items():
        end = offset + 4 * rows * columns
        header[name] = {"dtype": "F32", "shape": [rows, columns], "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    values = random.Random(seed).randbytes(1 << 16)
    # Exponents of small numbers.
    values = bytes(byte if idx % 4 != 3 else 0x3C | (byte & 0x80) for idx, byte in enumerate(values))
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        while offset > 0:
            out.write(values[: min(offset, len(values))])
            offset -= len(values)


SMALL = {"a.weight": (32, 64), "b.weight": (64, 256), "c.bias": (1, 7)}


def reads(store):
    store.put("small.safetensors", (SCRATCH / "small.safetensors").read_bytes())
    remote = url("small.safetensors")
    for words in (["inspect"], ["tensors", "--digest"], ["check", "--values"], ["scan"]):
        local = apr(store, words[0], "small.safetensors", *words[1:])
        there = apr(store, words[0], remote, *words[1:])
        check(there.stdout.replace(url(""), "") == local.stdout, f"{words} of an object")
    stats = apr(store, "inspect", remote, "--stats").stderr
    check("1 request," in stats, f"one request for a header: {stats}")
    local, there = (apr(store, "dump", name, "b.weight", "--slice", "3").stdout for name in ("small.safetensors", remote))
    check(local == there and local, "a tensor of an object")
    apr(store, "diff", remote, "small.safetensors")


def conversions(store):
    remote = url("small.safetensors")
    for words, name in (
        (["convert", "IN", "OUT"], "out.gguf"),
        (["convert", "IN", "OUT", "--align", "64"], "aligned.safetensors"),
        (["convert", "IN", "OUT"], "arrays.npz"),
        (["quantize", "IN", "-o", "OUT", "--type", "q8_0"], "quantized.gguf"),
        (["export", "IN", "-o", "OUT", "--format", "gguf"], "exported.gguf"),
    ):
        named = lambda source, sink: [{"IN": source, "OUT": sink}.get(word, word) for word in words]
        apr(store, *named("small.safetensors", name))
        apr(store, *named(remote, f"in-{name}"))
        apr(store, *named("small.safetensors", url(f"out/{name}")))
        apr(store, *named(remote, url(f"both/{name}")))
        expected = (SCRATCH / name).read_bytes()
        # The provenance of a quantized file names its input.
        if words[0] != "quantize":
            check((SCRATCH / f"in-{name}").read_bytes() == expected, f"{words} in")
            check(store.get(f"both/{name}") == expected, f"{words} in and out")
        check(store.get(f"out/{name}") == expected, f"{words} out")
        again = named("small.safetensors", url(f"out/{name}"))
        apr(store, *again, expected=2, text="rm-exists")
        apr(store, *again, "--force")
        check(store.get(f"out/{name}") == expected, f"{words} out again")
    apr(store, "convert", "small.safetensors", url("dry.gguf"), "--dry-run")
    check(not store.has("dry.gguf"), "a dry run writes nothing")
    # What fails in the middle leaves nothing.
    apr(store, "convert", "damaged.safetensors", url("damaged.gguf"), expected=3)
    check(not store.has("damaged.gguf") and not store.uploads(), "a failed conversion leaves nothing")


def multipart(store):
    for name, parts in (("long.safetensors", 4), ("exact.bin", 2)):
        ran = apr(store, "put", name, url(f"parts/{name}"), "--json")
        report, content = json.loads(ran.stdout), (SCRATCH / name).read_bytes()
        check(store.get(f"parts/{name}") == content, f"{name} in parts")
        check(report["files"][0]["sha256"] == hashlib.sha256(content).hexdigest(), f"digest of {name}")
        check(store.n_parts(f"parts/{name}") == parts, f"{name} has {parts} parts: {store.n_parts(f'parts/{name}')}")
    apr(store, "convert", "long.safetensors", url("parts/long.gguf"))
    apr(store, "convert", "long.safetensors", "long.gguf")
    check(store.get("parts/long.gguf") == (SCRATCH / "long.gguf").read_bytes(), "a long conversion")
    apr(store, "quantize", url("parts/long.safetensors"), "-o", url("parts/long-q4.gguf"), "--type", "q4_0")
    apr(store, "check", url("parts/long-q4.gguf"))
    check(not store.uploads(), "no upload is left")


def memory(store):
    """Of a file of 400 MiB, first, because a new process begins with the peak of this one: sent, converted to an object, and from an object to an object."""
    for words, most in (
        (["put", "huge.safetensors", url("huge.safetensors")], 160),
        (["convert", "huge.safetensors", url("huge-aligned.safetensors"), "--align", "64"], 160),
        (["convert", url("huge.safetensors"), url("huge-aligned.safetensors"), "--align", "64", "--force"], 384),
    ):
        process = start(store, *words)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        Ran(process, words[0]).expect(0)
        print(f"      {words[0]}: peak {usage.ru_maxrss // 1024} MiB")
        check(usage.ru_maxrss < most * 1024, f"memory of {words[0]}")
    for key in ("huge.safetensors", "huge-aligned.safetensors"):
        store.delete(key)


def racing(store):
    for size, tensors in (("small", SMALL), ("long", {"w": (2304, 1024)})):
        names = []
        for seed in range(6):
            names.append(f"race-{size}-{seed}.safetensors")
            model(SCRATCH / names[-1], tensors, seed)
        target = url(f"race-{size}.safetensors")
        started = [start(store, "convert", name, target) for name in names]
        ran = [Ran(process, "a racing writer") for process in started]
        winners = [name for name, each in zip(names, ran) if each.exit == 0]
        # moto, and the others of objects in parts, look for the object and complete it in two steps, between which another one may be completed.
        may_be_more = STORE == "moto" or size == "long"
        check(len(winners) == 1 or may_be_more and winners, f"{size}: one winner, not {len(winners)}")
        for each in ran:
            each.expect(0 if each.exit == 0 else 2, "" if each.exit == 0 else "rm-exists")
        content = store.get(f"race-{size}.safetensors")
        for name in winners:
            apr(store, "convert", name, f"expected-{name}")
        check(any((SCRATCH / f"expected-{name}").read_bytes() == content for name in winners), "the winner's bytes")
    check(not store.uploads(), "losers have aborted their uploads")


def killed(store):
    if STORE == "azurite":
        return
    for number, left in ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, 1)):
        target = f"killed-{number}.safetensors"
        process = start(store, "put", "huge.safetensors", url(target))
        while not store.uploads() and process.poll() is None:
            time.sleep(0.02)
        check(process.poll() is None and not store.has(target), "nothing is visible during an upload")
        process.send_signal(number)
        Ran(process, "killed").expect(-number)
        check(not store.has(target), f"nothing is visible after {signal.Signals(number).name}")
        # A store may still take the part that was sent last.
        time.sleep(0.5)
        check(len(store.uploads()) == left, f"uploads after {signal.Signals(number).name}: {len(store.uploads())}")
    for upload in store.uploads():
        store.client.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])


def changed(store):
    content = (SCRATCH / "long.safetensors").read_bytes()
    other = bytearray(content)
    other[-9] ^= 1
    for words in (["convert", url("changing.safetensors"), "changing.gguf"], ["get", url("changing.safetensors"), "-o", "changing"]):
        store.put("changing.safetensors", content)
        proxy = Proxy(store.port, f"{store.root}/{BUCKET}/changing.safetensors", 3, lambda: store.put("changing.safetensors", bytes(other)))
        ran = apr(store, *words, expected=5, text="rm-changed", **{store.ENDPOINT_VAR: proxy.url + store.root})
        proxy.close()
        check(ran.exit == 5 and not (SCRATCH / "changing.gguf").exists(), "an object that changes is refused")


def folders(store):
    apr(store, "shard", "long.safetensors", "-o", "sharded", "--max-size", "8MiB")
    (SCRATCH / "sharded/sub").mkdir()
    (SCRATCH / "sharded/sub" / ("note.txt" if STORE == "azurite" else ODD)).write_bytes(b"text")
    (SCRATCH / "sharded/empty.txt").write_bytes(b"")
    names = sorted(str(path.relative_to(SCRATCH / "sharded")) for path in (SCRATCH / "sharded").rglob("*") if path.is_file())
    first = json.loads(apr(store, "put", "sharded", url("folder"), "--json").stdout)
    check(sorted(file["path"] for file in first["files"]) == names, "all files are sent")
    check(first["files"][-1]["path"] == "model.safetensors.index.json", "an index is sent last")
    again = json.loads(apr(store, "put", "sharded", url("folder/"), "--json").stdout)
    check({file["state"] for file in again["files"]} == {"present"}, "the same files are not sent again")
    local = apr(store, "inspect", "sharded/model.safetensors.index.json", "--json").stdout
    there = apr(store, "inspect", url("folder/"), "--json").stdout
    for fact in ("tensors", "parameters", "bytes"):
        check(json.loads(local).get(fact) == json.loads(there).get(fact), f"{fact} of a prefix with an index")
    apr(store, "diff", url("folder/model.safetensors.index.json"), "long.safetensors")
    apr(store, "get", url("folder"), "-o", "copy")
    for name in names:
        check((SCRATCH / "copy" / name).read_bytes() == (SCRATCH / "sharded" / name).read_bytes(), f"a copy of {name}")
    apr(store, "get", url("folder/model.safetensors.index.json"), "-o", "copy-index")
    check(len(list((SCRATCH / "copy-index").glob("*.safetensors"))) == len(list((SCRATCH / "sharded").glob("*.safetensors"))), "shards of an index")
    # A file that differs, before others: nothing is sent.
    (SCRATCH / "sharded/empty.txt").write_bytes(b"no longer")
    (SCRATCH / "sharded/a-new.txt").write_bytes(b"new")
    apr(store, "put", "sharded", url("folder"), expected=2, text="rm-exists")
    check(not store.has("folder/a-new.txt"), "nothing is sent if a file differs")
    apr(store, "put", "sharded", url("folder"), "--exclude", "empty.txt")
    check(store.get("folder/empty.txt") == b"" and store.get("folder/a-new.txt") == b"new", "--exclude")
    apr(store, "put", "sharded", url("folder"), "--force", "--dry-run")
    check(store.get("folder/empty.txt") == b"", "a dry run sends nothing")
    apr(store, "put", "sharded", url("folder"), "--force")
    check(store.get("folder/empty.txt") == b"no longer", "--force")


def outputs(store):
    """Of the commands that write one file, beside those that convert."""
    apr(store, "keygen", "encrypt", "-o", "owner.key")
    apr(store, "seal", "long.safetensors", "-o", "long.aprs", "--recipient", "owner.key.pub")
    apr(store, "put", "long.aprs", url("sealed/long.aprs"))
    opened = ["--identity", "owner.key"]
    for words, name in (
        (["dump", "small.safetensors", "b.weight", "--format", "npy"], "values.npy"),
        (["open", "long.aprs", *opened], "opened.safetensors"),
        (["open", url("sealed/long.aprs"), *opened], "remote.safetensors"),
        (["open", url("sealed/long.aprs"), "--tensor", "v", *opened], "tensor.bin"),
        (["unshard", "sharded"], "joined.safetensors"),
    ):
        apr(store, *words, "-o", name)
        apr(store, *words, "-o", url(f"outputs/{name}"))
        check(store.get(f"outputs/{name}") == (SCRATCH / name).read_bytes(), f"{words[0]} to an object")
        apr(store, *words, "-o", url(f"outputs/{name}"), expected=2, text="rm-exists")
    # What is not authentic appears as nothing.
    sealed = bytearray((SCRATCH / "long.aprs").read_bytes())
    sealed[-100_000] ^= 1
    (SCRATCH / "changed.aprs").write_bytes(sealed)
    apr(store, "open", "changed.aprs", *opened, "-o", url("outputs/changed.safetensors"), expected=4)
    check(not store.has("outputs/changed.safetensors") and not store.uploads(), "a changed sealed file leaves nothing")


def markers(store):
    """Objects that programs put where they show folders."""
    content = (SCRATCH / "small.safetensors").read_bytes()
    for key in ("marked/", "marked/sub/"):
        store.put(key, b"")
    for key in ("marked/a.safetensors", "marked/sub/b.safetensors", "marked-not/c.safetensors"):
        store.put(key, content)
    apr(store, "get", url("marked"), "-o", "marked")
    found = sorted(str(path.relative_to(SCRATCH / "marked")) for path in (SCRATCH / "marked").rglob("*") if path.is_file())
    check(found == ["a.safetensors", "sub/b.safetensors"], f"folders are no files: {found}")


def changing(store):
    """A file that is written to while it is sent."""
    path = SCRATCH / "growing.safetensors"
    for change in (lambda: path.open("ab").write(b"more"), lambda: os.utime(path, (1, 1))):
        # More parts than are sent and read at once.
        model(path, {f"layers.{idx}.w": (4096, 1024) for idx in range(5)})
        proxy = Proxy(store.port, f"{store.root}/{BUCKET}/{store.spelled('growing.safetensors')}", 1, change, "PUT")
        apr(store, "put", "growing.safetensors", url("growing.safetensors"), expected=4, text="cli-input-changed", **{store.ENDPOINT_VAR: proxy.url + store.root})
        proxy.close()
        check(not store.has("growing.safetensors") and not store.uploads(), "a file that changes leaves nothing")


def lost(store):
    """The answer to the request that stores an object is lost, and the request is sent again."""
    # Of the parts of a long one, the last request is that for the list of them.
    last = ("PUT", 5) if STORE == "azurite" else ("POST", 2)
    for name, (method, number) in (("small", ("PUT", 1)), ("long", last)):
        for option in ([], ["--force"]):
            key = f"lost-{len(option)}-{name}.gguf"
            proxy = Proxy(store.port, f"{store.root}/{BUCKET}/{store.spelled(key)}", number, method=method)
            ran = Ran(start(store, "convert", f"{name}.safetensors", url(key), *option, **{store.ENDPOINT_VAR: proxy.url + store.root}), f"{key} with a lost answer")
            proxy.close()
            check(proxy.seen == number + 1, f"{key} is completed twice: {proxy.seen}")
            # Stores that complete an upload again know it; to the others, it is no upload any more.
            if name == "long" and (STORE == "seaweedfs-gcs" or ran.exit != 0):
                ran.expect(*((5, "rm-gave-up") if option else (2, "rm-exists"))).expect(ran.exit, "it may be the object that was sent")
            else:
                ran.expect(0)
            apr(store, "convert", f"{name}.safetensors", "lost.gguf", "--force")
            check(store.get(key) == (SCRATCH / "lost.gguf").read_bytes() and not store.uploads(), f"{key} is there")


def jobs(store):
    for name in ("a", "b", "sub/c"):
        (SCRATCH / "many" / name).parent.mkdir(parents=True, exist_ok=True)
        model(SCRATCH / f"many/{name}.safetensors", SMALL, ord(name[-1]))
    shutil.copytree(SCRATCH / "copy-index", SCRATCH / "many/set")
    send(store, "many", "many")
    for place, out in (("many", "local-out"), (url("many"), "remote-out")):
        apr(store, "batch", "--from", place, "--to", out, "--", "convert", "{in}", "{out}.gguf")
    names = sorted(path.relative_to(SCRATCH / "local-out") for path in (SCRATCH / "local-out").rglob("*.gguf"))
    check(len(names) == 4, f"outputs of a job: {names}")
    for name in names:
        check((SCRATCH / "remote-out" / name).read_bytes() == (SCRATCH / "local-out" / name).read_bytes(), f"{name} of a job")
    apr(store, "plan", "--from", url("many"), "--to", "planned", "-o", "plan.json", "--", "check", "{in}")
    store.put("many/b.safetensors", (SCRATCH / "many/a.safetensors").read_bytes())
    ran = Ran(start(store, "run-task", "plan.json", "all"), "run-task")
    check("cli-input-changed" in ran.stdout + ran.stderr, f"an object that was replaced after the plan is told: {ran.stderr}")


def refusals(store):
    remote, wrong = url("small.safetensors"), "another-secret"
    apr(store, "inspect", url("missing.safetensors"), expected=5, text="rm-not-found")
    for words in (["inspect", "BUCKET/a"], ["put", "small.safetensors", "BUCKET/a"], ["convert", "small.safetensors", "BUCKET/a.gguf"]):
        words = [word.replace("BUCKET", f"{SCHEME}://no-such-bucket") for word in words]
        apr(store, *words, expected=5, text="rm-bucket")
    apr(store, "get", url("no-such-prefix/"), "-o", "nothing", expected=2)
    apr(store, "inspect", f"{SCHEME}://models/../a", expected=2, text="rm-url")
    apr(store, "inspect", remote, "--offline", expected=2, text="rm-offline")
    # Of `gs://`, the machine may have a token.
    if SCHEME != "gs":
        needed = store.NAME_VAR if STORE == "azurite" else store.SECRET_VAR
        apr(store, "inspect", remote, expected=2, text="rm-settings", **{needed: None})
    elsewhere = {store.ENDPOINT_VAR: "http://198.51.100.1:9"}
    apr(store, "inspect", remote, expected=2, text="rm-http", **elsewhere)
    apr(store, "put", "small.safetensors", url("x"), expected=2, text="rm-http", **elsewhere)
    apr(store, "export", "small.safetensors", "-o", url("folder-out"), "--format", "hf", expected=2)
    if STORE != "moto":
        wrong = base64.b64encode(wrong.encode()).decode()
        # Azure names the reason, Azurite does not.
        refused = "status 403" if STORE == "azurite" else "rm-credentials"
        # A server with the account in its path knows no other account, and `gs://` has no name beside the token.
        others = [] if STORE == "azurite" or SCHEME == "gs" else [{store.NAME_VAR: "unknown"}]
        for changed in ({store.SECRET_VAR: wrong}, *others):
            apr(store, "inspect", remote, expected=5, text=refused, **changed)
            apr(store, "get", url("folder"), "-o", "nothing", expected=5, text=refused, **changed)
            apr(store, "convert", "small.safetensors", url("x.gguf"), expected=5, text=refused, **changed)
            apr(store, "put", "small.safetensors", url("x"), expected=5, text=refused, **changed)


def downloads(store):
    """Of a store that is not written to: conversions from it, folders and indexes."""
    for name in ("small", "long"):
        store.put(f"{name}.safetensors", (SCRATCH / f"{name}.safetensors").read_bytes())
        for out in (f"{name}.gguf", f"{name}.npz"):
            apr(store, "convert", f"{name}.safetensors", out)
            apr(store, "convert", url(f"{name}.safetensors"), f"in-{out}")
            check((SCRATCH / f"in-{out}").read_bytes() == (SCRATCH / out).read_bytes(), f"conversion to {out}")
    apr(store, "shard", "long.safetensors", "-o", "sharded", "--max-size", "8MiB")
    (SCRATCH / "sharded/sub").mkdir()
    (SCRATCH / "sharded/sub" / ODD).write_bytes(b"text")
    send(store, "sharded", "folder")
    apr(store, "get", url("folder"), "-o", "copy")
    for path in (SCRATCH / "sharded").rglob("*"):
        if path.is_file():
            check((SCRATCH / "copy" / path.relative_to(SCRATCH / "sharded")).read_bytes() == path.read_bytes(), f"a copy of {path.name}")
    apr(store, "diff", url("folder/model.safetensors.index.json"), "long.safetensors")
    apr(store, "get", url("folder/model.safetensors.index.json"), "-o", "copy-index")


def tokens(store):
    """The token of a machine of Google's, and none, of a bucket that all may read and write."""
    if SCHEME != "gs":
        return
    unset, adapter = {store.SECRET_VAR: None}, store.adapter
    apr(store, "inspect", url("small.safetensors"), **unset)
    check(adapter.n_asked == 1, "the machine is asked for a token")
    for key, size in (("small", "small"), ("long", "parts/long")):
        apr(store, "convert", url(f"{size}.safetensors"), url(f"instance/{key}.gguf"), **unset)
    check(store.get("instance/long.gguf") == (SCRATCH / "long.gguf").read_bytes(), "written with the token of a machine")
    plain = unset | {"GOOGLE_SKIP_SIGNATURE": "true"}
    asked = adapter.n_asked
    for words in (["inspect", url("small.safetensors")], ["put", "small.safetensors", url("public/a")], ["put", "long.safetensors", url("public/b")]):
        apr(store, *words, expected=5, text="rm-credentials", **plain)
    adapter.is_public = True
    # A token that is there is not sent either.
    for number, given in enumerate((plain, plain | {store.SECRET_VAR: "another-token"})):
        key = f"public/{number}"
        apr(store, "inspect", url("small.safetensors"), **given)
        for again in range(2):
            apr(store, "put", "small.safetensors", url(f"{key}/small.safetensors"), **given)
        apr(store, "convert", "small.safetensors", url(f"{key}/small.safetensors"), expected=2, text="rm-exists", **given)
        apr(store, "convert", url("parts/long.safetensors"), url(f"{key}/long.gguf"), **given)
        check(store.get(f"{key}/long.gguf") == (SCRATCH / "long.gguf").read_bytes(), "parts without a token")
        apr(store, "get", url(key), "-o", f"public-{number}", **given)
    adapter.is_public = False
    check(adapter.n_asked == asked, "no token is asked for where none is wanted")


def signatures(store):
    """A shared access signature in place of the key; a container that all may read."""
    if STORE != "azurite":
        return
    token, plain = store.sas("racwdl"), {store.SECRET_VAR: None}
    decoded = urllib.parse.unquote(token)
    for name, given in (("a", token), ("b", "?" + token), ("c", decoded)):
        signed = plain | {"AZURE_STORAGE_SAS_KEY": given}
        stats = apr(store, "inspect", url("small.safetensors"), "--stats", **signed).stderr
        check("1 request," in stats, f"one request with a signature: {stats}")
        apr(store, "convert", url("parts/long.safetensors"), url(f"signed/{name}.gguf"), **signed)
        check(store.get(f"signed/{name}.gguf") == (SCRATCH / "long.gguf").read_bytes(), "written with a signature")
        apr(store, "get", url("signed"), "-o", f"signed-{name}", **signed)
        (SCRATCH / ODD).write_bytes(b"text")
        apr(store, "put", ODD, url("odd/"), "--force", **signed)
        apr(store, "put", ODD, url("odd/"), **signed)
        apr(store, "get", url("odd"), "-o", f"odd-{name}", **signed)
        check((SCRATCH / f"odd-{name}" / ODD).read_bytes() == b"text", "a name that URLs do not spell as it is")
    apr(store, "get", url("odd"), "-o", "odd", expected=2, text="rm-url")
    reads = plain | {"AZURE_STORAGE_SAS_KEY": store.sas("rl")}
    apr(store, "inspect", url("small.safetensors"), **reads)
    apr(store, "put", "small.safetensors", url("x"), expected=5, text="rm-", **reads)
    broken = token.replace("sig=", "sig=A")
    apr(store, "inspect", url("small.safetensors"), expected=5, text="status 403", **plain, AZURE_STORAGE_SAS_KEY=broken)
    printed_text = "".join(printed)
    for secret in (token, urllib.parse.parse_qs(token)["sig"][0]):
        check(secret not in printed_text, "no signature is printed")
    apr(store, "inspect", url("small.safetensors"), expected=5, **plain, AZURE_SKIP_SIGNATURE="true")
    store.client.set_container_access_policy({}, public_access="container")
    apr(store, "inspect", url("small.safetensors"), **plain, AZURE_SKIP_SIGNATURE="true")
    store.client.set_container_access_policy({}, public_access=None)


def unwritten(store):
    """What a store refuses is told, and is not there."""
    apr(store, "inspect", url("missing.safetensors"), expected=5, text="rm-not-found")
    apr(store, "inspect", f"{SCHEME}://no-such-bucket/a", expected=5, text="rm-not-found")
    apr(store, "get", url("no-such-prefix/"), "-o", "nothing", expected=2)
    for words, key in (
        (["put", "small.safetensors", "OUT"], "new.safetensors"),
        (["put", "long.safetensors", "OUT"], "new.safetensors"),
        (["convert", "small.safetensors", "OUT"], "new.gguf"),
        (["convert", url("long.safetensors"), "OUT"], "new.gguf"),
    ):
        for option in ([], ["--force"]):
            words = [word.replace("OUT", url(key)) for word in words]
            apr(store, *words, *option, expected=5, text="status 400")
            check(not store.has(key), f"{words} leaves nothing")
    apr(store, "convert", "small.safetensors", url("small.safetensors"), expected=2, text="rm-exists")


def secrets(store):
    text = "".join(printed)
    for secret in store.secrets:
        check(secret not in text, f"`{secret}` is not printed")


def main():
    # What a shell starts in the background ignores it, and so would the program.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    model(SCRATCH / "small.safetensors", SMALL)
    model(SCRATCH / "long.safetensors", {"w": (3000, 1024), "v": (3200, 1024)})
    model(SCRATCH / "huge.safetensors", {f"layers.{idx}.w": (4096, 1024) for idx in range(25)})
    (SCRATCH / "exact.bin").write_bytes(bytes(16 * MIB))
    (SCRATCH / "damaged.safetensors").write_bytes((SCRATCH / "long.safetensors").read_bytes()[:-1])
    store = KIND(STORE, SCRATCH, *sys.argv[4:])
    try:
        written = (memory, reads, conversions, multipart, racing, killed, changed, folders, outputs, markers, changing, lost, jobs, tokens, signatures, refusals, secrets)
        for run in written if store.writes else (reads, downloads, changed, markers, jobs, unwritten, secrets):
            begin = time.monotonic()
            run(store)
            print(f"ok    {STORE}: {run.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    finally:
        store.stop()


main()
