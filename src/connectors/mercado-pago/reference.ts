/** Provider ids behind a payment's outcome. */
export type Reference = {
  /** The page to which the payer was sent. */
  readonly preferenceId: string | undefined;
  /** The payment that decided the outcome, or is still undecided. */
  readonly paymentId: string | undefined;
};

/** Matches ids of preferences. */
export const PREFERENCE_ID = /^[A-Za-z0-9-]{1,128}$/;
const FORM = /^([A-Za-z0-9-]{0,128})(?:\/(\d{1,20}))?$/;

/** Formats a reference for the core: `<preference>`, or `<preference>/<payment>`. */
export function formatReference({ preferenceId = '', paymentId }: Reference): string {
  return paymentId === undefined ? preferenceId : `${preferenceId}/${paymentId}`;
}

/** Parses the reference of an outcome. */
export function parseReference(reference: string | undefined): Reference {
  const [, preferenceId, paymentId] = FORM.exec(reference ?? '') ?? [];
  return { preferenceId: preferenceId || undefined, paymentId };
}
