import type { JsonObject } from '@bufbuild/protobuf';

/** A boleto's line, with right check digits; its barcode is BOLETO_BARCODE. */
export const BOLETO_LINE = '03399.33384 52937.493451 03201.015660 1 99700000300000';
export const BOLETO_BARCODE = '03391997000003000009333852937493450320101566';
export const OXXO_REFERENCE = '59168954601529';
export const PIX_CODE = '00020126580014br.gov.bcb.pix0136fake-adyen-code5204000053039865802BR6304ABCD';

/** The banks of PSE, by their ACH Colombia codes. */
export const PSE_BANKS = [
  { id: '1022', name: 'Banco Uno' },
  { id: '1040', name: 'Banco Dos' },
  { id: '1051', name: 'Banco Tres', disabled: true },
];

type Amount = { readonly value: number; readonly currency: string };

/** Rules of a local method: its currency, the fields that a request needs, and the result and action of its answer. */
type CodeRules = {
  readonly currency: string;
  readonly needs: readonly string[];
  readonly isRefundable: boolean;
  answer(body: JsonObject, amount: Amount): JsonObject;
};

const DAY_MS = 86_400_000;
const BRAZILIAN = ['shopperName', 'socialSecurityNumber'];

const RULES: Readonly<Record<string, CodeRules>> = {
  pix: {
    ...{ currency: 'BRL', needs: BRAZILIAN, isRefundable: true },
    answer({ sessionValidity }) {
      const expiresAt = String(sessionValidity ?? new Date(Date.now() + DAY_MS).toISOString());
      return {
        resultCode: 'Pending',
        action: { type: 'qrCode', paymentMethodType: 'pix', qrCodeData: PIX_CODE, expiresAt },
        additionalData: { 'pix.expirationDate': expiresAt },
      };
    },
  },
  boletobancario: {
    ...{ currency: 'BRL', needs: BRAZILIAN, isRefundable: false },
    answer: ({ deliverAt, reference }, amount) => ({
      resultCode: 'PresentToShopper',
      action: {
        ...{ type: 'voucher', paymentMethodType: 'boletobancario', reference: BOLETO_LINE },
        ...{ initialAmount: { ...amount }, totalAmount: { ...amount } },
        // Without an offset, as in Adyen's examples.
        expiresAt: String(deliverAt).slice(0, 19),
        downloadUrl: `https://checkoutshopper-test.adyen.com/boleto.pdf?data=${reference}`,
      },
    }),
  },
  oxxo: {
    ...{ currency: 'MXN', needs: [], isRefundable: false },
    answer: ({ reference }, amount) => ({
      resultCode: 'PresentToShopper',
      action: {
        ...{ type: 'voucher', paymentMethodType: 'oxxo', reference: OXXO_REFERENCE },
        ...{ alternativeReference: '59168954601529', merchantReference: String(reference) },
        totalAmount: { ...amount },
        expiresAt: new Date(Date.now() + 3 * DAY_MS).toISOString(),
        downloadUrl: `https://checkoutshopper-test.adyen.com/oxxo.pdf?data=${reference}`,
        instructionsUrl: 'https://checkoutshopper-test.adyen.com/oxxo',
      },
    }),
  },
};

/** Returns the rules of a local method that shows a code; undefined for any other method. */
export function codeRulesOf(type: string): CodeRules | undefined {
  return RULES[type.startsWith('boletobancario') ? 'boletobancario' : type];
}

/** Returns what a request for a local method lacks; undefined if it is complete. */
export function lackOfCode(type: string, body: JsonObject, amount: Amount): string | undefined {
  if (type === 'pse_payulatam') return lackOfBank(body.paymentMethod as JsonObject, amount);
  const { currency = amount.currency, needs = [] } = codeRulesOf(type) ?? {};
  if (amount.currency !== currency) return 'amount.currency';
  const times = ['sessionValidity', 'deliverAt'].filter((name) => body[name] !== undefined);
  return (
    needs.find((name) => !body[name]) ??
    times.find((name) => !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)$/.test(String(body[name])))
  );
}

function lackOfBank(method: JsonObject, amount: Amount): string | undefined {
  if (amount.currency !== 'COP') return 'amount.currency';
  const isBank = PSE_BANKS.some(({ id, disabled }) => id === method.bank && !disabled);
  if (!isBank) return 'bank';
  return ['clientType', 'identification', 'identificationType'].find((name) => !method[name]);
}
