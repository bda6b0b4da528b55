// The page: takes a model from wherever it comes, and shows what is in it.

import { figures, histogram, shares, sharesView } from "./chart.js";
import { Client, ownScript } from "./client.js";
import { byId, el, facts } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { metadataView } from "./metadata.js";
import { predictForm } from "./predict.js";
import { detachedForm, protectionInShort, protectionView } from "./protection.js";
import { scanView } from "./scan.js";
import { brief, bytes, count, cut, percent, plural, shape, short, visible } from "./text.js";
import { Tree, matching, summaryOf } from "./tree.js";

const FORMATS = {
  gguf: "GGUF", apr: ".apr", torch: "PyTorch", "torch-legacy": "PyTorch, before 1.6", torchscript: "TorchScript",
  "torch-export": "PyTorch exported program", npy: "NumPy array", npz: "NumPy archive", hdf5: "HDF5", keras: "Keras", onnx: "ONNX",
  tflite: "TensorFlow Lite", "saved-model": "TensorFlow SavedModel", "tf-checkpoint": "TensorFlow checkpoint", msgpack: "Flax",
};
/** Formats that hold no code. */
const WITHOUT_CODE = new Set(["safetensors", "apr", "gguf", "sealed"]);
const formatOf = ({ format, version }) => (FORMATS[format] ?? format) + (format === "apr" ? `, version ${version}` : "");
/** Of a sealed file, the one inside. */
const isGguf = ({ format, innerFormat }) => (innerFormat ?? format) === "gguf";
const FILTER_DELAY_MS = 120;

const client = new Client();
const here = new URL(location.href);

/** The file that is shown: its name, where it came from, and what the worker said of it last. */
let shown = null;

// ---- Words for what happens ------------------------------------------------------------------------------------------------------

const say = (...words) => byId("status").replaceChildren(...words);

const LABELS = { code: "Code", tensor: "Tensor", key: "Key", offset: "Offset" };

/** What to do here, where the package's own advice is for programs. */
const HELP = {
  "ac-encrypted": "open it first, under Protection",
  "ac-signed": "check the signature first, under Protection, with the public key of the expected signer",
  "aw-trap": "open the file again; if that happens again, please report the file",
  "aw-memory": "this browser does not have enough memory for it",
  "aw-too-large": "download the file and drop it here",
};

/** An error as an element: what, where, what to do. */
function explain(error) {
  const help = HELP[error.code] ?? error.help;
  const where = Object.entries(LABELS).filter(([field]) => error[field] !== undefined && error[field] !== null && error[field] !== "");
  return el("div", { class: "problem" },
    el("p", {}, el("strong", {}, visible(cut(error.message ?? String(error), 600).text))),
    help ? el("p", {}, visible(cut(help, 600).text)) : null,
    where.length > 0 ? facts(where.map(([field, label]) => [label, el("code", {}, brief(String(error[field])))])) : null);
}

function fail(error, ...more) {
  say();
  byId("problem").replaceChildren(explain(error), ...more);
}

window.addEventListener("error", ({ error, message }) => fail(error ?? { message }));
window.addEventListener("unhandledrejection", ({ reason }) => {
  // A question about a file that is no longer open.
  if (reason?.code !== "page-stopped") fail(reason ?? { message: "something went wrong" });
});

// ---- Opening ---------------------------------------------------------------------------------------------------------------------

async function open({ name, source, url, example }) {
  const opened = { name, source, url, example };
  shown = opened;
  byId("problem").replaceChildren();
  byId("file").hidden = true;
  document.body.classList.add("has-file");
  say(`Reading ${brief(name)} …`);
  document.title = `${brief(name, 60)}: apr`;
  try {
    const described = await client.ask("open", source ? { source } : { url: url.href }, (progress) => {
      if (shown === opened && progress.bytesRead) say(`Reading ${brief(name)}: ${bytes(progress.bytesRead)} read …`);
    });
    if (shown !== opened) return;
    opened.file = described;
    show();
    const held = described.protection.needs ? "encrypted" : plural(described.tensors.length, "tensor");
    say(`${brief(name)} is open: ${formatOf(described)}, ${held}.`);
    byId("file-title").focus({ preventScroll: true });
    byId("file").scrollIntoView({ block: "start" });
  } catch (error) {
    if (shown !== opened) return;
    const remote = url && url.origin !== location.origin;
    fail(error, ...(remote ? [elsewhere(url)] : []));
    await warnOfUnopened(opened);
  }
}

/** The verdict for a file that cannot be shown, if it is not safe. */
async function warnOfUnopened(opened) {
  const report = await askForScan(opened).catch(() => null);
  if (shown !== opened || report === null || report.verdict === "safe") return;
  byId("file").replaceChildren(
    el("div", { class: "file-head" }, el("h2", { id: "file-title", tabindex: "-1" }, brief(opened.name))),
    section("scan", "Safety", ...scanView(report)));
  byId("file").hidden = false;
}

const askForScan = ({ source, url }) => client.ask("scan", source ? { source } : { url: url.href });

/** What to do about a server that sends readers to another one. */
function elsewhere(url) {
  const again = new URL(here);
  again.search = new URLSearchParams({ url: url.href, redirects: "any" }).toString();
  return el("div", { class: "problem soft" },
    el("p", {}, `The page may connect to ${url.origin} and to its own server only. If that server redirects to another one, or does `
      + "not let other pages read its files (CORS), the browser refuses."),
    here.searchParams.get("redirects") === "any" ? null
      : el("p", {}, el("a", { href: again.href }, "Try again, and allow connections to any https server")));
}

function openFile(chosen) {
  client.stop("another file was opened");
  return open({ name: chosen.name, source: chosen });
}

async function openExample(example) {
  const before = shown;
  byId("problem").replaceChildren();
  const response = await fetch(`examples/${example.file}`);
  if (shown !== before) return;
  if (!response.ok) throw new Error(`${example.file}: the server answered ${response.status}`);
  client.stop("another file was opened");
  await open({ name: example.file, source: await response.blob(), example });
}

// ---- The file --------------------------------------------------------------------------------------------------------------------

const section = (id, title, ...content) =>
  el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...content);

function show() {
  const { name, file } = shown;
  const parts = [
    el("div", { class: "file-head" }, el("h2", { id: "file-title", tabindex: "-1" }, brief(name)), overview()),
    WITHOUT_CODE.has(file.format) ? null : scanSection(),
    notices(file),
    ...(file.protection.needs ? [protectionSection(), modelSection()] : [modelSection()]),
    file.tensors.length > 0 ? tensorsSection(file.tensors) : null,
    file.tensors.length > 0 ? section("types", "Types", sharesView(file.tensors)) : null,
    section("metadata", "Metadata", metadataView(file.metadata, isGguf(file) ? (key) => client.ask("entries", { key }) : null)),
    file.protection.needs ? null : protectionSection(),
    digestSection(),
  ];
  byId("file").replaceChildren(...parts.filter(Boolean));
  byId("file").hidden = false;
}

function overview() {
  const { file, url } = shown;
  const { whole, types } = shares(file.tensors);
  const parameters = types.reduce((sum, type) => sum + type.parameters, 0);
  return facts([
    ["Format", formatOf(file)],
    file.size === null || file.size === undefined ? null : ["Size", el("span", { title: `${count(file.size)} bytes` }, bytes(file.size))],
    file.tensors.length > 0 ? ["Tensors", count(file.tensors.length)] : null,
    parameters > 0 ? ["Parameters", el("span", { title: count(parameters) }, short(parameters))] : null,
    parameters > 0 ? ["Bits per weight", String(Number(((8 * whole) / parameters).toPrecision(4)))] : null,
    file.model ? ["Model", visible(file.model.type)] : null,
    ["Protection", protectionInShort(file.protection)],
    url ? ["Read so far", el("span", { id: "bytes-read" }, bytesRead(file))] : null,
  ]);
}

const bytesRead = ({ bytesRead: read, size }) =>
  `${bytes(read)}${size ? ` of ${bytes(size)} (${count(read)} of ${count(size)} bytes)` : ""}`;

function updateBytesRead(read) {
  shown.file.bytesRead = read;
  const place = byId("bytes-read");
  if (place) place.textContent = bytesRead(shown.file);
}

/** What loading the file would run; asked for once. */
function scanSection() {
  const of = shown;
  const place = el("div", { role: "status", "aria-live": "polite" }, el("p", {}, "Scanning …"));
  of.scan ??= askForScan(of);
  of.scan.then((report) => {
    if (shown === of) place.replaceChildren(...scanView(report));
  }, (error) => {
    if (shown !== of) return;
    place.replaceChildren(el("p", { class: "state verdict-line suspicious" }, el("strong", {}, "Not scanned. "), "Whether loading this file is safe is not known."),
      explain(error));
  });
  return section("scan", "Safety", place);
}

function notices({ warnings, notes }) {
  const all = [...warnings.map(({ message }) => ["warning", message]), ...notes.map(({ message }) => ["note", message])];
  if (all.length === 0) return null;
  const list = el("ul", { class: "notices" }, all.slice(0, 50).map(([kind, message]) =>
    el("li", { class: kind }, el("strong", {}, kind === "warning" ? "Warning: " : "Note: "), visible(cut(message, 600).text))));
  if (all.length > 50) list.append(el("li", {}, `and ${count(all.length - 50)} more`));
  return section("notices", all.length === 1 ? "1 warning or note" : `${all.length} warnings and notes`, list);
}

function protectionSection() {
  const { example, source, file } = shown;
  /** Asks for something that changes what is known of the file, and shows that; or tells what went wrong. */
  const attempt = async (method, parameters) => {
    const of = shown;
    try {
      const described = await client.ask(method, parameters);
      if (shown !== of) return null;
      shown.file = described;
      show();
      say(protectionInShort(described.protection));
      byId("protection-title").focus();
      return null;
    } catch (error) {
      return explain(error);
    }
  };
  const hint = (...words) => el("p", { class: "hint" }, ...words);
  const made = section("protection", "Protection",
    example?.password && file.protection.needs ? hint("The password of this example is ", el("code", {}, example.password), ".") : null,
    protectionView(file.protection, { unlock: (keys) => attempt("unlock", keys), verify: (signer) => attempt("verify", { signer }) }),
    example?.key ? hint("The key of this example is in ", el("a", { href: `examples/${example.key}` }, example.key), ".") : null,
    source ? detachedForm((signature, key) => client.ask("verifyDetached", { source, signature, key }).then(() => null, explain)) : null);
  made.querySelector("h2").tabIndex = -1;
  return made;
}

function modelSection() {
  const { file, example } = shown;
  if (!file.model || file.protection.needs) return null;
  const of = shown;
  const place = el("div", {}, el("p", {}, "Loading the model …"));
  client.ask("model").then((model) => {
    if (shown !== of) return;
    place.replaceChildren(
      model.target ? el("p", {}, "Predicts ", el("code", {}, brief(model.target)), ".") : "",
      predictForm({ model, example: example?.row, id: "model", ask: (rows) => client.ask("predict", { rows }), explain }));
  }, (error) => {
    if (shown === of) place.replaceChildren(explain(error));
  });
  return section("predict", `Predict (${visible(file.model.type)})`, place);
}

// ---- Tensors ---------------------------------------------------------------------------------------------------------------------

function tensorsSection(tensors) {
  const details = el("div", { id: "tensor", class: "tensor", role: "region", "aria-label": "Selected tensor" },
    el("p", { class: "hint" }, "Select a tensor to see its values."));
  const heard = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
  const tree = new Tree({ label: "Tensors", onselect: (tensor) => showTensor(tensor, details, heard) });
  const told = el("span", { role: "status", "aria-live": "polite", class: "told" }, summaryOf(tensors.length, tensors.length));
  let waiting = 0;
  const filter = el("input", {
    id: "filter", type: "search", autocomplete: "off", spellcheck: "false",
    oninput: () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        const found = matching(tensors, filter.value);
        tree.show(found);
        told.textContent = summaryOf(found.length, tensors.length);
      }, FILTER_DELAY_MS);
    },
  });
  const bar = el("div", { class: "tools" },
    el("label", { for: "filter" }, "Filter"), filter,
    el("button", { type: "button", class: "small", onclick: () => tree.openAll(true) }, "Expand all"),
    el("button", { type: "button", class: "small", onclick: () => tree.openAll(false) }, "Collapse all"), told);
  tree.show(tensors);
  return section("tensors", "Tensors", bar, el("div", { class: "split" }, tree.element, details), heard);
}

/** Shows a tensor in `place`; `heard` says in short what has become visible. */
async function showTensor(tensor, place, heard) {
  const of = shown;
  const values = el("div", { class: "values" });
  const current = () => shown === of && values.isConnected;
  place.replaceChildren(
    el("h3", {}, brief(tensor.name, 400)),
    facts([
      ["Type", visible(tensor.dtype)],
      tensor.aliasOf === undefined ? null : ["Second name of", brief(tensor.aliasOf)],
      ["Shape", shape(tensor.shape)],
      ["Bytes", `${bytes(tensor.bytes)} (${count(tensor.bytes)})`],
      tensor.bitsPerWeight ? ["Bits per weight", String(Number(Number(tensor.bitsPerWeight).toPrecision(4)))] : null,
      tensor.offset === null || tensor.offset === undefined ? null : ["Offset", count(tensor.offset)],
    ]), values);
  const read = async () => {
    values.replaceChildren(el("p", {}, "Reading values …"));
    try {
      const stats = await client.ask("stats", { name: tensor.name });
      if (!current()) return;
      values.replaceChildren(...valuesView(stats, tensor));
      heard.textContent = `${brief(tensor.name)}: ${values.firstChild.textContent}`;
      updateBytesRead(stats.bytesRead);
    } catch (error) {
      if (current()) values.replaceChildren(explain(error));
    }
  };
  try {
    const cost = await client.ask("cost", { name: tensor.name });
    if (!current()) return;
    // What is on this machine is read at once, what comes over a network when asked for.
    if (cost.remote && cost.bytes > 65_536) {
      values.replaceChildren(el("p", {}, el("button", { type: "button", onclick: read }, `Read ${bytes(cost.bytes)} for the histogram`)));
    } else await read();
  } catch (error) {
    if (current()) values.replaceChildren(explain(error));
  }
}

const NARROWED = new Set(["F64", "I64", "U64", "C64"]);

function valuesView(stats, { dtype }) {
  if (stats.elements === 0) return [el("p", {}, "The tensor has no values.")];
  const sampled = stats.values < stats.elements;
  return [
    el("p", { class: sampled ? "note" : "hint" }, sampled
      ? `From a sample: ${count(stats.values)} of ${count(stats.elements)} values (${percent(stats.values, stats.elements)}), in ${stats.runs} evenly spread runs.`
      : `From all ${plural(stats.elements, "value")}.`, NARROWED.has(dtype) ? " 64-bit values are converted to 32 bits." : ""),
    histogram(stats), figures(stats),
  ];
}

// ---- Digest ----------------------------------------------------------------------------------------------------------------------

function digestSection() {
  const place = el("p", { role: "status", "aria-live": "polite" });
  const { file, source, url } = shown;
  const all = url ? ` Computing it reads all ${bytes(file.size)}.` : "";
  const button = el("button", {
    type: "button",
    onclick: async () => {
      button.disabled = true;
      place.textContent = "Reading …";
      try {
        const digest = await client.ask("sha256", source ? { source } : { url: url.href }, ({ bytesRead: read }) => {
          place.textContent = `Reading: ${percent(read, file.size)}`;
        });
        place.replaceChildren(el("code", { id: "sha256", class: "digest" }, digest));
      } catch (error) {
        place.replaceChildren(explain(error));
      } finally {
        button.disabled = false;
      }
    },
  }, "Compute SHA-256");
  return section("digest", "Fingerprint",
    el("p", {}, `Compare it with the digest that the publisher gives.${all}`), el("p", {}, button), place);
}

// ---- The page itself -------------------------------------------------------------------------------------------------------------

function promise() {
  const place = byId("promise");
  const asked = here.searchParams.get("url");
  const servers = document.documentElement.dataset.connects.replace("'self'", "").trim();
  const first = "Your file never leaves this computer; it is read in the browser.";
  if (asked === null) {
    place.textContent = `${first} The page connects only to its own server; to open a URL, it reloads and may then connect to that server as well.`;
  } else {
    place.textContent = servers === ""
      ? `${first} The page may connect only to its own server.`
      : `${first} To read the URL the page may connect to ${servers === "https:" || servers.endsWith(" https:") ? "any https server" : servers}; `
        + "that server sees only which parts are requested.";
  }
}

function wireOpening() {
  const drop = byId("drop");
  const chooser = byId("chooser");
  drop.addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", () => {
    const [chosen] = chooser.files;
    chooser.value = "";
    if (chosen) openFile(chosen);
  });
  // Text that is dragged into a field is none of this.
  const onFiles = (name, act) => document.addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    act(event);
  });
  let depth = 0;
  const step = (by) => {
    depth = Math.max(0, depth + by);
    drop.classList.toggle("over", depth > 0);
  };
  onFiles("dragenter", () => step(1));
  onFiles("dragleave", () => step(-1));
  onFiles("dragover", () => {});
  onFiles("drop", ({ dataTransfer: { files: [dropped] } }) => {
    step(-Infinity);
    if (dropped) openFile(dropped);
  });
  const list = document.querySelector("#examples ul");
  list.append(...EXAMPLES.map((example) => el("li", {},
    el("button", { type: "button", class: "example", onclick: () => openExample(example) },
      el("strong", {}, example.title), el("span", {}, example.text), el("code", {}, example.file)))));
}

function wireTheme() {
  const select = byId("theme");
  select.value = document.documentElement.dataset.theme ?? "system";
  select.addEventListener("change", () => {
    if (select.value === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = select.value;
    try {
      localStorage.setItem("theme", select.value);
    } catch {
      // Then it holds until the page is closed.
    }
  });
}

async function demo() {
  const [{ file, row }] = EXAMPLES;
  const url = new URL(`examples/${file}`, here.href.split(/[?#]/)[0]).href;
  const demoClient = new Client();
  const model = await demoClient.ask("demo", { key: `example/${file}`, url });
  byId("demo-form").replaceChildren(predictForm({
    model, example: row, id: "demo", ask: (rows) => demoClient.ask("predict", { rows, of: "demo" }), explain,
  }));
  byId("demo-cache").textContent = model.notes.map(({ message }) => `${visible(message)}.`).join(" ");
  byId("demo").hidden = false;
}

async function workOffline() {
  const place = byId("offline");
  if (!("serviceWorker" in navigator)) {
    place.textContent = "Offline use is not available here (it needs https or localhost).";
    return;
  }
  // The first version takes over a page that was loaded without it; a later one would mix its files with those that are loaded.
  let isControlled = navigator.serviceWorker.controller !== null;
  navigator.serviceWorker.addEventListener("controllerchange", () => {
    if (isControlled) location.reload();
    isControlled = true;
  });
  try {
    const registration = await navigator.serviceWorker.register(ownScript(new URL("sw.js", location.href).href));
    await navigator.serviceWorker.ready;
    place.textContent = "The page is cached in this browser and works offline.";
    const offer = (worker) => {
      if (worker.state !== "installed" || !navigator.serviceWorker.controller) return;
      const hint = el("span", { role: "status", "aria-live": "polite" });
      navigator.serviceWorker.addEventListener("message", ({ data }) => {
        if (data === "other tabs") hint.textContent = " Close the other tabs of this page first: they use the version before.";
      });
      place.replaceChildren("A new version of the page is available. ",
        el("button", { type: "button", class: "small", onclick: () => worker.postMessage("take over") }, "Update"), hint);
    };
    if (registration.waiting) offer(registration.waiting);
    registration.addEventListener("updatefound", () => {
      const worker = registration.installing;
      worker?.addEventListener("statechange", () => offer(worker));
    });
  } catch (error) {
    place.textContent = `The page could not be cached for offline use: ${visible(error.message)}`;
  }
}

function start() {
  if (!document.documentElement.dataset.connects) {
    fail({ message: "the policy of this page was not set", help: "early.js is missing: serve the whole folder" });
    return;
  }
  byId("unstarted").remove();
  promise();
  wireOpening();
  wireTheme();
  workOffline();
  demo().catch((error) => {
    byId("demo-form").replaceChildren(explain(error));
    byId("demo").hidden = false;
  });
  const asked = here.searchParams.get("url");
  if (asked) {
    byId("url").value = asked;
    const url = URL.canParse(asked) ? new URL(asked) : null;
    if (url && /^https?:$/.test(url.protocol)) open({ name: url.pathname.split("/").at(-1) || url.host, url });
    else fail({ message: "this is no address of the web", help: "an address begins with https:// or http://" });
  }
}

start();
