import type { Acquirer, Provider } from './providers/provider.ts';

/** Returns the catalogue with a provider timeout that is long enough even for a busy machine. */
export const waitingLonger = (text: string) => text.replaceAll(/timeout_ms: \d+/g, 'timeout_ms: 6000');

/**
 * Sends cards to the judge and, if it is known to have taken nothing or softly declined, to the judge's other acquirer.
 * Depending on the country, sends them to a provider that refuses connections, has no address or does not speak TLS, or
 * to all three before the judge. Codes go to the judge wherever they are.
 */
export function catalogueOf(provider: Provider, providerPort: number, judgePort: number): string {
  const connections: readonly (readonly [id: string, url: string, acquirer: Acquirer])[] = [
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
    connector: ${provider.connector}
    settings: { base_url: '${url}', timeout_ms: ${provider.timeoutMs}, ${provider.settings(acquirer)} }
    secrets_from_environment: { ${secretsOf(provider, acquirer)} }
    circuit_breaker: { off: true }`,
  );
  return `payment_method_types:
  - { type: CARD, category: CARD, workflows: [DIRECT] }
  - { type: WALLET_B, category: WALLET, workflows: [REDIRECT] }
  - { type: WALLET_D, category: WALLET, workflows: [REDIRECT] }
  - { type: PIX, category: BANK_TRANSFER, workflows: [REDIRECT] }
  - { type: SPEI, category: BANK_TRANSFER, workflows: [REDIRECT] }
  - { type: WALLET_C_ENROLLMENT, category: WALLET, workflows: [DIRECT] }
connections:${connection.join('')}
routes:
  - { id: 8, condition: "type == 'PIX' || type == 'SPEI'", targets: [{ connection: judge }, { connection: judge-two }] }
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

/** Adds a connection like the judge's, at another port. */
export function withConnection(text: string, id: string, port: number): string {
  const judge = / {2}- id: judge\n[\s\S]*?(?= {2}- id: judge-two\n)/.exec(text)?.[0] ?? '';
  const added = judge.replace('id: judge', `id: ${id}`).replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${port}`);
  return text.replace('connections:\n', `connections:\n${added}`);
}

/** Adds a route before all others. */
export function withRoute(text: string, route: string): string {
  return text.replace('routes:\n', `routes:\n  - ${route}\n`);
}

function secretsOf(provider: Provider, acquirer: Acquirer): string {
  const secrets = Object.entries(provider.secrets(acquirer));
  return secrets.map(([name, variable]) => `${name}: ${variable}`).join(', ');
}
