import type { HttpRequest, HttpResult } from '../kit/http-client.ts';
import { approvedOutcome } from '../kit/provider-answer.ts';
import type { WalletEnrollment } from '../port/enrollment.ts';
import type { Outcome } from '../port/outcome.ts';
import {
  type Asked,
  type ReadOutcome,
  readLookUp,
  readRefusal,
  readResult,
  redirectTo,
} from './read-answer.ts';
import type { SandboxSettings } from './settings.ts';
import { payerOf, postRequest } from './to-provider.ts';

/** Builds the request for a payer's agreement to later charges of a wallet. */
export function agreementRequest(enrollment: WalletEnrollment, settings: SandboxSettings): HttpRequest {
  const isNotified = settings.notificationSecrets.length > 0 && enrollment.notificationUrl !== '';
  return postRequest(settings, '/v1/wallet-agreements', enrollment.enrollmentId, {
    wallet: enrollment.type,
    country: enrollment.country || undefined,
    payer: payerOf(enrollment.customerPayer),
    return_url: enrollment.returnUrl,
    notification_url: isNotified ? enrollment.notificationUrl : undefined,
    expires_at: new Date(enrollment.expiresAtMs).toISOString(),
  });
}

/** Reads the outcome of the request from its HTTP result. */
export function fromAgreement(result: HttpResult, enrollmentId: string, providerId: string): Outcome {
  return readResult(result, askedOf(enrollmentId), providerId, readAgreement);
}

/** Reads the outcome of an agreement from the result of its look-up. */
export function fromAgreementLookUp(result: HttpResult, enrollmentId: string, providerId: string): Outcome {
  return readLookUp(result, askedOf(enrollmentId), providerId, readAgreement);
}

function askedOf(enrollmentId: string): Asked {
  return { idempotencyKey: enrollmentId, money: undefined, object: 'wallet_agreement' };
}

const readAgreement: ReadOutcome = ({ status, agreement_url, wallet_token }, reported) => {
  switch (status) {
    case 'created':
      return redirectTo(agreement_url, reported);
    case 'agreed':
      if (wallet_token === undefined) return undefined;
      return { ...approvedOutcome(reported), enrolledToken: wallet_token };
    default:
      return readRefusal(status, reported);
  }
};
