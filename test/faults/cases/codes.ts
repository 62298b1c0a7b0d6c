import { older } from '../../support/tables.ts';
import { waitingLonger, withConnection, withRoute } from '../catalogue.ts';
import { inParallel } from '../in-parallel.ts';
import { notify } from '../notify.ts';
import { operate } from '../operate.ts';
import { getPayment, type Order, paymentOf, send } from '../orders.ts';
import { startTurningAway } from '../turning-away.ts';
import { agree, becomes, makeDue, type Payer, payerOf, returnTo, sendAway, settled } from '../wallets.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';
import { cancelOf, cancelsOf, closingKills, tryToPay } from './closings.ts';
import { attemptsOf, expectAttempts } from './failover.ts';
import { killAt } from './kills.ts';
import { race } from './operations.ts';

const PIX = { code: 'PIX' } as const;

/** Payments by local methods, whose payers get a code and pay it later, during faults. */
export const CODES: readonly Case[] = [
  kill('before the claim', 'claim:request'),
  kill('after the claim, before sending', 'claim:response'),
  kill('while the request is on its way', 'charge:request'),
  { ...kill('after sending, before the answer', 'charge:response'), short: true },
  kill('after the answer, before commit 2', 'write_change:request'),
  kill('after commit 2, before the response', 'write_change:response'),
  {
    name: 'codes: a lost creation is repeated once, in the same call',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const order = world.order(PIX);
      world.gate.next(world.random.pick(['charge:request', 'charge:response']), 'cut');
      const status = paymentOf(await send(url, order))?.status;
      world.expect(status === 'READY_TO_PAY', `the response was ${status}`);
      const { length } = await world.ledger();
      world.expect(length === 1, `there are ${length} codes`);
      await pays(world, url, order);
    },
  },
  {
    name: 'codes: lost when it was made, found later, and shown',
    short: true,
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const order = world.order(PIX);
      world.gate.next('charge:response', 'cut', 2);
      await send(url, order);
      await world.insist(order);
      world.expect(await world.drain(), 'the code was not found');
      await pays(world, url, order);
    },
  },
  {
    name: 'codes: lost before it was made, and closed or made after all',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const order = world.order(PIX);
      world.gate.next('charge:request', 'cut', 2);
      await send(url, order);
      await paysOrNot(world, url, order);
      const others = (await world.query("SELECT 1 FROM transaction WHERE connection_id <> 'judge'")).length;
      world.expect(others === 0, 'another connection was asked for a code');
    },
  },
  {
    name: 'codes: lost before it was made, and the replica killed while it closes it',
    async run(world) {
      const replica = await world.startReplica();
      const order = world.order(PIX);
      world.gate.next('charge:request', 'cut', 2);
      const stop = world.gate.hold(`close:${world.random.pick(['request', 'response'])}`);
      await send(replica.url, order);
      await ageIfSearchLags(world);
      // Some providers are asked for the code again, and nothing is closed.
      await Promise.race([stop.reached, world.drain()]);
      await replica.kill();
      world.random.pick([stop.cut, stop.release])();
      const { url } = await world.startReplica({ unhurried: true });
      await paysOrNot(world, url, order);
    },
  },
  {
    name: 'codes: the payer pays while it is looked up, is canceled or expires, on two replicas',
    short: true,
    async run(world) {
      const [one, two] = [
        await world.startReplica({ unhurried: true }),
        await world.startReplica({ unhurried: true }),
      ];
      const payers = await inParallel(
        Array.from({ length: 6 }, () => () => sendAway(world, one.url, PIX)),
        6,
      );
      const actions = payers.flatMap((payer, i): (() => Promise<unknown>)[] => [
        () => tryToPay(world, one.url, payer),
        () => makeDue(world, payer),
        () => notify(world, two.url, payer.line),
        ...(i % 3 === 1 ? [() => operate(two.url, cancelOf(payer))] : []),
        ...(i % 3 === 2 ? [() => world.judge.expire?.(payer.line).catch(() => {}) ?? Promise.resolve()] : []),
      ]);
      await inParallel(world.random.shuffled(actions), actions.length);
      for (const payer of payers) await ends(world, payer);
    },
  },
  ...closingKills('codes: canceled', PIX, 'after the close, before its answer'),
  {
    name: 'codes: only the provider’s word ends one',
    short: true,
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const payers = await inParallel(
        Array.from({ length: 2 }, () => () => sendAway(world, url, PIX)),
        2,
      );
      for (const { transactionId } of payers) {
        await world.query(`UPDATE transaction SET ${older('9 days')}, check_at = now() WHERE id = $1`, [
          transactionId,
        ]);
      }
      const isDue = 'SELECT 1 FROM transaction WHERE check_at <= now() + interval $$1 min$$';
      await world.until('the checks', async () => (await world.query(isDue)).length === 0);
      for (const { id, order } of payers) {
        const status = (await getPayment(url, order, id))?.status;
        world.expect(status === 'READY_TO_PAY', `the provider has it open, but it is ${status}`);
      }
      const [one, two] = payers as [Payer, Payer];
      await agree(world, one);
      await becomes(world, one, 'SUCCEEDED');
      await world.judge.expire?.(two.line);
      await becomes(world, two, 'EXPIRED');
    },
  },
  {
    name: 'codes: paid after its end, and the replica killed while it learns that',
    async run(world) {
      const replica = await world.startReplica();
      const payer = await sendAway(world, replica.url, { ...PIX, description: 'sandbox:paid_late:1000' });
      await world.judge.expire?.(payer.line).catch(() => {});
      await becomes(world, payer, 'EXPIRED');
      const stop = world.gate.hold(`write_change:${world.random.pick(['request', 'response'])}`);
      await agree(world, payer);
      await world.until('the late payment', async () => (await lineOf(world, payer))?.status === 'paid');
      await notify(world, replica.url, payer.line);
      await stop.reached;
      await replica.kill();
      world.random.pick([stop.cut, stop.release])();
      const { url } = await world.startReplica({ unhurried: true });
      await world.query('UPDATE notification SET check_at = now() WHERE check_at IS NOT NULL');
      await notify(world, url, payer.line);
      await becomes(world, payer, 'SUCCEEDED');
    },
  },
  {
    name: 'codes: paid after its end raises an alarm',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const payer = await sendAway(world, url, { ...PIX, description: 'sandbox:paid_late:1000' });
      await world.judge.expire?.(payer.line).catch(() => {});
      await becomes(world, payer, 'EXPIRED');
      await agree(world, payer);
      await world.until('the late payment', async () => (await lineOf(world, payer))?.status === 'paid');
      await notify(world, url, payer.line);
      await becomes(world, payer, 'SUCCEEDED');
      await expectAlarm(world, payer, 'late_payment');
    },
  },
  {
    name: 'codes: transfers of too little and of too much',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const sent = (word: string) => sendAway(world, url, { code: 'SPEI', description: `sandbox:${word}` });
      const [less, more] = await Promise.all([sent('underpaid'), sent('overpaid')]);
      await becomes(world, more, 'SUCCEEDED');
      await expectAlarm(world, more, 'overpaid');
      const isShown = `SELECT 1 FROM event WHERE payment_id = $1 HAVING count(*) > 1`;
      await world.until(
        'the part to be told',
        async () => (await world.query(isShown, [less.id])).length > 0,
      );
      const refused = await operate(url, cancelOf(less));
      world.expect(refused.status === 400, `the cancel after a part was answered ${refused.status}`);
      await world.judge.expire?.(less.line);
      await becomes(world, less, 'EXPIRED');
      await expectAlarm(world, less, 'underpaid');
    },
  },
  race('codes: partial refunds', 'refund', PIX),
  failover('killed before the next attempt is begun', 'write_next_attempt:request'),
  { ...failover('killed after the next attempt is begun', 'write_next_attempt:response'), short: true },
  failover('killed while the second is asked', 'charge:request'),
  failover('killed before the second’s answer', 'charge:response'),
  failover('killed before commit 2', 'write_change:request'),
  {
    name: 'codes: turned away by the first, lost at the second, never asked again',
    async run(world) {
      const env = await turningAway(world);
      const { url } = await world.startReplica({ unhurried: true, env });
      const order = world.order(PIX);
      world.gate.next('charge:response', 'cut', 2);
      await send(url, order);
      await world.insist(order);
      world.expect(await world.drain(), 'the code was not found');
      await expectAttempts(world, order, ['turning ERROR', 'judge CREATED']);
      await pays(world, url, order);
    },
  },
];

/** Makes a case that kills the replica while it creates a code. The payer pays it if there is one. */
function kill(step: string, point: string): Case {
  return {
    name: `codes: killed ${step}`,
    async run(world) {
      const order = world.order(PIX);
      const stop = await killAt(world, point, order);
      world.random.pick([stop.cut, stop.release])();
      const { url } = await world.startReplica({ unhurried: true });
      await paysOrNot(world, url, order);
    },
  };
}

/** Makes a case in which one connection turns a code away, and the replica is killed on the way to another's. */
function failover(step: string, point: string): Case {
  return {
    name: `codes: turned away by the first, ${step}`,
    async run(world) {
      const env = await turningAway(world);
      const order = world.order(PIX);
      const stop = await killAt(world, point, order, 1, { env });
      const { url } = await world.startReplica({ unhurried: true, env });
      world.random.pick([stop.cut, stop.release])();
      await paysOrNot(world, url, order);
      const [first] = await attemptsOf(world, order);
      world.expect(first === 'turning ERROR', `the first attempt is ${first}`);
    },
  };
}

/** Adds a connection that turns codes away. @returns the environment of replicas that ask it first. */
async function turningAway(world: World): Promise<Readonly<Record<string, string>>> {
  const away = await startTurningAway(world.judge.port, world.kind.callOf);
  world.atEnd(away.close);
  const route =
    "{ id: 9, condition: type == 'PIX', targets: [{ connection: turning }, { connection: judge }] }";
  const file = world.catalogueWith((text) =>
    waitingLonger(withRoute(withConnection(text, 'turning', away.port), route)),
  );
  return { CATALOGUE_FILE: file };
}

/** Expects that an order gets a code or comes to nothing; a code is paid. */
async function paysOrNot(world: World, url: string, order: Order): Promise<void> {
  await closed(world);
  await world.insist(order);
  await closed(world);
  const payer = await payerOf(world, url, order, idOf(order));
  if (payer) await pay(world, url, payer);
  else await expectNoCode(world, url, order);
}

async function expectNoCode(world: World, url: string, order: Order): Promise<void> {
  const status = (await getPayment(url, order, idOf(order)))?.status;
  world.expect(status === 'ERROR', `without a code the payment is ${status}`);
}

/** Expects that an order has a code, of which the merchant was told, and pays it. */
async function pays(world: World, url: string, order: Order): Promise<void> {
  const payer = await payerOf(world, url, order, idOf(order));
  if (!payer) return world.expect(false, 'there is no code');
  const told = await world.query('SELECT type FROM event WHERE payment_id = $1 ORDER BY sequence', [
    payer.id,
  ]);
  const types = told.map(({ type }) => type);
  const isTold = types.length > 0 && types.every((type) => type === 'payment.purchase');
  world.expect(isTold, `the events of a new code were ${types}`);
  await pay(world, url, payer);
}

async function pay(world: World, url: string, payer: Payer): Promise<void> {
  await agree(world, payer);
  if (world.random.integer(0, 1) === 1) await returnTo(url, payer);
  else await notify(world, url, payer.line);
  await becomes(world, payer, 'SUCCEEDED');
}

const idOf = (order: Order) => order.answers.map(paymentOf).find((payment) => payment)?.id ?? '';

/** At a provider whose search lags, makes payments an hour older, so that what is not found was never made. */
async function ageIfSearchLags(world: World): Promise<void> {
  if (world.kind.searchLags) await world.query(`UPDATE transaction SET ${older('1 hour')}`);
}

/** Waits until no creation of a code is unknown. */
async function closed(world: World): Promise<void> {
  await ageIfSearchLags(world);
  // The older a payment is, the longer are the pauses between its checks.
  const sooner = `UPDATE transaction SET check_at = now() WHERE check_at > now() + interval '5 s' AND NOT awaits_payer`;
  const timer = setInterval(() => void world.query(sooner).catch(() => {}), 500);
  const isDry = await world.drain().finally(() => clearInterval(timer));
  world.expect(isDry, 'the creation of a code stays unknown');
}

/** Waits until a payment and its cancel have ended, and expects that they agree. The judge compares them with the ledger. */
async function ends(world: World, payer: Payer): Promise<void> {
  await settled(world, payer.id);
  let status: unknown;
  await world.until(`${payer.id} to end`, async () => {
    await makeDue(world, payer);
    [{ status } = { status: undefined }] = await world.query('SELECT status FROM payment WHERE id = $1', [
      payer.id,
    ]);
    return status !== 'READY_TO_PAY' && status !== 'PENDING';
  });
  const end = `${status}, ${await cancelsOf(world, payer)}`;
  const isAgreed = ['CANCELED, SUCCEEDED', 'SUCCEEDED, DECLINED', 'SUCCEEDED, ', 'EXPIRED, '].includes(end);
  world.expect(isAgreed, `the payment and its cancel ended as ${end}`);
}

async function expectAlarm(world: World, { id }: Payer, alarm: string): Promise<void> {
  const isRaised = () =>
    world.replicas.some((replica) =>
      replica
        .output()
        .split('\n')
        .some((line) => line.includes(`"alarm":"${alarm}"`) && line.includes(id)),
    );
  await world
    .until(`the alarm ${alarm}`, isRaised, 5_000)
    .catch((error: Error) => world.expect(false, error.message));
}

async function lineOf(world: World, { line: { id } }: Payer) {
  return (await world.ledger()).find((line) => line.id === id);
}
