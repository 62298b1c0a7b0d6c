import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { operatorName } from '#src/api/operator-key.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  deleteOperatorSession,
  findOperatorSession,
  insertOperatorSession,
  type SessionTerms,
} from '#src/store/tables/operator-sessions.ts';

/** Permission of an operator: to read only, or also to act. */
export type Role = 'read' | 'operate';

/** A signed-in operator. */
export type Session = {
  readonly role: Role;
  /** Names the operator's key without revealing it, such as `operator-3f2a91c0`. */
  readonly actor: string;
  /** Token that every form must contain; no other site can know it. */
  readonly formToken: string;
};

/** Keys that grant access to the dashboard, by role. */
export type OperatorKeys = { readonly operate: readonly string[]; readonly read: readonly string[] };

/** Sessions of the dashboard, kept in the database so that every replica knows them. */
export type Sessions = {
  /**
   * Signs an operator in.
   *
   * @param replaced the browser's previous token, whose session ends.
   * @returns the session with a token that is always new; undefined for an unknown key.
   */
  begin(key: string, replaced: string | undefined): Promise<(Session & { token: string }) | undefined>;
  /** Finds the session of a token. @param touch true extends the session, since the operator is active. */
  find(token: string, touch: boolean): Promise<Session | undefined>;
  /** Ends the session of a token. */
  end(token: string): Promise<void>;
};

/** An idle operator is signed out after 15 minutes (PCI DSS 8.2.8), and every operator after 12 hours. */
const TERMS: SessionTerms = { idleS: 15 * 60, wholeS: 12 * 3600 };

const TOKEN_BYTES = 32;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** Creates the sessions of operators who have one of the keys. */
export function createSessions(database: Database, keys: OperatorKeys): Sessions {
  const known = [...roleKeys(keys.operate, 'operate'), ...roleKeys(keys.read, 'read')];
  // Compares with every key, in constant time.
  const roleOf = (keyHash: Uint8Array): Role | undefined => {
    let found: Role | undefined;
    for (const one of known) if (timingSafeEqual(one.keyHash, keyHash)) found = one.role;
    return found;
  };
  return {
    async begin(key, replaced) {
      const keyHash = sha256(key);
      const role = roleOf(keyHash);
      if (!role) return undefined;
      const token = randomBytes(TOKEN_BYTES).toString('base64url');
      const actor = operatorName(keyHash);
      const session = { tokenHash: sha256(token), actor, keyHash };
      const replacedHash = replaced ? sha256(replaced) : undefined;
      await insertOperatorSession(database, session, replacedHash);
      return { role, actor, formToken: formTokenOf(token), token };
    },
    async find(token, touch) {
      if (!TOKEN.test(token)) return undefined;
      const stored = await findOperatorSession(database, sha256(token), TERMS, touch);
      // The role comes from the current configuration, so a removed key no longer gives access.
      const role = stored && roleOf(stored.keyHash);
      return role && { role, actor: stored.actor, formToken: formTokenOf(token) };
    },
    end: (token) => deleteOperatorSession(database, sha256(token)),
  };
}

/** Compares a form's token with the session's in constant time. */
export function isFormToken(session: Session, presented: string): boolean {
  return timingSafeEqual(sha256(presented), sha256(session.formToken));
}

function roleKeys(keys: readonly string[], role: Role) {
  return keys.map((key) => ({ keyHash: sha256(key), role }));
}

/** Derives the form token, which is not stored, from the session's token, which no page shows. */
function formTokenOf(token: string): string {
  return createHmac('sha256', token).update('form').digest('base64url');
}

function sha256(text: string): Uint8Array {
  return hash('sha256', text, 'buffer');
}
