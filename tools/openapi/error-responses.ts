import { ERROR_DOMAIN } from '#src/api/errors.ts';
import { FIELD_CODES, REASONS, type Reason } from '#src/service-error.ts';
import type { Json } from './field-rules.ts';

/** Advice from docs/errors.md about a reason for a refusal. */
export type ErrorAdvice = { readonly when: string; readonly whatToDo: string };

/** Reads the table of docs/errors.md: every reason for refusing a call. */
export function readErrorAdvice(markdown: string): ReadonlyMap<string, ErrorAdvice> {
  const rows = markdown.matchAll(/^\| `([A-Z_]+)` \|(.*)\|$/gm);
  return new Map(
    [...rows].map(([, reason = '', cells = '']) => {
      const [, , when = '', , whatToDo = ''] = cells.split('|').map((cell) => withoutLinks(cell.trim()));
      return [reason, { when, whatToDo }];
    }),
  );
}

/** Removes links, since links between documents do not work in the reference. */
function withoutLinks(markdown: string): string {
  return markdown.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1');
}

/** Reason phrases of RFC 9110 for the statuses of refusals. */
const STATUS_WORDS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

function wordsOf(status: number): string {
  const words = STATUS_WORDS[status];
  if (words === undefined)
    throw new Error(`HTTP status ${status} has no reason phrase in error-responses.ts`);
  return words;
}

/** Returns the name of the response component for an HTTP status, such as NotFound. */
export function errorResponseName(status: number): string {
  return wordsOf(status).replaceAll(' ', '');
}

/** Statuses of refusals that have a Retry-After header. */
const TELLING_WHEN: ReadonlySet<number> = new Set([409, 429, 503]);

/** Returns a response component for each HTTP status of a refusal, with the reasons, advice, and an example of each. */
export function errorResponses(advice: ReadonlyMap<string, ErrorAdvice>): Record<string, Json> {
  // METHOD_NOT_ALLOWED belongs to no operation of the document.
  const told = (Object.keys(REASONS) as Reason[]).filter((reason) => reason !== 'METHOD_NOT_ALLOWED');
  const byStatus = Map.groupBy(told, (reason) => REASONS[reason].status);
  const entries = [...byStatus].map(([status, reasons]) => {
    const lines = reasons.map((reason) => {
      const { when = '', whatToDo = '' } = advice.get(reason) ?? {};
      return `- \`${reason}\`: ${when} ${whatToDo}`;
    });
    const response = {
      description: `${wordsOf(status)}. The codes with this status, for all calls:\n\n${lines.join('\n')}`,
      headers: {
        'x-request-id': { $ref: '#/components/headers/RequestId' },
        ...(TELLING_WHEN.has(status) && { 'retry-after': { $ref: '#/components/headers/RetryAfter' } }),
      },
      content: {
        'application/problem+json': {
          schema: { $ref: '#/components/schemas/Problem' },
          examples: Object.fromEntries(
            reasons.map((reason) => [
              reason,
              { summary: REASONS[reason].title, value: example(reason, advice) },
            ]),
          ),
        },
      },
    };
    return [errorResponseName(status), response] as const;
  });
  return Object.fromEntries(entries);
}

function example(reason: Reason, advice: ReadonlyMap<string, ErrorAdvice>): Json {
  const { status, title } = REASONS[reason];
  const isOfFields = reason === 'INVALID_PARAMETERS';
  const detail = isOfFields ? 'amount.value: must be above zero' : (advice.get(reason)?.when ?? title);
  return {
    type: 'about:blank',
    title,
    status,
    detail,
    code: reason,
    messages: [detail],
    errors: isOfFields
      ? [{ field: 'amount.value', code: 'OUT_OF_RANGE', message: 'must be above zero' }]
      : [],
    request_id: '5a0e6bbd2c1f4e6c9b0d7a31',
  };
}

/** The schemas for a refusal. */
export const PROBLEM_SCHEMAS: Record<string, Json> = {
  Problem: {
    type: 'object',
    description:
      'A refused call (RFC 9457). Declines, unknown outcomes and unreachable providers are not refusals: ' +
      `the returned payment shows them. The rpc protocols carry the same information as \`google.rpc.ErrorInfo\` of the domain \`${ERROR_DOMAIN}\`.`,
    properties: {
      type: {
        type: 'string',
        const: 'about:blank',
        description: 'Always the same; `code` gives the reason.',
      },
      title: { type: 'string', description: '`code` in words.' },
      status: { type: 'integer', description: 'The HTTP status.' },
      detail: { type: 'string', description: 'What is wrong. It never repeats a value of the request.' },
      code: {
        type: 'string',
        enum: Object.keys(REASONS),
        description: 'The reason. Base decisions on this field.',
      },
      messages: {
        type: 'array',
        items: { type: 'string' },
        minItems: 1,
        description: 'A line for each faulty field, or `detail` alone.',
      },
      errors: {
        type: 'array',
        items: { $ref: '#/components/schemas/FieldError' },
        description: 'The faulty fields; empty if the refusal is not about a field.',
      },
      request_id: {
        type: 'string',
        description: 'The same as the header `x-request-id`: quote it to support.',
      },
    },
    required: ['type', 'title', 'status', 'detail', 'code', 'messages', 'errors', 'request_id'],
  },
  FieldError: {
    type: 'object',
    description: 'A faulty field.',
    properties: {
      field: { type: 'string', description: 'Its path, such as `additional_data.order.items[0].quantity`.' },
      code: { type: 'string', enum: FIELD_CODES, description: 'What is wrong with it.' },
      message: { type: 'string', description: 'The rule that the field breaks.' },
    },
    required: ['field', 'code', 'message'],
  },
};
