/** Time that the service waits for the provider, in these runs. */
const PROVIDER_TIMEOUT_MS = 1_000;

/**
 * Cards go to the judge, and what surely came to nothing there, or softly declined, to the judge's other acquirer. By
 * country, they go to a provider that refuses, that has no address, or that speaks no TLS; or to all three before the
 * judge.
 */
export function catalogueOf(providerPort: number, judgePort: number): string {
  const connections = [
    ['judge', `http://127.0.0.1:${providerPort}`, 'ONE'],
    ['judge-two', `http://127.0.0.1:${providerPort}`, 'TWO'],
    ['refused', 'http://127.0.0.1:1', 'ONE'],
    ['dns', 'http://provider.invalid', 'ONE'],
    ['tls', `https://127.0.0.1:${judgePort}`, 'ONE'],
  ];
  const connection = connections.map(
    ([id, url, acquirer]) => `
  - id: ${id}
    provider_id: JUDGE
    connector: sandbox
    settings: { base_url: '${url}', timeout_ms: ${PROVIDER_TIMEOUT_MS}, acquirer: ${acquirer} }
    secrets_from_environment: { api_key: FAULTS_API_KEY, notification_secret: FAULTS_NOTIFICATION_SECRET }
    circuit_breaker: { off: true }`,
  );
  return `payment_method_types:
  - { type: CARD, category: CARD, workflows: [DIRECT] }
  - { type: WALLET_B, category: WALLET, workflows: [REDIRECT] }
  - { type: WALLET_D, category: WALLET, workflows: [REDIRECT] }
connections:${connection.join('')}
routes:
  - { id: 1, condition: country == 'BR', targets: [{ connection: refused }] }
  - { id: 2, condition: country == 'MX', targets: [{ connection: dns }] }
  - { id: 3, condition: country == 'CO', targets: [{ connection: tls }] }
  - id: 4
    condition: country == 'PE'
    targets: [{ connection: refused }, { connection: dns }, { connection: tls }, { connection: judge }]
  - id: 7
    condition: country == 'CL'
    targets: [{ connection: judge }, { connection: refused }]
    failover: { soft_declines: true }
  - { id: 5, targets: [{ connection: judge }, { connection: judge-two }], failover: { soft_declines: true } }
`;
}
