import { create } from '@bufbuild/protobuf';
import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import {
  type ExplainRouteRequest,
  ExplainRouteRequestSchema,
  type ExplainRouteResponse,
} from '#gen/payments/v1/operator_service_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { standInNumber } from '#src/payments/route/recorded-payment.ts';
import { ServiceError } from '#src/service-error.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { explanation } from './explanation.ts';
import { DASHBOARD, notice } from './frame.ts';
import type { Session } from './session.ts';
import { facts, option } from './show.ts';
import type { Page, Visit } from './visit.ts';

/** Explains how the catalogue in force would route a payment. @throws ServiceError if it would refuse the payment. */
export type Explain = (request: ExplainRouteRequest) => Promise<ExplainRouteResponse>;

/** Dependencies of the page that explains a route. */
export type RoutePageDeps = { readonly explain: Explain; readonly catalogue: () => Catalogue };

const FIELDS = [
  'type',
  'workflow',
  'country',
  'currency',
  'amount',
  'card',
  'account',
  'reference',
  'installments',
  'capture',
  'key',
] as const;
type RouteForm = Readonly<Record<(typeof FIELDS)[number], string>>;

const EXAMPLE: RouteForm = {
  type: 'CARD',
  workflow: '',
  country: 'US',
  currency: 'USD',
  amount: '100.00',
  card: '41111111',
  account: '',
  reference: '',
  installments: '1',
  capture: 'on',
  key: '',
};

/** The form, filled in with an example, and the explanation of that example. */
export async function routeForm({ explain, catalogue }: RoutePageDeps, visit: Visit): Promise<Page> {
  const inForce = catalogue();
  const card = inForce.paymentMethodTypes.find(({ category }) => category === Transaction_Category.CARD);
  const requested = { ...EXAMPLE, type: card?.type ?? '' };
  const way = card && (await explain(requestOf(requested, true)).catch(() => undefined));
  return page(inForce, requested, visit.session, way ? explained(way) : NOTHING);
}

/** The form as submitted, and the explanation. Nothing is sent to a provider or written. */
export async function explainedRoute({ explain, catalogue }: RoutePageDeps, visit: Visit): Promise<Page> {
  const requested = Object.fromEntries(FIELDS.map((field) => [field, visit.form(field)])) as RouteForm;
  try {
    // Whole card numbers are refused: routes use only the issuer's digits.
    if (!/^\d{0,8}$/.test(requested.card)) {
      throw new ServiceError('INVALID_PARAMETERS', 'enter only the first 4 to 8 digits of a card');
    }
    const way = await explain(requestOf(requested, isCard(catalogue(), requested.type)));
    return page(catalogue(), requested, visit.session, explained(way));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    // The field may contain a whole card number, which no page may show.
    const shown = { ...requested, card: requested.card.slice(0, 8) };
    return { ...page(catalogue(), shown, visit.session, notice('refused', error.message)), status: 400 };
  }
}

function isCard(catalogue: Catalogue, type: string): boolean {
  const found = catalogue.paymentMethodTypes.find((one) => one.type === type);
  return found?.category === Transaction_Category.CARD;
}

function requestOf(requested: RouteForm, ofCard: boolean) {
  const workflow = requested.workflow === 'DIRECT' ? Payment_Workflow.DIRECT : Payment_Workflow.REDIRECT;
  return create(ExplainRouteRequestSchema, {
    idempotencyKey: requested.key.slice(0, 255),
    payment: create(CreatePaymentRequestSchema, {
      accountId: requested.account || '00000000-0000-0000-0000-000000000000',
      merchantOrderId: 'which-way',
      merchantReference: requested.reference,
      country: requested.country.toUpperCase(),
      amount: { currency: requested.currency.toUpperCase(), value: { value: requested.amount } },
      workflow: requested.workflow === '' ? Payment_Workflow.WORKFLOW_UNSPECIFIED : workflow,
      paymentMethod: { type: requested.type, ...(ofCard && { detail: cardOf(requested) }) },
    }),
  });
}

function cardOf({ card, capture, installments }: RouteForm) {
  const number = standInNumber(card || '4');
  return {
    kind: {
      case: 'card' as const,
      value: {
        cardData: { number, expirationMonth: 12, expirationYear: 99 },
        capture: capture === 'on',
        installments: /^\d{1,2}$/.test(installments) ? Number(installments) : 0,
      },
    },
  };
}

function explained(way: ExplainRouteResponse): Html {
  const { facts: seen } = way;
  return html`<section class="card" id="answer"><h2>Its route</h2>${explanation(way)}
<h2>Facts for conditions</h2>${facts([
    ['category', seen?.category],
    ['card_brand', seen?.cardBrand],
    ['iin', seen?.iin],
    ['issuer_country', seen?.issuerCountry],
    ['issuer_type', seen?.issuerType],
    ['workflow', seen?.workflow],
  ])}</section>`;
}

function page(catalogue: Catalogue, requested: RouteForm, session: Session, explanationShown: Html): Page {
  const field = (name: keyof RouteForm, label: string, hint = '') =>
    html`<div><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${requested[name]}" maxlength="255" autocomplete="off"${hint === '' ? NOTHING : html` placeholder="${hint}"`}></div>`;
  const types = catalogue.paymentMethodTypes.map(({ type }) => option(type, type, requested.type));
  const content = html`<div class="heading"><h1>Which route would this payment take?</h1><p class="quiet">The router itself answers. Nothing is sent to a provider, and nothing is written.</p></div>
<div class="split asked"><form class="card stack" method="post" action="${DASHBOARD}/route">
<input type="hidden" name="form_token" value="${session.formToken}">
<div><label for="type">Payment method type</label><select id="type" name="type">${types}</select></div>
${field('country', 'Country')}
${field('currency', 'Currency')}
${field('amount', 'Amount')}
${field('card', 'Card’s first 4 to 8 digits')}
${field('installments', 'Installments')}
<div class="check"><input id="capture" name="capture" type="checkbox" value="on"${requested.capture === 'on' ? html` checked` : NOTHING}><label for="capture">Capture at once</label></div>
<div><label for="workflow">Workflow</label><select id="workflow" name="workflow">${['', 'DIRECT', 'REDIRECT'].map((name) => option(name, name || 'default of the type', requested.workflow))}</select></div>
${field('reference', 'Merchant reference')}
${field('account', 'Account', 'any')}
${field('key', 'Idempotency key', 'determines the choice of a split')}
<button>Ask</button>
</form><div>${explanationShown}</div></div>`;
  return { title: 'Route', section: '/route', content };
}
