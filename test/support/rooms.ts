/** The files of a room that other rooms import; its other files are private. */
export const DOORS: Readonly<Record<string, readonly string[]>> = {
  'src/payments/create': [
    ...[
      'create-payment',
      'check-request',
      'check-values',
      'payment-method',
      'payment-attempt',
      'session-terms',
    ],
    ...['card', 'payer-card', 'payer-choices', 'bin-table', 'vault-card', 'stored-method', 'metadata'],
    ...['live-catalogue', 'choose-route', 'routing-facts', 'features'],
  ],
  'src/payments/operate': ['payment-operations', 'claim-operation'],
  'src/payments/check': [
    ...['checker', 'check-transaction', 'look-up-transaction', 'news', 'payer-return', 'open-outcomes'],
  ],
  'src/payments/read': ['get-payment', 'list-payments', 'page-token', 'explain-route'],
};
