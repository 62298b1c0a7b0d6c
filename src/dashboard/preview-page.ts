import { create } from '@bufbuild/protobuf';
import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import {
  type UpdateCatalogueRequest,
  UpdateCatalogueRequestSchema,
  type UpdateCatalogueResponse,
} from '#gen/payments/v1/configuration_service_pb.js';
import { type CatalogueChangeRequest, changeCatalogue } from '#src/catalogue/change-catalogue.ts';
import { checkCatalogue } from '#src/catalogue/check-catalogue.ts';
import { ServiceError } from '#src/service-error.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { changeTable, faultList, markedCondition } from './catalogue-changes.ts';
import {
  type CatalogueChange,
  type ConfigurationPageDeps,
  changeAsText,
  changeOfText,
  hiddenFields,
  type ReadCatalogue,
  readCatalogue,
  sourceNotice,
  updateBy,
  versionNumber,
} from './configuration.ts';
import { dryRunView } from './dry-run-view.ts';
import { DASHBOARD, notice } from './frame.ts';
import type { Page, Reply, Visit } from './visit.ts';

/** The number of stored payments on which a change is tried. */
const DRY_RUN_PAYMENTS = 1_000;
const MAX_COMMENT_LENGTH = 1_000;

/** A change to show before it is published. */
export type Previewed = {
  readonly title: string;
  readonly change: CatalogueChange;
  /** The form that asked for the change, to correct it. */
  readonly form?: Html;
  /** A message above the preview. */
  readonly message?: Html;
  /** The reason why it could not be published. */
  readonly refusal?: ServiceError;
};

/** The page that shows everything that a change would do. It publishes nothing. */
export async function previewPage(
  deps: ConfigurationPageDeps,
  visit: Visit,
  { title, change, form, message = NOTHING, refusal }: Previewed,
): Promise<Page> {
  const current = await readCatalogue(deps, visit);
  const request = create(UpdateCatalogueRequestSchema, {
    ...{ change, expectedVersion: current.version, validateOnly: true },
    // An undo must be quick: nobody waits for a dry run in an incident.
    dryRunPayments: change.case === 'undoTo' ? 0 : DRY_RUN_PAYMENTS,
  });
  const checked = await check(deps, visit, request);
  const changed = await changedCatalogue(deps, visit, current.catalogue, request);
  const refused = refusal ?? checked.refusal;
  const answer = 'response' in checked ? checked.response : undefined;
  const content = html`<div class="heading"><h1>Preview</h1><p class="quiet">${title}. Nothing is published yet.</p></div>
${sourceNotice(current)}${message}${refused ? notice('refused', refused.message) : NOTHING}${sinceNotice(visit, current)}
${answer ? answerView(deps, answer, { current, changed }) : NOTHING}
${checked.dryRunRefusal ? html`<p class="card">The dry run could not be made: ${checked.dryRunRefusal.message}</p>` : NOTHING}
${answer ? publishForm(visit, current, { change, answer }) : NOTHING}
${form ? html`<section><h2>Correct it</h2>${form}</section>` : html`<p><a class="button quiet" href="${DASHBOARD}/catalogue">Back to the catalogue</a></p>`}`;
  return { title: 'Preview', section: '/catalogue', content, status: refused?.status ?? 200 };
}

/** Publishes a previewed change. A refusal leads to its preview again. */
export async function publishPreviewed(
  deps: ConfigurationPageDeps & { readonly track: <T>(work: Promise<T>) => Promise<T> },
  visit: Visit,
): Promise<Reply> {
  const change = changeOfText(visit.whole('change'));
  const comment = visit.whole('comment');
  try {
    if (comment === '')
      throw new ServiceError('INVALID_PARAMETERS', 'comment: say why the catalogue changes');
    const request = create(UpdateCatalogueRequestSchema, {
      ...{ change, comment, expectedVersion: versionNumber(visit.form('version')) },
    });
    const { version } = await deps.track(updateBy(deps, visit, request));
    return { goTo: `${DASHBOARD}/catalogue?did=${version > 0 ? 'publish' : 'nothing'}` };
  } catch (refusal) {
    if (!(refusal instanceof ServiceError) || refusal.reason === 'AUTHORIZATION_REQUIRED') throw refusal;
    return previewPage(deps, visit, { title: titleOf(change), change, refusal });
  }
}

/** The preview of a change that a button asks for. */
export async function previewOfButton(deps: ConfigurationPageDeps, visit: Visit): Promise<Page> {
  const change = changeOfText(visit.whole('change'));
  return previewPage(deps, visit, { title: titleOf(change), change });
}

function titleOf(change: CatalogueChange): string {
  switch (change.case) {
    case 'undoTo':
      return `Undo to version ${change.value}`;
    case 'removeRoute':
      return `Remove route ${change.value}`;
    case 'removePaymentMethodType':
      return `Remove payment method type ${change.value}`;
    case 'retireConnection':
      return `Retire connection ${change.value}`;
    case 'removeConnection':
      return `Remove connection ${change.value}`;
    default:
      return 'A change of the catalogue';
  }
}

type Checked = {
  readonly response?: UpdateCatalogueResponse;
  readonly refusal?: ServiceError;
  readonly dryRunRefusal?: ServiceError;
};

/** Checks a change, without a dry run if none can be made now. */
async function check(
  deps: ConfigurationPageDeps,
  visit: Visit,
  request: UpdateCatalogueRequest,
): Promise<Checked> {
  try {
    return { response: await updateBy(deps, visit, request) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.reason !== 'SERVICE_UNAVAILABLE' || request.dryRunPayments === 0) return { refusal: error };
    const checked = await check(deps, visit, { ...request, dryRunPayments: 0 });
    return { ...checked, dryRunRefusal: error };
  }
}

/** Returns the changed catalogue for its diagram; undefined if the change is refused. */
async function changedCatalogue(
  deps: ConfigurationPageDeps,
  visit: Visit,
  catalogue: Catalogue,
  { change }: UpdateCatalogueRequest,
): Promise<Catalogue | undefined> {
  try {
    const earlier = change.case === 'undoTo' ? await readCatalogue(deps, visit, change.value) : undefined;
    return changeCatalogue(catalogue, change as CatalogueChangeRequest, earlier?.catalogue);
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

function answerView(
  { opened }: ConfigurationPageDeps,
  { changes, faults, dryRun }: UpdateCatalogueResponse,
  { current, changed }: { current: ReadCatalogue; changed: Catalogue | undefined },
): Html {
  const marks = changed ? faultyConditions(changed) : [];
  return html`<section class="card scroll" tabindex="0"><h2>What changes</h2>${changeTable(changes)}</section>
<section class="card"><h2>Faults</h2>${faultList(faults)}${marks}</section>
${changed ? dryRunView(dryRun, { shown: opened(), before: current.catalogue, after: changed }) : NOTHING}`;
}

/** Renders the conditions that have a fault, with its position. */
function faultyConditions(changed: Catalogue): Html[] {
  return checkCatalogue(changed).flatMap(({ field, within }) => {
    const at = Number(/^routes\[(\d+)\]\.condition$/.exec(field)?.[1]);
    const condition = changed.routes[at]?.condition;
    return within && condition !== undefined ? [markedCondition(condition, within)] : [];
  });
}

/** Says that another version is in force than the one that a form was made from. */
function sinceNotice(visit: Visit, { version, actor }: ReadCatalogue): Html {
  const from = versionNumber(visit.form('version'));
  if (from === 0 || from === version) return NOTHING;
  return html`<p class="notice plain" role="status">Version ${version} is in force now, published by ${actor}; this page was opened with version ${from}. The preview compares with version ${version}.</p>`;
}

function publishForm(
  visit: Visit,
  { version, source }: ReadCatalogue,
  { change, answer }: { change: CatalogueChange; answer: UpdateCatalogueResponse },
): Html {
  const isRefused = answer.faults.some(({ severity }) => severity === 'ERROR');
  const why =
    (source === 'FILE' && 'The catalogue comes from a file. Make this change there.') ||
    (visit.session.role !== 'operate' && 'Your key is read-only: it may preview, not publish.') ||
    (isRefused && 'Mend the faults first.') ||
    (answer.changes.length === 0 && 'There is nothing to publish.');
  if (why) return html`<section class="card"><h2>Publish</h2><p>${why}</p></section>`;
  return html`<form class="card stack" method="post" action="${DASHBOARD}/catalogue/publish"><h2>Publish</h2>${hiddenFields(visit, version)}
<input type="hidden" name="change" value="${changeAsText(change)}">
<div><label for="comment">Comment: why the catalogue changes</label><textarea id="comment" name="comment" rows="2" required maxlength="${MAX_COMMENT_LENGTH}">${visit.whole('comment')}</textarea></div>
<div class="row"><button>Publish</button></div></form>`;
}
