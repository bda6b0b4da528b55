// Elements are made here and nowhere else: text becomes text nodes, never markup.

/** An element with attributes, `on...` listeners and children; strings become text, `null` and `false` nothing. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children.flat());
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A table with a caption that only screen readers hear; a cell is text, an element, or `{ number: text }`. */
export function table(caption, head, rows, attributes = {}) {
  const cell = (tag, value, more) => {
    const number = value !== null && typeof value === "object" && "number" in value;
    return el(tag, { class: number ? "number" : null, ...more }, number ? value.number : value);
  };
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", attributes,
      el("caption", { class: "unseen" }, caption),
      el("thead", {}, el("tr", {}, head.map((title) => cell("th", title, { scope: "col" })))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value, at) =>
        at === 0 ? cell("th", value, { scope: "row" }) : cell("td", value)))))));
}

/** Term and description, side by side. */
export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(Boolean).map(([term, ...what]) =>
    el("div", {}, el("dt", {}, term), el("dd", {}, ...what))));
}
