import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { AdditionalDataSchema, OrderSchema } from '#gen/payments/v1/additional_data_pb.js';
import { recordedAdditionalData } from '#src/payments/create/additional-data.ts';

const ticket = (ticketNumber: string) => ({ ticketNumber });
const airline = (init: object) =>
  recordedAdditionalData(create(AdditionalDataSchema, { airline: init }), 'USD')?.airline;
const numbers = (tickets: readonly { ticketNumber?: string | undefined }[] | undefined) =>
  tickets?.map(({ ticketNumber }) => ticketNumber);

describe('additional data in the record', () => {
  it('the record has no additional data if the request has none', () => {
    expect(recordedAdditionalData(undefined, 'USD')).toBeUndefined();
  });

  it('the record has only the parts of additional data that were sent', () => {
    const data = recordedAdditionalData(create(AdditionalDataSchema, { order: {} }), 'USD');
    expect(data?.order).toBeDefined();
    expect(data?.airline).toBeUndefined();
  });

  it('the record shows a single ticket as `ticket`', () => {
    const recorded = airline({ tickets: [ticket('1')] });
    expect(recorded?.ticket?.ticketNumber).toBe('1');
    expect(recorded?.tickets).toEqual([]);
  });

  it('the record shows the first of several tickets as `ticket`, and all of them in `tickets`', () => {
    const recorded = airline({ tickets: [ticket('1'), ticket('2'), ticket('3')] });
    expect(recorded?.ticket?.ticketNumber).toBe('1');
    expect(numbers(recorded?.tickets)).toEqual(['1', '2', '3']);
  });

  it('a ticket is accepted in the form in which the record shows it', () => {
    expect(airline({ ticket: ticket('1') })?.ticket?.ticketNumber).toBe('1');
    const both = airline({ ticket: ticket('1'), tickets: [ticket('1'), ticket('2')] });
    expect(both?.ticket?.ticketNumber).toBe('1');
    expect(numbers(both?.tickets)).toEqual(['1', '2']);
  });

  it('the record shows no ticket if none was sent', () => {
    expect(airline({ pnr: 'ABC123' })?.ticket).toBeUndefined();
  });

  it("the record pads amounts to the currency's decimal places, and a fare to those of its own currency", () => {
    const data = recordedAdditionalData(
      create(AdditionalDataSchema, {
        order: {
          feeAmount: { value: '1' },
          shippingAmount: { value: '0' },
          items: [{ unitAmount: { value: '5' } }],
        },
        airline: {
          legs: [
            { baseFare: { value: '7' } },
            { baseFare: { value: '7' }, baseFareCurrency: 'KWD' },
            { baseFareCurrency: 'KWD' },
          ],
          tickets: [{ totalFareAmount: { value: '9' }, totalTaxAmount: { value: '8' } }],
        },
      }),
      'JPY',
    );
    const { order, airline } = data ?? {};
    expect(
      [order?.feeAmount, order?.shippingAmount, order?.items[0]?.unitAmount].map((d) => d?.value),
    ).toEqual(['1.0', '0.0', '5.0']);
    expect(airline?.legs.map(({ baseFare }) => baseFare?.value)).toEqual(['7.0', '7.000', undefined]);
    expect([airline?.ticket?.totalFareAmount?.value, airline?.ticket?.totalFeeAmount?.value]).toEqual([
      '9.0',
      undefined,
    ]);
  });

  it('the record keeps an amount with too many decimal places for its currency unchanged', () => {
    const item = { unitAmount: { value: '8.403361344537815' } };
    const leg = { baseFare: { value: '33.33' }, baseFareCurrency: 'JPY' };
    const { order, airline } =
      recordedAdditionalData(
        create(AdditionalDataSchema, { order: { items: [item] }, airline: { legs: [leg] } }),
        'USD',
      ) ?? {};
    expect(order?.items[0]?.unitAmount?.value).toBe('8.403361344537815');
    expect(airline?.legs[0]?.baseFare?.value).toBe('33.33');
  });

  it("the record pads the tip to the currency's decimal places, and keeps seller details unchanged", () => {
    const sellerDetails = { name: 'Shop', reference: { id: 9 } };
    const order = { tipAmount: { value: '1.5' } };
    const data = recordedAdditionalData(create(AdditionalDataSchema, { sellerDetails, order }), 'USD');
    expect(data?.sellerDetails).toEqual(sellerDetails);
    expect(data?.order?.tipAmount?.value).toBe('1.50');
  });

  it('the record keeps the other descriptions of the order unchanged', () => {
    const order = { salesChannel: 'x', fulfillment: { a: 1 }, items: [{ url: 'https://shop.example/1' }] };
    const data = recordedAdditionalData(create(AdditionalDataSchema, { order }), 'USD');
    expect(data?.order).toEqual(create(OrderSchema, order));
  });
});
