/** Key that no value from outside can have: JSON and forms know no symbols. */
const MARKUP = Symbol('markup');

/** Safe HTML, made only by `html`. */
export type Html = { readonly [MARKUP]: string };

/** Value in a template. Texts and numbers are escaped; `undefined` and `false` render nothing. */
export type HtmlValue = string | number | bigint | Html | readonly Html[] | undefined | false;

/**
 * Makes HTML from a template, escaping every value that `html` did not make.
 *
 * A value may appear only in text or in a quoted attribute, not in a tag's name, a script or a style.
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let text = strings[0] ?? '';
  for (const [i, value] of values.entries()) text += markupOf(value) + strings[i + 1];
  return { [MARKUP]: text };
}

/** Empty HTML. */
export const NOTHING: Html = html``;

/** Returns HTML as text, ready to send. */
export function htmlText(content: Html): string {
  return content[MARKUP];
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
