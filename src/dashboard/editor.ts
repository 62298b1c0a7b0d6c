import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import { ServiceError } from '#src/service-error.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import {
  type CatalogueChange,
  type ConfigurationPageDeps,
  type ReadCatalogue,
  readCatalogue,
  sourceNotice,
} from './configuration.ts';
import type { Fields } from './form-fields.ts';
import { notice } from './frame.ts';
import { previewPage } from './preview-page.ts';
import type { Page, Visit } from './visit.ts';

/** A form that changes a piece of the catalogue. */
export type Editor = {
  /** Path of the form, to which it also submits. */
  readonly path: string;
  /** @param name of the piece; '' for a new one. */
  readonly title: (name: string) => string;
  /** The fields of a stored piece. @throws ServiceError if there is none. */
  readonly stored: (catalogue: Catalogue, name: string) => Fields;
  /** The fields of a new piece. */
  readonly blank: (catalogue: Catalogue) => Fields;
  /** The change that submitted fields ask for. @throws ServiceError INVALID_PARAMETERS. */
  readonly change: (fields: Fields, catalogue: Catalogue) => CatalogueChange;
  /** The form. @param name of the piece that it changes; '' for a new one. */
  readonly form: (
    visit: Visit,
    current: Pick<ReadCatalogue, 'catalogue' | 'version' | 'source'>,
    fields: Fields,
    name: string,
  ) => Html;
};

/** The page of a form, filled in with the piece that the query names. */
export async function editorPage(
  deps: ConfigurationPageDeps,
  editor: Editor,
  visit: Visit,
  message: Html = NOTHING,
): Promise<Page> {
  const current = await readCatalogue(deps, visit);
  const name = visit.query('id');
  const fields = name === '' ? editor.blank(current.catalogue) : editor.stored(current.catalogue, name);
  return formPage(editor, visit, current, { fields, name, status: 200, message });
}

/**
 * The preview of a submitted form, or the form with the reason why it cannot be read.
 *
 * @param message shown above it.
 */
export async function submittedPage(
  deps: ConfigurationPageDeps,
  editor: Editor,
  visit: Visit,
  message: Html = NOTHING,
): Promise<Page> {
  const current = await readCatalogue(deps, visit);
  const name = visit.form('editing');
  try {
    const change = editor.change(visit.whole, current.catalogue);
    const form = editor.form(visit, current, visit.whole, name);
    return await previewPage(deps, visit, { title: editor.title(name), change, form, message });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const refusal = html`${message}${notice('refused', error.message)}`;
    return formPage(editor, visit, current, { fields: visit.whole, name, status: 400, message: refusal });
  }
}

type Shown = {
  readonly fields: Fields;
  readonly name: string;
  readonly status: number;
  /** A message above the form. */
  readonly message?: Html;
};

/** Renders the page of a form. */
export function formPage(
  editor: Editor,
  visit: Visit,
  current: ReadCatalogue,
  { fields, name, status, message = NOTHING }: Shown,
): Page {
  const title = editor.title(name);
  const content = html`<div class="heading"><h1>${title}</h1><p class="quiet">The next page shows what would change. Nothing is published before.</p></div>
${sourceNotice(current)}${message}${editor.form(visit, current, fields, name)}`;
  return { title, section: '/catalogue', content, status };
}

/** Returns the refusal of a name that the catalogue does not have. */
export function missing(what: string, name: string): ServiceError {
  return new ServiceError('INVALID_PARAMETERS', `the catalogue has no ${what} ${name.slice(0, 255)}`);
}
