import { mayRetry, PaymentsError } from './errors.ts';
import { type Call, OPERATIONS, type Operations, type Problem } from './operations.ts';
import { type RetryOptions, withRetries } from './retry.ts';

export { type ErrorCode, type FieldFault, PaymentsError } from './errors.ts';
export type * from './operations.ts';

/** The service's URL, and the keys for its calls. */
export type ClientOptions = RetryOptions & {
  readonly baseUrl: string;
  /** Keys of an account. The secret belongs on servers only. */
  readonly publicApiKey?: string;
  readonly privateSecretKey?: string;
  /** Key of an operator. */
  readonly operatorKey?: string;
  /** Time that one try may take; 30,000 when absent. */
  readonly timeoutMs?: number;
  /** Replaces the platform's fetch. */
  readonly fetch?: typeof fetch;
};

/** Options for one call. */
export type CallOptions = {
  /**
   * Identifies the call: use one key for each thing that must happen only once, such as an order. Random when absent.
   */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
};

type Names = keyof Operations;
type Request<Name extends Names> = Operations[Name]['request'];
type Response<Name extends Names> = Operations[Name]['response'];

/** Every operation of the service, by name. Each throws PaymentsError. */
export type PaymentsClient = {
  readonly [Name in Names]: (request: Request<Name>, options?: CallOptions) => Promise<Response<Name>>;
} & {
  /** Reads a list page by page: `for await (const page of client.pages('listPayments', {}))`. */
  pages<Name extends Names>(name: Name, request: Request<Name>): AsyncGenerator<Response<Name>>;
};

/** Creates a client for the REST interface. It opens no connection, and need not be closed. */
export function createPaymentsClient(options: ClientOptions): PaymentsClient {
  const call = (name: Names, request: unknown, callOptions: CallOptions = {}) =>
    send(options, OPERATIONS[name], request as Members, callOptions);
  const operations = Object.fromEntries(
    (Object.keys(OPERATIONS) as Names[]).map((name) => [
      name,
      async (request: unknown, callOptions?: CallOptions) => (await call(name, request, callOptions)).body,
    ]),
  );
  async function* pages(name: Names, request: Members) {
    let next: Members | undefined = request;
    while (next) {
      const { body, nextPageToken }: Answered = await call(name, next);
      yield body;
      next = nextPageToken ? { ...request, page_token: nextPageToken } : undefined;
    }
  }
  return { ...operations, pages } as unknown as PaymentsClient;
}

type Members = Readonly<Record<string, unknown>>;
type Answered = { readonly body: unknown; readonly nextPageToken: string | undefined };

async function send(
  options: ClientOptions,
  call: Call,
  request: Members,
  { idempotencyKey, signal }: CallOptions,
): Promise<Answered> {
  const key = idempotencyKey ?? (call.takesKey ? crypto.randomUUID() : undefined);
  const isRepeatable = key !== undefined || call.verb === 'GET' || call.verb === 'DELETE';
  const { url, body } = write(options.baseUrl, call, request);
  const init = {
    method: call.verb,
    headers: headersOf(options, key, body),
    ...(body !== undefined && { body }),
  };
  return withRetries(
    () => once(options, url, init, key, signal),
    (error) =>
      error instanceof PaymentsError && mayRetry(error, isRepeatable) ? (error.retryAfterS ?? 0) : undefined,
    options,
    signal,
  );
}

/** Puts each member of a request where its operation expects it: in the path, the query string or the body. */
function write(
  baseUrl: string,
  { path, query, hasBody }: Call,
  request: Members,
): { url: string; body?: string } {
  const rest = { ...request };
  const filled = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => {
    const value = rest[name];
    if (value === undefined || value === '') throw new TypeError(`${name} is required`);
    delete rest[name];
    return encodeURIComponent(String(value));
  });
  const parameters = new URLSearchParams();
  for (const name of query) {
    if (rest[name] !== undefined && rest[name] !== null) parameters.set(name, String(rest[name]));
  }
  const url = `${baseUrl.replace(/\/+$/, '')}${filled}${parameters.size > 0 ? `?${parameters}` : ''}`;
  return hasBody ? { url, body: JSON.stringify(rest) } : { url };
}

function headersOf(
  options: ClientOptions,
  key: string | undefined,
  body: string | undefined,
): Record<string, string> {
  const { publicApiKey, privateSecretKey, operatorKey } = options;
  return {
    accept: 'application/json',
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(publicApiKey && { 'public-api-key': publicApiKey }),
    ...(privateSecretKey && { 'private-secret-key': privateSecretKey }),
    ...(operatorKey && { 'operator-key': operatorKey }),
    ...(key !== undefined && { 'x-idempotency-key': key }),
  };
}

async function once(
  { timeoutMs = 30_000, fetch: send = fetch }: ClientOptions,
  url: string,
  init: RequestInit,
  idempotencyKey: string | undefined,
  signal: AbortSignal | undefined,
): Promise<Answered> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const either = signal ? AbortSignal.any([signal, timeout]) : timeout;
  let response: globalThis.Response;
  let text: string;
  try {
    response = await send(url, { ...init, signal: either });
    text = await response.text();
  } catch (cause) {
    throw new PaymentsError(
      'NO_RESPONSE',
      'there was no response; repeat the call with the same key to learn what happened',
      {
        idempotencyKey,
        cause,
      },
    );
  }
  const body = parse(text);
  if (!response.ok) throw refusal(response, body, idempotencyKey);
  if (body === undefined && text !== '') throw unreadable(response, idempotencyKey);
  return { body, nextPageToken: nextPage(response, body) };
}

function parse(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refusal(
  response: globalThis.Response,
  body: unknown,
  idempotencyKey: string | undefined,
): PaymentsError {
  const problem = body as Partial<Problem> | undefined;
  const details = { ...detailsOf(response), idempotencyKey };
  // The response came not from the service, but from something between it and us.
  if (typeof problem?.code !== 'string') {
    return response.status === 503 || response.status === 429
      ? new PaymentsError('SERVICE_UNAVAILABLE', `HTTP ${response.status}`, details)
      : unreadable(response, idempotencyKey);
  }
  return new PaymentsError(problem.code, problem.detail ?? problem.code, {
    ...details,
    errors: problem.errors ?? [],
  });
}

function unreadable(response: globalThis.Response, idempotencyKey: string | undefined): PaymentsError {
  const message = `HTTP ${response.status} with a body that did not come from the service`;
  return new PaymentsError('UNREADABLE_RESPONSE', message, { ...detailsOf(response), idempotencyKey });
}

function detailsOf({ status, headers }: globalThis.Response) {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return {
    status,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterS: Number.isFinite(seconds) ? seconds : undefined,
  };
}

/** The body names the next page or, if the body is only the list, the Link header does (RFC 8288). */
function nextPage({ headers }: globalThis.Response, body: unknown): string | undefined {
  const told = (body as { next_page_token?: string } | undefined)?.next_page_token;
  const link = /<([^>]*)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  return told || (link && new URL(link, 'http://relative').searchParams.get('page_token')) || undefined;
}
