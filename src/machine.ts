import { availableParallelism } from 'node:os';
import { getHeapStatistics } from 'node:v8';

/**
 * One worker per core, up to a number for which any database has enough connections. Of two cores, the database needs
 * one.
 */
export const DEFAULT_WORKERS = availableParallelism() > 2 ? Math.min(availableParallelism(), 8) : 1;

/** Memory that a call in flight may take: the largest body, 256 KiB. Most calls take a tenth of it. */
const CALL_BYTES = 256 * 1024;

/** The number of calls that fill half of the heap if each has the largest body. */
export const DEFAULT_MAX_IN_FLIGHT = Math.floor(getHeapStatistics().heap_size_limit / 2 / CALL_BYTES);
