import type { Case } from './case.ts';
import { CLIENTS } from './clients.ts';
import { CLOSINGS } from './closings.ts';
import { CODES } from './codes.ts';
import { CONFIGURATION } from './configuration.ts';
import { DATABASE } from './database.ts';
import { DISK } from './disk.ts';
import { FAILOVER } from './failover.ts';
import { GROUPS } from './groups.ts';
import { HOSTILE } from './hostile.ts';
import { KILLS } from './kills.ts';
import { LOOK_UPS } from './look-ups.ts';
import { OPERATIONS } from './operations.ts';
import { PAYERS } from './payers.ts';
import { PROVIDER } from './provider.ts';
import { RELEASES } from './releases.ts';
import { REPLICAS } from './replicas.ts';
import { SLOW } from './slow.ts';
import { TOKENS } from './tokens.ts';
import { WEBHOOKS } from './webhooks.ts';

/** Every case. */
export const CASES: readonly Case[] = [
  ...[...KILLS, ...GROUPS, ...DATABASE, ...DISK],
  ...[...PROVIDER, ...SLOW, ...FAILOVER, ...LOOK_UPS],
  ...[...OPERATIONS, ...PAYERS, ...CLOSINGS, ...CODES, ...TOKENS, ...WEBHOOKS],
  ...[...CLIENTS, ...REPLICAS, ...RELEASES, ...CONFIGURATION, ...HOSTILE],
];
