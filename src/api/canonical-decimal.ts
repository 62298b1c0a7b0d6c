import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { DecimalSchema } from '../../gen/google/type/decimal_pb.js';

const DECIMAL = /^(-?)0*(\d+?)(?:\.(\d+))?$/;
const MAX_LENGTH = 64;

/**
 * The one spelling of a decimal `-?digits[.digits]` of up to 64 characters: no zeros before or after that say nothing,
 * no minus before zero. `"007.50"` is `"7.5"`, `"-0.0"` is `"0"`.
 *
 * @returns undefined when the text is no such decimal.
 */
export function canonicalDecimal(text: string): string | undefined {
  const match = text.length <= MAX_LENGTH ? DECIMAL.exec(text) : null;
  if (!match) return undefined;
  const [, sign = '', whole = '', given = ''] = match;
  const fraction = given.replace(/0+$/, '');
  if (whole === '0' && fraction === '') return '0';
  return fraction === '' ? sign + whole : `${sign}${whole}.${fraction}`;
}

/** Writes every decimal in a message canonically, in place; one that is no decimal stays, for validation to refuse. */
export function canonicalizeDecimals(desc: DescMessage, message: Message): void {
  walker(desc)(message as Record<string, unknown> & Message);
}

type Walk = (message: Record<string, unknown>) => void;

const walkers = new WeakMap<DescMessage, Walk>();

/** The walk of a message type, made once: only fields below which there is a decimal are visited. */
function walker(desc: DescMessage): Walk {
  const known = walkers.get(desc);
  if (known) return known;
  const steps: Walk[] = [];
  const walk: Walk = (message) => {
    for (const step of steps) step(message);
  };
  // Registered before its fields, so that a recursive type finds itself.
  walkers.set(desc, walk);
  if (desc.typeName === DecimalSchema.typeName) {
    steps.push((decimal) => {
      decimal.value = canonicalDecimal(String(decimal.value)) ?? decimal.value;
    });
    return walk;
  }
  for (const field of desc.fields) {
    if (!field.message || !holdsDecimal(field.message, new Set())) continue;
    steps.push(fieldStep(field, walker(field.message)));
  }
  return walk;
}

function fieldStep(field: DescField, walk: Walk): Walk {
  const { localName, oneof } = field;
  return (message) => {
    const holder = oneof ? (message[oneof.localName] as { case?: string; value?: unknown }) : undefined;
    const value = holder ? (holder.case === localName ? holder.value : undefined) : message[localName];
    if (Array.isArray(value)) for (const element of value) walk(element);
    else if (value) walk(value as Record<string, unknown>);
  };
}

function holdsDecimal(desc: DescMessage, seen: Set<DescMessage>): boolean {
  if (desc.typeName === DecimalSchema.typeName) return true;
  if (seen.has(desc)) return false;
  seen.add(desc);
  return desc.fields.some(
    (field) => field.fieldKind !== 'map' && field.message && holdsDecimal(field.message, seen),
  );
}
