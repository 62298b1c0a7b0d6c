/** The files of a room that other rooms import; its other files are private. */
export const DOORS: Readonly<Record<string, readonly string[]>> = {
  'src/payments/create': [
    'create-payment',
    'payment-attempt',
    'payer-choices',
    'session-terms',
    'stored-references',
  ],
  'src/payments/operate': ['payment-operations', 'claim-operation'],
  'src/payments/check': [
    ...['checker', 'check-transaction', 'look-up-transaction', 'news', 'payer-return', 'open-outcomes'],
  ],
  'src/payments/read': [
    'disputes',
    'find-payments',
    'get-payment',
    'list-payments',
    'list-times',
    'page-token',
    'payment-filter',
    'search-payments',
  ],
};
