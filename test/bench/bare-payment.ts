import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { claimPayment } from '#src/store/engine/claim-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { writeSingleChange } from '#src/store/engine/write-change.ts';
import { ACCOUNT_ID, CURRENCY } from './request.ts';

/** The bytes that a real payment wrote. The compared subjects write the same bytes. */
export type Sample = { readonly draft: string; readonly record: string; readonly response: string };

/** As many connections as the service opens. */
export const POOL_SIZE = 16;

/** The service's own two statements, without the service. */
export type BarePayments = {
  readonly response: Buffer;
  claim(payment: BarePayment): Promise<void>;
  finish(payment: BarePayment): Promise<void>;
};

export type BarePayment = {
  readonly paymentId: string;
  readonly transactionId: string;
  readonly idempotencyKey: string;
  readonly minorUnits: bigint;
};

export function newBarePayment(idempotencyKey: string, minorUnits: bigint): BarePayment {
  return { paymentId: randomUUID(), transactionId: randomUUID(), idempotencyKey, minorUnits };
}

/** Opens a bare pool of node-postgres. @param sampleFile contains a Sample with its bytes in base64. */
export function openBarePayments(databaseUrl: string, sampleFile: string): BarePayments {
  const sample: Sample = JSON.parse(readFileSync(sampleFile, 'utf8'));
  const [draft, record, response] = [sample.draft, sample.record, sample.response].map((text) =>
    Buffer.from(text, 'base64'),
  ) as [Buffer, Buffer, Buffer];
  const pool = new pg.Pool({ connectionString: databaseUrl, max: POOL_SIZE });
  const database = {
    query: (statement, values) => pool.query({ ...statement, values: values as unknown[] }),
    roundTripMs: () => 0,
  } as Pick<Database, 'query' | 'roundTripMs'> as Database;
  const requestHash = Buffer.alloc(32, 7);

  return {
    response,
    async claim(payment) {
      const claimed = await claimPayment(database, {
        ...payment,
        accountId: ACCOUNT_ID,
        catalogueVersion: 0,
        requestHash,
        requestShape: requestHash,
        merchantOrderId: payment.idempotencyKey,
        cardLastFour: '1111',
        cardFingerprint: undefined,
        country: 'US',
        methodType: 'CARD',
        category: 'CARD',
        cardBrand: 'VISA',
        customerId: undefined,
        payerEmailHash: payment.paymentId,
        payerDocumentHash: undefined,
        methodKind: 'CARD',
        payerDueInS: 86_400,
        merchantReference: undefined,
        createdAt: new Date().toISOString(),
        status: 'PENDING',
        record: draft,
        transactionStatus: 'PENDING',
        type: 'PURCHASE',
        connectionId: 'bench',
        connectionIdentity: 'bench',
        currency: CURRENCY,
        capture: true,
        leaseS: 30,
        vault: undefined,
      });
      if (!claimed) throw new Error('the key was already claimed');
    },
    async finish(payment) {
      const written = await writeSingleChange(database, {
        accountId: ACCOUNT_ID,
        paymentId: payment.paymentId,
        version: 0,
        status: 'SUCCEEDED',
        record,
        response,
        event: 'payment.purchase',
        transaction: {
          ...{
            id: payment.transactionId,
            status: 'SUCCEEDED',
            reference: undefined,
            providerPaymentId: undefined,
          },
          ...{ awaitsPayer: false, fence: 0, isFenced: false, checkInS: undefined },
        },
      });
      if (written.kind !== 'written') throw new Error(`the payment was not written: ${written.kind}`);
    },
  };
}
