// The tensors as a tree: names are split at their dots. Only the rows in view are elements, so a hundred thousand tensors are as quick as ten.
// Keyboard and roles follow the tree pattern of the ARIA Authoring Practices, with `aria-activedescendant`: rows come and go, focus stays.

import { el } from "./dom.js";
import { brief, bytes, count, plural, shape } from "./text.js";

/** Names nest no deeper than this; what follows stays one label. */
const DEPTH = 24;
/** As many rows are open at first. */
const OPEN_AT_FIRST = 40;

const NUMBER = /^\d{1,15}$/;

/** Numbers by value, before words; words by their characters. */
function byLabel(one, other) {
  const [a, b] = [one.label, other.label];
  if (NUMBER.test(a) && NUMBER.test(b)) return Number(a) - Number(b);
  if (NUMBER.test(a)) return -1;
  if (NUMBER.test(b)) return 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

function group(label, parent) {
  return { label, parent, tensor: null, groups: new Map(), children: [], open: false, sorted: false, tensors: 0, bytes: 0, level: 0 };
}

/** The tree of `tensors`; a group with a single child is one row with it. */
export function build(tensors) {
  const root = group("", null);
  for (const tensor of tensors) {
    let parts = tensor.name.split(".", DEPTH + 1);
    if (parts.length > DEPTH) {
      const head = parts.slice(0, DEPTH - 1);
      parts = [...head, tensor.name.slice(head.join(".").length + 1)];
    }
    let node = root;
    const size = Number(tensor.bytes);
    for (let at = 0; ; at += 1) {
      node.tensors += 1;
      node.bytes += size;
      if (at + 1 === parts.length) break;
      let child = node.groups.get(parts[at]);
      if (!child) {
        child = group(parts[at], node);
        node.groups.set(parts[at], child);
        node.children.push(child);
      }
      node = child;
    }
    node.children.push({ label: parts.at(-1), parent: node, tensor });
  }
  return root;
}

/** The children of a node, in order, with single children drawn up; made when first asked for. */
function childrenOf(node) {
  if (!node.sorted) {
    node.children = node.children.map((child) => {
      let only = child;
      let label = child.label;
      while (!only.tensor && only.children.length === 1) {
        only = only.children[0];
        label += `.${only.label}`;
      }
      only.label = label;
      only.parent = node;
      only.level = node.level + 1;
      return only;
    });
    node.children.sort(byLabel);
    node.children.forEach((child, at) => {
      child.position = at + 1;
    });
    node.sorted = true;
  }
  return node.children;
}

/** Pixels of a row: in a narrow window, where its shape is a line of its own, more. `style.css` has both. */
function rowHeight() {
  const lines = matchMedia("(max-width: 48rem)").matches ? 3 : 2;
  return lines * parseFloat(getComputedStyle(document.documentElement).fontSize);
}

/** The tree as an element; `onselect` hears of the tensor that is chosen. */
export class Tree {
  #root = group("", null);
  #rows = [];
  #active = 0;
  #selected = null;
  #height = 32;
  #onselect;
  #typed = "";
  #typedAt = 0;
  #box;
  #space = el("div", { role: "none", class: "tree-space" });
  #rendered = new Map();

  constructor({ label, onselect }) {
    this.#onselect = onselect;
    this.#box = el("div", {
      class: "tree", role: "tree", tabindex: "0", "aria-label": label,
      onscroll: () => this.#render(),
      onkeydown: (event) => this.#key(event),
      onclick: (event) => this.#click(event),
    }, this.#space);
    new ResizeObserver(() => {
      if (rowHeight() !== this.#height) this.#list();
      this.#render();
    }).observe(this.#box);
  }

  get element() {
    return this.#box;
  }

  /** Shows other tensors, with as many open groups as fit. */
  show(tensors) {
    this.#root = build(tensors);
    let level = [this.#root];
    let rows = childrenOf(this.#root).length;
    while (level.length > 0) {
      const next = level.flatMap((node) => childrenOf(node).filter((child) => !child.tensor));
      for (const child of next) {
        if (rows + child.children.length > OPEN_AT_FIRST) continue;
        child.open = true;
        rows += childrenOf(child).length;
      }
      level = next.filter((child) => child.open);
    }
    this.#active = 0;
    this.#list();
    this.#box.scrollTop = 0;
    this.#render();
  }

  /** Opens or closes every group. */
  openAll(open) {
    const stack = [this.#root];
    while (stack.length > 0) {
      const node = stack.pop();
      if (node !== this.#root) node.open = open;
      for (const child of childrenOf(node)) if (!child.tensor) stack.push(child);
    }
    this.#active = 0;
    this.#list();
    this.#render();
  }

  /** The rows that are visible if one scrolls, from the nodes that are open. */
  #list() {
    const rows = [];
    const stack = [...childrenOf(this.#root)].reverse();
    while (stack.length > 0) {
      const node = stack.pop();
      rows.push(node);
      if (!node.tensor && node.open) {
        const children = childrenOf(node);
        for (let at = children.length - 1; at >= 0; at -= 1) stack.push(children[at]);
      }
    }
    this.#rows = rows;
    this.#height = rowHeight();
    this.#space.style.height = `${rows.length * this.#height}px`;
    for (const element of this.#rendered.values()) element.remove();
    this.#rendered.clear();
  }

  #render() {
    const top = this.#box.scrollTop;
    const first = Math.max(0, Math.floor(top / this.#height) - 6);
    const last = Math.min(this.#rows.length, Math.ceil((top + this.#box.clientHeight) / this.#height) + 6);
    const wanted = new Set();
    for (let at = first; at < last; at += 1) wanted.add(at);
    // The active row stays an element wherever the view is: `aria-activedescendant` names it.
    if (this.#rows.length > 0) wanted.add(this.#active);
    for (const [at, element] of this.#rendered) {
      if (!wanted.has(at)) {
        element.remove();
        this.#rendered.delete(at);
      }
    }
    const missing = [...wanted].filter((at) => !this.#rendered.has(at));
    for (const at of missing) this.#rendered.set(at, this.#row(at));
    if (missing.length > 0) {
      // In the order in which they are read aloud.
      const inOrder = [...this.#rendered].sort(([one], [other]) => one - other);
      this.#space.append(...inOrder.map(([, element]) => element));
    }
    for (const [at, element] of this.#rendered) element.classList.toggle("active", at === this.#active);
    if (this.#rows.length > 0) this.#box.setAttribute("aria-activedescendant", `row-${this.#active}`);
    else this.#box.removeAttribute("aria-activedescendant");
  }

  /** The element of a row. */
  #row(at) {
    const node = this.#rows[at];
    const name = brief(node.label);
    const told = node.tensor
      ? [node.tensor.dtype, shape(node.tensor.shape), bytes(node.tensor.bytes)]
      : ["", plural(node.tensors, "tensor"), bytes(node.bytes)];
    const element = el("div", {
      id: `row-${at}`, role: "treeitem", class: node.tensor ? "row leaf" : "row group",
      "aria-level": node.level, "aria-posinset": node.position, "aria-setsize": node.parent.children.length,
      "aria-expanded": node.tensor ? null : String(node.open),
      "aria-selected": node.tensor ? String(node.tensor === this.#selected) : null,
      "data-at": at,
    },
    el("span", { class: "twist" }),
    el("span", { class: "name", title: name }, name),
    el("span", { class: "type" }, told[0]),
    el("span", { class: "shape" }, told[1]),
    el("span", { class: "size" }, told[2]));
    element.style.transform = `translateY(${at * this.#height}px)`;
    element.style.setProperty("--level", Math.min(node.level - 1, 12));
    return element;
  }

  #click({ target }) {
    const row = target.closest("[data-at]");
    if (!row) return;
    this.#moveTo(Number(row.dataset.at));
    this.#choose();
  }

  #choose() {
    const node = this.#rows[this.#active];
    if (!node) return;
    if (!node.tensor) {
      this.#toggle(node, !node.open);
      return;
    }
    this.#selected = node.tensor;
    for (const [at, element] of this.#rendered) {
      if (this.#rows[at].tensor) element.setAttribute("aria-selected", String(this.#rows[at].tensor === this.#selected));
    }
    this.#onselect(node.tensor);
  }

  #toggle(node, open) {
    node.open = open;
    this.#list();
    this.#render();
  }

  #moveTo(at) {
    if (this.#rows.length === 0) return;
    this.#active = Math.max(0, Math.min(this.#rows.length - 1, at));
    const top = this.#active * this.#height;
    const view = this.#box.clientHeight;
    if (top < this.#box.scrollTop) this.#box.scrollTop = top;
    else if (top + this.#height > this.#box.scrollTop + view) this.#box.scrollTop = top + this.#height - view;
    this.#render();
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const node = this.#rows[this.#active];
    const page = Math.max(1, Math.floor(this.#box.clientHeight / this.#height) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) this.#moveTo(this.#active + moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.#choose();
    else if (event.key === "ArrowRight" && node && !node.tensor) {
      if (node.open) this.#moveTo(this.#active + 1);
      else this.#toggle(node, true);
    } else if (event.key === "ArrowLeft" && node) {
      if (!node.tensor && node.open) this.#toggle(node, false);
      else if (node.parent !== this.#root) this.#moveTo(this.#rows.indexOf(node.parent));
    } else if (event.key === "*" && node) {
      for (const sibling of node.parent.children) if (!sibling.tensor) sibling.open = true;
      this.#list();
      this.#moveTo(this.#rows.indexOf(node));
    } else if (event.key.length === 1) this.#type(event.key, event.timeStamp);
    else return;
    event.preventDefault();
  }

  /** Goes to the next row whose label begins with what was typed. */
  #type(key, now) {
    this.#typed = now - this.#typedAt > 700 ? key : this.#typed + key;
    this.#typedAt = now;
    const typed = this.#typed.toLowerCase();
    const from = this.#typed.length === 1 ? 1 : 0;
    for (let step = from; step < this.#rows.length + from; step += 1) {
      const at = (this.#active + step) % this.#rows.length;
      if (this.#rows[at].label.toLowerCase().startsWith(typed)) {
        this.#moveTo(at);
        return;
      }
    }
  }
}

/** How many tensors a filter leaves. */
export const matching = (tensors, text) => {
  const wanted = text.trim().toLowerCase();
  return wanted === "" ? tensors : tensors.filter(({ name }) => name.toLowerCase().includes(wanted));
};

export const summaryOf = (shown, all) => (shown === all ? plural(all, "tensor") : `${count(shown)} of ${plural(all, "tensor")}`);
