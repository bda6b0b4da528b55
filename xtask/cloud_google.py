"""Servers of `gs://` for `judge_cloud.py`.

fake-gcs-server writes by the JSON API alone: its XML API, which `apr` uses, reads. What writes is SeaweedFS behind an adapter: the XML API of
Google takes the requests of S3 but for their headers, and the adapter has the headers of Google on one side and those of S3 on the other.
"""

import http.client
import http.server
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
import zlib

from cloud_stores import BUCKET, S3, Store, free_port, get

TOKEN = "ya29.a-token-of-the-test"


def instance(port):
    """Where a token is asked for: not at the address of the machine that this runs on."""
    return {"GCE_METADATA_HOST": f"127.0.0.1:{port}", "GCE_METADATA_IP": f"127.0.0.1:{port}"}


def error_of(code):
    return f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


class Adapter(http.server.BaseHTTPRequestHandler):
    """A request for Google, passed on as one for S3 that needs no signature."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/xml; charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def instance(self):
        """The service that gives a token to a machine of Google's."""
        self.server.n_asked += 1
        has_header = self.headers.get("Metadata-Flavor") == "Google"
        answer = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
        self.answer(200 if has_header else 403, json.dumps(answer).encode())

    def refusal(self):
        """Of what Google's servers refuse or do not know."""
        given = self.headers.get("Authorization")
        # They refuse what is no token also where none is needed.
        if given not in ((None, f"Bearer {TOKEN}") if self.server.is_public else (f"Bearer {TOKEN}",)):
            return 401, "AuthenticationRequired"
        if self.command in ("PUT", "POST") and "Content-Length" not in self.headers:
            return 411, "MissingContentLength"
        of_s3 = [name for name in self.headers if name.lower().startswith("x-amz-") or name.lower() == "if-none-match"]
        # They take no condition of an upload in parts.
        has_condition = any(name.lower().startswith("x-goog-if-") for name in self.headers)
        if of_s3 or "x-amz-" in self.path.lower() or has_condition and "uploadId=" in self.path:
            return 400, "InvalidArgument"
        return None

    def pass_on(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        # Of a client that was killed.
        if len(body) < length:
            self.close_connection = True
            return
        if self.path.startswith("/computeMetadata/"):
            return self.instance()
        if refusal := self.refusal():
            status, code = refusal
            return self.answer(status, error_of(code))
        headers = {name: self.headers[name] for name in ("Range", "If-Match", "Content-Type", "Accept-Encoding") if name in self.headers}
        if (generation := self.headers.get("x-goog-if-generation-match")) is not None:
            if generation != "0":
                return self.answer(400, error_of("InvalidArgument"))
            headers["If-None-Match"] = "*"
        # An upload that is complete is no upload any more.
        if self.command == "POST" and "uploadId=" in self.path:
            with self.server.lock:
                if self.path in self.server.completed:
                    return self.answer(404, error_of("NoSuchUpload"))
                self.server.completed.add(self.path)
        path, _, query = self.path.partition("?")
        path = "/".join(urllib.parse.quote(part, safe="") for part in urllib.parse.unquote(path).split("/"))
        far = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=300)
        try:
            far.request(self.command, path + ("?" + query if query else ""), body or (b"" if self.command in ("PUT", "POST") else None), headers)
            found = far.getresponse()
            self.send_response(found.status)
            whole = found.read() if found.length is None else None
            for name, value in found.getheaders():
                if name.lower() in ("content-type", "etag", "last-modified", "content-range", "accept-ranges") or name.lower() == "content-length" and whole is None:
                    self.send_header(name, value)
                if name.lower() == "etag":
                    self.send_header("x-goog-generation", str(zlib.crc32(value.encode())))
            if whole is not None:
                self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            if self.command != "HEAD":
                while chunk := whole or found.read(1 << 16):
                    self.wfile.write(chunk)
                    whole = None
        finally:
            far.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

    def log_message(self, *_):
        pass


class AdapterServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    # Whether a bucket is for all, and how often a token was asked for.
    is_public = False
    n_asked = 0

    def __init__(self, *address):
        super().__init__(*address)
        self.completed, self.lock = set(), threading.Lock()

    def handle_error(self, *_):
        """A client that was killed."""


class SeaweedAsGoogle(S3):
    """SeaweedFS behind the adapter, and boto3, which sees it without."""

    scheme = "gs"
    SECRET_VAR, ENDPOINT_VAR = "GOOGLE_BEARER_TOKEN", "GOOGLE_BASE_URL"
    secrets = (TOKEN, "Bearer")
    needs_signature = False

    def __init__(self, name, scratch):
        super().__init__(name, scratch)
        self.adapter = AdapterServer(("127.0.0.1", 0), Adapter)
        self.adapter.behind, self.port = self.port, self.adapter.server_address[1]
        threading.Thread(target=self.adapter.serve_forever, daemon=True).start()
        self.variables = {self.SECRET_VAR: TOKEN} | instance(self.port)

    def spelled(self, key):
        return "".join(char if char.isalnum() else f"%{ord(char):02X}" for char in key)


class FakeGcs(Store):
    """fake-gcs-server, and its JSON API."""

    scheme = "gs"
    SECRET_VAR, ENDPOINT_VAR = "GOOGLE_BEARER_TOKEN", "GOOGLE_BASE_URL"
    secrets = (TOKEN, "Bearer")
    writes = False

    def __init__(self, name, scratch, program):
        super().__init__(name, scratch)
        self.port = free_port()
        words = ["-scheme", "http", "-host", "127.0.0.1", "-port", self.port, "-backend", "memory", "-public-host", "127.0.0.1"]
        self.start(program, *words)
        self.url = f"http://127.0.0.1:{self.port}"
        self.wait_for(lambda: get(f"{self.url}/_internal/healthcheck") == b"")
        self.send("POST", "/storage/v1/b", json.dumps({"name": BUCKET}).encode())
        self.variables = {self.SECRET_VAR: TOKEN} | instance(self.port)

    def send(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    @staticmethod
    def at(key):
        return f"/storage/v1/b/{BUCKET}/o/{urllib.parse.quote(key, safe='')}"

    def put(self, key, content):
        self.send("POST", f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={urllib.parse.quote(key, safe='')}", content)

    def get(self, key):
        return self.send("GET", f"{self.at(key)}?alt=media")

    def has(self, key):
        try:
            self.send("GET", self.at(key))
            return True
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False

    def delete(self, key):
        self.send("DELETE", self.at(key))

    def uploads(self):
        return []
