"""Runs `apr` against an object store on this machine, and compares with what another client sees.

usage: judge_cloud.py APR SCRATCH STORE [AZURITE]

STORE is `seaweedfs` or `moto`, seen by boto3, or `azurite`, whose program is AZURITE, seen by azure-storage-blob. Prints one line for each check and fails at the first that is not as it should be. The store listens on
loopback alone and is ended by its process id.
"""

import base64
import datetime
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
import urllib.request

APR, SCRATCH, STORE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
KEY, SECRET, BUCKET = "test", "testtest-and-long", "models"
SCHEME = "az" if STORE == "azurite" else "s3"
MIB = 1 << 20
ODD = "n\u00f6te 1#%.txt"

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
    """A process that listens, and a client of it."""

    # Errors of a client while the store begins.
    NOT_YET = (OSError,)

    def start(self, *words, **variables):
        log = open(SCRATCH / "store.log", "wb")
        words = [str(word) for word in words]
        self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd=SCRATCH, env=os.environ | variables)

    def wait_for(self, ready):
        end = time.monotonic() + 60
        while True:
            try:
                if ready():
                    return
            except self.NOT_YET:
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


class S3(Store):
    """SeaweedFS or moto, and boto3."""

    NAME_VAR, SECRET_VAR, ENDPOINT_VAR = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"
    secrets = (SECRET, "X-Amz-Signature", "X-Amz-Credential", "AWS4-HMAC")
    root = ""

    def __init__(self):
        import boto3
        import botocore.config
        import botocore.exceptions

        self.missing = botocore.exceptions.ClientError
        self.NOT_YET = (OSError, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)
        bin_folder = pathlib.Path(sys.executable).parent
        if STORE == "moto":
            self.port = free_port()
            self.start(bin_folder / "moto_server", "-H", "127.0.0.1", "-p", self.port)
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
            self.start(*words)
            self.wait_for(lambda: b'"Max":64' in get(f"http://127.0.0.1:{master}/dir/status").replace(b" ", b""))
        self.client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            config=botocore.config.Config(s3={"addressing_style": "path"}),
        )
        self.wait_for(lambda: self.client.create_bucket(Bucket=BUCKET))
        self.variables = {self.NAME_VAR: KEY, self.SECRET_VAR: SECRET, "AWS_REGION": "us-east-1"}

    def put(self, key, content):
        self.client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def get(self, key):
        return self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def has(self, key):
        try:
            self.client.head_object(Bucket=BUCKET, Key=key)
            return True
        except self.missing:
            return False

    def delete(self, key):
        self.client.delete_object(Bucket=BUCKET, Key=key)

    def uploads(self):
        return self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])

    def n_parts(self, key):
        etag = self.client.head_object(Bucket=BUCKET, Key=key)["ETag"].strip('"')
        return int(etag.rpartition("-")[2])


class Azure(Store):
    """Azurite, and azure-storage-blob."""

    NAME_VAR, SECRET_VAR, ENDPOINT_VAR = "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ENDPOINT"
    key = base64.b64encode(SECRET.encode()).decode()
    secrets = (key, "SharedKey", "sig=")
    # Of a server that has one host for all accounts.
    root = f"/{KEY}"

    def __init__(self):
        import azure.core.exceptions
        import azure.storage.blob

        self.NOT_YET = (OSError, azure.core.exceptions.AzureError)
        self.port = free_port()
        words = ["node", sys.argv[4], "--blobHost", "127.0.0.1", "--blobPort", self.port, "--location", SCRATCH / "data"]
        words += ["--skipApiVersionCheck", "--disableTelemetry"]
        self.start(*words, AZURITE_ACCOUNTS=f"{KEY}:{self.key}")
        credential = {"account_name": KEY, "account_key": self.key}
        endpoint = f"http://127.0.0.1:{self.port}{self.root}"
        self.client = azure.storage.blob.ContainerClient(endpoint, BUCKET, credential=credential, retry_total=0)
        self.wait_for(lambda: self.client.create_container() or True)
        self.variables = {self.NAME_VAR: KEY, self.SECRET_VAR: self.key}

    def put(self, key, content):
        self.client.upload_blob(key, content, overwrite=True)

    def get(self, key):
        return self.client.download_blob(key).readall()

    def has(self, key):
        return self.client.get_blob_client(key).exists()

    def delete(self, key):
        self.client.delete_blob(key)

    def uploads(self):
        """Blocks that belong to no blob: they go after a week, and cannot be dropped before."""
        return []

    def n_parts(self, key):
        committed, _ = self.client.get_blob_client(key).get_block_list("committed")
        return len(committed)

    def sas(self, permissions):
        import azure.storage.blob

        expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        return azure.storage.blob.generate_container_sas(KEY, BUCKET, self.key, permission=permissions, expiry=expiry)


def get(url):
    with urllib.request.urlopen(url, timeout=2) as answer:
        return answer.read()


class Proxy:
    """Passes bytes on, and calls `hook` before the request of this number for a path."""

    def __init__(self, port, path, number, hook, method="GET"):
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
            threading.Thread(target=self.copy, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self.copy, args=(far, near, False), daemon=True).start()

    def copy(self, source, sink, is_request):
        try:
            while chunk := source.recv(1 << 16):
                if is_request and chunk.startswith(self.request):
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
        proxy = Proxy(store.port, f"{store.root}/{BUCKET}/growing.safetensors", 1, change, "PUT")
        apr(store, "put", "growing.safetensors", url("growing.safetensors"), expected=4, text="cli-input-changed", **{store.ENDPOINT_VAR: proxy.url + store.root})
        proxy.close()
        check(not store.has("growing.safetensors") and not store.uploads(), "a file that changes leaves nothing")


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
    for words in (["inspect", "BUCKET/a"], ["put", "small.safetensors", "BUCKET/a"], ["convert", "small.safetensors", "BUCKET/a.gguf"]):
        words = [word.replace("BUCKET", f"{SCHEME}://no-such-bucket") for word in words]
        apr(store, *words, expected=5, text="rm-bucket")
    apr(store, "get", url("no-such-prefix/"), "-o", "nothing", expected=2)
    apr(store, "inspect", f"{SCHEME}://models/../a", expected=2, text="rm-url")
    apr(store, "inspect", remote, "--offline", expected=2, text="rm-offline")
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
        for changed in ({store.SECRET_VAR: wrong}, {store.NAME_VAR: "unknown"}):
            # A server with the account in its path knows no other account.
            if STORE == "azurite" and store.NAME_VAR in changed:
                continue
            apr(store, "inspect", remote, expected=5, text=refused, **changed)
            apr(store, "get", url("folder"), "-o", "nothing", expected=5, text=refused, **changed)
            apr(store, "convert", "small.safetensors", url("x.gguf"), expected=5, text=refused, **changed)
            apr(store, "put", "small.safetensors", url("x"), expected=5, text=refused, **changed)


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
    store = Azure() if STORE == "azurite" else S3()
    try:
        for run in (memory, reads, conversions, multipart, racing, killed, changed, folders, outputs, markers, changing, jobs, signatures, refusals, secrets):
            begin = time.monotonic()
            run(store)
            print(f"ok    {STORE}: {run.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    finally:
        store.stop()


main()
