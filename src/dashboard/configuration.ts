import { create, fromJsonString, type MessageInitShape, toJsonString } from '@bufbuild/protobuf';
import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import {
  GetCatalogueRequestSchema,
  type GetCatalogueResponse,
  type UpdateCatalogueRequest,
  UpdateCatalogueRequestSchema,
  type UpdateCatalogueResponse,
} from '#gen/payments/v1/configuration_service_pb.js';
import type { configurationService } from '#src/api/configuration-service.ts';
import type { operatorService } from '#src/api/operator-service.ts';
import { ServiceError } from '#src/service-error.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD } from './frame.ts';
import type { ShownCatalogue } from './route-picture.ts';
import type { Visit } from './visit.ts';

/** Dependencies of the pages that show and change the configuration. */
export type ConfigurationPageDeps = {
  /** The API's own calls, which publish with the source `dashboard`. */
  readonly configuration: ReturnType<typeof configurationService>;
  /** The operators' calls of the API. */
  readonly operators: ReturnType<typeof operatorService>;
  /** The catalogue in force in this process. @throws ServiceError SERVICE_UNAVAILABLE while there is none. */
  readonly opened: () => ShownCatalogue;
};

/** A change of the catalogue. */
export type CatalogueChange = NonNullable<MessageInitShape<typeof UpdateCatalogueRequestSchema>['change']>;

/** The catalogue in force, or an earlier version, with the message present. */
export type ReadCatalogue = GetCatalogueResponse & { readonly catalogue: Catalogue };

/** Returns the operator of a visit as the caller of a call. */
export function callerOf({ session, actor }: Visit) {
  const operator = { actor, mayOnlyRead: session.role !== 'operate' };
  return { accountId: NIL_UUID, idempotencyKey: undefined, secretPresented: true, operator };
}

/** Reads the catalogue in force in the database or file, or an earlier version. @throws ServiceError without it. */
export async function readCatalogue(
  { configuration }: ConfigurationPageDeps,
  visit: Visit,
  version = 0,
): Promise<ReadCatalogue> {
  const request = create(GetCatalogueRequestSchema, { version });
  const { message } = await configuration.getCatalogue(request, callerOf(visit));
  const { catalogue } = message;
  if (!catalogue) throw new Error('a response has no catalogue');
  return { ...message, catalogue };
}

/** Checks or publishes a change. @throws ServiceError as the API's call does. */
export async function updateBy(
  { configuration }: ConfigurationPageDeps,
  visit: Visit,
  request: UpdateCatalogueRequest,
): Promise<UpdateCatalogueResponse> {
  return (await configuration.updateCatalogue(request, callerOf(visit))).message;
}

/** Returns a change as text for a hidden field. */
export function changeAsText(change: CatalogueChange): string {
  return toJsonString(UpdateCatalogueRequestSchema, create(UpdateCatalogueRequestSchema, { change }));
}

/** Reads the change in a hidden field. @throws ServiceError INVALID_REQUEST. */
export function changeOfText(text: string): CatalogueChange {
  try {
    const { change } = fromJsonString(UpdateCatalogueRequestSchema, text);
    if (change.case !== undefined) return change;
  } catch {
    // The text may be anything, and its error may quote it.
  }
  throw new ServiceError('INVALID_REQUEST', 'the form has no change; nothing was done; open the page again');
}

/** Reads a version's number. @returns 0 for everything else. */
export function versionNumber(text: string): number {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
}

/** Renders the hidden fields of a form: its token, and the version that its change is made to. */
export function hiddenFields({ session }: Visit, version: number): Html {
  return html`<input type="hidden" name="form_token" value="${session.formToken}">
<input type="hidden" name="version" value="${version}">`;
}

/** Renders a button that leads to the preview of a change that needs no form. */
export function previewButton(
  visit: Visit,
  version: number,
  { label, change, isDanger }: { label: string; change: CatalogueChange; isDanger?: boolean },
): Html {
  return html`<form method="post" action="${DASHBOARD}/catalogue/preview">${hiddenFields(visit, version)}
<input type="hidden" name="change" value="${changeAsText(change)}">
<button class="${isDanger ? 'danger' : 'quiet'}">${label}</button></form>`;
}

/** Says that the catalogue comes from a file, if it does. */
export function sourceNotice({ source }: Pick<GetCatalogueResponse, 'source'>): Html {
  if (source !== 'FILE') return NOTHING;
  return html`<p class="notice plain">The catalogue comes from the file that CATALOGUE_FILE names. Changes can be previewed here, and are made in the file.</p>`;
}
