import { boletoNumbers, cashReference, clabe, MAX_BOLETO_AMOUNT, pixText } from './code-numbers.ts';

/** A local method: how its payers pay, and what can be done with its codes. */
export type CodeMethod = {
  readonly currency: string;
  /** Minutes for which a code is valid: by default, and at most. */
  readonly validMinutes: number;
  readonly maxMinutes: number;
  /** The largest amount, in minor units. Absent: no limit. */
  readonly maxAmount?: number;
  /** An unpaid code can be canceled. */
  readonly isClosable: boolean;
  readonly isRefundable: boolean;
  /** The payer may send another amount. */
  readonly takesAnyAmount?: true;
  /** The payer chooses a bank and pays on its page. */
  readonly isAtBank?: true;
  /** Creates what the payer is shown. */
  readonly instructionsOf: (code: NewCode) => Instructions;
};

/** A code that is being created. `amount` is in minor units. */
type NewCode = { readonly id: string; readonly amount: number; readonly expiresAtMs: number };

/** Instructions for the payer; each method has some of these. */
export type Instructions = {
  /** The text of a QR code. */
  readonly text?: string;
  /** Digits for the payer, and those of the barcode. */
  readonly number?: string;
  readonly barcode?: string;
  /** The account to which the payer transfers. */
  readonly account?: string;
  readonly bank_name?: string;
  readonly beneficiary?: string;
  readonly reference?: string;
};

const HOUR = 60;
const DAY = 24 * HOUR;

const METHODS = {
  PIX: {
    ...{ currency: 'BRL', validMinutes: DAY, maxMinutes: 30 * DAY, isClosable: true, isRefundable: true },
    instructionsOf: ({ id, amount }) => ({ text: pixText(amount, `pix.example/v2/${id.slice(3)}`) }),
  },
  BOLETO: {
    ...{
      currency: 'BRL',
      validMinutes: 3 * DAY,
      maxMinutes: 60 * DAY,
      isClosable: true,
      isRefundable: false,
    },
    maxAmount: MAX_BOLETO_AMOUNT,
    instructionsOf: ({ amount, expiresAtMs }) => {
      const { barcode, line } = boletoNumbers(amount, expiresAtMs);
      return { number: line, barcode };
    },
  },
  OXXO: {
    ...{
      currency: 'MXN',
      validMinutes: 3 * DAY,
      maxMinutes: 7 * DAY,
      isClosable: false,
      isRefundable: false,
    },
    instructionsOf: () => {
      const number = cashReference(14);
      return { number, barcode: number };
    },
  },
  SPEI: {
    ...{ currency: 'MXN', validMinutes: 3 * DAY, maxMinutes: 30 * DAY, isClosable: true, isRefundable: true },
    takesAnyAmount: true,
    instructionsOf: () => ({
      account: clabe(),
      bank_name: 'Banco Sandbox',
      beneficiary: 'Tienda Sandbox',
      reference: cashReference(7),
    }),
  },
  PSE: {
    ...{ currency: 'COP', validMinutes: HOUR, maxMinutes: DAY, isClosable: false, isRefundable: true },
    isAtBank: true,
    instructionsOf: () => ({}),
  },
  EFECTY: {
    ...{
      currency: 'COP',
      validMinutes: 3 * DAY,
      maxMinutes: 30 * DAY,
      isClosable: false,
      isRefundable: false,
    },
    instructionsOf: () => ({ number: cashReference(10) }),
  },
} as const satisfies Record<string, CodeMethod>;

/** The name of a local method. */
export type CodeMethodName = keyof typeof METHODS;

/** The local methods, by name. */
export const CODE_METHODS: Readonly<Record<CodeMethodName, CodeMethod>> = METHODS;

/** Returns true for the name of a local method. */
export function isCodeMethod(name: string): name is CodeMethodName {
  return Object.hasOwn(METHODS, name);
}

/** A bank from which the payer of a PSE code pays. */
export type Bank = { readonly id: string; readonly name: string };

/** The bank that declines every payment, unless a description requests something else. */
export const DECLINING_BANK = '1903';

/** The banks of PSE. */
export const BANKS: readonly Bank[] = [
  { id: '1901', name: 'Banco de la Sabana' },
  { id: '1902', name: 'Banco del Páramo' },
  { id: DECLINING_BANK, name: 'Banco Negado (declines every payment)' },
];
