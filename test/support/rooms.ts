/** The files of a room that others import; the rest of the room is its own. */
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
    ...['card', 'payer-card', 'bin-table', 'vault-card', 'stored-method', 'metadata'],
    ...['live-catalogue', 'choose-route', 'routing-facts', 'connection-lacks'],
  ],
  'src/payments/operate': ['payment-operations', 'claim-operation'],
  'src/payments/check': [
    ...['recover-payments', 'receive-notification', 'process-notifications', 'payer-return', 'look-up-turns'],
    ...['open-outcomes', 'finish-payment', 'finish-operation', 'ask-provider', 'look-up-schedule'],
  ],
  'src/payments/read': ['get-payment', 'list-payments', 'page-token', 'explain-route'],
};
