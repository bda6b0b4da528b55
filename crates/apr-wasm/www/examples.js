// The models beside this page; `examples/README.md` says how each was made.

export const EXAMPLES = [
  { file: "iris.apr", title: "A classifier", text: "Classifies irises; an .apr file.", row: [6.1, 2.8, 4.9, 1.7] },
  { file: "network.safetensors", title: "A small neural network", text: "Classifies irises; a safetensors file of seven tensors.", row: [6.1, 2.8, 4.9, 1.7] },
  { file: "tiny-llama.gguf", title: "A quantized language model", text: "A test-size model: GGUF with three dtypes." },
  { file: "locked.apr", title: "An encrypted model", text: "Password: open sesame", password: "open sesame", row: [83.0, 234289, 2356, 1590, 107608, 1947] },
  { file: "signed.sealed", title: "A signed model", text: "A sealed file. Verify it with the signer's key.", key: "signed.key.pub", row: [6.1, 2.8, 4.9, 1.7] },
];
