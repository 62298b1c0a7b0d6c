/** The usage text of `npm run account`. */
export const USAGE = `Usage: npm run account -- <command>

  create --name <name> [--public-key-may NOTHING|SESSIONS|PAYMENTS]
                                            creates an account with a public key and a secret
  list                                      lists the accounts
  keys <account id>                         lists an account's keys
  add-public-key <account id>               adds a public key to an account
  add-secret <account id>                   adds a secret to an account
  audit <account id>|installation           lists changes to an account or to the installation, oldest first
  revoke-public-key <public key>            revokes a public key
  revoke-secret <secret id>                 revokes a secret by the id that "keys" shows
  close-sandbox                             revokes every key of the sandbox's accounts for good, before live payments
  public-key-may <account id> NOTHING|SESSIONS|PAYMENTS
                                            sets what the public key may do without the secret: nothing; pay and read open
                                            checkout sessions (the default); or also start redirects of any amount
  authorizations <account id> shown|authorized
                                            shows authorizations as the interface does (SUCCEEDED, PURCHASE), or as what
                                            they are (PENDING / AUTHORIZED, AUTHORIZE)
  origins <account id> <origin>,…|none      lets only pages of these origins call from a browser with the public key alone
                                            (https://shop.example, http://localhost:3000)
  display-name <account id> <name>|none     shows payers this name on the checkout page, as the recipient of the payment

create, add-public-key and add-secret take --environment <word>: the keys then start with that word (sandbox_…, prod_…), for
clients that derive the service's host from their key.

A secret is shown once, when it is created: only its hash is stored. A revoked key stops working within 5 seconds, and a
setting takes effect within 5 seconds.
The audit log records every command with its user and host, and the name in ACTOR if set.
Uses the database named by DATABASE_URL, or else the embedded one (DATA_DIR). The service need not be running.`;
