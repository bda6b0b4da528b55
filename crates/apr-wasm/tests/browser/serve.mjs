// A static server for tests, on a port of the system's choice: byte ranges, the types a browser insists on, and a record of what was asked.

import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, sep } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".wasm": "application/wasm", ".json": "application/json",
};

/**
 * Serves `folder`; `cors` lets pages of other servers read; what is below `/moved/` is at the address `moved`. `requests` has the path and range of every request, `sent` the bytes of all bodies.
 */
export async function serve(folder, { cors = false, moved = null } = {}) {
  const root = await realpath(folder);
  const state = { requests: [], sent: 0 };
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    state.requests.push({ path, range: request.headers.range ?? null });
    if (cors) {
      response.setHeader("access-control-allow-origin", "*");
      response.setHeader("access-control-allow-headers", "range");
      response.setHeader("access-control-expose-headers", "content-range, content-length, accept-ranges, etag");
    }
    if (request.method === "OPTIONS") {
      response.writeHead(204).end();
      return;
    }
    if (moved && path.startsWith("/moved/")) {
      response.writeHead(302, { location: moved + path.slice("/moved/".length) }).end();
      return;
    }
    try {
      const name = await realpath(join(root, path.endsWith("/") ? `${path}index.html` : path));
      if (!name.startsWith(root + sep)) throw new Error("outside");
      const { size } = await stat(name);
      response.setHeader("content-type", TYPES[extname(name)] ?? "application/octet-stream");
      response.setHeader("accept-ranges", "bytes");
      response.setHeader("cache-control", "no-cache");
      const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
      const start = range ? Number(range[1]) : 0;
      const end = range && range[2] !== "" ? Math.min(size, Number(range[2]) + 1) : size;
      if (range && start >= end) {
        response.writeHead(416, { "content-range": `bytes */${size}` }).end();
        return;
      }
      if (range) response.setHeader("content-range", `bytes ${start}-${end - 1}/${size}`);
      response.setHeader("content-length", end - start);
      response.writeHead(range ? 206 : 200);
      if (request.method === "HEAD" || start === end) {
        response.end();
        return;
      }
      const stream = createReadStream(name, { start, end: end - 1 });
      stream.on("data", (piece) => {
        state.sent += piece.length;
      });
      stream.on("error", () => response.destroy());
      stream.pipe(response);
    } catch {
      response.writeHead(404).end("not here");
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    state,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
