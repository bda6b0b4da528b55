#!/usr/bin/env bash
# Makes the example models beside this file with `apr`, which has to be on PATH: `make.sh FOLDER` writes them into FOLDER.
# The same release of `apr` makes the same bytes, but for what has a salt or a key in it: locked.apr, signed.sealed.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$here/../../../.."
out="${1:?the folder to write into}"
mkdir -p "$out"
secret="$(mktemp -d)"
trap 'rm -rf "$secret"' EXIT
export SOURCE_DATE_EPOCH=0
cd "$here"

apr train naive-bayes --data iris.csv --target species --name 'iris' --compression zstd -o "$out/iris.apr" \
  --description 'Which of three kinds of iris a flower is, by the lengths and widths of its leaves'

apr train mlp --hidden 64,64 --seed 7 --data iris.csv --target species --name 'iris network' -o "$secret/network.apr"
apr convert "$secret/network.apr" "$out/network.safetensors"

apr quantize "$root/crates/conformance/vectors/gguf/files/tiny_llama_f32.gguf" --type q4_k_m --no-provenance -o "$out/tiny-llama.gguf"

apr train linear-regression --data "$root/crates/apr-tools/data/longley.csv" --target employed --name 'employment' \
  --description 'People with work in the United States, 1947 to 1962, in thousands' -o "$secret/employment.apr"
(umask 077 && printf 'open sesame\n' > "$secret/password")
apr encrypt "$secret/employment.apr" --password-file "$secret/password" -o "$out/locked.apr"

apr keygen sign --comment 'example of the page' -o "$secret/example.key"
apr seal "$out/network.safetensors" --sign "$secret/example.key" -o "$out/signed.sealed"
cp "$secret/example.key.pub" "$out/signed.key.pub"
