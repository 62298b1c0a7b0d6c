import { create } from '@bufbuild/protobuf';
import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { PaymentSchema, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import { type Overview, overviewPage } from '#src/dashboard/overview-page.ts';
import { sessionCookie } from '#src/dashboard/visit.ts';
import { htmlText } from '#src/web/html.ts';

const { SUCCEEDED, DECLINED, EXPIRED } = Transaction_Status;

/** A payment with one transaction for each attempt: connection, status and parent. */
function payment(...attempts: [connection: string, status: Transaction_Status, parent?: string][]) {
  const transactionsHistory = attempts.map(([id, status, parentTransactionId = '']) => ({
    status,
    parentTransactionId,
    connectionData: { id },
    responseCode: status === DECLINED ? 'DO_NOT_HONOR' : 'OTHER',
  }));
  return create(PaymentSchema, { country: 'US', paymentMethod: { type: 'CARD' }, transactionsHistory });
}

/** The overview of an hour without payments. */
const QUIET: Overview = {
  ...{
    recent: [],
    payments: [],
    circuits: [],
    open: { count: 0, oldestS: 0 },
    openAttempts: [],
    missing: [],
    unaskable: [],
  },
  ...{
    disputes: [],
    differences: { open: 0, againstRecord: 0 },
    webhooks: [],
    pending: { count: 0, isMore: false },
    now: new Date(0),
    account: '',
  },
};

/** Returns the cells of the table under a heading of the overview. */
function cellsOf(overview: Overview, heading: string): string[][] {
  const [, , rows = ''] =
    new RegExp(`<h2>(${heading})</h2>.*?<tbody>(.*?)</tbody>`, 's').exec(htmlText(overviewPage(overview))) ??
    [];
  return [...rows.matchAll(/<tr>.*?<\/tr>/gs)].map(([row]) =>
    [...row.matchAll(/<t[hd][^>]*>(?:<a [^>]*>)?([^<]*)</g)].map(([, text = '']) => text).slice(0, 4),
  );
}

describe('the overview', () => {
  it('the overview counts attempts that did not reach a connection separately from declines', () => {
    const recent = [
      { connectionId: 'away', status: 'ERROR', attempts: 3, sinceS: 60 },
      { connectionId: 'strict', status: 'DECLINED', attempts: 1, sinceS: 60 },
      { connectionId: 'strict', status: 'SUCCEEDED', attempts: 1, sinceS: 60 },
      { connectionId: 'strict', status: 'PENDING', attempts: 1, sinceS: 60 },
    ];
    expect(cellsOf({ ...QUIET, recent }, 'Approval by connection')).toEqual([
      ['away', '3', '0.0 %', '3'],
      ['strict', '3', '50.0 %', '0'],
    ]);
  });

  it('the overview counts every decline, but counts each payment once per country, by its last attempt', () => {
    const payments = [
      payment(['one', DECLINED], ['two', SUCCEEDED], ['two', SUCCEEDED, 'its purchase']),
      payment(['one', DECLINED]),
      payment(['one', EXPIRED]),
    ];
    expect(cellsOf({ ...QUIET, payments }, 'Approval by country ')).toEqual([['US', '3', '33.3 %', '1']]);
    expect(cellsOf({ ...QUIET, payments }, 'Declines by reason ')).toEqual([
      ['DO NOT HONOR', '2', '100.0 %'],
    ]);
  });
});

describe('the session cookie', () => {
  const request = (cookie: string) => ({ headers: { cookie } }) as FastifyRequest;

  it('the session cookie is bound to the host and to HTTPS if browsers can reach the service only over HTTPS', () => {
    expect(sessionCookie(true).set('t')).toBe('__Host-operator=t; Path=/; HttpOnly; SameSite=Strict; Secure');
    expect(sessionCookie(false).set('t')).toBe('operator=t; Path=/; HttpOnly; SameSite=Strict');
    expect(sessionCookie(true).read(request('operator=planted; __Host-operator=t'))).toBe('t');
  });

  it('the session cookie is ignored if a request has two, since an attacker may have set one of them', () => {
    expect(sessionCookie(false).read(request('operator=a; operator=b'))).toBeUndefined();
  });
});
