// What loading a file would run, in plain words.

import { el, table } from "./dom.js";
import { brief, count, cut, plural, visible } from "./text.js";

/** Findings that are listed. */
const LISTED = 100;

const WORDS = {
  safe: "Loading this file runs no code: it contains only what files of tensors need.",
  suspicious: "The file contains something that files of tensors do not need, or that could not be read. Load it only if you trust its author.",
  malformed: "The data of the file break off or cannot be followed. Do not load it: fetch it again, and compare its SHA-256 with the publisher's.",
  dangerous: "Loading this file with the program that it was made for would run code. Do not load it. Nothing of it was run here.",
};

const place = ({ member, opcode, offset }) =>
  [member ? brief(member) : null, `${opcode ? `${opcode} ` : ""}at byte ${count(offset)}`].filter(Boolean).join(", ");

/** The verdict and its findings. */
export function scanView({ verdict, files: [file] }) {
  const severity = (word) => el("span", { class: `verdict ${word}` }, word);
  const rows = file.findings.slice(0, LISTED).map((found) => [
    severity(found.verdict), visible(cut(found.message, 300).text), place(found), el("code", {}, found.code),
  ]);
  const more = file.findings.length - rows.length + (file.dropped ?? 0);
  return [
    el("p", { id: "verdict", class: `state verdict-line ${verdict}` }, el("strong", {}, `${verdict[0].toUpperCase()}${verdict.slice(1)}. `), WORDS[verdict]),
    rows.length > 0 ? table("Findings", ["Severity", "Finding", "Where", "Code"], rows, { class: "findings" }) : null,
    more > 0 ? el("p", {}, `and ${plural(more, "more finding", "more findings")}`) : null,
  ].filter(Boolean);
}
