/** Refusal of a call that had no effect. `message` and `param` name a field or a limit, never a value. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status. */
  readonly status: number;
  /** invalid_request, authentication, not_found, idempotency_conflict, unavailable. */
  readonly type: string;
  readonly param: string | undefined;

  constructor(status: number, type: string, message: string, param?: string) {
    super(message);
    this.status = status;
    this.type = type;
    this.param = param;
  }
}

/** Builds the body of an error response. */
export function errorBody(type: string, message: string, param?: string): object {
  return { error: { type, message, param: param ?? null } };
}
