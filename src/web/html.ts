/** A mark that no value read from outside can carry: JSON and forms have no symbols. */
const MARKUP = Symbol('markup');

/** HTML that is safe as it is. Only `html` makes it. */
export type Html = { readonly [MARKUP]: string };

/** A value that a template takes: texts and numbers are escaped, `undefined` and `false` leave nothing. */
export type HtmlValue = string | number | bigint | Html | readonly Html[] | undefined | false;

/**
 * Makes HTML of a template. Whatever is put in is escaped, unless `html` made it.
 *
 * A value stands in text or in a quoted attribute, nowhere else: not in a tag's name, a script or a style.
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let text = strings[0] ?? '';
  for (const [i, value] of values.entries()) text += markupOf(value) + strings[i + 1];
  return { [MARKUP]: text };
}

/** No HTML at all. */
export const NOTHING: Html = html``;

/** Returns the text of HTML, to be sent. */
export function htmlText(content: Html): string {
  return content[MARKUP];
}

/** Escapes text for HTML's text and quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function markupOf(value: HtmlValue): string {
  if (value === undefined || value === false) return '';
  if (typeof value !== 'object') return escapeHtml(String(value));
  if (MARKUP in value) return value[MARKUP];
  return value.map(markupOf).join('');
}
