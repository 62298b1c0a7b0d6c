// Enhances the pages, which also work without it.

const live = document.querySelector('[data-live]');
const REFRESH_MS = Number(live?.dataset.live || 5) * 1_000;

/** Refreshes the live part of a page while it is visible. Once there is none any more, loads the page. */
async function refresh() {
  const before = document.querySelector('[data-live]');
  if (!before || document.hidden || before.contains(document.activeElement)) return;
  const response = await fetch(location.href, {
    headers: { 'x-refresh': '1' },
    redirect: 'error',
    // Times out before the next refresh, so that requests to an unresponsive service do not pile up.
    signal: AbortSignal.timeout?.(REFRESH_MS - 500),
  });
  // The session has ended: reload to show the sign-in page.
  if (response.status === 401) return location.reload();
  if (!response.ok) throw new Error('not refreshed');
  const next = new DOMParser().parseFromString(await response.text(), 'text/html');
  const after = next.querySelector('[data-live]');
  if (!after) return location.reload();
  before.replaceWith(document.adoptNode(after));
}

if (live) {
  const sayStale = () => document.querySelector('[data-live]').classList.add('stale');
  setInterval(() => refresh().catch(sayStale), REFRESH_MS);
}

// Makes a second click send nothing. Without this script, it would send the form again; the idempotency key would then
// prevent a second operation.
document.addEventListener('submit', (event) => {
  if (event.target.dataset.sent) return event.preventDefault();
  event.target.dataset.sent = '1';
  for (const button of event.target.querySelectorAll('button')) button.setAttribute('aria-disabled', 'true');
});

// After "back", the browser may restore a page whose forms are marked as sent, so reload it.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
