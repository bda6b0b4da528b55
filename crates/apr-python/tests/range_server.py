"""An HTTP server on loopback that answers ranges, and what a test tells it to do wrong."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """Files by path, and the requests for them.

    files: content by path; it may be replaced while a test runs.
    tags: the ETag of each file that is not "v1".
    faults: by the number of a request, from 0: what is done in its place.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.tags: dict[str, str] = {}
        self.faults: dict[int, Callable[[Handler], None]] = {}
        self.redirects: dict[str, str] = {}
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.lock = threading.Lock()
        self.port = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def ranges(self) -> list[tuple[int, int]]:
        """First and last byte of each request."""
        return [tuple(map(int, headers["range"].removeprefix("bytes=").split("-"))) for _, headers in self.seen]

    def bytes_asked(self) -> int:
        return sum(last + 1 - first for first, last in self.ranges())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        site = self.site
        path = self.path.split("?")[0]
        with site.lock:
            number = len(site.seen)
            site.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if number in site.faults:
            return site.faults[number](self)
        if path in site.redirects:
            return self.status(302, location=site.redirects[path])
        if path not in site.files:
            return self.status(404)
        content, tag = site.files[path], site.tags.get(path, "v1")
        if self.headers.get("If-Match") not in (None, f'"{tag}"'):
            return self.status(412)
        if self.headers.get("If-None-Match") == f'"{tag}"':
            return self.status(304, etag=f'"{tag}"')
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        if first >= len(content):
            return self.status(416, content_range=f"bytes */{len(content)}")
        body = content[first : last + 1]
        self.send_response(206)
        self.send_header("ETag", f'"{tag}"')
        self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        """As a proxy, through which every host is this server."""
        self.send_response(200)
        self.end_headers()

    def status(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def drop(self, sent: int = 0) -> None:
        """Sends the beginning of the answer alone, and ends the connection."""
        content = self.site.files[self.path]
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        body = content[first : last + 1]
        self.send_response(206)
        self.send_header("ETag", '"v1"')
        self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:sent])
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that go away are part of the tests."""


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Site]:
    site = Site(files)
    server = _Server(("127.0.0.1", 0), type("Handler", (Handler,), {"site": site}))
    site.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
