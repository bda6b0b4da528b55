// The page's side of the worker: questions go there, answers and progress come back.

/** An error as the package threw it in the worker: its code, place and help are fields. */
export class Problem extends Error {
  constructor({ message, ...rest }) {
    super(message);
    Object.assign(this, rest);
  }
}

// The worker starts from a blob, because such a worker is bound by the policy of this page; one that is fetched has that of its own
// response, which a static server does not set.
const scripts = globalThis.trustedTypes?.createPolicy("apr", {
  createScriptURL(url) {
    if (url.startsWith("blob:") || new URL(url, location.href).href === new URL("sw.js", location.href).href) return url;
    throw new TypeError("not a script of this page");
  },
}) ?? { createScriptURL: (url) => url };

/** The URL of one of the page's own scripts, for functions that require a trusted type. */
export const ownScript = (url) => scripts.createScriptURL(url);

/** One worker with one open file. */
export class Client {
  #worker = null;
  #waiting = new Map();
  #next = 1;

  /** Asks the worker for `method`; `progress` hears of bytes that arrive. */
  ask(method, parameters = {}, progress = null) {
    this.#worker ??= this.#start();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, progress });
      this.#worker.postMessage({ id, method, parameters });
    });
  }

  /** Ends whatever is going on; the next question starts anew. */
  stop(why = "stopped") {
    this.#worker?.terminate();
    this.#worker = null;
    for (const { reject } of this.#waiting.values()) reject(new Problem({ message: why, code: "page-stopped" }));
    this.#waiting.clear();
  }

  #start() {
    const script = new Blob([`import ${JSON.stringify(new URL("worker.js", import.meta.url).href)};`], { type: "text/javascript" });
    const url = URL.createObjectURL(script);
    const worker = new Worker(ownScript(url), { type: "module" });
    worker.addEventListener("message", ({ data }) => {
      if (data.ready) {
        URL.revokeObjectURL(url);
        return;
      }
      const waiting = this.#waiting.get(data.id);
      if (!waiting) return;
      if (data.progress) {
        waiting.progress?.(data.progress);
        return;
      }
      this.#waiting.delete(data.id);
      if (data.problem) waiting.reject(new Problem(data.problem));
      else waiting.resolve(data.answer);
    });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      if (worker === this.#worker) this.stop(event.message || "the part of this page that reads files did not start");
    });
    return worker;
  }
}
