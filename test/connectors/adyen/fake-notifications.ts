import { createHmac } from 'node:crypto';

export const FAKE_ACCOUNT = 'ShopECOM';
export const FAKE_HMAC_KEY = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056';

/** An event that the fake reports. */
export type Item = {
  eventCode: string;
  success: boolean | string;
  psp: string;
  original?: string;
  reference: string;
};

/** A notification as Adyen posts it, signed with the fake's key. */
export function notificationOf(
  { eventCode, success, psp, original, reference }: Item,
  amount: { value: number; currency: string },
  more: object = {},
  { hmacKey = FAKE_HMAC_KEY, data = {} }: { hmacKey?: string; data?: object } = {},
): string {
  const { value, currency } = amount;
  const signed = [psp, original ?? '', FAKE_ACCOUNT, reference, value, currency, eventCode, success].join(
    ':',
  );
  const hmacSignature = createHmac('sha256', Buffer.from(hmacKey, 'hex')).update(signed).digest('base64');
  const item = {
    additionalData: { ...data, hmacSignature },
    amount,
    eventCode,
    eventDate: '2026-11-22T02:00:00+01:00',
    merchantAccountCode: FAKE_ACCOUNT,
    merchantReference: reference,
    ...(original !== undefined && { originalReference: original }),
    paymentMethod: 'visa',
    pspReference: psp,
    reason: '',
    success: String(success),
    ...more,
  };
  return JSON.stringify({ live: 'false', notificationItems: [{ NotificationRequestItem: item }] });
}
