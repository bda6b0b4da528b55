"""Lets minisign and model-signing judge signatures by `apr`, and `apr` theirs.

usage: judge_signatures.py APR SCRATCH WHAT

WHAT is `minisign` (the program on PATH) or `model-signing` (the library of this Python). SCRATCH is an empty folder. Prints one
line for each case and fails at the first that is not as it should be.
"""

import os
import pathlib
import shutil
import subprocess
import sys

APR, SCRATCH, WHAT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]


def call(*words, expected=0):
    words = [str(word) for word in words]
    ran = subprocess.run(words, cwd=SCRATCH, capture_output=True, text=True)
    if ran.returncode != expected:
        sys.exit(f"{' '.join(words)}: exit {ran.returncode}, not {expected}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def apr(*words, expected=0):
    return call(APR, *words, expected=expected)


def secret(name):
    os.chmod(SCRATCH / name, 0o600)
    return name


def models():
    """A file, a folder with folders, a sharded checkpoint; one file larger than any buffer."""
    (SCRATCH / "folder/sub/deep").mkdir(parents=True)
    (SCRATCH / "folder/.git").mkdir()
    (SCRATCH / "folder/.git/config").write_bytes(b"not signed")
    (SCRATCH / "folder/.gitattributes").write_bytes(b"not signed")
    (SCRATCH / "folder/config.json").write_bytes(b"{}")
    (SCRATCH / "folder/empty").write_bytes(b"")
    (SCRATCH / "folder/sub.txt").write_bytes(b"beside sub")
    (SCRATCH / "folder/sub/deep/\u00fcn\u00ef \u9375").write_bytes(b"named beyond ASCII, with a space")
    (SCRATCH / "folder/weights.bin").write_bytes(bytes(range(256)) * 8192)
    (SCRATCH / "file.gguf").write_bytes(bytes(reversed(range(256))) * 4099)
    (SCRATCH / "sharded").mkdir()
    for shard in range(1, 4):
        (SCRATCH / f"sharded/model-0000{shard}-of-00003.safetensors").write_bytes(bytes([shard]) * 100_000)
    (SCRATCH / "sharded/model.safetensors.index.json").write_bytes(b'{"weight_map": {}}')


def changes(model):
    """Each way of being another model, undone after it was looked at."""
    if model.is_file():
        paths = [model]
    else:
        paths = [path for path in sorted(model.rglob("*")) if path.is_file() and not path.name.startswith(".git")]
        paths = [path for path in paths if ".git" not in path.parts and path.suffix != ".sig"]
    changed = max(paths, key=lambda path: path.stat().st_size)
    content = changed.read_bytes()
    changed.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    yield "changed"
    changed.write_bytes(content[:-1])
    yield "cut"
    changed.write_bytes(content)
    if model.is_dir():
        added = model / "added.py"
        added.write_bytes(b"import os")
        yield "added to"
        added.unlink()
        changed.unlink()
        yield "taken from"
        changed.write_bytes(content)


def judge_minisign():
    print(call("minisign", "-v").strip())
    call("minisign", "-G", "-W", "-p", "theirs.pub", "-s", "theirs.key")
    call("openssl", "genpkey", "-algorithm", "ed25519", "-out", "ours.pem")
    call("openssl", "pkey", "-in", "ours.pem", "-pubout", "-out", "ours.pub")
    secret("ours.pem")
    secret("theirs.key")
    for name in ["file.gguf", "folder/weights.bin", "folder/empty"]:
        # With the same key file.
        apr("sign", name, "--key", "theirs.key", "--comment", "by apr")
        call("minisign", "-V", "-p", "theirs.pub", "-m", name)
        apr("verify", name, "--key", "theirs.pub")
        for how in changes(SCRATCH / name) if name != "folder/empty" else []:
            call("minisign", "-V", "-p", "theirs.pub", "-m", name, expected=1)
            apr("verify", name, "--key", "theirs.pub", expected=4)
        for legacy in [[], ["-l"]]:
            call("minisign", "-S", *legacy, "-s", "theirs.key", "-m", name, "-t", "by minisign")
            if "by minisign" not in apr("verify", name, "--key", "theirs.pub"):
                sys.exit("the trusted comment is not shown")
            for how in changes(SCRATCH / name) if name != "folder/empty" else []:
                apr("verify", name, "--key", "theirs.pub", expected=4)
            apr("verify", name, "--key", "ours.pub", expected=4)
        (SCRATCH / f"{name}.minisig").unlink()
        print(f"minisign: {name}: both ways, and refused when changed")
    # A key under a password, as minisign makes it by default: 1 GiB, some seconds.
    password = "correct horse"
    made = ["minisign", "-G", "-p", "locked.pub", "-s", "locked.key"]
    subprocess.run(made, cwd=SCRATCH, input=f"{password}\n{password}\n", text=True, check=True, capture_output=True)
    (SCRATCH / "password").write_text(f"{password}\n")
    (SCRATCH / "wrong").write_text("wrong horse\n")
    secret("locked.key"), secret("password"), secret("wrong")
    apr("sign", "file.gguf", "--key", "locked.key", "--key-password-file", "wrong", expected=4)
    apr("sign", "file.gguf", "--key", "locked.key", "--key-password-file", "password")
    call("minisign", "-V", "-p", "locked.pub", "-m", "file.gguf")
    print("minisign: a key under a password signs")


def judge_model_signing():
    import importlib.metadata

    import model_signing

    print(f"model-signing {importlib.metadata.version('model-signing')}")
    call("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-out", "key.pem")
    call("openssl", "ec", "-in", "key.pem", "-pubout", "-out", "key.pub")
    secret("key.pem")

    def theirs_accepts(model, signature):
        config = model_signing.verifying.Config().use_elliptic_key_verifier(public_key=SCRATCH / "key.pub")
        try:
            # Which method and hash: what the signature says.
            config.verify(SCRATCH / model, SCRATCH / signature)
        except Exception as error:
            return str(error) or repr(error)
        return None

    def both_verify(model, signature, whose):
        error = theirs_accepts(model, signature)
        if error is not None:
            sys.exit(f"model-signing refuses {signature}, {whose}: {error}")
        apr("verify", model, "--key", "key.pub", "--signature", signature)
        for how in changes(SCRATCH / model):
            if theirs_accepts(model, signature) is None:
                sys.exit(f"model-signing takes {model}, {how}, with {signature}, {whose}")
            apr("verify", model, "--key", "key.pub", "--signature", signature, expected=4)
        print(f"model-signing: {signature}, {whose}: both verify, and refuse when changed")

    config = model_signing.signing.Config().use_elliptic_key_signer(private_key=SCRATCH / "key.pem")
    for model in ["file.gguf", "folder", "sharded"]:
        for size in [[], ["--shard-size", "1000"], ["--shard-size", "1GB"]]:
            signature = f"{model}{''.join(size)}.sig"
            apr("sign", model, "--key", "key.pem", "-o", signature, *size)
            both_verify(model, signature, "by apr")
        config.set_hashing_config(model_signing.hashing.Config())
        config.sign(SCRATCH / model, SCRATCH / f"{model}-theirs.sig")
        both_verify(model, f"{model}-theirs.sig", "by model-signing")
        # It cannot read what it writes with these; ours can.
        shards = model_signing.hashing.Config().use_shard_serialization(shard_size=1000)
        blake2b = model_signing.hashing.Config().use_file_serialization(hashing_algorithm="blake2")
        for name, hashing in [("shards", shards), ("blake2b", blake2b)]:
            config.set_hashing_config(hashing)
            config.sign(SCRATCH / model, SCRATCH / f"{model}-{name}.sig")
            apr("verify", model, "--key", "key.pub", "--signature", f"{model}-{name}.sig")
            for how in changes(SCRATCH / model):
                apr("verify", model, "--key", "key.pub", "--signature", f"{model}-{name}.sig", expected=4)
            print(f"model-signing: {model}-{name}.sig, by model-signing: apr verifies, and refuses when changed")
    # Inside the folder, under the usual name, with their command line, which ignores the signature.
    apr("sign", "folder", "--key", "key.pem")
    command = [sys.executable, "-m", "model_signing", "verify", "key", "folder"]
    call(*command, "--signature", "folder/model.sig", "--public_key", "key.pub")
    apr("verify", "folder", "--key", "key.pub")
    call(sys.executable, "-m", "model_signing", "sign", "key", "folder", "--private_key", "key.pem",
         "--signature", "folder/model.sig")
    apr("verify", "folder", "--key", "key.pub")
    print("model-signing: folder/model.sig: both command lines, both ways")


if __name__ == "__main__":
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    models()
    {"minisign": judge_minisign, "model-signing": judge_model_signing}[WHAT]()
