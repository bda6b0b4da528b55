// Runs before anything else: narrows the policy of this page to the one server it was asked to read from, and sets the theme.
// A policy that is added can only take permissions away; workers started from here inherit both.
"use strict";
(() => {
  const asked = new URLSearchParams(location.search);
  let servers = "";
  if (asked.has("url")) {
    try {
      const { origin } = new URL(asked.get("url"));
      if (/^https?:\/\/[a-z0-9.:[\]-]+$/.test(origin)) servers = ` ${origin}`;
    } catch {
      // No address: the page says so, and nothing is permitted.
    }
    if (asked.get("redirects") === "any") servers += " https:";
  }
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = `connect-src 'self'${servers}`;
  document.head.append(policy);
  document.documentElement.dataset.connects = `'self'${servers}`;

  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // Storage may be switched off; the theme is then the system's.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
