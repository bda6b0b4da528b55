"""Copies the peers' files beside this script and writes their sidecars, `payloads` and inputs.json.

    python3 make_sidecars.py FOLDER

FOLDER holds the files and the MANIFEST.json of the program that wrote them: one linked against each release
named there. Only facts about the files are kept, and what was reviewed in sidecars of malicious files. The same folder
gives the same bytes.
"""

import hashlib
import json
import pathlib
import shutil
import sys

# The models of files that do not name their type.
TYPES = {
    "linreg": "LinearRegression",
    "logreg": "LogisticRegression",
    "kmeans": "KMeans",
    "dtree": "DecisionTreeClassifier",
    "rforest": "RandomForestClassifier",
    "ridge": "Ridge",
    "moe": "MixtureOfExperts",
}

# The peers' word in front of a reason, if there is one.
VERDICTS = ["accept-as-untrusted", "accept", "reject-strict", "reject", "implementation-choice"]


def stem(file):
    """The peer and the model: a0100_linreg of a0100_linreg_none_plain.apr."""
    return "_".join(file.split(".")[0].split("_")[:2])


def short_type(entry):
    name = entry.get("rust_type")
    if name is None:
        return TYPES.get(stem(entry["file"]).split("_")[1])
    if "MixtureOfExperts" in name or "Moe" in name:
        return "MixtureOfExperts"
    return "Vec<f32>" if name.endswith("Vec<f32>") else name.split("::")[-1]


def expected(values):
    """Floats by their bits, eight hexadecimal digits each; the rows predicted are those at the top."""
    out = {}
    for key, value in (values or {}).items():
        if key != "x":
            out[key] = " ".join(value["bits_hex"]) if isinstance(value, dict) else value
    return out


class Payloads:
    """Distinct payloads by name."""

    def __init__(self):
        self.by_facts = {}
        self.by_name = {}

    def add(self, entry, kind, facts):
        key = json.dumps([kind, facts], sort_keys=True)
        if key not in self.by_facts:
            name = stem(entry["file"])
            while name in self.by_name:
                name += "+"
            self.by_facts[key] = name
            self.by_name[name] = {"type": kind, **facts}
        return self.by_facts[key]


def v1(entry, payloads):
    facts = {"len": entry["payload_len"], "sha256": entry["payload_sha256"]}
    if "payload_hex" in entry:
        facts["hex"] = entry["payload_hex"]
    if entry.get("model") is not None:
        facts["model"] = entry["model"]
    facts["expected"] = expected(entry.get("expected"))
    if "rust_fields" in entry:
        facts["fields"] = entry["rust_fields"]
    header = entry["header"]
    return {
        "protection": entry["protection"],
        "requested": entry["requested_compression"],
        "header": {
            "version": header["version"],
            "model_type": entry["model_type_id"],
            "metadata_size": header["metadata_size"],
            "payload_size": header["payload_size"],
            "uncompressed_size": header["uncompressed_size"],
            "compression": entry["compression_byte"],
            "flags": entry["flags_byte"],
            "quality": header["byte22_quality"],
            "crc32": header["crc32_hex"],
        },
        "metadata": entry["metadata"],
        "payload": payloads.add(entry, short_type(entry), facts),
    }


def v2(entry):
    tensors = [
        {
            "name": tensor["name"],
            "dtype": tensor["dtype_id"],
            "shape": tensor["shape"],
            "offset": tensor["offset"],
            "size": tensor["size"],
            "sha256": tensor["data_sha256"],
        }
        for tensor in entry["tensors"]
    ]
    header = {key.removesuffix("_le").removesuffix("_hex"): value for key, value in entry["header"].items()}
    out = {"header": header, "metadata": entry["metadata"], "tensors": tensors}
    if "source_f32_bits" in entry:
        out["source"] = " ".join(entry["source_f32_bits"])
    return out


def file_facts(entry, payloads, raw):
    out = {"file": entry["file"], "size": entry["file_size"], "sha256": entry["file_sha256"]}
    out |= {"container": entry["container"].split(" ")[0].lower(), "peer": entry["peer"]}
    if entry["container"] == "apr-v1":
        out |= v1(entry, payloads)
    elif entry["container"] == "apr-v2":
        out |= v2(entry)
    elif entry["container"] == "safetensors":
        out |= {"type": short_type(entry), "model": entry["model"], "expected": expected(entry["expected"])}
    elif out["container"] == "raw-bincode":
        out["payload"] = raw[entry["file_sha256"]]
    elif entry["container"] == "gguf-v3":
        out["expected"] = expected(entry["expected"])
    if "note" in entry:
        out["note"] = entry["note"]
    return out


def hostile_facts(entry):
    suggested = entry["suggested"]
    verdict = next(word for word in VERDICTS if suggested.startswith(word))
    why = entry.get("why") or suggested.removeprefix(verdict).strip(" ()")
    out = {"file": entry["file"], "size": entry["size"], "sha256": entry["sha256"]}
    return out | {"container": entry["container"], "suggested": verdict, "why": why}


def reviewed(sidecar):
    """What our readers answer to a malicious file, if that was reviewed."""
    known = json.loads(sidecar.read_text("utf-8")) if sidecar.exists() else {}
    return {level: known[level] for level in ("strict", "compat") if level in known}


def order(entry):
    """Payloads are named after the file with the shortest name, and come before what repeats them."""
    return (entry["container"] != "apr-v1", entry["peer"], len(stem(entry["file"])), entry["file"])


def write(path, facts):
    """A line for each field, sorted by name."""
    compact = {key: json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True) for key, value in facts.items()}
    lines = [f"  {json.dumps(key)}: {value}" for key, value in sorted(compact.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def main():
    source = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    given = json.loads((source / "MANIFEST.json").read_text())
    payloads = Payloads()
    entries = sorted(given["entries"], key=order)
    raw, files, rows, keys = {}, [], None, {}
    for entry in entries:
        facts = file_facts(entry, payloads, raw)
        if entry["container"] == "apr-v1":
            # The same bytes without a container: the payload of a peer's own files has its own name.
            raw.setdefault(entry["payload_sha256"], facts["payload"])
        rows = (entry.get("expected") or {}).get("x", rows)
        if entry.get("keys"):
            keys[entry["protection"]] = entry["keys"]
        files.append(facts)
    hostile = [hostile_facts(entry) for entry in given["hostile"]]

    for facts in files + hostile:
        file = facts.pop("file")
        data = (source / file).read_bytes()
        if (len(data), hashlib.sha256(data).hexdigest()) != (facts["size"], facts["sha256"]):
            sys.exit(f"{file} is not the file its manifest describes")
        (here / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(source / file, here / file)
        sidecar = here / f"{file}.vector.json"
        write(sidecar, facts | reviewed(sidecar))

    (here / "payloads").mkdir(exist_ok=True)
    for name, payload in payloads.by_name.items():
        write(here / "payloads" / f"{name}.json", payload)
    write(here / "inputs.json", {"rows": rows, "keys": keys})


main()
