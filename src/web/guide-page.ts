import { createHash } from 'node:crypto';
import { escapeHtml } from './html.ts';
import { renderMarkdown } from './markdown.ts';

/** A page of docs/ that is served alongside the API reference. */
export type Guide = {
  /** Last part of the path /docs/<name>. */
  readonly name: string;
  readonly title: string;
  /** File in docs/. */
  readonly file: string;
  /** Headings of the sections to show after the introduction; all by default. */
  readonly sections?: readonly string[];
};

/** The pages for developers who call the service. */
export const GUIDES: readonly Guide[] = [
  { name: 'errors', title: 'Errors', file: 'errors.md' },
  {
    name: 'webhooks',
    title: 'Webhooks',
    file: 'webhooks.md',
    // The other sections, for operators, describe how deliveries are made.
    sections: ['Receiving events', 'Repeating a call safely', 'What is not promised'],
  },
  { name: 'retries', title: 'Retries and promises', file: 'retries-and-promises.md' },
  { name: 'limits', title: 'Limits', file: 'limits.md' },
];

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.55 system-ui, sans-serif;
    --text: #1c1e24; --quiet: #565b66; --line: #d9dce3; --card: #fff; --ground: #f3f4f7; --link: #1c4fd6; }
  @media (prefers-color-scheme: dark) { :root {
    --text: #eceef2; --quiet: #a9afbb; --line: #3b404b; --card: #22252d; --ground: #15171c; --link: #8fb0ff; } }
  body { margin: 0; padding: 1.5rem 1rem 3rem; color: var(--text); background: var(--ground); }
  nav, main { max-width: 52rem; margin: 0 auto; overflow-wrap: anywhere; }
  nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; }
  nav a[aria-current] { color: var(--text); font-weight: 600; text-decoration: none; }
  h1 { margin: 1.5rem 0 1rem; } h2 { margin: 2rem 0 .5rem; }
  .box, pre { overflow-x: auto; border: 1px solid var(--line); border-radius: .75rem; background: var(--card); }
  table { width: 100%; border-collapse: collapse; font-size: .9rem; overflow-wrap: normal; }
  th, td { padding: .5rem .8rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
  thead th { border-top: 0; color: var(--quiet); }
  code { font: .85em/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
  pre { padding: 1rem; } li { margin: .35rem 0; } a { color: var(--link); }`;

/** Headers of a guide, which may not run scripts or load anything. */
export const GUIDE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
};

/** Renders a guide. @param markdown the content of its file. */
export function renderGuide(guide: Guide, markdown: string): string {
  const links = GUIDES.map(
    ({ name, title }) =>
      `<a href="/docs/${name}"${name === guide.name ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a>`,
  );
  const content = renderMarkdown(shown(guide, markdown), addressOf);
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(guide.title)} · Payments service</title><style>${STYLE}</style></head><body>
<nav aria-label="Documentation"><a href="/docs">API reference</a>${links.join('')}</nav>
<main>${content}</main></body></html>`;
}

function shown({ sections }: Guide, markdown: string): string {
  const [beginning = '', ...others] = markdown.split(/^(?=## )/m);
  const isShown = (part: string) => !sections || sections.includes(/^## (.+)$/m.exec(part)?.[1] ?? '');
  return [beginning, ...others.filter(isShown)].join('');
}

/** Only links to other guides and other sites are kept: the rest of docs/ is not served. */
function addressOf(target: string): string | undefined {
  if (/^(?:https?:|#)/.test(target)) return target;
  const [file, anchor] = target.split('#');
  const guide = GUIDES.find((one) => one.file === file);
  return guide && `/docs/${guide.name}${anchor === undefined ? '' : `#${anchor}`}`;
}
