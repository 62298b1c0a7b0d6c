import { escapeHtml } from './html.ts';

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
