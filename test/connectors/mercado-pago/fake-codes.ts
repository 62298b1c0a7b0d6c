import type { JsonObject } from '@bufbuild/protobuf';

/** The payment methods of an account besides cards, by its currency. */
const METHODS: Readonly<Record<string, readonly (readonly [id: string, type: string])[]>> = {
  ARS: [
    ['rapipago', 'ticket'],
    ['pagofacil', 'ticket'],
  ],
  BRL: [
    ['pix', 'bank_transfer'],
    ['bolbradesco', 'ticket'],
  ],
  COP: [
    ['pse', 'bank_transfer'],
    ['efecty', 'ticket'],
  ],
  MXN: [['oxxo', 'ticket']],
};

/** The banks of PSE, by their ACH Colombia codes. */
const BANKS = [
  { id: '1007', description: 'BANCOLOMBIA' },
  { id: '1051', description: 'BANCO DAVIVIENDA' },
  { id: '1507', description: 'NEQUI' },
];

/** The account's answer to a request for its payment methods. */
export function paymentMethods(currency: string): JsonObject[] {
  const card = { id: 'visa', name: 'Visa', payment_type_id: 'credit_card', financial_institutions: [] };
  const local = (METHODS[currency] ?? []).map(([id, payment_type_id]) => ({
    ...{ id, payment_type_id, status: 'active', min_allowed_amount: 1, max_allowed_amount: 100_000 },
    financial_institutions: id === 'pse' ? BANKS : [],
  }));
  return [card, ...local];
}

type Fault = { readonly message: string; readonly code: number };

const fault = (message: string, code = 2): Fault => ({ message, code });
const END = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:?\d\d$/;
const MINUTE_MS = 60_000;

/** Returns why the provider refuses a request for a payment by a local method. */
export function faultOfCode(body: JsonObject, currency: string): Fault | undefined {
  const { transaction_amount: amount, payment_method_id: id, date_of_expiration: end } = body;
  const payer = objectOf(body.payer);
  if (typeof amount !== 'number' || amount <= 0) return fault('transaction_amount must be positive');
  if (['CLP', 'COP'].includes(currency) && !Number.isInteger(amount))
    return fault('transaction_amount must be an integer');
  if (!(METHODS[currency] ?? []).some(([one]) => one === id)) return fault('payment_method_id not found');
  if (!/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(String(payer.email)))
    return fault('payer.email must be a valid email');
  if (body.binary_mode === true) return fault('binary_mode not allowed');
  if (end !== undefined) {
    if (!END.test(String(end))) return fault('date_of_expiration has a wrong format', 23);
    if (Date.parse(String(end)) < Date.now() + MINUTE_MS) return fault('date_of_expiration is over', 23);
  }
  if (id === 'pix') return faultOfIdentification(payer, ['CPF', 'CNPJ'], false);
  if (id === 'bolbradesco') return faultOfBoleto(payer);
  return id === 'pse' ? faultOfPse(body, payer) : undefined;
}

function faultOfBoleto(payer: JsonObject): Fault | undefined {
  const address = objectOf(payer.address);
  const names = ['zip_code', 'street_name', 'street_number', 'neighborhood', 'city', 'federal_unit'];
  const absent =
    ['first_name', 'last_name'].find((name) => !payer[name]) ?? names.find((name) => !address[name]);
  if (absent) return fault(`payer.address or name: ${absent} is required`);
  return faultOfIdentification(payer, ['CPF', 'CNPJ'], true);
}

function faultOfIdentification(payer: JsonObject, types: readonly string[], isRequired: boolean) {
  const { type, number } = objectOf(payer.identification);
  if (type === undefined && !isRequired) return undefined;
  const isValid = types.includes(String(type)) && /^[0-9A-Z]{1,15}$/.test(String(number));
  return isValid ? undefined : fault('payer.identification is invalid');
}

const PSE_DOCUMENTS = ['CC', 'CE', 'NIT', 'TE', 'RC', 'TI', 'PAS', 'DI'];

/** The provider's table of PSE's fields, with the lengths that it accepts. */
function faultOfPse(body: JsonObject, payer: JsonObject): Fault | undefined {
  const address = objectOf(payer.address);
  const phone = objectOf(payer.phone);
  const isWithin = (text: unknown, least: number, most: number) =>
    typeof text === 'string' && text.length >= least && text.length <= most;
  const bank = objectOf(body.transaction_details).financial_institution;
  if (!BANKS.some(({ id }) => id === bank)) return fault('financial_institution is invalid');
  if (!['individual', 'association'].includes(String(payer.entity_type)))
    return fault('payer.entity_type is invalid');
  if (!isWithin(objectOf(body.additional_info).ip_address, 7, 45)) return fault('ip_address is required');
  if (!isWithin(body.callback_url, 8, 2_048)) return fault('callback_url is required');
  const lengths: readonly [string, unknown, number, number][] = [
    ['payer.first_name', payer.first_name, 1, 32],
    ['payer.last_name', payer.last_name, 1, 32],
    ['payer.address.zip_code', address.zip_code, 5, 5],
    ['payer.address.street_name', address.street_name, 1, 18],
    ['payer.address.street_number', address.street_number, 1, 5],
    ['payer.address.neighborhood', address.neighborhood, 1, 18],
    ['payer.address.city', address.city, 1, 18],
    ['payer.phone.area_code', phone.area_code, 3, 3],
    ['payer.phone.number', phone.number, 1, 5],
  ];
  const wrong = lengths.find(([, text, least, most]) => !isWithin(text, least, most));
  return wrong ? fault(`${wrong[0]} has a wrong length`) : faultOfIdentification(payer, PSE_DOCUMENTS, true);
}

/** Returns the fields by which a payment says how to pay it. */
export function shownFieldsOf(body: JsonObject, id: number, url: string): JsonObject {
  const number = String(id);
  const page = `${url}/payments/${id}/ticket`;
  const details: JsonObject = { payment_method_reference_id: null, external_resource_url: null };
  switch (body.payment_method_id) {
    case 'pix': {
      const qr_code = `00020126580014br.gov.bcb.pix0136${body.external_reference}5204000053039865802BR6304${number.slice(-4)}`;
      const transaction_data = {
        ...{ qr_code, qr_code_base64: Buffer.from('an image').toString('base64'), ticket_url: page },
        bank_info: { payer: { account_id: 4711, email: 'payer@example.com' }, collector: {} },
      };
      return { transaction_details: details, point_of_interaction: { type: 'PIX', transaction_data } };
    }
    case 'bolbradesco':
      return {
        transaction_details: {
          ...details,
          external_resource_url: page,
          barcode: { content: `2379${number.padStart(40, '0')}` },
          digitable_line: `2379${number.padStart(43, '0')}`,
        },
      };
    case 'pse': {
      const { financial_institution } = objectOf(body.transaction_details);
      const external_resource_url = `${url}/pse/${id}`;
      return {
        transaction_details: {
          ...details,
          financial_institution: financial_institution ?? '',
          external_resource_url,
        },
      };
    }
    default:
      return {
        transaction_details: {
          ...details,
          ...{ external_resource_url: page, verification_code: `9${number}` },
          ...{ payment_method_reference_id: number, barcode: { content: `1357${number}` } },
        },
      };
  }
}

/** Returns the first state of a payment by a local method. */
export function detailOfOpen(id: unknown): string {
  return id === 'pix' || id === 'pse' ? 'pending_waiting_transfer' : 'pending_waiting_payment';
}

function objectOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
}
