/** Ids at the provider that the outcome of a payment refers to. */
export type Reference = {
  /** The page that the payer was sent to. */
  readonly preferenceId: string | undefined;
  /** The payment that decided, or that is being decided. */
  readonly paymentId: string | undefined;
};

/** Matches ids of preferences. */
export const PREFERENCE_ID = /^[A-Za-z0-9-]{1,128}$/;
const FORM = /^([A-Za-z0-9-]{0,128})(?:\/(\d{1,20}))?$/;

/** Writes a reference as the core keeps it: `<preference>`, or `<preference>/<payment>`. */
export function formatReference({ preferenceId = '', paymentId }: Reference): string {
  return paymentId === undefined ? preferenceId : `${preferenceId}/${paymentId}`;
}

/** Reads a reference that an outcome told. */
export function parseReference(reference: string | undefined): Reference {
  const [, preferenceId, paymentId] = FORM.exec(reference ?? '') ?? [];
  return { preferenceId: preferenceId || undefined, paymentId };
}
