import type { DescService } from '@bufbuild/protobuf';
import { SAMPLE_KEY } from '#src/web/reference-page.ts';
import { commentOf } from './descriptors.ts';
import { type ErrorAdvice, errorResponses, PROBLEM_SCHEMAS } from './error-responses.ts';
import { EVENT_SCHEMA, EVENT_WEBHOOK } from './event-webhook.ts';
import type { Examples } from './examples.ts';
import type { Json } from './field-rules.ts';
import { messageSchemas } from './message-schemas.ts';
import { pathsOf, tagOf } from './operations.ts';

/** Sources of the document. */
export type OpenApiSources = {
  readonly version: string;
  readonly services: readonly DescService[];
  readonly examples: Examples;
  readonly errors: ReadonlyMap<string, ErrorAdvice>;
};

/**
 * Describes services as REST serves them, in OpenAPI 3.1: paths come from google.api.http, schemas from the messages
 * and their rules (buf.validate), descriptions from the comments. New services need no change here.
 *
 * @throws Error for anything that the document cannot express.
 */
export function openApiDocument({ version, services, examples, errors }: OpenApiSources): Json {
  const schemas = messageSchemas(services);
  const paths = pathsOf(services, schemas, examples);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Payments service',
      version,
      summary: 'One request makes a payment, which is routed to a provider, recorded, and returned in full.',
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The server of this document.' }],
    security: [{ 'public-api-key': [], 'private-secret-key': [] }],
    tags: services.map((service) => ({ name: tagOf(service), description: commentOf(service) })),
    paths,
    webhooks: { event: EVENT_WEBHOOK },
    components: {
      securitySchemes: SECURITY_SCHEMES,
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: errorResponses(errors),
      examples: examples.components,
      schemas: sorted({ ...schemas.components, ...PROBLEM_SCHEMAS, Event: EVENT_SCHEMA }),
    },
  };
}

const INTRODUCTION = `This document describes every call in REST JSON. The same calls are available over Connect, gRPC and gRPC-Web on the same port.

- **Keys.** Merchants send \`public-api-key\` and \`private-secret-key\`; operators send \`operator-key\`.
- **Retries.** Send a new \`x-idempotency-key\` with each new payment, and the same one when you repeat a call. A repeat gets the first response again, and nothing is charged twice.
- **Outcomes.** Declines and unknown outcomes are not errors: the returned payment shows them. Treat \`PENDING\` as undecided.
- **JSON.** Amounts are numbers with their currency's decimal places; requests may send them as strings of digits. \`null\` means absent. Unknown fields are ignored. Later versions may add fields, enum values and codes: be prepared for ones that you do not know.

More about [errors](/docs/errors), [webhooks](/docs/webhooks), [retries](/docs/retries) and [limits](/docs/limits).`;

const SECURITY_SCHEMES: Record<string, Json> = {
  'public-api-key': {
    type: 'apiKey',
    in: 'header',
    name: 'public-api-key',
    description: 'Identifies your account. It may appear in a web page.',
  },
  'private-secret-key': {
    type: 'apiKey',
    in: 'header',
    name: 'private-secret-key',
    description: 'Belongs on your servers only.',
  },
  'operator-key': {
    type: 'apiKey',
    in: 'header',
    name: 'operator-key',
    description: 'Grants access to the calls for operators, but to no account.',
  },
};

const IDEMPOTENCY_KEY: Json = {
  name: 'x-idempotency-key',
  in: 'header',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
};

const PARAMETERS: Record<string, Json> = {
  IdempotencyKey: {
    ...IDEMPOTENCY_KEY,
    required: true,
    description:
      'Identifies the call: 1 to 255 printable ASCII characters, new for each new request. The same key with the same request gets the first response again.',
    example: SAMPLE_KEY,
  },
  OptionalIdempotencyKey: {
    ...IDEMPOTENCY_KEY,
    description:
      'Identifies the call: the same key with the same request gets the first response again. Without it, `merchant_reference` identifies a capture, cancel or refund; any other call counts as a new one.',
  },
};

const HEADERS: Record<string, Json> = {
  RequestId: {
    description: 'Identifies the call: quote it to support.',
    required: true,
    schema: { type: 'string' },
  },
  IdempotentReplayed: {
    description: 'Present only if this response repeats the first one.',
    schema: { type: 'string', const: 'true' },
  },
  Location: {
    description: 'The path of the new resource.',
    schema: { type: 'string', format: 'uri-reference' },
  },
  Link: {
    description:
      'The next page (RFC 8288), as `<…>; rel="next"`, relative to the URL called. Absent on the last page.',
    schema: { type: 'string' },
  },
  RetryAfter: {
    description: 'Seconds to wait before a retry.',
    schema: { type: 'integer', minimum: 0 },
  },
};

function sorted(members: Readonly<Record<string, Json>>): Record<string, Json> {
  return Object.fromEntries(Object.entries(members).sort(([one], [other]) => (one < other ? -1 : 1)));
}
