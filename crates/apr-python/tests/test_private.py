"""Private inference over loopback, and models inside sealed files."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest

import apr
from apr._native import private_request

MODEL = Path(__file__).parents[2] / "conformance" / "vectors" / "apr" / "a0100_linreg_none_plain.apr"
ROWS = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 0.0]], dtype=np.float32)


def program(*args, cwd):
    done = subprocess.run([sys.executable, "-m", "apr", "-q", *args], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Keys of a maker, an owner and a stranger; a model bound to the owner's key; that key signed."""
    folder = tmp_path_factory.mktemp("private")
    (folder / "model.apr").write_bytes(MODEL.read_bytes())
    for kind, name in [("sign", "maker"), ("sign", "stranger"), ("inference", "owner"), ("inference", "other")]:
        program("keygen", kind, "-o", f"{name}.key", cwd=folder)
    bind = ["--inside", "--inference-key", "owner.key.pub", "--key", "maker.key", "-o", "signed.apr"]
    program("sign", "model.apr", *bind, cwd=folder)
    program("sign", "owner.key.pub", "--key", "maker.key", "--comment", "apr inference key", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def server(folder):
    """The address of a server with the owner's key."""
    keys = ["--signer", "maker.key.pub", "--inference-key", "owner.key"]
    words = [sys.executable, "-m", "apr", "serve", "signed.apr", *keys, "--addr", "127.0.0.1:0"]
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.terminate()
    process.wait()


def test_predictions_are_those_of_the_model(folder, server):
    expected = apr.load(MODEL).predict(ROWS)
    pub = folder / "maker.key.pub"
    for keys in [
        {"verify_key": pub},
        {"verify_key": [folder / "stranger.key.pub", pub]},
        {"verify_key": pub, "model": folder / "signed.apr"},
        {"verify_key": pub, "model": (folder / "signed.apr").read_bytes()},
        {"key": folder / "owner.key.pub"},
        {"key": (folder / "owner.key.pub").read_text()},
    ]:
        found = apr.private_predict(server, ROWS, **keys)
        assert np.array_equal(np.array(found, dtype=np.float32), expected), keys
    assert apr.private_predict(server + "/private", ROWS.tolist(), verify_key=pub) == found


def test_no_other_key_is_used(folder, server):
    pub = folder / "maker.key.pub"
    for keys, code in [
        ({"verify_key": folder / "stranger.key.pub"}, "cy-signature"),
        ({"verify_key": folder / "stranger.key.pub", "model": folder / "signed.apr"}, "ac-untrusted-signer"),
        ({"verify_key": pub, "model": folder / "model.apr"}, "ac-not-signed"),
        ({"key": folder / "other.key.pub"}, "cli-inference-key"),
        ({"key": folder / "maker.key.pub"}, "cy-key-kind"),
    ]:
        with pytest.raises(apr.AprError) as error:
            apr.private_predict(server, ROWS, **keys)
        assert error.value.code == code, keys
    for keys in [{}, {"key": folder / "owner.key.pub", "verify_key": pub}]:
        with pytest.raises(ValueError):
            apr.private_predict(server, ROWS, **keys)
    with pytest.raises(ValueError):
        apr.private_predict("file:///etc/passwd", ROWS, verify_key=pub)
    with pytest.raises(OSError):
        apr.private_predict("http://127.0.0.1:9", ROWS, verify_key=pub)


def test_errors_about_rows_have_their_code(folder, server):
    with pytest.raises(apr.AprError) as error:
        apr.private_predict(server, [[1.0]], key=folder / "owner.key.pub")
    assert error.value.code == "sv-columns"
    with pytest.raises(apr.AprError) as error:
        apr.private_predict(server, [[float("nan"), 1.0, 1.0]], key=folder / "owner.key.pub")
    assert error.value.code == "sv-number"
    with pytest.raises(TypeError):
        apr.private_predict(server, [[object()]], key=folder / "owner.key.pub")


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on, and changes what `alter` says."""

    target = ""
    recorded = b""

    @staticmethod
    def alter(body):
        return body

    def do_GET(self):
        with urlopen(self.target + self.path) as response:
            self.answer(response.status, response.read())

    def do_POST(self):
        Proxy.recorded = self.rfile.read(int(self.headers["content-length"]))
        with urlopen(Request(self.target + self.path, Proxy.recorded, dict(self.headers))) as response:
            self.answer(response.status, self.alter(response.read()))

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_a_proxy_reads_and_forges_nothing(folder, server):
    proxy = HTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{proxy.server_port}"
    Proxy.target = server
    pub = folder / "maker.key.pub"
    predict = lambda: apr.private_predict(address, ROWS, verify_key=pub)
    try:
        good = predict()
        assert len(good) == 2 and b"rows" not in Proxy.recorded and b"0.5" not in Proxy.recorded
        kept = []
        for alter in [
            lambda body: body[:-1] + bytes([body[-1] ^ 1]),
            lambda body: body[:40],
            lambda body: body + b"\0",
            lambda body: kept.append(body) or body[:20] + bytes(len(body) - 20),
            # The response to another request.
            lambda body: kept[0],
        ]:
            Proxy.alter = staticmethod(alter)
            with pytest.raises(apr.AprError) as error:
                predict()
            assert error.value.code == "cy-open"
        # Sent again: refused, in plaintext.
        with pytest.raises(Exception) as error:
            urlopen(Request(server + "/private", Proxy.recorded, {"content-type": "application/vnd.apr.private"}))
        assert error.value.code == 409 and json.loads(error.value.read())["error"]["code"] == "cy-replay"
    finally:
        proxy.shutdown()


def test_no_redirect_is_followed(folder, server):
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", f"{server}/private")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    redirecting = HTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=redirecting.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{redirecting.server_port}"
        with pytest.raises(OSError, match="302"):
            apr.private_predict(address, ROWS, key=folder / "owner.key.pub")
    finally:
        redirecting.shutdown()


def test_what_is_no_address_and_no_rows_is_refused(folder, server):
    key = folder / "owner.key.pub"
    with pytest.raises(apr.AprError, match="rm-http"):
        apr.private_predict("http://models.example", ROWS, key=key)
    for address in ["ftp://models.example", f"{server}?proba=true"]:
        with pytest.raises(ValueError, match="address"):
            apr.private_predict(address, ROWS, key=key)
    with pytest.raises(TypeError):
        apr.private_predict(server, [b"1,2,3"], key=key)


def test_every_byte_of_a_response_counts(folder, server):
    offer = json.loads(urlopen(server + "/private").read())
    request, pending = private_request(offer["key"], offer["session"], "", "text/csv", b"1,2,3\n")
    headers = {"content-type": "application/vnd.apr.private"}
    response = urlopen(Request(server + "/private", request, headers)).read()
    for at in range(len(response)):
        changed = bytearray(response)
        changed[at] ^= 1
        with pytest.raises(apr.AprError) as error:
            pending.open(bytes(changed))
        assert error.value.code == ("cy-message" if at < 8 else "cy-open")
    status, media_type, body = pending.open(response)
    assert (status, media_type) == (200, "application/json") and len(json.loads(body)["predictions"]) == 1


def test_a_sealed_model_is_loaded(folder):
    program("keygen", "encrypt", "-o", "buyer.key", cwd=folder)
    buyer, maker = folder / "buyer.key", folder / "maker.key.pub"
    expected = apr.load(MODEL).predict(ROWS)
    apr.convert(MODEL, folder / "model.safetensors")
    for name in ["model.apr", "model.safetensors"]:
        path = folder / f"{name}.sealed"
        apr.seal(folder / name, path, recipients=folder / "buyer.key.pub", sign_key=folder / "maker.key")
        for file in [path, path.read_bytes()]:
            model = apr.load(file, identity=buyer, verify_key=maker)
            assert np.array_equal(model.predict(ROWS), expected)
            assert model.signer is not None and model.signer["trusted"]
        for keys, code in [
            ({}, "ac-signed"),
            ({"identity": buyer}, "ac-signed"),
            ({"verify_key": maker}, "ac-encrypted"),
            ({"identity": buyer, "verify_key": folder / "stranger.key.pub"}, "ac-untrusted-signer"),
            ({"identity": folder / "other.key", "verify_key": maker}, "ac-decryption"),
        ]:
            with pytest.raises(apr.AprError) as error:
                apr.load(path, **keys)
            assert error.value.code == code, keys
        sealed = path.read_bytes()
        refused = 0
        for at in range(0, len(sealed), 41):
            damaged = bytearray(sealed)
            damaged[at] ^= 1
            try:
                # Space for recipients is not signed, and not used either.
                assert np.array_equal(apr.load(bytes(damaged), identity=buyer, verify_key=maker).predict(ROWS), expected)
            except apr.AprError:
                refused += 1
        assert refused > 10
    apr.seal(folder / "model.apr", folder / "locked.sealed", password="secret")
    assert np.array_equal(apr.load(folder / "locked.sealed", password="secret").predict(ROWS), expected)
    assert apr.load(folder / "locked.sealed", password="secret").signer is None
