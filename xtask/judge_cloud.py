"""Runs `apr` against an object store on this machine, and compares with what boto3 sees.

usage: judge_cloud.py APR SCRATCH STORE

STORE is `seaweedfs` or `moto`. Prints one line for each check and fails at the first that is not as it should be. The store listens on
loopback alone and is ended by its process id.
"""

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
import urllib.request

import boto3
import botocore.config
import botocore.exceptions

APR, SCRATCH, STORE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
KEY, SECRET, BUCKET = "test", "testtest-and-long", "models"
MIB = 1 << 20

# All that was printed: no secret may be in it.
printed = []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def free_ports(count):
    """Ports below 50,000: SeaweedFS takes each plus 10,000, too."""
    found = set()
    while len(found) < count:
        port = random.randrange(20_000, 50_000)
        try:
            for taken in (port, port + 10_000):
                with socket.socket() as listener:
                    listener.bind(("127.0.0.1", taken))
        except OSError:
            continue
        found.add(port)
    return list(found)


class Store:
    def __init__(self):
        bin_folder = pathlib.Path(sys.executable).parent
        log = open(SCRATCH / "store.log", "wb")
        if STORE == "moto":
            self.port = free_port()
            words = [bin_folder / "moto_server", "-H", "127.0.0.1", "-p", str(self.port)]
        else:
            self.port, master, volume, filer = free_ports(4)
            identity = {"name": "test", "credentials": [{"accessKey": KEY, "secretKey": SECRET}]}
            identity["actions"] = ["Admin", "Read", "Write", "List", "Tagging"]
            (SCRATCH / "s3.json").write_text(json.dumps({"identities": [identity]}))
            (SCRATCH / "data").mkdir()
            words = [bin_folder / "weed", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={SCRATCH}/data", "-s3"]
            words += [f"-s3.port={self.port}", f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"]
            words += [f"-s3.config={SCRATCH}/s3.json", "-master.telemetry=false", "-volume.max=64"]
            words += ["-master.volumeSizeLimitMB=64", "-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        self.process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, cwd=SCRATCH)
        self.url = f"http://127.0.0.1:{self.port}"
        if STORE == "seaweedfs":
            self.wait_for(lambda: b'"Max":64' in get(f"http://127.0.0.1:{master}/dir/status").replace(b" ", b""))
        self.client = boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            config=botocore.config.Config(s3={"addressing_style": "path"}),
        )
        self.wait_for(lambda: self.client.create_bucket(Bucket=BUCKET))

    def wait_for(self, ready):
        end = time.monotonic() + 60
        while True:
            try:
                if ready():
                    return
            except (OSError, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
                pass
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{STORE} does not answer; its log is {SCRATCH}/store.log")
            time.sleep(0.25)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def put(self, key, content):
        self.client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def get(self, key):
        return self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def has(self, key):
        try:
            self.client.head_object(Bucket=BUCKET, Key=key)
            return True
        except botocore.exceptions.ClientError:
            return False

    def uploads(self):
        return self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])


def get(url):
    with urllib.request.urlopen(url, timeout=2) as answer:
        return answer.read()


class Proxy:
    """Passes bytes on, and calls `hook` before the request of this number for a path."""

    def __init__(self, port, path, number, hook):
        self.target, self.path, self.number, self.hook = port, path.encode(), number, hook
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
            threading.Thread(target=self.copy, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self.copy, args=(far, near, False), daemon=True).start()

    def copy(self, source, sink, is_request):
        try:
            while chunk := source.recv(1 << 16):
                if is_request and chunk.startswith(b"GET " + self.path):
                    with self.lock:
                        self.seen += 1
                        if self.seen == self.number:
                            self.hook()
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
    known |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": store.url}
    known |= {"AWS_REGION": "us-east-1", "HOME": str(SCRATCH)} | changed
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
    return f"s3://{BUCKET}/{key}"


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
        check(there.stdout.replace(f"s3://{BUCKET}/", "") == local.stdout, f"{words} of an object")
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
        etag = store.client.head_object(Bucket=BUCKET, Key=f"parts/{name}")["ETag"].strip('"')
        check(etag.endswith(f"-{parts}"), f"{name} has {parts} parts: {etag}")
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
        store.client.delete_object(Bucket=BUCKET, Key=key)


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
        # moto, and SeaweedFS of multipart uploads, look for the object and complete it in two steps, between which another one may be completed.
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
        proxy = Proxy(store.port, f"/{BUCKET}/changing.safetensors", 3, lambda: store.put("changing.safetensors", bytes(other)))
        ran = apr(store, *words, expected=5, text="rm-changed", AWS_ENDPOINT_URL=proxy.url)
        proxy.close()
        check(ran.exit == 5 and not (SCRATCH / "changing.gguf").exists(), "an object that changes is refused")


def folders(store):
    apr(store, "shard", "long.safetensors", "-o", "sharded", "--max-size", "8MiB")
    (SCRATCH / "sharded/sub").mkdir()
    (SCRATCH / "sharded/sub/n\u00f6te 1#%.txt").write_bytes(b"text")
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


def jobs(store):
    for name in ("a", "b", "sub/c"):
        (SCRATCH / "many" / name).parent.mkdir(parents=True, exist_ok=True)
        model(SCRATCH / f"many/{name}.safetensors", SMALL, ord(name[-1]))
    shutil.copytree(SCRATCH / "copy-index", SCRATCH / "many/set")
    apr(store, "put", "many", url("many"))
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
    for words in (["inspect", "s3://no-such-bucket/a"], ["put", "small.safetensors", "s3://no-such-bucket/a"], ["convert", "small.safetensors", "s3://no-such-bucket/a.gguf"]):
        apr(store, *words, expected=5, text="rm-bucket")
    apr(store, "get", url("no-such-prefix/"), "-o", "nothing", expected=2)
    apr(store, "inspect", "s3://models/../a", expected=2, text="rm-url")
    apr(store, "inspect", remote, "--offline", expected=2, text="rm-offline")
    apr(store, "inspect", remote, AWS_SECRET_ACCESS_KEY=None, expected=2, text="rm-settings")
    apr(store, "inspect", remote, AWS_ENDPOINT_URL="http://198.51.100.1:9", expected=2, text="rm-http")
    apr(store, "put", "small.safetensors", url("x"), AWS_ENDPOINT_URL="http://198.51.100.1:9", expected=2, text="rm-http")
    apr(store, "export", "small.safetensors", "-o", url("folder-out"), "--format", "hf", expected=2)
    if STORE == "seaweedfs":
        for changed in ({"AWS_SECRET_ACCESS_KEY": wrong}, {"AWS_ACCESS_KEY_ID": "unknown"}):
            apr(store, "inspect", remote, expected=5, text="rm-credentials", **changed)
            apr(store, "get", url("folder"), "-o", "nothing", expected=5, text="rm-credentials", **changed)
            apr(store, "convert", "small.safetensors", url("x.gguf"), expected=5, text="rm-credentials", **changed)
            apr(store, "put", "small.safetensors", url("x"), expected=5, text="rm-credentials", **changed)


def secrets(_):
    text = "".join(printed)
    for secret in (SECRET, "X-Amz-Signature", "X-Amz-Credential", "AWS4-HMAC"):
        check(secret not in text, f"`{secret}` is not printed")


def main():
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    model(SCRATCH / "small.safetensors", SMALL)
    model(SCRATCH / "long.safetensors", {"w": (3000, 1024), "v": (3200, 1024)})
    model(SCRATCH / "huge.safetensors", {f"layers.{idx}.w": (4096, 1024) for idx in range(25)})
    (SCRATCH / "exact.bin").write_bytes(bytes(16 * MIB))
    (SCRATCH / "damaged.safetensors").write_bytes((SCRATCH / "long.safetensors").read_bytes()[:-1])
    store = Store()
    try:
        for run in (memory, reads, conversions, multipart, racing, killed, changed, folders, jobs, refusals, secrets):
            begin = time.monotonic()
            run(store)
            print(f"ok    {STORE}: {run.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    finally:
        store.stop()


main()
