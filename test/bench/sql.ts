import { newBarePayment, openBarePayments } from './bare-payment.ts';
import { closedLoop, type LoopResult, type Plan } from './closed-loop.ts';
import { amountOf, idempotencyKey } from './request.ts';
import { answerAsked } from './worker.ts';

export type SqlOrder = { readonly runId: string; readonly plan: Plan };

// Only the two commits of a payment: no HTTP, no provider.

const [databaseUrl = '', sampleFile = ''] = process.argv.slice(2);
const payments = openBarePayments(databaseUrl, sampleFile);

answerAsked(({ runId, plan }: SqlOrder): Promise<LoopResult> => {
  return closedLoop(plan, (_slot, sequence, done) => {
    pay(runId, sequence).then(
      () => done(true),
      () => done(false),
    );
  });
});

async function pay(runId: string, sequence: number): Promise<void> {
  const minorUnits = BigInt(amountOf(sequence).replace('.', ''));
  const payment = newBarePayment(idempotencyKey(runId, sequence), minorUnits);
  await payments.claim(payment);
  await payments.finish(payment);
}
