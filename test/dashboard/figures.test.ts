import { create } from '@bufbuild/protobuf';
import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { PaymentSchema, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import { createFigures } from '#src/dashboard/figures.ts';
import { minutesChart } from '#src/dashboard/minutes-chart.ts';
import { overviewPage } from '#src/dashboard/overview-page.ts';
import { createSignInLimit } from '#src/dashboard/sign-in-limit.ts';
import { sessionCookie } from '#src/dashboard/visit.ts';
import { htmlText } from '#src/web/html.ts';

const { SUCCEEDED, DECLINED, PENDING, EXPIRED, ERROR } = Transaction_Status;

/** A payment with one transaction for each attempt: its connection, its status, its parent. */
function payment(...attempts: [connection: string, status: Transaction_Status, parent?: string][]) {
  const transactionsHistory = attempts.map(([id, status, parentTransactionId = '']) => ({
    status,
    parentTransactionId,
    connectionData: { id },
    responseCode: status === DECLINED ? 'DO_NOT_HONOR' : 'OTHER',
  }));
  return create(PaymentSchema, { country: 'US', paymentMethod: { type: 'CARD' }, transactionsHistory });
}

describe('the figures of the last hour', () => {
  it('count a payment once, and each of its attempts at its own connection', () => {
    const figures = createFigures(() => 3_600_000);
    figures.paid(payment(['one', DECLINED], ['two', SUCCEEDED]), false);
    const read = figures.read();
    const nothing = { approved: 0, declined: 0, failed: 0, waiting: 0 };
    expect(read.paymentsPerS).toBe(1 / 60);
    expect(read.byConnection.get('one')).toEqual({ ...nothing, declined: 1 });
    expect(read.byConnection.get('two')).toEqual({ ...nothing, approved: 1 });
    expect(read.byCountry.get('US')).toEqual({ ...nothing, approved: 1 });
    expect(Object.fromEntries(read.declines)).toEqual({ DO_NOT_HONOR: 1 });
    expect(read.minutes.at(-1)).toEqual({ startMs: 3_600_000, ...nothing, approved: 1 });
  });

  it('count an outcome that is learned later, but neither its operations nor the payment again', () => {
    const figures = createFigures(() => 0);
    figures.paid(payment(['one', PENDING]), false);
    figures.paid(payment(['one', SUCCEEDED]), true);
    figures.paid(payment(['one', SUCCEEDED], ['one', SUCCEEDED, 'its purchase']), true);
    const read = figures.read();
    expect(read.paymentsPerS).toBe(1 / 60);
    expect(read.byConnection.get('one')).toEqual({ approved: 1, declined: 0, failed: 0, waiting: 1 });
  });

  it('call a redirect that nobody followed expired, as it was sent', () => {
    const figures = createFigures(() => 0);
    figures.paid(payment(['one', PENDING]), false);
    figures.paid(payment(['one', EXPIRED]), true);
    const chart = htmlText(minutesChart(figures.read().minutes));
    expect(chart).toContain(
      'Outcomes of the last hour: approved 0, declined 0, not sent or expired 1, waiting 1',
    );
  });

  it('forget what is older than an hour, and hold at most a thousand names', () => {
    let nowMs = 0;
    const figures = createFigures(() => nowMs);
    for (let i = 0; i < 3_000; i++) figures.paid(payment([`connection-${i}`, SUCCEEDED]), false);
    expect(figures.read().byConnection.size).toBe(1_000);
    nowMs = 61_000;
    expect(figures.read()).toMatchObject({ paymentsPerS: 0, minutes: { length: 60 } });
    nowMs = 60 * 60_000;
    expect(figures.read().byConnection.size).toBe(0);
  });
});

it('the overview tells a connection that cannot be reached from one that declines, in numbers', () => {
  const figures = createFigures(() => 0);
  figures.paid(payment(['away', ERROR], ['strict', DECLINED]), false);
  const overview = overviewPage({
    figures: figures.read(),
    circuits: [],
    open: { count: 0, oldestS: 0 },
    openAttempts: [],
    webhooks: [],
    pending: { count: 0, isMore: false },
    now: new Date(0),
    replica: 'one',
  });
  const [, rows = ''] = /Approval by connection.*?<tbody>(.*?)<\/tbody>/s.exec(htmlText(overview)) ?? [];
  const cells = [...rows.matchAll(/<tr>.*?<\/tr>/gs)].map(([row]) =>
    [...row.matchAll(/<t[hd][^>]*>([^<]*)</g)].map(([, text]) => text).slice(0, 4),
  );
  expect(cells).toEqual([
    ['away', '1', '0.0 %', '1'],
    ['strict', '1', '0.0 %', '0'],
  ]);
});

describe('wrong operator keys', () => {
  it('make their own address wait and no other', () => {
    let nowMs = 0;
    const limit = createSignInLimit(() => nowMs);
    for (let i = 0; i < 5; i++) {
      expect(limit.waitS('192.0.2.1')).toBe(0);
      limit.failed('192.0.2.1');
    }
    expect([limit.waitS('192.0.2.1'), limit.waitS('192.0.2.2')]).toEqual([20, 0]);
    nowMs = 20_000;
    expect(limit.waitS('192.0.2.1')).toBe(0);
  });

  it('count against the /64 network of an IPv6 address, since one host can use all of its addresses', () => {
    const limit = createSignInLimit(() => 0);
    for (let i = 0; i < 5; i++) limit.failed(`2001:db8:1:2:0:0:0:${i}`);
    expect([limit.waitS('2001:db8:1:2:a:b:c:d'), limit.waitS('2001:db8:1:3:0:0:0:1')]).toEqual([20, 0]);
    for (let i = 0; i < 5; i++) limit.failed(`2001:db8::${i}:0:0:1`);
    expect([limit.waitS('2001:db8::a:b:c:d'), limit.waitS('2001:db8:0:1::1')]).toEqual([20, 0]);
  });

  it('make an address wait even after a flood from many others', () => {
    const limit = createSignInLimit(() => 0);
    for (let i = 0; i < 20_000; i++) limit.failed(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
    for (let i = 0; i < 5; i++) limit.failed('192.0.2.1');
    expect(limit.waitS('192.0.2.1')).toBe(20);
  });
});

describe('the session cookie', () => {
  const request = (cookie: string) => ({ headers: { cookie } }) as FastifyRequest;

  it('is bound to the host and to HTTPS if browsers use HTTPS only', () => {
    expect(sessionCookie(true).set('t')).toBe('__Host-operator=t; Path=/; HttpOnly; SameSite=Strict; Secure');
    expect(sessionCookie(false).set('t')).toBe('operator=t; Path=/; HttpOnly; SameSite=Strict');
    expect(sessionCookie(true).read(request('operator=planted; __Host-operator=t'))).toBe('t');
  });

  it('is ignored when there are two, since somebody else has set one of them', () => {
    expect(sessionCookie(false).read(request('operator=a; operator=b'))).toBeUndefined();
  });
});
