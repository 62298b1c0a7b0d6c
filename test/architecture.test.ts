import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  Payment_Status,
  Payment_SubStatus_Value,
  ProviderDataSchema,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { type ShownAttempt, type States, statesOf } from '#src/payments/model/states.ts';

const ROOT = join(import.meta.dirname, '..');
const text = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
const schema = readFileSync(join(ROOT, 'src/store/migrations/0001_baseline.sql'), 'utf8');

/** Returns the rows of the table with this first heading, as lists of cells. */
function tableOf(heading: string): string[][] {
  const lines = text.split('\n');
  const first = lines.findIndex((line) => line.startsWith(`| ${heading} |`)) + 2;
  const after = lines.slice(first).findIndex((line) => !line.startsWith('|'));
  return lines.slice(first, first + after).map((line) => {
    const cells = line.slice(1, -1).split('|');
    return cells.map((cell) => cell.trim());
  });
}

const names = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

/** Returns true if the schema has a column, such as `payment.status`. */
function hasColumn(name: string): boolean {
  const [table, column] = name.split('.');
  const [, body = ''] = new RegExp(`CREATE TABLE ${table} \\(\n([^]*?)\n\\)`).exec(schema) ?? [];
  return new RegExp(`^  ${column} `, 'm').test(body);
}

/**
 * Returns true if the name is a file in src, a column of the schema, or a variable that docs/configuration.md
 * explains.
 */
function exists(name: string): boolean {
  if (/^[a-z_]+\.[a-z_]+$/.test(name)) return hasColumn(name);
  if (/^[A-Z_]+$/.test(name)) {
    return readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8').includes(`\`${name}\``);
  }
  return existsSync(join(ROOT, 'src', `${name}.ts`));
}

const PROVIDER = { reference: 'r', providerData: create(ProviderDataSchema) };
const PURCHASE: ShownAttempt = {
  type: Transaction_Type.PURCHASE,
  methodKind: 'CARD',
  isDeclinedBefore: false,
};
const of = (kind: Outcome['kind'], over: Partial<ShownAttempt> = {}): States =>
  statesOf({ ...PROVIDER, kind, iso8583Code: '05', advice: 'NONE' } as unknown as Outcome, {
    ...PURCHASE,
    ...over,
  });

describe('ARCHITECTURE.md', () => {
  it('ARCHITECTURE.md shows the states that statesOf returns', () => {
    const states: readonly [string, States][] = [
      ['approved', of('approved')],
      ['an authorization', of('approved', { type: Transaction_Type.AUTHORIZE })],
      ['a verification', of('approved', { type: Transaction_Type.VERIFY })],
      ['redirect to a wallet', of('awaits_payer', { methodKind: 'PAYER_PAGE' })],
      ['3-D Secure challenge', of('awaits_payer')],
      ['to_complete', of('to_complete')],
      ['pending', of('pending')],
      ['unknown', of('unknown')],
      ['expired', of('expired')],
      ['declined', of('declined')],
      ['not_sent', of('not_sent')],
      ['not_sent after', of('not_sent', { isDeclinedBefore: true })],
    ];
    const rows = tableOf('state of the payment');
    const reached = new Set<string>();
    for (const [when, { payment, subStatus, transaction }] of states) {
      const state = `\`${Payment_Status[payment]} / ${Payment_SubStatus_Value[subStatus]}\``;
      const row = `${state} \`${Transaction_Status[transaction]}\``;
      const documented = rows.filter((cells) => cells.slice(0, 2).join(' ') === row);
      expect.soft(documented.map(([, , cell]) => cell).join(), row).toContain(when);
      reached.add(row);
    }
    expect([...reached].sort()).toEqual(rows.map((cells) => cells.slice(0, 2).join(' ')).sort());
  });

  it.each(['who', 'loop'])(
    'ARCHITECTURE.md names only existing files, columns and variables in the table headed %s',
    (heading) => {
      const named = tableOf(heading).flat().flatMap(names);
      expect(named.length).toBeGreaterThan(12);
      expect(named.filter((name) => !exists(name))).toEqual([]);
    },
  );

  it.each(['ARCHITECTURE.md', 'docs/changing.md'])('%s names only paths that exist', (document) => {
    const paths = names(readFileSync(join(ROOT, document), 'utf8').replaceAll(/```.*?```/gs, '')).filter(
      (name) => /^[\w.-]+\/[\w./-]*$/.test(name),
    );
    expect(paths.length).toBeGreaterThan(20);
    const found = (path: string) =>
      [path, join('src', path), join('src', `${path}.ts`)].some((one) => existsSync(join(ROOT, one)));
    expect(paths.filter((path) => !found(path))).toEqual([]);
  });

  it('ARCHITECTURE.md lists every background loop, and nothing else', () => {
    const having = (text: RegExp) =>
      globSync('src/**/*.ts', { cwd: ROOT }).filter((path) =>
        text.test(readFileSync(join(ROOT, path), 'utf8')),
      );
    const loops = having(/import \{[^}]*\brepeat\b[^}]*\} from '#src\/repeat\.ts'/);
    const listed = tableOf('loop').map(([cell = '']) => `src/${names(cell)[0]}.ts`);
    expect([...new Set(listed)].sort()).toEqual(loops.sort());
    expect(having(/\bsetInterval\(|while \(!stop\.signal\.aborted\)/), 'loops without a floor').toEqual([]);
  });

  it('ARCHITECTURE.md lists every file that queries a provider again', () => {
    // Calls that take due work in order to query the provider, and calls that query it at once.
    const asks = /\b(takeDue(Enrollments)?|technicalCancel\.send)\(/;
    const callers = globSync('src/{payments,customers,server,dashboard}/**/*.ts', { cwd: ROOT }).filter(
      (path) =>
        asks.test(readFileSync(join(ROOT, path), 'utf8').replaceAll(/export async function \w+\(/g, '')),
    );
    const listed = tableOf('who').map(([cell = '']) => `src/${names(cell)[0]}.ts`);
    expect(callers.filter((path) => !listed.includes(path))).toEqual([]);
  });
});

it('every column of the baseline schema has a comment', () => {
  // The top of the file explains these for all tables.
  const ofAll = new Set(['id', 'account_id', 'created_at', 'updated_at']);
  const columns = [
    ...schema
      .slice(0, schema.indexOf('CREATE FUNCTION'))
      .matchAll(
        /(?<comment>--.*)?\n {2}(?<name>[a-z_]+) (?:uuid|text|bytea|boolean|integer|bigint|timestamptz)\b/g,
      ),
  ];
  expect(columns.length).toBeGreaterThan(190);
  const silent = columns.filter(({ groups: { comment, name } = {} }) => !comment && !ofAll.has(name ?? ''));
  expect(silent.map(({ groups }) => groups?.name)).toEqual([]);
});
