import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '#src/store/engine/database.ts';
import { type Html, html, htmlText, NOTHING } from '#src/web/html.ts';
import type { Session } from './session.ts';

/** Path where the dashboard is mounted. */
export const DASHBOARD = '/dashboard';

/** Files that pages load, keyed by the name under which they are served. The name changes with the content. */
export const ASSETS: ReadonlyMap<string, { readonly type: string; readonly content: Buffer }> = new Map([
  asset('dashboard.css', 'text/css; charset=utf-8'),
  asset('dashboard.js', 'text/javascript; charset=utf-8'),
  asset('icon.svg', 'image/svg+xml'),
]);

function asset(file: string, type: string) {
  const content = readFileSync(join(import.meta.dirname, 'assets', file));
  const digest = createHash('sha256').update(content).digest('hex').slice(0, 12);
  return [file.replace('.', `-${digest}.`), { type, content }] as const;
}

function addressOf(extension: string): string {
  const name = [...ASSETS.keys()].find((one) => one.endsWith(extension)) ?? '';
  return `${DASHBOARD}/assets/${name}`;
}

/**
 * Headers of every page. They forbid inline and foreign code, framing and caching. The referrer is sent to this origin
 * only: with no referrer at all, browsers would hide the origin of our own forms.
 */
export const FRAME_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

const SECTIONS = [
  ['', 'Overview'],
  ['/figures', 'Figures'],
  ['/payments', 'Payments'],
  ['/disputes', 'Disputes'],
  ['/settlement', 'Settlement'],
  ['/export', 'Export'],
  ['/catalogue', 'Catalogue'],
  ['/route', 'Route'],
  ['/audit', 'Audit'],
] as const;

/** A page of the dashboard. */
export type Frame = {
  readonly title: string;
  /** undefined if nobody is signed in. */
  readonly session: Session | undefined;
  /** Section of the navigation, such as `/payments`. */
  readonly section?: string;
  readonly content: Html;
  /** Seconds after which a browser without scripts loads the page again; never by default. */
  readonly reloadS?: number;
};

/** Renders a whole page. */
export function framed({ title, session, section, content, reloadS }: Frame): string {
  return htmlText(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Payments</title>
<link rel="stylesheet" href="${addressOf('.css')}">
<link rel="icon" href="${addressOf('.svg')}">
<script src="${addressOf('.js')}" defer></script>
${reloadS === undefined ? NOTHING : html`<noscript><meta http-equiv="refresh" content="${reloadS}"></noscript>`}
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
${session ? header(session, section) : NOTHING}
<main id="content" class="${session ? 'page' : 'lone'}">
${content}
</main>
</body>
</html>
`);
}

function header(session: Session, section: string | undefined): Html {
  const links = SECTIONS.map(
    ([path, name]) =>
      html`<a href="${DASHBOARD}${path}"${path === section ? html` aria-current="page"` : NOTHING}>${name}</a>`,
  );
  return html`<header class="top">
<p class="brand">Payments</p>
<nav aria-label="Sections">${links}</nav>
<form class="who" method="post" action="${DASHBOARD}/sign-out">
<input type="hidden" name="form_token" value="${session.formToken}">
<span title="${session.actor}">${session.role === 'operate' ? 'Operator' : 'Read only'}</span>
<button class="quiet">Sign out</button>
</form>
</header>`;
}

/** Describes the database nodes whose accounts a page over all accounts must leave out. */
export function missingNodes({ nodes }: Pick<Database, 'nodes'>): string[] {
  return (nodes?.() ?? []).flatMap(({ node, ill }) =>
    ill === undefined ? [] : [`The database node ${node} ${ill}: its accounts are missing here`],
  );
}

/** Renders a message above a page's content. */
export function notice(kind: 'done' | 'refused', text: string): Html {
  return html`<p class="notice ${kind}" role="${kind === 'done' ? 'status' : 'alert'}">${text}</p>`;
}
