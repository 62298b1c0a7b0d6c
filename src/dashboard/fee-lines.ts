import { create } from '@bufbuild/protobuf';
import { type AgreedFee, AgreedFeeSchema } from '#gen/payments/v1/catalogue_pb.js';
import { agreedFeeInWords } from '#src/connectors/port/agreed-fee.ts';
import { type Html, html } from '#src/web/html.ts';
import { areaField, type Fields, wrongField } from './form-fields.ts';

const NAME = 'fees';
const LABEL = 'Agreed fees';
const DECIMAL = String.raw`\d[\d.]*`;
/** As agreedFeeInWords writes it. */
const LINE = new RegExp(
  String.raw`^(?<currency>\w+)(?: (?<type>\w+))? ?: ?(?:(?<percent>${DECIMAL}) ?%)? ?(?:\+? ?(?<fixed>${DECIMAL}))?(?: ?,? ?within (?<tolerance>${DECIMAL}))?$`,
);
/** The length of all lines that a catalogue may have. */
const MAX_LENGTH = 10_000;

/** Renders the agreed fees of a connection, one per line. */
export function feeField(fields: Fields): Html {
  return html`<details${fields(NAME) === '' ? '' : html` open`}><summary>${LABEL}…</summary>${areaField(
    fields,
    NAME,
    `${LABEL} (optional)`,
    {
      ...{ rows: 3, maxLength: MAX_LENGTH, hint: 'USD: 2.9% + 0.30' },
      help: 'One per line, for each currency in which the provider settles, as USD: 2.9% + 0.30 for all methods, or BRL PIX: 0.99% for one; add “within 0.02” if a fee may differ by more than its rounding. Settlement reports that are matched from now on are compared with them. Without any, fees are not compared.',
    },
  )}</details>`;
}

/** Returns the field of stored agreed fees. */
export function fieldsOfFees(fees: readonly AgreedFee[]): Record<string, string> {
  return { [NAME]: fees.map(agreedFeeInWords).join('\n') };
}

/** Reads agreed fees, whose values the catalogue's check judges. @throws ServiceError INVALID_PARAMETERS. */
export function feesIn(fields: Fields): AgreedFee[] {
  const lines = fields(NAME)
    .split('\n')
    .flatMap((line) => line.trim().replaceAll(/\s+/g, ' ') || []);
  return lines.map((line) => {
    const {
      currency = '',
      type = '',
      percent = '',
      fixed = '',
      tolerance = '',
    } = LINE.exec(line)?.groups ?? {};
    if (percent === '' && fixed === '') throw wrongField(LABEL, 'must have lines as USD: 2.9% + 0.30');
    return create(AgreedFeeSchema, { currency, paymentMethodType: type, percent, fixed, tolerance });
  });
}
