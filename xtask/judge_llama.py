"""Lets llama.cpp load, evaluate and continue with models that `apr` and gguf-core wrote.

usage: judge_llama.py APR SMALL FOLDER

SMALL is the small llama of the vectors. FOLDER holds what the example `wide_llama` wrote; what `apr` makes goes there
too. Prints one line for each file and fails at the first that is not as it should be:

- what holds the same numbers as another file (exported and back, keys changed, in shards) has its
  logits, bit for bit, and the same words follow;
- the vectors beside SMALL are read or refused as recorded, the header alone and with the data;
- what is quantized loads with its blocks validated, and its logits are those of the same file made plain by
  `apr convert --dequantize f32`, but for the 8 bits to which llama.cpp rounds what it multiplies blocks with. How far
  they are from those of the F32 file is printed: deviations, the largest difference, Kullback and Leibler's divergence,
  and at how many words of the prompt the same word is the likeliest to follow.
"""

import ctypes
import json
import math
import pathlib
import struct
import subprocess
import sys

import llama_cpp.llama_cpp as api
import numpy as np

APR, SMALL, FOLDER = (pathlib.Path(word) for word in sys.argv[1:])
PROMPT = "The quick brown fox jumps over the lazy dog; 0123456789"
GENERATED = 16

TYPES = """
F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0
MXFP4_MOE NVFP4 Q1_0 Q2_0
""".split()

# Of what the logits differ by, root mean square over their deviation. A number rounded to one of 255 steps up to the
# largest of its block is off by about 1/200 of its deviation, and so is a product; a few products follow each other.
ROUNDED = 0.05

# Keys that say where a quantized file comes from.
ADDED = ("apr.quantize.", "quantize.imatrix.")

complaints = []


@api.llama_log_callback
def listen(level, text, _data):
    if level in (2, 3):
        complaints.append(text.decode("utf-8", "replace").strip())


def fail(path, why):
    sys.exit(f"llama.cpp: {path.name}: {why}\n" + "\n".join(complaints[-8:]))


class Answer:
    """What llama.cpp makes of a file."""

    def __init__(self, path):
        complaints.clear()
        params = api.llama_model_default_params()
        params.check_tensors = True
        params.n_gpu_layers = 0
        # Other layouts of blocks, which round elsewhere and need instructions that not every virtual machine allows.
        params.use_extra_bufts = False
        self.model = api.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            fail(path, "not loaded")
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = 128, 128, 128
        params.n_threads = params.n_threads_batch = 1
        self.context = api.llama_init_from_model(self.model, params)
        if not self.context:
            fail(path, "no context")
        vocabulary = api.llama_model_get_vocab(self.model)
        self.words = api.llama_vocab_n_tokens(vocabulary)
        text = PROMPT.encode()
        tokens = (api.llama_token * 128)()
        count = api.llama_tokenize(vocabulary, text, len(text), tokens, len(tokens), True, False)
        if count <= 1:
            fail(path, "the prompt has no tokens")
        self.tokens = list(tokens[:count])
        self.keys = self.metadata()
        self.logits = self.evaluate(path, self.tokens, 0)
        self.generated = []
        last = self.logits[-1]
        while len(self.generated) < GENERATED:
            self.generated.append(int(last.argmax()))
            last = self.evaluate(path, self.generated[-1:], count + len(self.generated) - 1)[-1]
        api.llama_free(self.context)
        api.llama_model_free(self.model)

    def metadata(self):
        keys = {}
        text = ctypes.create_string_buffer(1 << 16)
        for idx in range(api.llama_model_meta_count(self.model)):
            api.llama_model_meta_key_by_index(self.model, idx, text, len(text))
            key = text.value.decode()
            api.llama_model_meta_val_str_by_index(self.model, idx, text, len(text))
            keys[key] = text.value.decode()
        return keys

    def evaluate(self, path, tokens, place):
        batch = api.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for idx, token in enumerate(tokens):
            batch.token[idx], batch.pos[idx], batch.logits[idx] = token, place + idx, True
            batch.n_seq_id[idx] = 1
            batch.seq_id[idx][0] = 0
        status = api.llama_decode(self.context, batch)
        api.llama_batch_free(batch)
        if status:
            fail(path, f"not evaluated, status {status}")
        rows = api.llama_get_logits(self.context)
        logits = np.ctypeslib.as_array(rows, (len(tokens) * self.words,)).reshape(len(tokens), self.words).copy()
        if not np.isfinite(logits).all():
            fail(path, "logits that are not finite")
        return logits


def apr(*words):
    words = [str(word) for word in (APR, *words)]
    ran = subprocess.run(words, cwd=FOLDER, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(words)}: exit {ran.returncode}\n{ran.stderr}")


def divergence(answer, other):
    """How much is lost by taking `other` for `answer`: mean over the prompt of Kullback and Leibler's sum, in bits."""
    def logarithms(logits):
        logits = logits.astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    expected, found = logarithms(answer.logits), logarithms(other.logits)
    return float((np.exp(expected) * (expected - found)).sum(axis=1).mean() / math.log(2))


def distance(answer, other):
    difference = answer.logits.astype(np.float64) - other.logits
    return float(np.sqrt((difference**2).mean()) / answer.logits.std())


def judge(name, original, is_same, but=()):
    """Compares a file with what the original gave; `but` are keys that are meant to differ."""
    path = FOLDER / name
    answer = Answer(path)
    if answer.tokens != original.tokens:
        fail(path, f"tokens {answer.tokens}, not {original.tokens}")
    keys = {key: value for key, value in answer.keys.items() if key not in but and not key.startswith(ADDED)}
    expected = {key: value for key, value in original.keys.items() if key not in but}
    if keys != expected:
        fail(path, f"keys {sorted(set(keys.items()) ^ set(expected.items()))}")
    size = path.stat().st_size
    if is_same:
        if answer.logits.tobytes() != original.logits.tobytes() or answer.generated != original.generated:
            fail(path, f"logits differ by up to {np.abs(answer.logits - original.logits).max()}")
        print(f"{path.name:34} {size:9}  the same logits, the same {GENERATED} words", flush=True)
        return answer
    plain = FOLDER / "plain.gguf"
    apr("convert", name, plain.name, "--dequantize", "f32", "--force")
    rounded = distance(Answer(plain), answer)
    same = (answer.logits.argmax(axis=1) == original.logits.argmax(axis=1)).mean() * 100
    if rounded > ROUNDED:
        fail(path, f"logits are {rounded:.4f} deviations from those of the plain file")
    largest = np.abs(answer.logits - original.logits).max()
    print(
        f"{path.name:34} {size:9} {rounded:9.5f} {distance(original, answer):9.4f} {largest:9.3f}"
        f" {divergence(original, answer):9.4f} {same:5.0f} %",
        flush=True,
    )
    return answer


def importance():
    """Weights for every column of the wide llama, in a file of llama-imatrix, the older kind."""
    matrices = "attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down".split()
    names = [f"blk.{layer}.{matrix}.weight" for layer in range(2) for matrix in matrices] + ["output.weight"]
    file = struct.pack("<i", len(names))
    for name in names:
        count = 512 if "ffn_down" in name else 256
        weights = (0.5 + (idx * 7 % 16) / 16 for idx in range(count))
        file += struct.pack("<i", len(name)) + name.encode() + struct.pack(f"<ii{count}f", 1, count, *weights)
    return file


def exports(stem, original):
    """Through another format and back, and with other keys."""
    source = f"{stem}.gguf"
    for suffix in ("safetensors", "apr"):
        apr("convert", source, f"{stem}.{suffix}", "--force")
        name = f"{stem}-from-{suffix}.gguf"
        apr("export", f"{stem}.{suffix}", "--format", "gguf", "--output", name, "--force")
        # An `.apr` file names its model in one more entry.
        judge(name, original, True, but=("model_type",))
    name = f"{stem}-renamed.gguf"
    changes = ["--set", "general.name=another name", "--set", "general.added=new", "--order", "name"]
    apr("convert", source, name, *changes, "--force")
    changed = judge(name, original, True, but=("general.name", "general.added"))
    found = changed.keys.get("general.name"), changed.keys.get("general.added")
    if found != ("another name", "new"):
        fail(FOLDER / name, f"keys {found}")


class OpenParams(ctypes.Structure):
    _fields_ = [("no_alloc", ctypes.c_bool), ("tensors", ctypes.POINTER(ctypes.c_void_p))]


def verdicts():
    """The reader of the files alone, on the vectors that were made to tell readers apart."""
    read = api._lib.gguf_init_from_file
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.c_char_p, OpenParams]
    folder = SMALL.parent.parent
    sidecars = sorted((folder / "parser").glob("*.vector.json"))
    for sidecar in sidecars:
        entry = json.loads(sidecar.read_text("utf-8"))
        path = sidecar.with_name(sidecar.name.removesuffix(".vector.json"))
        tensors = ctypes.pointer(ctypes.c_void_p())
        for column, params in [("llama_metadata_only", OpenParams(True)), ("llama_with_data", OpenParams(False, tensors))]:
            found = read(str(path).encode(), params) is not None
            if found != (entry[column] == "accept"):
                fail(path, f"{'read' if found else 'refused'}, recorded is {entry[column]!r}")
    print(f"{len(sidecars)} vectors read or refused as recorded", flush=True)


def main():
    api.llama_log_set(listen, ctypes.c_void_p(0))
    api.llama_backend_init()
    print(api.llama_print_system_info().decode())
    verdicts()
    (FOLDER / "small.gguf").write_bytes(SMALL.read_bytes())
    (FOLDER / "importance.dat").write_bytes(importance())
    print(f"{'file':34} {'bytes':>9} {'to plain':>9} {'to F32':>9} {'largest':>9} {'KL, bits':>9} {'first':>7}")
    originals = {}
    for stem in ("small", "wide"):
        originals[stem] = original = Answer(FOLDER / f"{stem}.gguf")
        exports(stem, original)
    for prefix in ("split-00001-of-00003", "keys-first-00001-of-00004"):
        judge(f"{prefix}.gguf", originals["wide"], True, but=("split.no", "split.count", "split.tensors.count"))
    cases = [(stem, quantized, ()) for stem in originals for quantized in TYPES]
    cases += [("wide", quantized, ("--pure",)) for quantized in TYPES]
    cases += [("wide", quantized, ("--imatrix", "importance.dat")) for quantized in ("Q2_K_S", "Q4_K_M", "IQ4_XS", "Q4_0")]
    for stem, quantized, options in cases:
        name = "-".join([stem, quantized, *(word.strip("-") for word in options[:1])]) + ".gguf"
        apr("quantize", f"{stem}.gguf", "--type", quantized, "--output", name, "--force", *options)
        but = ("general.file_type", "general.quantization_version")
        judge(name, originals[stem], False, but)


main()
