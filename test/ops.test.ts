import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '#src/observe/metrics.ts';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

type Alert = {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
};
type Panel = { readonly title: string; readonly targets: readonly { readonly expr: string }[] };

const alerts: readonly Alert[] = parse(read('ops/alerts.yaml')).groups.flatMap(
  ({ rules }: { rules: Alert[] }) => rules,
);
const panels: readonly Panel[] = JSON.parse(read('ops/grafana-dashboard.json')).panels;

/** The labels of each series of /metrics, by name. */
const SERIES = new Map(
  createMetrics()
    .registry.getMetricsAsArray()
    .flatMap((metric) => {
      const {
        name,
        type,
        labelNames = [],
      } = metric as unknown as {
        name: string;
        type: string;
        labelNames?: readonly string[];
      };
      const labels = new Set(['job', 'instance', ...labelNames]);
      if (type !== 'histogram') return [[name, labels] as const];
      return [
        [`${name}_count`, labels] as const,
        [`${name}_sum`, labels] as const,
        [`${name}_bucket`, new Set([...labels, 'le'])] as const,
      ];
    }),
);
// Prometheus creates this series for each target.
SERIES.set('up', new Set(['job', 'instance']));

/** Finds faults in an expression, according to Prometheus's grammar and the existing metrics. */
function faultsOf(expression: string): string[] {
  // Grafana's variable stands for a duration.
  const text = expression.replaceAll('$__rate_interval', '5m');
  const faults: string[] = [];
  const names: string[] = [];
  const labels: string[] = [];
  parser.parse(text).iterate({
    enter({ type, from, to }) {
      const token = text.slice(from, to);
      if (type.isError) faults.push(`syntax at ${from}`);
      if (type.name === 'Identifier' && /^[a-z_:]+[a-z0-9_:]*$/.test(token)) names.push(token);
      if (type.name === 'LabelName') labels.push(token);
    },
  });
  faults.push(...names.filter((name) => !SERIES.has(name)).map((name) => `no metric ${name}`));
  const known = new Set(names.flatMap((name) => [...(SERIES.get(name) ?? [])]));
  faults.push(...labels.filter((label) => !known.has(label)).map((label) => `no label ${label}`));
  if (names.length === 0) faults.push('no metric at all');
  return faults;
}

it('an expression with an unknown metric, an unknown label or a syntax error is reported', () => {
  expect(faultsOf('sum(rate(payments_totals[5m]))')).toContain('no metric payments_totals');
  expect(faultsOf('sum by (bank) (payments_total)')).toEqual(['no label bank']);
  expect(faultsOf('sum(payments_total{shop="a"})')).toEqual(['no label shop']);
  expect(faultsOf('sum(payments_total')).toContainEqual(expect.stringMatching('syntax'));
  expect(faultsOf('request_seconds > 1')).toContain('no metric request_seconds');
});

it('every alert uses existing metrics and labels', () => {
  expect(alerts.length).toBeGreaterThan(15);
  expect(alerts.map(({ alert, expr }) => [alert, faultsOf(expr)])).toEqual(
    alerts.map(({ alert }) => [alert, []]),
  );
});

it('every alert has a severity, a summary with existing labels, and its own section in docs/alerts.md', () => {
  const headings = [...read('docs/alerts.md').matchAll(/^## (\S+)$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual(alerts.map(({ alert }) => alert));
  for (const { alert, expr, labels, annotations } of alerts) {
    expect(annotations.runbook_url).toBe(`docs/alerts.md#${alert.toLowerCase()}`);
    expect(['page', 'ticket']).toContain(labels.severity);
    for (const [, label = ''] of annotations.summary.matchAll(/\$labels\.(\w+)/g)) {
      const isKept =
        label === 'instance'
          ? !/\b(sum|max)\b/.test(expr)
          : new RegExp(`by \\([^)]*\\b${label}\\b`).test(expr);
      expect([alert, label, isKept]).toEqual([alert, label, true]);
    }
  }
});

it('every dashboard panel uses existing metrics and labels and has its own position', () => {
  expect(panels.length).toBeGreaterThan(15);
  for (const { title, targets } of panels) {
    for (const { expr } of targets) expect([title, expr, faultsOf(expr)]).toEqual([title, expr, []]);
  }
  const places = panels.map((panel) => JSON.stringify((panel as Panel & { gridPos: unknown }).gridPos));
  expect(new Set(places).size).toBe(panels.length);
});
