import type { Edit } from '../support/plant.ts';
import type { Invariant } from './invariants.ts';

/** A fault that is planted in a copy of the service to check that a run finds it. */
export type Plant = Edit & {
  /** The cases that must find the fault. */
  readonly cases: readonly string[];
  /** The invariants that must be violated: any other failure of a planted service proves nothing. */
  readonly violates: readonly Invariant[];
};

export const PLANTS: Readonly<Record<string, Plant>> = {
  'no-recovery': {
    file: 'src/store/engine/due-work.ts',
    find: "among: ['connection_id', 'connection_identity']",
    replacement: "among: ['connection_id', 'CASE WHEN awaits_payer THEN connection_identity END']",
    cases: ['killed after sending, before the answer'],
    violates: ['I2'],
  },
  'no-version': {
    file: 'src/payments/write-change.ts',
    find: "if (written === 'outdated') {",
    replacement: `if (written === 'outdated') {
    for (let version = own.version + 1; version < 9; version++) {
      for (let fence = 0; fence < 9; fence++) {
        const forced = await write(deps, { ...own, fence }, version, change);
        if (typeof forced !== 'string') return forced;
      }
    }`,
    cases: ['two replicas: one stopped past its lease, then continued'],
    violates: ['I5'],
  },
  'recovery-tells-nothing': {
    file: 'src/payments/write-change.ts',
    find: 'paymentId, version, event,',
    replacement: "paymentId, version, event: event && fence > 0 ? '' : event,",
    cases: ['killed after sending, before the answer'],
    violates: ['I10'],
  },
  'tell-own-outcome': {
    file: 'src/payments/create/create-payment.ts',
    find: 'isWritten && !written.earlier',
    replacement: 'isWritten',
    cases: ['a replica pauses before commit 2 while another stores an unknown outcome'],
    violates: ['I4', 'I11'],
  },
  'compare-releases': {
    file: 'src/payments/keys/replay.ts',
    find: '!isComparable || areEqual',
    replacement: 'areEqual',
    cases: ['a rolling release: answered, and replayed at a release that knows another field'],
    violates: ['told'],
  },
  'claim-after-send': {
    file: 'src/payments/create/create-payment.ts',
    find: 'const holder = await claimKey(',
    replacement: `const { connectionId } = prepared.claim;
  const connection = prepared.catalogue.connections.get(connectionId);
  const early = await connection.pay(prepared.attempt);
  const connections = new Map(prepared.catalogue.connections);
  connections.set(connectionId, { ...connection, pay: async () => early });
  Object.assign(prepared, { catalogue: { ...prepared.catalogue, connections } });
  const holder = await claimKey(`,
    cases: ['100 at once: same key, same body', 'killed before the claim'],
    violates: ['I1', 'I2'],
  },
  'ask-any-account': {
    file: 'src/store/engine/due-work.ts',
    find: "among: ['connection_id', 'connection_identity']",
    replacement: "among: ['connection_id', 'coalesce($2::text, connection_identity)']",
    cases: ['look-ups: a connection re-pointed while the service was down'],
    violates: ['I2'],
  },
  'go-on-after-unknown': {
    file: 'src/payments/create/make-attempts.ts',
    find: "case 'unknown': return false;",
    replacement: "return false; case 'unknown': return true;",
    cases: ['failover: unknown at the first, the second is never used'],
    violates: ['I1', 'I7'],
  },
  'send-without-begin': {
    file: 'src/payments/create/make-attempts.ts',
    find: 'if (!isBegun) return last;',
    replacement: 'void isBegun;',
    cases: ['failover: the database refuses the next attempt'],
    violates: ['I2'],
  },
  'begin-without-fence': {
    file: 'src/payments/write-change.ts',
    find: "return typeof written !== 'string';",
    replacement: `if (typeof written !== 'string') return true;
  for (let version = 0; version < 9; version++) {
    for (let fence = 0; fence < 9; fence++) {
      const forced = await write(deps, { ...own, fence }, version, change);
      if (typeof forced !== 'string') return true;
    }
  }
  return false;`,
    cases: ['failover: stopped past its lease between the attempts, then continued'],
    violates: ['told'],
  },
  // The plan has already checked the limits; only the claim can stop a concurrent operation that exceeds them.
  'bounds-before-claim': {
    file: 'src/store/engine/claim-operation.ts',
    find: 'return onlyRow(await database.query<Row>(CLAIM, callValues(PARAMETERS, claim))).result;',
    replacement: `const text = \`
    WITH taken AS (
      UPDATE payment SET open_operation = $3::uuid, version = version + 1, status = $4, record = $5, updated_at = now(),
        response_record = CASE WHEN response IS NOT NULL THEN coalesce(response_record, record) END
      WHERE account_id = $1 AND id = $2 RETURNING id
    )
    INSERT INTO transaction (account_id, payment_id, id, type, parent_id, connection_id, connection_identity, status,
      amount_minor_units, currency, capture, final, check_at, method, idempotency_key, request_hash, request_shape,
      merchant_reference)
    SELECT $1, id, $3::uuid, $6, $7, $8, $9, 'PENDING', $10, $11, false, $12, now() + make_interval(secs => $13), $14, $15,
      $16, $17, $18 FROM taken RETURNING true AS result\`;
  const [account, payment, , status, record, transaction, type, , ...others] = callValues(PARAMETERS, claim);
  const values = [account, payment, transaction, status, record, type, ...others];
  return (await database.query<Row>({ name: 'claim_operation', text }, values)).rows.length === 1;`,
    cases: ['operations: partial refunds that race to more than the whole, at two replicas'],
    violates: ['I9'],
  },
  'event-after-commit': {
    file: 'src/store/engine/write-change.ts',
    find: ': await more();',
    replacement: `: await database.query<Row>(
        isNext(change) ? NEXT_ATTEMPT : ANY,
        callValues(EVERYTHING, { ...change, event: change.event && '' }),
      );
  const text = \`INSERT INTO event (account_id, id, type, payment_id, sequence, record)
    SELECT account_id, uuid_v7_1(), $3::text, id, event_sequence, record FROM payment
    WHERE account_id = $1 AND id = $2 AND $3::text IS NOT NULL AND EXISTS (
      SELECT 1 FROM webhook w WHERE w.account_id = $1 AND w.active AND $3::text = ANY (w.events))\`;
  await database.query({ name: 'late_event', text }, [change.accountId, change.paymentId, change.event ?? null]);`,
    cases: ['operations: killed after commit 2, before the response'],
    violates: ['I10'],
  },
  'believe-notifications': {
    file: 'src/payments/check/check-transaction.ts',
    find: 'let decision = decide(found, { outcome }, terms);',
    replacement: `const [told] = await readOpenNews(deps.database, check.leased.accountId, check.leased.transactionId);
  const data = told?.kind === 'notification' ? JSON.parse(Buffer.from(told.body).toString()).data : undefined;
  const providerData = { $typeName: 'payments.v1.ProviderData', rawResponse: {} } as never;
  const paid = { kind: 'approved', providerData, authorizationCode: '', retrievalReferenceNumber: '' } as const;
  let decision = decide(found, { outcome: data?.status === 'paid' ? paid : outcome }, terms);`,
    cases: ['payers: a notification that contradicts the provider'],
    violates: ['I2'],
  },
  'cancel-without-closing': {
    file: 'src/payments/check/look-up-transaction.ts',
    find: 'const query = lookUpOf(deps, connection, attempt, { hint: undefined, close: true });',
    replacement: `void lookUpOf;
  if (attempt) return { kind: 'expired', providerData: undefined };
  const query = undefined as never;`,
    cases: ['closings: killed before the claim'],
    violates: ['told'],
  },
  'lost-code-fails-over': {
    file: 'src/connectors/kit/lost-creation.ts',
    find: '? second : first;',
    replacement: "? second : { kind: 'not_sent', detail: 'lost' };",
    cases: ['codes: lost when it was made, found later, and shown'],
    violates: ['I12'],
  },
  'code-ends-by-our-clock': {
    file: 'src/payments/check/decide.ts',
    find: 'if (isCode(transaction)) return !hasLookUp && timeLeftMs(found) + CODE_GRACE_MS <= 0;',
    replacement: 'void [hasLookUp, CODE_GRACE_MS];',
    cases: ['codes: only the provider’s word ends one'],
    violates: ['told'],
  },
  'late-money-for-a-code-dropped': {
    file: 'src/payments/model/apply.ts',
    find: "(transaction.status === 'EXPIRED' && outcome.kind === 'approved' && !isReleased)",
    replacement: `(transaction.status === 'EXPIRED' && outcome.kind === 'approved' && !isReleased &&
      transaction.methodKind !== 'PAYER_CODE')`,
    cases: ['codes: paid after its end raises an alarm'],
    violates: ['I2'],
  },
  'close-a-lost-code-without-looking': {
    file: 'src/payments/check/look-up-transaction.ts',
    find: 'connection.lookUp({ ...query, close: false })',
    replacement: 'connection.lookUp({ ...query, close: true })',
    cases: ['codes: lost when it was made, found later, and shown'],
    violates: ['told'],
  },
  'code-canceled-without-closing': {
    file: 'src/payments/check/look-up-transaction.ts',
    find: 'const query = lookUpOf(deps, connection, attempt, { hint: undefined, close: true });',
    replacement: `void lookUpOf;
  if (attempt) return { kind: 'expired', providerData: undefined };
  const query = undefined as never;`,
    cases: ['codes: canceled: killed before the claim'],
    violates: ['told'],
  },
  'money-alarms-untold': {
    file: 'src/payments/write-change.ts',
    find: 'for (const alarm of change.moneyAlarms ?? [])',
    replacement: 'for (const alarm of [] as never[])',
    cases: ['codes: transfers of too little and of too much'],
    violates: ['told'],
  },
};
