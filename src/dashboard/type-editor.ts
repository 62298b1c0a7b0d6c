import { create } from '@bufbuild/protobuf';
import { type PaymentMethodType, PaymentMethodTypeSchema } from '#gen/payments/v1/catalogue_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { html, NOTHING } from '#src/web/html.ts';
import { hiddenFields, previewButton } from './configuration.ts';
import { type Editor, missing } from './editor.ts';
import {
  areaField,
  checkField,
  choiceField,
  type Fields,
  fieldsOf,
  textField,
  wordsIn,
} from './form-fields.ts';
import { DASHBOARD } from './frame.ts';

const WORKFLOWS = ['DIRECT', 'REDIRECT'] as const;
const CATEGORIES = [
  ['CARD', 'card'],
  ['WALLET', 'wallet'],
  ['BANK_TRANSFER', 'bank transfer'],
  ['TICKET', 'ticket: a voucher paid in cash or at a bank'],
] as const;
/** Enough for 300 codes with spaces. */
const MAX_CODES_LENGTH = 1_500;

/** The form of a payment method type. */
export const TYPE_EDITOR: Editor = {
  path: '/catalogue/type',
  title: (name) => (name === '' ? 'New payment method type' : `Payment method type ${name}`),
  stored({ paymentMethodTypes }, name) {
    const type = paymentMethodTypes.find((one) => one.type === name);
    if (!type) throw missing('payment method type', name);
    return fieldsOfType(type);
  },
  blank: () => fieldsOf({ category: 'CARD', DIRECT: 'on' }),
  change: (fields) => ({
    case: 'putPaymentMethodType',
    value: create(PaymentMethodTypeSchema, {
      type: fields('type'),
      category: Transaction_Category[fields('category') as keyof typeof Transaction_Category] ?? 0,
      workflows: workflowsIn(fields),
      countries: wordsIn(fields, 'countries').map((one) => one.toUpperCase()),
      currencies: wordsIn(fields, 'currencies').map((one) => one.toUpperCase()),
    }),
  }),
  form: (visit, { version }, fields, name) => {
    const codes = (of: string, label: string, hint: string, help: string) =>
      areaField(fields, of, label, { hint, help, rows: 2, maxLength: MAX_CODES_LENGTH });
    return html`<form class="card stack" method="post" action="${DASHBOARD}/catalogue/type">${hiddenFields(visit, version)}
<input type="hidden" name="editing" value="${name}"><input type="hidden" name="order" value="${fields('order')}">
${textField(fields, 'type', 'Name', {
  ...{ isRequired: true, isReadOnly: name !== '', hint: 'PIX' },
  help: 'The value of payment_method.type: capital letters, digits and underscores.',
})}
${choiceField(fields, 'category', 'Its payers pay by', CATEGORIES)}
<fieldset><legend>Workflows</legend>${checkField(fields, 'DIRECT', 'DIRECT: the provider is called during the request')}${checkField(fields, 'REDIRECT', 'REDIRECT: the payer is sent to a page')}</fieldset>
${codes('countries', 'Countries', 'all countries', 'Codes of two letters (ISO 3166-1), such as BR MX.')}
${codes('currencies', 'Currencies', 'all currencies', 'Codes of three letters (ISO 4217), such as BRL MXN.')}
<div class="row"><button>Preview</button><a class="button quiet" href="${DASHBOARD}/catalogue">Back</a></div>
</form>
${name === '' ? NOTHING : html`<div class="row card">${previewButton(visit, version, { label: 'Remove…', isDanger: true, change: { case: 'removePaymentMethodType', value: name } })}</div>`}`;
  },
};

function fieldsOfType({ type, category, workflows, countries, currencies }: PaymentMethodType): Fields {
  const names = workflows.map((one) => Payment_Workflow[one] ?? '');
  return fieldsOf({
    ...{ type, category: Transaction_Category[category] ?? '', order: names.join(' ') },
    ...Object.fromEntries(names.map((name) => [name, 'on'])),
    countries: countries.join(' '),
    currencies: currencies.join(' '),
  });
}

/** Returns the chosen workflows in their stored order, so that a form that was not changed changes nothing. */
function workflowsIn(fields: Fields): Payment_Workflow[] {
  const stored = wordsIn(fields, 'order');
  return WORKFLOWS.filter((name) => fields(name) === 'on')
    .sort((a, b) => stored.indexOf(a) - stored.indexOf(b))
    .map((name) => Payment_Workflow[name]);
}
