// The models beside this page; `examples/README.md` says how each was made.

export const EXAMPLES = [
  { file: "iris.apr", title: "A classifier", text: "Kinds of iris, in an .apr file. Predicts.", row: [6.1, 2.8, 4.9, 1.7] },
  { file: "network.safetensors", title: "A small neural network", text: "Seven tensors, in a safetensors file. Predicts.", row: [6.1, 2.8, 4.9, 1.7] },
  { file: "tiny-llama.gguf", title: "A quantized language model", text: "GGUF, three types of tensors. Too small to talk." },
  { file: "locked.apr", title: "An encrypted model", text: "Asks for its password: open sesame", password: "open sesame", row: [83.0, 234289, 2356, 1590, 107608, 1947] },
  { file: "signed.sealed", title: "A signed model", text: "In a sealed file. Bring the signer's key to check it.", key: "signed.key.pub", row: [6.1, 2.8, 4.9, 1.7] },
];
