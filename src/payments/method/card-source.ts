import { fromBinary } from '@bufbuild/protobuf';
import { type CardDataInput, CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { StoredToken } from '#src/store/tables/one-time-tokens.ts';
import type { VaultedToken } from '#src/store/tables/stored-objects.ts';

/** The source of a payment's card. */
export type CardSource =
  | { readonly source: 'sent'; readonly input: CardDataInput }
  | {
      readonly source: 'stored';
      /** undefined if the stored methods were not looked up. */
      readonly stored: VaultedToken | undefined;
      /** The security code that the payer re-entered; '' if none was sent. */
      readonly securityCode: string;
    }
  | { readonly source: 'token'; readonly token: StoredToken | undefined };

/** Returns true if a payment's card comes with its security code. A token that was not looked up may have one. */
export function hasSecurityCode(card: CardSource): boolean {
  switch (card.source) {
    case 'sent':
      return card.input.securityCode !== '';
    case 'stored':
      return card.securityCode !== '';
    case 'token':
      return !card.token || fromBinary(CardDataSchema, card.token.card).securityCodeLength !== 0;
  }
}
