import { readFileSync } from 'node:fs';
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type { Decimal } from '#gen/google/type/decimal_pb.js';
import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import {
  ExplainRouteResponse_Choice as Choice,
  type ExplainRouteResponse,
} from '#gen/payments/v1/operator_service_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { type RoutingFacts, RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { BODY_LIMIT_BYTES } from '#src/api/body-limit.ts';
import { requireValid } from '#src/api/require-valid.ts';
import { readPublished } from '#src/catalogue/publish-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { systemClock } from '#src/clock.ts';
import { readCatalogueFile, readConfig, SANDBOX_CATALOGUE } from '#src/config.ts';
import { type ExplainedCatalogue, explainRoute } from '#src/payments/route/explain-route.ts';
import { ALL_CLOSED, routingCatalogue } from '#src/payments/route/routing-catalogue.ts';
import { ServiceError } from '#src/service-error.ts';
import { canonicalize } from '#src/wire/canonical-message.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess, UsageError } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';

const USAGE = `Usage: npm run route -- <request.json> [--key <idempotency key>] [--catalogue <file> | --version <number>]

Shows which route and targets a payment would take, and why each earlier route did not match. It sends nothing and
needs no running service and, without --version, no database.

  <request.json>   the body of a POST /v1/payments, such as test/scenarios/05-card-authorization/request.json
  --key            the payment's idempotency key, which determines a SPLIT's choice
  --catalogue      the catalogue file, instead of CATALOGUE_FILE or the sandbox's
  --version        a published version of the catalogue, which the database has`;

const ASSUMPTIONS =
  'Assumes that every circuit is closed, that every connection supports the request, and that no approval rate is known. Ask the running service (OperatorService.ExplainRoute) for its actual state.';

/** Error for a route that cannot be explained. The message gives the reason. */
class RouteError extends Error {}

const OPTIONS = {
  key: { type: 'string' },
  catalogue: { type: 'string' },
  version: { type: 'string' },
} as const;

const decode = jsonDecoder(CreatePaymentRequestSchema);

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const { positionals, values } = parseArguments(
    argv,
    { allowPositionals: true, options: OPTIONS },
    io.environment,
  );
  const [file] = positionals;
  if (file === undefined || positionals.length > 1) throw new UsageError('Exactly one request is required.');
  const { catalogue: named, version, key: idempotencyKey = '' } = values;
  if (named !== undefined && version !== undefined) {
    throw new UsageError('Only one of --catalogue and --version may be set.');
  }
  const catalogue =
    version === undefined
      ? closedCatalogue(readCatalogue(named ?? readCatalogueFile(io.environment) ?? SANDBOX_CATALOGUE), 0)
      : await versionFromDatabase(version, io);
  const explanation = refusedIn(file, () =>
    explainRoute(catalogue, readRequest(file), { idempotencyKey, time: systemClock()() }),
  );
  io.stdout.write(`${explanationText(explanation)}\n`);
  if (explanation.targets.length === 0) throw new RouteError('No route accepts this payment.');
  return 0;
}

/** Reads a published version. @throws UsageError, RouteError. */
async function versionFromDatabase(text: string, io: CommandIo): Promise<ExplainedCatalogue> {
  const version = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (version === 0) throw new UsageError('--version must be the number of a version.');
  return withDatabase(readConfig(io.environment), io, async ({ database }) => {
    const published = await readPublished(database, version);
    if (!published) throw new RouteError(`There is no version ${version} of the catalogue.`);
    return closedCatalogue(published.catalogue, version);
  });
}

/** @throws the ServiceError with which the service would refuse the request. */
function readRequest(file: string): CreatePaymentRequest {
  let body: Uint8Array;
  try {
    body = readFileSync(file);
  } catch (error) {
    throw new RouteError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  if (body.length > BODY_LIMIT_BYTES)
    throw new RouteError(`${file} is larger than ${BODY_LIMIT_BYTES} bytes`);
  const request = decode(parseJson(body));
  canonicalize(CreatePaymentRequestSchema, request);
  requireValid(request);
  return request;
}

function refusedIn<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const faults = error.fields.map(({ field, message }) => `  ${field}: ${message}`);
    const lines = faults.length > 0 ? faults : [`  ${error.message}`];
    throw new RouteError([`${file} is refused (${error.reason}):`, ...lines].join('\n'));
  }
}

/** Creates a catalogue without open connections. All connections count as healthy, and none has a history. */
function closedCatalogue(catalogue: Catalogue, version: number): ExplainedCatalogue {
  const guarded = catalogue.connections.filter(({ circuitBreaker }) => !circuitBreaker?.off);
  return {
    ...routingCatalogue(catalogue, new Map()),
    ...{ version, signals: ALL_CLOSED },
    health: new Map(guarded.map(({ id }) => [id, { state: () => 'CLOSED' }])),
  };
}

function explanationText(explanation: ExplainRouteResponse): string {
  const { facts, routes, targets, notes, catalogueVersion } = explanation;
  const paragraphs = [
    ...(catalogueVersion > 0 ? [[`By version ${catalogueVersion} of the catalogue`]] : []),
    ['Facts', ...(facts ? factLines(facts) : [])],
    ['Routes', ...routes.map(({ id, name, whyNot }) => `  ${id}  ${name}: ${whyNot || 'TAKEN'}`)],
    ...(targets.length > 0 ? [targetLines(explanation), [failoverText(explanation)]] : []),
    [...notes, ASSUMPTIONS],
  ];
  return paragraphs.map((lines) => lines.join('\n')).join('\n\n');
}

function factLines(facts: RoutingFacts): string[] {
  const width = Math.max(...RoutingFactsSchema.fields.map(({ name }) => name.length));
  return RoutingFactsSchema.fields.map(({ name, localName }) => {
    const value = facts[localName as keyof RoutingFacts] as string | number | boolean | Decimal | Timestamp;
    return `  ${name.padEnd(width)}  ${factText(value)}`;
  });
}

function factText(value: string | number | boolean | Decimal | Timestamp): string {
  if (typeof value !== 'object') return JSON.stringify(value);
  return 'nanos' in value ? timestampDate(value).toISOString() : value.value;
}

function targetLines({ choice, accountOverride, targets }: ExplainRouteResponse): string[] {
  const total = targets.reduce((sum, { weight = 0 }) => sum + weight, 0);
  const whose = accountOverride ? ' of this account' : '';
  return [
    `Targets${whose}, in the order for this payment (${Choice[choice]})`,
    ...targets.map(({ connection, weight }, i) => {
      const share = weight === undefined ? '' : `  ${Number(((100 * weight) / total).toFixed(1))} %`;
      return `  ${i + 1}  ${connection?.id}  ${connection?.name}${share}`;
    }),
  ];
}

function failoverText({ maxAttempts, softDeclines }: ExplainRouteResponse): string {
  if (maxAttempts === 1) return 'Failover: none; there is one attempt.';
  const after = softDeclines ? 'when nothing was sent and after a soft decline' : 'when nothing was sent';
  return `Failover: up to ${maxAttempts} attempts. The next target is tried ${after}, but never after a hard decline or an unknown outcome.`;
}

/** Runs the command. */
export const run = createCommand(USAGE, main, (error) =>
  error instanceof RouteError ? error.message : `Not done: ${explainFailure(error)}`,
);

if (import.meta.main) await runAsProcess(run);
