import { fromJson, toBinary } from '@bufbuild/protobuf';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';

export const ACCOUNT_ID = 'be0c0000-0000-4000-8000-000000000001';
export const PUBLIC_KEY = 'pk_bench';
export const SECRET_KEY = 'sk_bench_0123456789abcdef0123456789abcdef';
export const CURRENCY = 'USD';

/** The key and the amount are patched into pre-encoded requests, so they always have these lengths. */
export const KEY_PLACEHOLDER = 'bench-0000000000000-00000000';
const AMOUNT_PLACEHOLDER = '100000.00';
export const FIRST_AMOUNT_CENTS = 10_000_000;

/** The idempotency key of a request, unique within a session. */
export function idempotencyKey(runId: string, sequence: number): string {
  return `bench-${runId}-${String(sequence).padStart(8, '0')}`;
}

/** Returns the part that all keys of a new run share: thirteen characters. */
export function newRunId(): string {
  return String(Date.now()).padStart(13, '0');
}

/** The amount of a request. It differs from request to request, so that a mix-up would be noticed. */
export function amountOf(sequence: number): string {
  const cents = String(FIRST_AMOUNT_CENTS + sequence);
  return `${cents.slice(0, -2)}.${cents.slice(-2)}`;
}

const ADDRESS = {
  address_line_1: 'Avenida Providencia 1550',
  address_line_2: 'Depto 1204',
  country: 'CL',
  state: 'Región Metropolitana',
  city: 'Santiago',
  zip_code: '7500498',
  neighborhood: 'Providencia',
};

/** A card payment as a shop sends it: about 1.9 KB of JSON. */
const REQUEST = {
  account_id: ACCOUNT_ID,
  description: 'Compra en tienda en línea',
  merchant_order_id: 'cl-5512-2026',
  merchant_reference: 'cl-5512-2026/intento-1',
  country: 'CL',
  amount: { currency: CURRENCY, value: AMOUNT_PLACEHOLDER },
  customer_payer: {
    merchant_customer_id: 'usuario-90233',
    first_name: 'Javiera',
    last_name: 'Muñoz Soto',
    gender: 'F',
    date_of_birth: '1993-02-28',
    email: 'javiera.munoz@example.com',
    nationality: 'CL',
    country: 'CL',
    ip_address: '203.0.113.27',
    device_fingerprint: 'dfp-7c1b9a44e0',
    document: { document_type: 'DRIVERS_LICENSE', document_number: '17.334.902-K' },
    phone: { country_code: '56', number: '912345678' },
    billing_address: ADDRESS,
    shipping_address: { ...ADDRESS, address_line_1: 'Camino del Mar 88', city: 'Viña del Mar' },
  },
  payment_method: {
    type: 'CARD',
    detail: {
      card: {
        installments: 1,
        card_data: {
          number: '4051885600446623',
          expiration_month: 12,
          expiration_year: 28,
          security_code: '019',
          holder_name: 'JAVIERA MUNOZ',
        },
      },
    },
  },
  workflow: 'DIRECT',
  additional_data: {
    order: {
      fee_amount: '0',
      shipping_amount: '49.9',
      items: [item('1', 'Zapatillas de trail', 'footwear'), item('2', 'Calcetines, pack de 3', 'clothing')],
    },
  },
};

function item(id: string, name: string, category: string) {
  return {
    id,
    name,
    quantity: 1,
    unit_amount: '499.9',
    category,
    brand: 'Cordillera',
    sku_code: `TRL-38-AZ-${id}`,
    manufacture_part_number: 'CD-TRL-0038',
  };
}

/** The bytes of a request, with the positions of its key and its amount. */
export type Template = { readonly bytes: Buffer; readonly keyAt: number; readonly amountAt: number };

/** The request as HTTP/1.1. */
export function restTemplate(host: string): Template {
  const body = Buffer.from(JSON.stringify(REQUEST));
  const head = [
    'POST /v1/payments HTTP/1.1',
    `host: ${host}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    `public-api-key: ${PUBLIC_KEY}`,
    `private-secret-key: ${SECRET_KEY}`,
    `x-idempotency-key: ${KEY_PLACEHOLDER}`,
  ];
  return template(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
}

/** The request as a protobuf message. */
export function protobufRequest(): Uint8Array {
  const { amount, additional_data, ...rest } = REQUEST;
  const { order } = additional_data;
  const decimal = (value: string) => ({ value });
  const request = fromJson(CreatePaymentRequestSchema, {
    ...rest,
    amount: { ...amount, value: decimal(amount.value) },
    additional_data: {
      order: {
        fee_amount: decimal(order.fee_amount),
        shipping_amount: decimal(order.shipping_amount),
        items: order.items.map((one) => ({ ...one, unit_amount: decimal(one.unit_amount) })),
      },
    },
  });
  return toBinary(CreatePaymentRequestSchema, request);
}

/** Finds the positions of both placeholders in the bytes. */
export function template(bytes: Buffer): Template {
  return { bytes, keyAt: bytes.indexOf(KEY_PLACEHOLDER), amountAt: bytes.indexOf(AMOUNT_PLACEHOLDER) };
}

/** Writes a request's own key and amount into its bytes. */
export function patch(into: Template, runId: string, sequence: number): void {
  into.bytes.write(idempotencyKey(runId, sequence), into.keyAt, 'latin1');
  into.bytes.write(amountOf(sequence), into.amountAt, 'latin1');
}
