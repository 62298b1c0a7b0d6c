import { ServiceError } from '#src/service-error.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { option } from './show.ts';

/** Reads the fields of a form, as submitted or as filled in from a stored value; '' if missing. */
export type Fields = (name: string) => string;

/** Returns the fields of a record. */
export function fieldsOf(values: Readonly<Record<string, string>>): Fields {
  return (name) => (Object.hasOwn(values, name) ? (values[name] ?? '') : '');
}

/** Options of a field. */
export type FieldOptions = {
  readonly hint?: string;
  readonly help?: string | Html;
  readonly maxLength?: number;
  readonly isRequired?: boolean;
  readonly isReadOnly?: boolean;
};

/** Renders a line of text. */
export function textField(
  fields: Fields,
  name: string,
  label: string,
  { hint, help, maxLength = 255, isRequired, isReadOnly }: FieldOptions = {},
): Html {
  return html`<div><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${fields(name)}" maxlength="${maxLength}" autocomplete="off" spellcheck="false"${hint ? html` placeholder="${hint}"` : NOTHING}${isRequired ? html` required` : NOTHING}${isReadOnly ? html` readonly` : NOTHING}${described(name, help)}>${helpOf(name, help)}</div>`;
}

/** Renders a text of several lines. */
export function areaField(
  fields: Fields,
  name: string,
  label: string,
  { hint, help, maxLength = 255, rows = 3 }: FieldOptions & { readonly rows?: number } = {},
): Html {
  return html`<div><label for="${name}">${label}</label><textarea id="${name}" name="${name}" rows="${rows}" maxlength="${maxLength}" autocomplete="off" spellcheck="false"${hint ? html` placeholder="${hint}"` : NOTHING}${described(name, help)}>
${fields(name)}</textarea>${helpOf(name, help)}</div>`;
}

/** Renders a choice. @param options values with their names. */
export function choiceField(
  fields: Fields,
  name: string,
  label: string,
  options: readonly (readonly [value: string, name: string])[],
  help?: string,
): Html {
  const chosen = fields(name);
  const known = options.some(([value]) => value === chosen);
  const all = known || chosen === '' ? options : [...options, [chosen, chosen] as const];
  return html`<div><label for="${name}">${label}</label><select id="${name}" name="${name}"${described(name, help)}>${all.map(([value, text]) => option(value, text, chosen))}</select>${helpOf(name, help)}</div>`;
}

/** Renders a check box. */
export function checkField(fields: Fields, name: string, label: string): Html {
  return html`<div class="check"><input id="${name}" name="${name}" type="checkbox" value="on"${fields(name) === 'on' ? html` checked` : NOTHING}><label for="${name}">${label}</label></div>`;
}

function described(name: string, help: string | Html | undefined): Html {
  return help ? html` aria-describedby="${name}-help"` : NOTHING;
}

function helpOf(name: string, help: string | Html | undefined): Html {
  return help ? html`<p class="quiet help" id="${name}-help">${help}</p>` : NOTHING;
}

/**
 * Reads an integer that may be absent.
 *
 * @throws ServiceError INVALID_PARAMETERS for any other text.
 */
export function integerIn(fields: Fields, name: string, label: string): number | undefined {
  const text = fields(name);
  if (text === '') return undefined;
  if (!/^-?\d{1,9}$/.test(text)) throw wrongField(label, 'must be a whole number');
  return Number(text);
}

/** Reads words that spaces, commas or line ends divide. */
export function wordsIn(fields: Fields, name: string): string[] {
  return fields(name)
    .split(/[\s,]+/)
    .filter(Boolean);
}

/** Returns the refusal of a field of a form. */
export function wrongField(label: string, message: string): ServiceError {
  return new ServiceError('INVALID_PARAMETERS', `${label}: ${message}`);
}
