/** Usage of `npm run account`, for printing. */
export const USAGE = `Usage: npm run account -- <command>

  create --name <name> [--secret-always]    makes an account with a public key and a secret
  list                                      lists the accounts
  keys <account id>                         lists an account's keys
  add-public-key <account id>               gives an account one more public key
  add-secret <account id>                   gives an account one more secret
  audit <account id>|installation           lists who did what to an account, or to the whole installation, oldest first
  revoke-public-key <public key>            ends a public key
  revoke-secret <secret id>                 ends a secret, by the id that "keys" shows
  secret-always <account id> on|off         demands the secret of every call, or not
  authorizations <account id> shown|authorized
                                            tells authorizations as the interface shows them (SUCCEEDED, PURCHASE), or as
                                            such (PENDING / AUTHORIZED, AUTHORIZE)
  origins <account id> <origin>,…|none      allows pages of these origins, and no others, to call from a browser with the
                                            public key alone (https://shop.example, http://localhost:3000)
  display-name <account id> <name>|none     shows payers this name on the checkout page, as the one whom they pay

create, add-public-key and add-secret take --environment <word>: the keys then begin with it (sandbox_…, prod_…), for
clients that derive the service's host from their key.

A secret is shown once, when it is made: only its hash is stored. A revoked key is taken for 5 more
seconds at most, and a setting takes effect within as many.
Every command is written to the audit log, with the user and host that ran it and the name in ACTOR, if set.
Works on the database that DATABASE_URL names, else on the service's own (DATA_DIR), whether the service runs or not.`;
