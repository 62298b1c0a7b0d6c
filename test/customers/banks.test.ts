import { expect, it } from 'vitest';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { banksOf } from '#src/customers/banks.ts';

const HOUR_MS = 3_600_000;
const SABANA = { id: '1901', name: 'Banco de la Sabana' };

/** A connection whose provider may be away, and a clock. */
function connected() {
  const state = { isAway: false, asked: 0, nowMs: 0 };
  const connection: Pick<ProviderConnection, 'listBanks'> = {
    listBanks: async () => {
      state.asked++;
      if (state.isAway) throw new Error('the provider is away');
      return [SABANA];
    },
  };
  const list = () => banksOf(connection as ProviderConnection, 'PSE', () => state.nowMs);
  return { state, list };
}

it('the banks are asked for once an hour, also by many at once', async () => {
  const { state, list } = connected();
  expect(await Promise.all([list(), list(), list()])).toEqual([[SABANA], [SABANA], [SABANA]]);
  state.nowMs = HOUR_MS - 1;
  await list();
  expect(state.asked).toBe(1);
  state.nowMs = HOUR_MS;
  await list();
  expect(state.asked).toBe(2);
});

it('a list up to a day old is used while the provider is away, which is not asked each time', async () => {
  const { state, list } = connected();
  await list();
  state.isAway = true;
  state.nowMs = 24 * HOUR_MS - 1;
  expect(await list()).toEqual([SABANA]);
  expect(await list()).toEqual([SABANA]);
  expect(state.asked).toBe(2);
  state.nowMs = 24 * HOUR_MS;
  expect(await list()).toBeUndefined();
});

it('there is no list if the provider was always away, until it is back', async () => {
  const { state, list } = connected();
  state.isAway = true;
  expect(await list()).toBeUndefined();
  state.isAway = false;
  expect(await list()).toBeUndefined();
  state.nowMs = 30_000;
  expect(await list()).toEqual([SABANA]);
});
