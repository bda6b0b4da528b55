"""Makes everything in this folder anew: keys, models, signatures by other programs, and bundles that are wrong in one way.

Needs model-signing 1.1.1 with pyOpenSSL, minisign 0.11 and OpenSSL 3:

    python3 -m venv venv && venv/bin/pip install model-signing==1.1.1 pyOpenSSL && venv/bin/python make.py

Keys are new each time, and so are all signatures. They are test values and protect nothing.
"""

import base64
import copy
import hashlib
import json
import pathlib
import shutil
import struct
import subprocess

import model_signing
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HERE = pathlib.Path(__file__).resolve().parent
PAYLOAD_TYPE = "application/vnd.in-toto+json"


def run(*words, **more):
    subprocess.run([str(word) for word in words], check=True, capture_output=True, cwd=HERE, **more)


def write(name, data):
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def keys():
    for name in ["p256", "other"]:
        run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-out", f"{name}.pem")
        run("openssl", "ec", "-in", f"{name}.pem", "-pubout", "-out", f"{name}.pub")
    for name in ["minisign", "minisign-other"]:
        run("minisign", "-G", "-W", "-f", "-p", f"{name}.pub", "-s", f"{name}.key")


def safetensors(names):
    header, data = {}, b""
    for name in names:
        tensor = hashlib.sha256(name.encode()).digest()
        header[name] = {"dtype": "U8", "shape": [32], "data_offsets": [len(data), len(data) + 32]}
        data += tensor
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def models():
    for folder in ["model", "sharded"]:
        shutil.rmtree(HERE / folder, ignore_errors=True)
    write("model/config.json", b'{"layers": 2}\n')
    write("model/empty.txt", b"")
    write("model/sub/vocab.txt", b"a\nb\nc\n")
    write("model/sub.txt", b"sorted before or after the folder\n")
    write("model/\u00fcn\u00ef.txt", "name beyond ASCII\n".encode())
    write("model/weights.safetensors", safetensors(["w", "b"]))
    write("sharded/model-00001-of-00002.safetensors", safetensors(["first.w", "first.b"]))
    write("sharded/model-00002-of-00002.safetensors", safetensors(["second.w"]))
    weights = {"first.w": 1, "first.b": 1, "second.w": 2}
    index = {
        "metadata": {"total_size": 96},
        "weight_map": {name: f"model-0000{shard}-of-00002.safetensors" for name, shard in weights.items()},
    }
    write("sharded/model.safetensors.index.json", json.dumps(index, indent=2).encode() + b"\n")


def bundles():
    def sign(model, signature, hashing=None):
        config = model_signing.signing.Config().use_elliptic_key_signer(private_key=HERE / "p256.pem")
        if hashing is not None:
            config.set_hashing_config(hashing)
        config.sign(HERE / model, HERE / signature)

    hashing = model_signing.hashing.Config
    sign("model", "model.sig")
    sign("model/weights.safetensors", "file.sig")
    sign("sharded", "sharded.sig")
    sign("model", "shards.sig", hashing().use_shard_serialization(shard_size=10))
    sign("model/weights.safetensors", "file-shards.sig", hashing().use_shard_serialization(shard_size=100))
    sign("model", "blake2b.sig", hashing().use_file_serialization(hashing_algorithm="blake2"))
    sign("model", "blake3.sig", hashing().use_file_serialization(hashing_algorithm="blake3"))
    ignoring = hashing().set_ignored_paths(paths=[HERE / "model/sub"])
    sign("model", "ignoring.sig", ignoring)


def minisign():
    for kind, legacy in [("minisig", []), ("legacy.minisig", ["-l"])]:
        # Without a time in it.
        comment = ["-t", "version 1.2", "-c", "for tests"]
        words = ["minisign", "-S", *legacy, *comment, "-s", "minisign.key", "-m", "model/weights.safetensors"]
        run(*words, "-x", f"weights.{kind}")


def pae(payload):
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def signed(payload, key="p256", hint="p256"):
    """A bundle around `payload`, made without the library."""
    private = serialization.load_pem_private_key((HERE / f"{key}.pem").read_bytes(), None)
    signature = private.sign(pae(payload), ec.ECDSA(hashes.SHA256()))
    public = (HERE / f"{hint}.pub").read_bytes()
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": hashlib.sha256(public).hexdigest()}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": ""}],
        },
    }


def refused():
    """One cause each; its sidecar names the code of our error."""
    shutil.rmtree(HERE / "refused", ignore_errors=True)

    def keep(name, code, bundle):
        text = bundle if isinstance(bundle, str) else json.dumps(bundle)
        write(f"refused/{name}.sig", text.encode())
        facts = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "size": len(text.encode()), "strict": {"code": code}}
        lines = [f'  "{key}": {json.dumps(value, separators=(",", ":"))}' for key, value in facts.items()]
        write(f"refused/{name}.sig.vector.json", ("{\n" + ",\n".join(lines) + "\n}\n").encode())

    good = json.loads((HERE / "model.sig").read_text())
    payload = base64.b64decode(good["dsseEnvelope"]["payload"])

    def bundle(name, code, change):
        other = copy.deepcopy(good)
        change(other)
        keep(name, code, other)

    def place(*path, value):
        def change(document):
            *folders, last = path
            for key in folders:
                document = document[key]
            if value is None:
                del document[last]
            else:
                document[last] = value

        return change

    keep("json-cut", "mf-json", json.dumps(good)[:-1])
    keep("json-more", "mf-json", json.dumps(good) + "{}")
    keep("json-key-twice", "mf-json", json.dumps(good).replace('"sig":', '"sig": "", "sig":'))
    bundle("no-media-type", "mf-json", place("mediaType", value=None))
    bundle("other-media-type", "mf-bundle", place("mediaType", value="application/json"))
    old = "application/vnd.dev.sigstore.bundle+json;version=0.2"
    bundle("old-media-type", "mf-unsupported", place("mediaType", value=old))
    material = "verificationMaterial"
    bundle("no-material", "mf-json", place(material, value=None))
    bundle("no-key", "mf-bundle", place(material, "publicKey", value=None))
    bundle("certificate", "mf-unsupported", place(material, "certificate", value={"rawBytes": ""}))
    chain = {"certificates": []}
    bundle("certificate-chain", "mf-unsupported", place(material, "x509CertificateChain", value=chain))
    bundle("hint-of-another-key", "mf-key", place(material, "publicKey", "hint", value="0" * 64))
    envelope = "dsseEnvelope"
    bundle("no-envelope", "mf-bundle", place(envelope, value=None))
    message = {key: value for key, value in good.items() if key != envelope} | {"messageSignature": {}}
    keep("message", "mf-unsupported", message)
    bundle("other-payload-type", "mf-bundle", place(envelope, "payloadType", value="text/plain"))
    bundle("payload-not-base64", "mf-bundle", place(envelope, "payload", value="*"))
    changed = base64.b64encode(payload.replace(b"config.json", b"konfig.json")).decode()
    bundle("payload-changed", "cy-signature", place(envelope, "payload", value=changed))
    signatures = good[envelope]["signatures"]
    bundle("no-signature", "mf-bundle", place(envelope, "signatures", value=[]))
    bundle("two-signatures", "mf-bundle", place(envelope, "signatures", value=signatures * 2))
    bundle("signature-not-base64", "mf-bundle", place(envelope, "signatures", 0, "sig", value="="))
    der = base64.b64decode(signatures[0]["sig"])
    cut = base64.b64encode(der[:-1]).decode()
    bundle("signature-cut", "cy-text", place(envelope, "signatures", 0, "sig", value=cut))
    flipped = base64.b64encode(der[:-1] + bytes([der[-1] ^ 1])).decode()
    bundle("signature-changed", "cy-signature", place(envelope, "signatures", 0, "sig", value=flipped))
    keep("signed-by-another-key", "cy-signature", signed(payload, key="other"))
    keep("names-another-key", "mf-key", signed(payload, key="other", hint="other"))

    # Rightly signed, wrong in itself.
    document = json.loads(payload)

    def root(resources):
        return hashlib.sha256(b"".join(bytes.fromhex(entry["digest"]) for entry in resources)).hexdigest()

    def statement(name, code, change, keep_root=False):
        other = copy.deepcopy(document)
        change(other)
        if not keep_root:
            try:
                other["subject"][0]["digest"]["sha256"] = root(other["predicate"]["resources"])
            except (LookupError, TypeError, ValueError):
                pass
        keep(name, code, signed(json.dumps(other).encode()))

    keep("statement-cut", "mf-json", signed(payload[:-2]))
    twice = payload.replace(b'"predicateType"', b'"predicateType": "", "predicateType"')
    keep("statement-key-twice", "mf-json", signed(twice))
    statement("other-statement", "mf-statement", place("_type", value="https://in-toto.io/Statement/v0.1"))
    statement("other-predicate", "mf-statement", place("predicateType", value="https://slsa.dev/provenance/v1"))
    old = "https://model_signing/Digests/v0.1"
    statement("old-predicate", "mf-unsupported", place("predicateType", value=old))
    statement("no-predicate", "mf-json", place("predicate", value=None))
    statement("no-subject", "mf-statement", place("subject", value=[]))
    statement("two-subjects", "mf-statement", place("subject", value=document["subject"] * 2))
    statement("subject-without-name", "mf-statement", place("subject", 0, "name", value=""))
    without = place("subject", 0, "digest", value={"sha512": ""})
    statement("subject-without-digest", "mf-json", without, keep_root=True)
    statement("root-changed", "mf-root", place("subject", 0, "digest", "sha256", value="0" * 64), keep_root=True)

    serialization = ("predicate", "serialization")
    statement("no-method", "mf-json", place(*serialization, "method", value=None))
    statement("other-method", "mf-unsupported", place(*serialization, "method", value="tensors"))
    statement("other-hash", "mf-unsupported", place(*serialization, "hash_type", value="sha1"))
    statement("links-not-said", "mf-json", place(*serialization, "allow_symlinks", value=None))
    statement("files-with-shard-size", "mf-statement", place(*serialization, "shard_size", value=10))
    everything = place(*serialization, "ignore_paths", value=["."])
    statement("ignores-everything", "mf-name", everything)
    statement("ignores-above", "mf-name", place(*serialization, "ignore_paths", value=["../x"]))
    statement("ignores-what-it-lists", "mf-statement", place(*serialization, "ignore_paths", value=["sub"]))

    first = ("predicate", "resources", 0)
    statement("entry-with-other-hash", "mf-statement", place(*first, "algorithm", value="blake3"))
    digest = document["predicate"]["resources"][0]["digest"]
    statement("digest-in-capitals", "mf-statement", place(*first, "digest", value=digest.upper()))
    statement("digest-cut", "mf-statement", place(*first, "digest", value=digest[:-2]))
    statement("digest-not-hexadecimal", "mf-statement", place(*first, "digest", value="g" * 64))
    for name, value in [
        ("name-absolute", "/etc/passwd"),
        ("name-above", "../config.json"),
        ("name-through-above", "a/../config.json"),
        ("name-with-dot", "./config.json"),
        ("name-empty", ""),
        ("name-with-slash-at-its-end", "config.json/"),
        ("name-is-the-folder", "."),
    ]:
        statement(name, "mf-name", place(*first, "name", value=value))
    entries = document["predicate"]["resources"]
    listed = ("predicate", "resources")
    statement("no-entries", "mf-statement", place(*listed, value=[]))
    statement("entries-not-sorted", "mf-statement", place(*listed, value=entries[::-1]))
    statement("entry-twice", "mf-statement", place(*listed, value=[entries[0], *entries]))

    document = json.loads(base64.b64decode(json.loads((HERE / "file-shards.sig").read_text())[envelope]["payload"]))
    for name, value in [("zero", 0), ("fraction", 10.5), ("negative", -10), ("huge", 1e300), ("missing", None)]:
        statement(f"shard-size-{name}", "mf-statement", place(*serialization, "shard_size", value=value))
    for name, value in [
        ("gap", ".:1:100"),
        ("too-long", ".:0:101"),
        ("backwards", ".:100:0"),
        ("empty", ".:0:0"),
        ("unnamed", "."),
        ("zeros-before", ".:00:100"),
    ]:
        statement(f"shard-{name}", "mf-statement", place(*first, "name", value=value))


if __name__ == "__main__":
    keys()
    models()
    bundles()
    minisign()
    refused()
