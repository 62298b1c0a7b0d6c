import {
  CreateCheckoutTokenRequestSchema,
  CreateTokenRequestSchema,
  type TokenService,
} from '#gen/payments/v1/token_service_pb.js';
import { createCheckoutToken, createToken, type TokenDeps } from '#src/customers/one-time-tokens.ts';
import { accountOf, type Caller } from '#src/payments/caller.ts';
import { createdResponse } from './customer-service.ts';
import { requireValidOf } from './require-valid.ts';
import type { ServiceHandlers } from './rest.ts';

const validCreate = requireValidOf(CreateTokenRequestSchema);
const validCheckout = requireValidOf(CreateCheckoutTokenRequestSchema);

/** The handlers of payments.v1.TokenService, the same for every protocol. */
export function tokenService(deps: TokenDeps): ServiceHandlers<typeof TokenService, Caller> {
  return {
    async createToken(request, caller) {
      accountOf(caller);
      return createdResponse(await createToken(deps, validCreate(request), caller));
    },
    async createCheckoutToken(request, caller) {
      return createdResponse(await createCheckoutToken(deps, validCheckout(request), caller));
    },
  };
}
