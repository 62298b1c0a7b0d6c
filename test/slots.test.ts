import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createQueue, createSlots, type Release } from '#src/slots.ts';

describe('slots that refuse', () => {
  it('a slot that is released twice is free once', () => {
    const slots = createSlots(2);
    const first = slots.take();
    slots.take();
    first?.();
    first?.();
    expect(slots.count()).toBe(1);
    expect([slots.take(), slots.take()]).toEqual([expect.any(Function), undefined]);
  });

  it('a group has at most its share, at least one slot, and no less for rounding', () => {
    const slots = createSlots(100);
    const roomFor = (group: string, fraction: number) => {
      let taken = 0;
      while (slots.take([{ group, fraction }])) taken += 1;
      return taken;
    };
    expect([roomFor('none', 0), roomFor('some', 0.29), roomFor('rest', 1)]).toEqual([1, 29, 70]);
  });

  it('a call that must not be refused counts beyond the limit', () => {
    const slots = createSlots(1);
    const all = [slots.occupy(), slots.occupy()];
    expect([slots.count(), slots.take()]).toEqual([2, undefined]);
    all[0]?.();
    expect(slots.take()).toBeUndefined();
    all[1]?.();
    expect(slots.take()).toBeDefined();
  });
});

describe('slots for which calls queue', () => {
  it('calls get slots in order of arrival, and a released slot goes to the first in the queue', async () => {
    const queue = createQueue(1);
    const order: number[] = [];
    const first = await queue.enter(0);
    const rest = [1, 2, 3].map(async (n) => {
      const leave = await queue.enter(60_000);
      order.push(n);
      leave?.();
      leave?.();
    });
    await sleep(1);
    expect(order).toEqual([]);
    first?.();
    await Promise.all(rest);
    expect(order).toEqual([1, 2, 3]);
    expect(await queue.enter(0)).toBeDefined();
  });

  it('a call that has waited too long gets no slot, and leaves none behind', async () => {
    const queue = createQueue(1);
    const leave = await queue.enter(0);
    expect(await queue.enter(5)).toBeUndefined();
    leave?.();
    expect(await queue.enter(0)).toBeDefined();
    expect(await queue.enter(0)).toBeUndefined();
  });

  it('there are never more slots in use than exist, and none is lost, whatever the order of events', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('enter', 'leave', 'leave twice'), { maxLength: 60 }),
        async (acts) => {
          const queue = createQueue(3);
          const inside: Release[] = [];
          const entering: Promise<unknown>[] = [];
          const leave = () => inside.shift()?.();
          for (const act of acts) {
            if (act === 'enter')
              entering.push(queue.enter(60_000).then((release) => release && inside.push(release)));
            else if (act === 'leave') leave();
            else {
              const [release] = inside;
              leave();
              release?.();
            }
            await new Promise(setImmediate);
            expect(inside.length).toBeLessThanOrEqual(3);
          }
          while (inside.length > 0) {
            leave();
            await new Promise(setImmediate);
          }
          await Promise.all(entering);
          const all = await Promise.all([0, 1, 2, 3].map(() => queue.enter(1)));
          expect(all.filter(Boolean)).toHaveLength(3);
        },
      ),
      { numRuns: 100, seed: 7 },
    );
  });
});
