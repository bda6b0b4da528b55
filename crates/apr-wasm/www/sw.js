// Keeps the page's own files, so that it opens without a network. `files.js` is written when the page is put together: the list of files and
// a version made of their contents. All files of one version are fetched together and used together; nothing else is ever kept here.
"use strict";
importScripts("files.js");

const { version, files } = self.PAGE;
const NAME = `apr-page-${version}`;
const root = new URL("./", self.location.href);

self.addEventListener("install", (event) => {
  event.waitUntil((async () => {
    const cache = await caches.open(NAME);
    await cache.addAll(files.map((file) => new Request(new URL(file, root), { cache: "no-cache" })));
  })());
});

self.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name.startsWith("apr-page-") && name !== NAME) await caches.delete(name);
    await self.clients.claim();
  })());
});

// Other tabs run scripts of the version before, and would get workers and modules of this one.
self.addEventListener("message", (event) => {
  if (event.data !== "take over") return;
  event.waitUntil((async () => {
    const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
    const pages = [root.pathname, root.pathname + "index.html"];
    if (windows.filter(({ url }) => pages.includes(new URL(url).pathname)).length > 1) event.source.postMessage("other tabs");
    else await self.skipWaiting();
  })());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== root.origin || !url.pathname.startsWith(root.pathname)) return;
  const file = url.pathname.slice(root.pathname.length) || "index.html";
  if (!files.includes(file)) return;
  event.respondWith((async () => {
    const kept = await (await caches.open(NAME)).match(new URL(file, root), { ignoreVary: true });
    return kept ?? fetch(request);
  })());
});
