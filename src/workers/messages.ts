import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { Storage } from './storage.ts';

/** Metrics in a registry's JSON form. */
export type CollectedMetrics = MetricObjectWithValues<MetricValue<string>>[];

/** A message from a worker to the parent. */
export type FromWorker =
  | { readonly kind: 'give storage' }
  /** The worker is ready, and serves requests at this address. */
  | { readonly kind: 'serving'; readonly address: string; readonly warnings: readonly string[] }
  | { readonly kind: 'collected'; readonly collection: number; readonly metrics: CollectedMetrics }
  | { readonly kind: 'give metrics'; readonly asked: number };

/** A message from the parent to a worker. */
export type FromParent =
  | { readonly kind: 'storage'; readonly storage: Storage }
  | { readonly kind: 'collect'; readonly collection: number }
  | { readonly kind: 'metrics'; readonly asked: number; readonly text: string };
