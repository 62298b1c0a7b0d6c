// Enhances the pages, which also work without it.

const REFRESH_MS = 5_000;

/** Refreshes the live part of a page while it is visible. */
async function refresh() {
  const before = document.querySelector('[data-live]');
  if (!before || document.hidden || before.contains(document.activeElement)) return;
  const response = await fetch(location.href, {
    headers: { 'x-refresh': '1' },
    redirect: 'error',
    // Before the next refresh: a service that does not respond is reported, and not asked repeatedly.
    signal: AbortSignal.timeout?.(REFRESH_MS - 500),
  });
  // The session has ended: without a reload, the page would look as if nothing happened.
  if (response.status === 401) return location.reload();
  if (!response.ok) throw new Error('not refreshed');
  const next = new DOMParser().parseFromString(await response.text(), 'text/html');
  const after = next.querySelector('[data-live]');
  if (after) before.replaceWith(document.adoptNode(after));
}

if (document.querySelector('[data-live]')) {
  const sayStale = () => document.querySelector('[data-live]').classList.add('stale');
  setInterval(() => refresh().catch(sayStale), REFRESH_MS);
}

// A second click sends nothing. Without script it does, and the idempotency key makes it the same operation.
document.addEventListener('submit', (event) => {
  if (event.target.dataset.sent) return event.preventDefault();
  event.target.dataset.sent = '1';
  for (const button of event.target.querySelectorAll('button')) button.setAttribute('aria-disabled', 'true');
});

// After "back", a browser may restore a page whose forms are marked as sent, so it is loaded again.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
