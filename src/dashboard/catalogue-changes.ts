import { toJson } from '@bufbuild/protobuf';
import { type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import type { CatalogueChange, CatalogueFault } from '#gen/payments/v1/configuration_service_pb.js';
import { changedFees } from '#src/catalogue/compare-catalogues.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { badge, shortened } from './show.ts';

/** Limits on the rows and the characters of a value that a page shows. */
const MAX_ROWS = 200;
const MAX_VALUE_LENGTH = 2_000;

/** Renders the differences between two catalogues. */
export function changeTable(changes: readonly CatalogueChange[]): Html {
  if (changes.length === 0) return html`<p>Nothing changes.</p>`;
  const rows = changes
    .slice(0, MAX_ROWS)
    .map(
      ({ path, kind, before, after }) =>
        html`<tr><th scope="row" class="long"><code>${shortened(path, 300)}</code></th><td>${badge(kind)}</td><td class="long">${value('Before', path, before)}</td><td class="long">${value('After', path, after)}</td></tr>`,
    );
  const more = changes.length - MAX_ROWS;
  return html`<table class="lines changes"><thead><tr><th scope="col">Where</th><th scope="col">Change</th><th scope="col">Before</th><th scope="col">After</th></tr></thead><tbody>${rows}</tbody></table>${more > 0 ? html`<p class="quiet">And ${more} more.</p>` : NOTHING}`;
}

function value(name: string, path: string, json: Value | undefined): Html {
  if (!json) return NOTHING;
  const told = toJson(ValueSchema, json);
  const text = changedFees(path, told) ?? (typeof told === 'string' ? told : JSON.stringify(told, null, 1));
  return html`<span class="narrow quiet">${name}: </span><code>${shortened(text, MAX_VALUE_LENGTH)}</code>`;
}

/** Renders everything that is wrong or doubtful in a changed catalogue. */
export function faultList(faults: readonly CatalogueFault[]): Html {
  if (faults.length === 0) return html`<p>None were found.</p>`;
  const rows = faults
    .slice(0, MAX_ROWS)
    .map(
      ({ path, message, severity }) =>
        html`<li class="${severity === 'ERROR' ? 'bad' : 'open'}"><h3>${badge(severity)} <code class="long">${shortened(path || 'the catalogue', 300)}</code></h3><p>${shortened(message, 1_000)}</p></li>`,
    );
  return html`<ol class="timeline">${rows}</ol>`;
}

/** Renders a condition with a mark below the place of its fault. */
export function markedCondition(condition: string, { line, column }: { line: number; column: number }): Html {
  const lines = condition.split('\n');
  const marked = [
    ...lines.slice(0, line),
    `${' '.repeat(Math.max(0, column - 1))}^ line ${line}, column ${column}`,
    ...lines.slice(line),
  ];
  return html`<pre class="marked" tabindex="0">${marked.join('\n')}</pre>`;
}
