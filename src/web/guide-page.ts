import { createHash } from 'node:crypto';
import { escapeHtml } from './html.ts';

/** A page of docs/ that is served alongside the API reference. */
type Guide = {
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
  { name: 'local-methods', title: 'Local methods', file: 'local-methods.md' },
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

/**
 * Renders the Markdown of docs/ (https://commonmark.org, with GitHub's tables): headings, paragraphs, lists, tables and
 * fenced code; inline, code, links, bold and italic. Anything else stays text, and all text is escaped.
 *
 * @param addressOf returns the URL for a link's target, or undefined to keep only the link's text.
 */
export function renderMarkdown(markdown: string, addressOf: (target: string) => string | undefined): string {
  const inline = inlineRenderer(addressOf);
  const lines = markdown.split('\n');
  const blocks: string[] = [];
  while (lines.length > 0) {
    const block = takeBlock(lines, inline);
    if (block !== '') blocks.push(block);
  }
  return blocks.join('\n');
}

type Inline = (text: string) => string;

/** Removes the first block from the lines. @returns its HTML; '' for an empty line. */
function takeBlock(lines: string[], inline: Inline): string {
  const line = lines.shift() ?? '';
  if (line.trim() === '') return '';
  if (line.startsWith('```')) return codeBlock(lines);
  const [, marks, title = ''] = /^(#{1,4}) (.+)$/.exec(line) ?? [];
  if (marks) return `<h${marks.length} id="${slugOf(title)}">${inline(title)}</h${marks.length}>`;
  if (line.startsWith('|')) return table([line, ...takeWhile(lines, (one) => one.startsWith('|'))], inline);
  const item = ITEM.exec(line);
  const text = [line, ...takeWhile(lines, (one) => one.trim() !== '' && (item !== null || !BLOCK.test(one)))];
  if (item) return list(text, inline);
  return `<p>${inline(text.join(' '))}</p>`;
}

const ITEM = /^(-|\d+\.) /;
/** Start of a block that ends a paragraph. */
const BLOCK = /^(?:```|#{1,4} |\||- |\d+\. )/;

function takeWhile(lines: string[], belongs: (line: string) => boolean): string[] {
  const end = lines.findIndex((line) => !belongs(line));
  return lines.splice(0, end < 0 ? lines.length : end);
}

function codeBlock(lines: string[]): string {
  const code = takeWhile(lines, (line) => !line.startsWith('```'));
  lines.shift();
  return `<pre tabindex="0"><code>${escapeHtml(code.join('\n'))}</code></pre>`;
}

function list(lines: readonly string[], inline: Inline): string {
  const items: string[] = [];
  for (const line of lines) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ''));
    else items.push(`${items.pop() ?? ''} ${line.trim()}`);
  }
  const tag = lines[0]?.startsWith('-') ? 'ul' : 'ol';
  return `<${tag}>${items.map((item) => `<li>${inline(item)}</li>`).join('')}</${tag}>`;
}

function table([head = '', _rule, ...rows]: readonly string[], inline: Inline): string {
  const row = (line: string, tag: string) =>
    `<tr>${line
      .replace(/^\||\|$/g, '')
      .split('|')
      .map((cell) => `<${tag}>${inline(cell.trim())}</${tag}>`)
      .join('')}</tr>`;
  const body = rows.map((line) => row(line, 'td')).join('');
  return `<div class="box" tabindex="0"><table><thead>${row(head, 'th')}</thead><tbody>${body}</tbody></table></div>`;
}

/** Returns a heading's id as GitHub does: "Repeating a call safely" becomes repeating-a-call-safely. */
function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');
}

const MARKED = /`([^`]+)`|\[((?:`[^`]*`|[^\]`])+)\]\(([^)\s]+)\)|\*\*(.+?)\*\*|\*([^*\s][^*]*)\*/g;

function inlineRenderer(addressOf: (target: string) => string | undefined): Inline {
  const link = (text: string, target: string) => {
    const address = addressOf(target);
    const content = inline(text);
    return address === undefined ? content : `<a href="${escapeHtml(address)}">${content}</a>`;
  };
  const inline: Inline = (text) => {
    let html = '';
    let end = 0;
    for (const match of text.matchAll(MARKED)) {
      const [whole, code, linked, target = '', bold, italic] = match;
      html += escapeHtml(text.slice(end, match.index));
      end = match.index + whole.length;
      if (code !== undefined) html += `<code>${escapeHtml(code)}</code>`;
      else if (linked !== undefined) html += link(linked, target);
      else if (bold !== undefined) html += `<strong>${inline(bold)}</strong>`;
      else html += `<em>${inline(italic ?? '')}</em>`;
    }
    return html + escapeHtml(text.slice(end));
  };
  return inline;
}
