// The island of script: pages work without it.

const REFRESH_MS = 5_000;

/** Replaces what a page shows of the present, as long as somebody looks at it. */
async function refresh() {
  const before = document.querySelector('[data-live]');
  if (!before || document.hidden || before.contains(document.activeElement)) return;
  const response = await fetch(location.href, { headers: { 'x-refresh': '1' }, redirect: 'error' });
  if (!response.ok) return;
  const next = new DOMParser().parseFromString(await response.text(), 'text/html');
  const after = next.querySelector('[data-live]');
  if (after) before.replaceWith(document.adoptNode(after));
}

if (document.querySelector('[data-live]')) {
  setInterval(() => refresh().catch(() => {}), REFRESH_MS);
}

// A second click sends nothing. Where it does, without script, the idempotency key makes it the same operation.
document.addEventListener('submit', (event) => {
  if (event.target.dataset.sent) return event.preventDefault();
  event.target.dataset.sent = '1';
  for (const button of event.target.querySelectorAll('button')) button.setAttribute('aria-disabled', 'true');
});

// Coming back by the browser's own button, a page may be sent again.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
