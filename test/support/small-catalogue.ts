import { expect } from 'vitest';
import { CatalogueError } from '#src/catalogue/catalogue-error.ts';

/** A catalogue with one of everything. */
export const SMALL = `
payment_method_types:
  - type: CARD
    category: CARD
    workflows: [DIRECT]
connections:
  - id: one
    provider_id: ONE
    connector: sandbox
    settings: { base_url: $SANDBOX_URL, timeout_ms: 1000 }
    secrets_from_environment: { api_key: ONE_KEY }
routes:
  - id: 1
    condition: type == 'CARD'
    targets:
      - connection: one
bins:
  - prefix: '4111'
    issuer_name: Bank
`;

/** Returns the small catalogue with a change. */
export const change = (from: string, to: string) => {
  expect(SMALL).toContain(from);
  return SMALL.replace(from, to);
};

/** Returns the message of the CatalogueError that `work` throws. */
export async function messageOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    expect(error).toBeInstanceOf(CatalogueError);
    return (error as Error).message;
  }
  throw new Error('no error was thrown');
}
