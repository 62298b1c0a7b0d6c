import { createHash } from 'node:crypto';
import { escapeHtml } from './html.ts';

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.55 system-ui, sans-serif;
    --text: light-dark(#1c1e24, #eceef2); --quiet: light-dark(#565b66, #a9afbb); --line: light-dark(#d9dce3, #3b404b);
    --card: light-dark(#fff, #22252d); --link: light-dark(#1d4fd8, #8fb2ff); }
  * { box-sizing: border-box; }
  body { margin: 0; padding: clamp(1.5rem, 6vw, 4.5rem) 1rem; color: var(--text); background: light-dark(#f3f4f7, #15171c); }
  main { max-width: 54rem; margin: 0 auto; }
  h1 { margin: 0 0 .25rem; font-size: 2rem; letter-spacing: -.02em; line-height: 1.2; }
  h2 { margin: 2.75rem 0 .75rem; font-size: 1.1rem; }
  p { margin: 0 0 1rem; }
  .quiet { color: var(--quiet); }
  .links { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .75rem; margin: 1.75rem 0 0; padding: 0; list-style: none; }
  .links a { display: block; height: 100%; padding: 1rem 1.15rem; border: 1px solid var(--line); border-radius: .75rem;
    background: var(--card); color: inherit; text-decoration: none; }
  .links a:hover, .links a:focus-visible { border-color: var(--link); }
  .links strong { display: block; color: var(--link); }
  .links span { font-size: .9rem; color: var(--quiet); }
  .box { overflow-x: auto; border: 1px solid var(--line); border-radius: .75rem; background: var(--card); }
  table { width: 100%; border-collapse: collapse; font-size: .9rem; }
  th, td { padding: .55rem 1.15rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
  tr:first-child > * { border-top: 0; }
  th { font-weight: 400; color: var(--quiet); width: 40%; }
  code, pre { font: .85rem/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
  td code { overflow-wrap: anywhere; }
  pre { margin: 0; padding: 1rem 1.15rem; }
  @media (max-width: 36rem) { th, td { display: block; width: auto; } td { padding-top: 0; border-top: 0; } }
  a { color: var(--link); }`;

/** Headers of the home page, which may not run scripts or load anything. */
export const HOME_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
};

/** A page or document of the service. */
export type HomeLink = { readonly path: string; readonly title: string; readonly text: string };

/** Content of the home page, not yet escaped. */
export type HomePage = {
  readonly links: readonly HomeLink[];
  /** Content about the sandbox; undefined if there is none. */
  readonly sandbox:
    | {
        readonly fixtures: readonly (readonly [what: string, value: string])[];
        readonly cards: readonly (readonly [number: string, what: string])[];
        /** Command to paste into a terminal. */
        readonly call: string;
      }
    | undefined;
};

/** Renders the page at /, which links to all other pages. */
export function renderHomePage({ links, sandbox }: HomePage): string {
  const items = links.map(
    ({ path, title, text }) =>
      `<li><a href="${escapeHtml(path)}"><strong>${escapeHtml(title)}</strong><span>${escapeHtml(text)}</span></a></li>`,
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Payments service</title><style>${STYLE}</style></head><body><main>
<h1>Payments service</h1>
<p class="quiet">One request makes a payment, which is routed to a provider, recorded, and returned in full.</p>
<ul class="links">${items.join('')}</ul>${sandbox ? sandboxSection(sandbox) : ''}
</main></body></html>`;
}

function sandboxSection({ fixtures, cards, call }: NonNullable<HomePage['sandbox']>): string {
  return `
<h2>Try it in the sandbox</h2>
<p>No money moves here. Paste this into a terminal:</p>
<div class="box"><pre tabindex="0">${escapeHtml(call)}</pre></div>
<h2>Accounts and stored objects</h2>
${table(fixtures, (what) => escapeHtml(what))}
<h2>Cards</h2>
<p class="quiet">Any number that passes the Luhn check is approved, except these:</p>
${table(
  cards,
  (number) => `<code>${escapeHtml(number)}</code>`,
  (what) => escapeHtml(what),
)}`;
}

function table(
  rows: readonly (readonly [string, string])[],
  first: (text: string) => string,
  second = (text: string) => `<code>${escapeHtml(text)}</code>`,
): string {
  const lines = rows.map(
    ([one, other]) => `<tr><th scope="row">${first(one)}</th><td>${second(other)}</td></tr>`,
  );
  return `<div class="box"><table>${lines.join('')}</table></div>`;
}
