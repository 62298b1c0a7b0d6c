import { headersOne } from '../../support/payment-requests.ts';
import { inParallel } from '../in-parallel.ts';
import { type Answer, exchange, type Order, paymentOf, reasonOf, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** Number of payments that compete for the same one-time token. */
const RIVALS = 10;

/** Stored cards and tokens: a token is used once, and a card is stored once or not at all. */
export const TOKENS: readonly Case[] = [
  killAt('before the claim', 'claim_by_token:request'),
  killAt('after the claim, before sending', 'claim_by_token:response'),
  { ...killAt('after sending, before the answer', 'charge:response'), short: true },
  killAt('after the answer, before commit 2', 'write_change:request'),
  {
    name: 'tokens: payments that race for one token at two replicas, one of which is killed',
    async run(world) {
      const [one, two] = [await world.startReplica(), await world.startReplica({ unhurried: true })];
      const orders = Array.from({ length: RIVALS }, () => ofAccountOne(world));
      const [first] = orders as [Order];
      const token = await makeToken(two.url, first);
      for (const order of orders) payByToken(order, token);
      const stop = world.gate.hold('claim_by_token:response');
      const sent = orders.map((order, i) => send((i % 2 ? two : one).url, order));
      await stop.reached;
      await one.kill();
      world.random.pick([stop.cut, stop.release])();
      await Promise.all(sent);
      const answers = await inParallel(
        orders.map((order) => () => clearAnswer(two.url, order)),
        RIVALS,
      );
      const paid = answers.filter((answer) => paymentOf(answer));
      world.expect(paid.length === 1, `${paid.length} payments were made with one token`);
      const refused = answers.filter((answer) => reasonOf(answer) === 'TOKEN_NOT_FOUND');
      world.expect(refused.length === RIVALS - paid.length, 'a payment was refused for another reason');
      await expectNoCiphertext(world, 'one_time_token', 'sealed');
    },
  },
  // A client that waits for a COMMIT does not learn its result; a repeat with the same key does.
  enrollment('before its commit', 'CREATE TRIGGER slow BEFORE INSERT ON vaulted_token', 0),
  enrollment(
    'while it commits',
    'CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON vaulted_token DEFERRABLE INITIALLY DEFERRED',
    1,
  ),
  walletEnrollment('asking for a page', 'charge:response'),
  walletEnrollment('asking what the payer agreed to', 'look_up:request'),
  walletEnrollment('after the answer to that, before it is written', 'look_up:response'),
];

/** Makes a case that kills the replica that pays with a token; only this payment may ever use the token. */
function killAt(name: string, point: string): Case {
  return {
    name: `tokens: killed ${name}`,
    async run(world) {
      const replica = await world.startReplica();
      const [order, rival] = [ofAccountOne(world), ofAccountOne(world)];
      const token = await makeToken(replica.url, order);
      for (const one of [order, rival]) payByToken(one, token);
      const stop = world.gate.hold(point);
      const sent = send(replica.url, order);
      await stop.reached;
      await replica.kill();
      world.random.pick([stop.cut, stop.release])();
      await sent;
      const { url } = await world.startReplica({ unhurried: true });
      await world.insist(order);
      const refused = await send(url, rival);
      world.expect(
        reasonOf(refused) === 'TOKEN_NOT_FOUND',
        `the response to a second payment was ${refused.status}`,
      );
      await expectNoCiphertext(world, 'one_time_token', 'sealed');
    },
  };
}

/**
 * Makes a case that kills the replica while the database stores a card. @param stored the number of cards afterwards.
 */
function enrollment(name: string, trigger: string, stored: number): Case {
  return {
    name: `stored methods: enrollment killed ${name}`,
    async run(world) {
      const replica = await world.startReplica();
      const order = ofAccountOne(world);
      const customer = await made(replica.url, '/v1/customers', { merchant_customer_id: order.key });
      const path = `/v1/customers/${customer.id}/payment-methods`;
      const enroll = (url: string) => post(url + path, { card_data: cardOf(order) }, order.key);
      await world.query(
        `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN NEW; END'`,
      );
      await world.query(`${trigger} FOR EACH ROW EXECUTE FUNCTION slow()`);
      const sent = enroll(replica.url);
      await world.until('the card is being stored', () => isSlow(world));
      await replica.kill();
      await sent;
      await world.until('the database is done', async () => !(await isSlow(world)));
      await world.query('DROP TRIGGER slow ON vaulted_token');
      const cards = `SELECT id FROM vaulted_token WHERE customer_id = '${customer.id}'`;
      const left = await world.query(cards);
      world.expect(left.length === stored, `${left.length} cards were stored`);

      const { url } = await world.startReplica({ unhurried: true });
      const [first, again] = [await enroll(url), await enroll(url)];
      world.expect(
        first.status === 201 && first.replayed === (stored === 1),
        `the response was ${first.status}`,
      );
      world.expect(again.replayed && again.body === first.body, 'a repeat got another response');
      const { id } = JSON.parse(first.body);
      const rows = await world.query(cards);
      world.expect(rows.length === 1 && rows[0]?.id === id, `${rows.length} cards are stored`);
      const told = await world.query("SELECT 1 FROM event WHERE type = 'enrollment.enroll'");
      world.expect(told.length === 1, `the event of the enrollment was written ${told.length} times`);
      await made(url, `${path}/${id}/unenroll`, {});
      await expectNoCiphertext(world, 'vaulted_token', 'card_number', 'customer_id IS NOT NULL');
    },
  };
}

/**
 * Makes a case that kills the replica at a call about a wallet: before the payer gets a page, or after they have
 * agreed.
 */
function walletEnrollment(name: string, point: string): Case {
  return {
    name: `wallet enrollments: killed ${name}`,
    async run(world) {
      const replica = await world.startReplica();
      const order = ofAccountOne(world);
      const customer = await made(replica.url, '/v1/customers', { merchant_customer_id: order.key });
      const path = `/v1/customers/${customer.id}/payment-methods`;
      const body = { type: 'WALLET_C_ENROLLMENT', country: 'US' };
      const enroll = (url: string) => post(url + path, body, order.key);
      const stop = world.gate.hold(point);
      const first = enroll(replica.url);
      if (point.startsWith('look_up')) await agreeAtPage(await first);
      await stop.reached;
      await replica.kill();
      world.random.pick([stop.cut, stop.release])();
      const { status } = await first;

      const { url } = await world.startReplica({ unhurried: true });
      const again = await enroll(url);
      world.expect(again.status === 201, `the response to a repeat was ${again.status}`);
      world.expect(again.replayed === (status === 201), 'a repeat got another response');
      if (!again.replayed) await agreeAtPage(again);
      const { id } = JSON.parse(again.body);
      await world.until('the wallet to be enrolled', async () => {
        await world.query('UPDATE vaulted_token SET check_at = now() WHERE check_at > now()');
        const rows = await world.query(
          `SELECT id, status FROM vaulted_token WHERE customer_id = '${customer.id}'`,
        );
        world.expect(rows.length === 1 && rows[0]?.id === id, `${rows.length} wallets are stored`);
        return rows[0]?.status === 'ENROLLED';
      });
      const told = await world.query("SELECT 1 FROM event WHERE type = 'enrollment.enroll'");
      world.expect(told.length === 1, `the event of the enrollment was written ${told.length} times`);
    },
  };
}

/** Agrees, as the payer, at the page named in the response to an enrollment. */
async function agreeAtPage({ status, body }: Pick<Answer, 'status' | 'body'>): Promise<void> {
  if (status !== 201) throw new Error(`the response to the enrollment was ${status} ${body}`);
  const { redirect_url: page } = JSON.parse(body);
  const agreed = await fetch(`${page}/pay`, { method: 'POST', redirect: 'manual' });
  if (agreed.status !== 303) throw new Error(`the provider's page responded ${agreed.status}`);
}

async function isSlow(world: World): Promise<boolean> {
  const asleep =
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
  return (await world.query(asleep)).length > 0;
}

const ofAccountOne = (world: World) => world.order({ vault: false, account: 'one' });

const cardOf = ({ cardNumber, securityCode }: Order) => ({
  ...{ number: cardNumber, security_code: securityCode, holder_name: 'JORDAN WHITFIELD' },
  ...{ expiration_month: 11, expiration_year: 31 },
});

async function makeToken(url: string, order: Order): Promise<string> {
  return (await made(url, '/v1/tokens', { card_data: cardOf(order) })).token;
}

/** Makes an order pay with a token instead of its card. */
function payByToken(order: Order, token: string): void {
  Object.assign(order, { body: JSON.stringify({ ...JSON.parse(order.body), payment_method: { token } }) });
}

/** Repeats an order until the response is a payment or a refusal. */
async function clearAnswer(url: string, order: Order): Promise<Answer> {
  for (;;) {
    const answer = await send(url, order);
    // A refusal that did not use the token is final, so earlier unclear responses did not use it either.
    if (answer.status === 400) order.answers.splice(0, order.answers.length, answer);
    if (answer.status === 201 || answer.status === 400) return answer;
  }
}

async function made(url: string, path: string, body: object): Promise<{ id: string; token: string }> {
  const answer = await post(url + path, body);
  if (answer.status !== 200 && answer.status !== 201)
    throw new Error(`${path}: ${answer.status} ${answer.body}`);
  return JSON.parse(answer.body);
}

function post(address: string, body: object, key?: string) {
  const { 'x-idempotency-key': _, ...headers } = headersOne();
  return exchange(address, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', ...(key && { 'x-idempotency-key': key }) },
    body: JSON.stringify(body),
  });
}

async function expectNoCiphertext(
  world: World,
  table: string,
  column: string,
  where = 'true',
): Promise<void> {
  const left = await world.query(`SELECT 1 FROM ${table} WHERE ${column} IS NOT NULL AND ${where}`);
  world.expect(left.length === 0, `${table} contains ${left.length} ciphertexts`);
}
