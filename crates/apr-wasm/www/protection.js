// Who vouches for a file and who can read it, in plain words, and the forms that change that.

import { el } from "./dom.js";
import { brief } from "./text.js";

/** A line of the list: how things stand (`good`, `open`, `none`), and the words. */
const line = (state, ...words) => el("li", { class: `state ${state}` }, ...words);

/** A form of `fields`; `submit` gets their values and answers with an element, or nothing. */
function form({ fields, button, submit }) {
  const made = fields.map(({ id, area, type = "text" }) => (area
    ? el("textarea", { id, rows: "3", spellcheck: "false", autocomplete: "off" })
    : el("input", { id, type, autocomplete: "off", spellcheck: "false" })));
  const outcome = el("div", { role: "status", "aria-live": "polite" });
  const send = el("button", { type: "submit", class: "primary" }, button);
  return el("form", {
    class: "key-form",
    onsubmit: async (event) => {
      event.preventDefault();
      send.disabled = true;
      outcome.replaceChildren(el("p", {}, "Working …"));
      try {
        const told = await submit(...made.map(({ value }) => value));
        outcome.replaceChildren(...(told ? [told] : []));
      } finally {
        send.disabled = false;
      }
    },
  },
  fields.map(({ id, label, hint }, at) => [el("label", { for: id }, label), hint ? el("p", { class: "hint" }, hint) : null, made[at]]).flat(),
  el("p", {}, send), outcome);
}

/** Words about encryption, with the form that opens the file. */
function encryption(protection, unlock) {
  if (!protection.encrypted) return [line("none", "Not encrypted.")];
  const how = { password: "under a password", recipient: "for the holder of a key", sealed: "for the holders of keys, or under a password" };
  const kind = how[protection.kind] ?? "";
  if (!protection.needs) return [line("good", `Encrypted ${kind}; decrypted in the memory of this page.`)];
  const parts = [line("open", `Encrypted ${kind}. Decrypt it to see its content.`)];
  if (protection.needs !== "identity") {
    parts.push(el("li", {}, form({
      fields: [{ id: "password", label: "Password", type: "password" }],
      button: "Decrypt with password", submit: (password) => unlock({ password }),
    })));
  }
  if (protection.needs !== "password") {
    parts.push(el("li", {}, form({
      fields: [
        { id: "identity", label: "Your secret key", area: true, hint: "The content of a key file, as created by apr keygen encrypt." },
        { id: "key-password", label: "Password of the key, if it has one", type: "password" },
      ],
      button: "Decrypt with key", submit: (identity, keyPassword) => unlock({ identity, keyPassword }),
    })));
  }
  return parts;
}

function signature(protection, verify) {
  if (!protection.signed) return [line("none", "Not signed.")];
  const { signer, verified } = protection;
  const key = signer ? [" by ", el("code", {}, brief(signer.fingerprint))] : [];
  if (verified && signer?.trusted) {
    return [line("good", "Signed", ...key, ", the given key: every signed byte is unchanged.")];
  }
  return [
    line("open", "The file contains a signature", ...key, ". ", verified
      ? "The signature matches that key, but the key came with the file: this proves integrity, not who signed."
      : "The signature has not been verified."),
    el("li", {}, form({
      fields: [{
        id: "signer", label: "Public key of the signer", area: true,
        hint: "Get it from another source than the file: apr-verify-1…, or the text of a .pub file.",
      }],
      button: "Verify the signature", submit: verify,
    })),
  ];
}

/** The form for a signature that lies beside a file, as minisign and `apr sign` make them. */
export function detachedForm(verify) {
  return el("details", {}, el("summary", {}, "Verify a signature in a file of its own (.minisig)"), form({
    fields: [{ id: "detached", label: "Text of the signature file", area: true }, { id: "detached-key", label: "Public key", area: true }],
    button: "Check",
    submit: async (signature, key) => await verify(signature, key)
      ?? el("p", { class: "state good" }, "The signature is valid: the file is unchanged since the holder of this key signed it."),
  }));
}

/** The section's content. `unlock` and `verify` answer with an element that says what went wrong, or nothing. */
export function protectionView(protection, { unlock, verify }) {
  return el("ul", { class: "states" }, encryption(protection, unlock), signature(protection, verify));
}

/** A few words for the summary. */
export function protectionInShort({ encrypted, needs, signed, signer, verified }) {
  const read = encrypted ? (needs ? "encrypted" : "encrypted, decrypted here") : "not encrypted";
  const vouched = signed ? (verified && signer?.trusted ? "signature verified" : "signed, not verified") : "not signed";
  return `${read}, ${vouched}`;
}
