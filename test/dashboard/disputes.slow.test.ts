import { beforeAll, describe, expect, it, vi } from 'vitest';
import { SANDBOX_OPERATOR_KEY, SANDBOX_OPERATOR_READ_KEY } from '#src/config.ts';
import { groupOf } from '#src/dashboard/disputes-page.ts';
import { type Merchant, merchantOne, type Operator, signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';

onService();

let operator: Operator;
let reader: Operator;
let merchant: Merchant;
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  reader = await signIn(server, SANDBOX_OPERATOR_READ_KEY);
  merchant = merchantOne(server);
});

/** Makes a payment that is disputed. @returns the path of its dispute's page. */
async function disputed(ending = 'open'): Promise<{ path: string; payment: string; id: string }> {
  const { id: payment } = await merchant.pay({ description: `sandbox:dispute_after:0:${ending}` });
  const id = await vi.waitFor(async () => {
    const [dispute] = await merchant.call(`/v1/disputes?payment_id=${payment}`);
    expect(dispute).toBeDefined();
    return dispute.id;
  });
  return { path: `/disputes/11111111-1111-4111-8111-111111111111/${id}`, payment, id };
}

const textOf = async (path: string, by = operator) => (await by.get(path)).text();
const setDue = (id: string, due: string) =>
  tables.query(`UPDATE dispute SET respond_by = ${due} WHERE id = $1`, [id]);

it.each<[string, Parameters<typeof groupOf>[0]['status'], number | undefined]>([
  ['unknown', 'NEEDS_RESPONSE', undefined],
  ['overdue', 'NEEDS_RESPONSE', -1],
  ['soon', 'NEEDS_RESPONSE', 6 * 86_400],
  ['later', 'NEEDS_RESPONSE', 8 * 86_400],
  ['review', 'UNDER_REVIEW', -1],
  ['review', 'UNDER_REVIEW', undefined],
])('an open dispute is %s: %s, with %s seconds left', (group, status, leftS) => {
  const now = new Date();
  const respondBy = leftS === undefined ? undefined : new Date(now.getTime() + leftS * 1_000);
  expect(groupOf({ status, respondBy }, now)).toBe(group);
});

describe('the page of the open disputes', () => {
  it('disputes without a due date come first, then the overdue and the others by date; the overview counts them', async () => {
    const [soon, overdue, unknown] = [await disputed(), await disputed(), await disputed('inquiry')];
    await setDue(soon.id, "now() + interval '3 days'");
    await setDue(overdue.id, "now() - interval '1 day'");
    await setDue(unknown.id, 'NULL');
    const page = await textOf('/disputes');
    const places = [unknown, overdue, soon].map(({ path }) => page.indexOf(path));
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    for (const title of ['Due date unknown', 'Overdue', 'Due within seven days'])
      expect(page).toContain(title);
    expect(await textOf('')).toContain('1 overdue, 1 within 7 days, 1 without a date');
  });
});

describe('the page of a dispute', () => {
  it('it shows what the provider wants and links to the case and the payment, whose page links back', async () => {
    const { path, payment } = await disputed();
    const page = await textOf(path);
    expect(page).toContain('Send evidence at the provider');
    const [, link = ''] = /href="([^"]+)" rel="noopener noreferrer"/.exec(page) ?? [];
    expect((await fetch(link)).status).toBe(200);
    expect(page).toContain(`/payments/11111111-1111-4111-8111-111111111111/${payment}`);
    expect(await textOf(`/payments/11111111-1111-4111-8111-111111111111/${payment}`)).toContain(path);
  });

  it('an operator’s note is shown and audited without its text', async () => {
    const { path, id } = await disputed();
    const note = 'asked the <b>warehouse</b>';
    expect((await operator.post(`${path}/note`, { note })).headers.get('location')).toContain('did=note');
    const page = await textOf(`${path}?did=note`);
    expect(page).toContain('asked the &#60;b&#62;warehouse&#60;/b&#62;');
    expect(page).toContain('The note was saved.');
    const entries = await tables.query('SELECT action, detail FROM audit_log WHERE subject = $1', [id]);
    expect(entries).toEqual([{ action: 'note-dispute', detail: '' }]);
    expect(JSON.stringify(await merchant.call(`/v1/disputes/${id}`))).not.toContain('warehouse');
  });

  it.each([
    ['a note of 1001 characters', 'x'.repeat(1_001)],
    ['a note with a card number', 'paid with 4111 1111 1111 1111'],
  ])('%s is refused', async (_name, note) => {
    const { path, id } = await disputed();
    const response = await operator.post(`${path}/note`, { note });
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining('nothing was saved'),
    ]);
    expect(await tables.query('SELECT note FROM dispute WHERE id = $1', [id])).toEqual([{ note: '' }]);
  });

  it('a key that only reads sees the note and cannot write it', async () => {
    const { path } = await disputed();
    expect(await textOf(path, reader)).not.toContain('<textarea');
    expect((await reader.post(`${path}/note`, { note: 'x' })).status).toBe(403);
  });

  it.each([
    '/disputes/1/2',
    '/disputes/11111111-1111-4111-8111-111111111111/22222222-2222-4222-8222-222222222222',
  ])('there is no page of an unknown dispute: %s', async (path) => {
    expect((await operator.get(path)).status).toBe(404);
  });
});
