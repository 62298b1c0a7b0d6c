import { createHmac } from 'node:crypto';
import { inspect } from 'node:util';

/**
 * A value that must stay secret: a card number, a security code, a key. However it is printed (template string, JSON,
 * console, inspect), only "[secret]" appears. Only `reveal` returns the value, so a search for `reveal(` finds every
 * use.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  /** Returns true if the values are equal. */
  equals(other: Secret): boolean {
    return this.#value === other.#value;
  }

  /** Returns a keyed digest (HMAC-SHA-256, 64 bits in hex), which distinguishes secrets without revealing them. */
  digest(key: Uint8Array): string {
    return createHmac('sha256', key).update(this.#value).digest('hex').slice(0, 16);
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}
