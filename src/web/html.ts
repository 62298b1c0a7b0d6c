/** Key that no external value can have: JSON and forms contain no symbols. */
const MARKUP = Symbol('markup');

/** Safe HTML, created only by `html` and `trusted`. */
export type Html = { readonly [MARKUP]: string };

/** Value in a template. Strings and numbers are escaped; `undefined` and `false` render nothing. */
export type HtmlValue = string | number | bigint | Html | readonly Html[] | undefined | false;

/**
 * Builds HTML from a template, and escapes every value that is not already `Html`.
 *
 * Values may appear only in text or in quoted attributes, not in tag names, scripts or styles.
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let text = strings[0] ?? '';
  for (const [i, value] of values.entries()) text += markupOf(value) + strings[i + 1];
  return { [MARKUP]: text };
}

/** Empty HTML. */
export const NOTHING: Html = html``;

/** Returns HTML as a string, ready to send. */
export function htmlText(content: Html): string {
  return content[MARKUP];
}

/** Marks markup as safe that a library of ours drew, such as the SVG of a code. Never for anything from outside. */
export function trusted(markup: string): Html {
  return { [MARKUP]: markup };
}

/** Escapes a string for use in HTML text or a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function markupOf(value: HtmlValue): string {
  if (value === undefined || value === false) return '';
  if (typeof value !== 'object') return escapeHtml(String(value));
  if (MARKUP in value) return value[MARKUP];
  return value.map(markupOf).join('');
}
