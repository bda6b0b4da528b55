"""The object stores of `judge_cloud.py`: processes on this machine, and clients of them that are not ours."""

import atexit
import base64
import datetime
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import time
import urllib.request

KEY, SECRET, BUCKET = "test", "testtest-and-long", "models"


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
    # Of a server that has one host for all accounts.
    root = ""
    # Whether it takes what `apr` writes.
    writes = True

    def __init__(self, name, scratch):
        self.name, self.scratch = name, scratch

    def spelled(self, key):
        """In the URL of a request that writes."""
        return key

    def start(self, *words, **variables):
        log = open(self.scratch / "store.log", "wb")
        words = [str(word) for word in words]
        self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd=self.scratch, env=os.environ | variables)
        # Also of a store that has begun and does not answer.
        atexit.register(self.process.kill)

    def wait_for(self, ready):
        end = time.monotonic() + 60
        while True:
            try:
                if ready():
                    return
            except self.NOT_YET:
                pass
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{self.name} does not answer; its log is {self.scratch}/store.log")
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

    scheme = "s3"
    NAME_VAR, SECRET_VAR, ENDPOINT_VAR = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"
    secrets = (SECRET, "X-Amz-Signature", "X-Amz-Credential", "AWS4-HMAC")
    needs_signature = True

    def __init__(self, name, scratch):
        super().__init__(name, scratch)
        import boto3
        import botocore.config
        import botocore.exceptions

        self.missing = botocore.exceptions.ClientError
        self.NOT_YET = (OSError, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)
        bin_folder = pathlib.Path(sys.executable).parent
        if name == "moto":
            self.port = free_port()
            self.start(bin_folder / "moto_server", "-H", "127.0.0.1", "-p", self.port)
        else:
            self.port, master, volume, filer = free_ports(4)
            identity = {"name": "test", "credentials": [{"accessKey": KEY, "secretKey": SECRET}]}
            identity["actions"] = ["Admin", "Read", "Write", "List", "Tagging"]
            identities = [identity] if self.needs_signature else [identity, {"name": "anonymous", "actions": identity["actions"]}]
            (scratch / "s3.json").write_text(json.dumps({"identities": identities}))
            (scratch / "data").mkdir()
            words = [bin_folder / "weed", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={scratch}/data", "-s3"]
            words += [f"-s3.port={self.port}", f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"]
            words += [f"-s3.config={scratch}/s3.json", "-master.telemetry=false", "-volume.max=64"]
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

    scheme = "az"
    NAME_VAR, SECRET_VAR, ENDPOINT_VAR = "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ENDPOINT"
    key = base64.b64encode(SECRET.encode()).decode()
    secrets = (key, "SharedKey", "sig=")
    root = f"/{KEY}"

    def __init__(self, name, scratch, program):
        super().__init__(name, scratch)
        import azure.core.exceptions
        import azure.storage.blob

        self.NOT_YET = (OSError, azure.core.exceptions.AzureError)
        self.port = free_port()
        words = ["node", program, "--blobHost", "127.0.0.1", "--blobPort", self.port, "--location", scratch / "data"]
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
