import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { run as account } from '#src/commands/account.ts';
import { createTestDatabase } from '../support/database.ts';
import { runCommand } from '../support/run-command.ts';
import { openTables } from '../support/tables.ts';

it('an account command whose commit was not acknowledged does not report that nothing was done', async () => {
  const owned = await createTestDatabase();
  const { port } = new URL(owned.url);
  // The acknowledgement of the commit is lost after the entry in the audit log was written.
  const way = createServer((client) => {
    const server = connect(Number(port), '127.0.0.1');
    let isWritten = false;
    let isLast = false;
    client.on('data', (sent) => {
      isWritten ||= sent.includes('INSERT INTO audit_log');
      isLast ||= isWritten && sent.includes('COMMIT');
      server.write(sent);
    });
    server.on('data', (answer) => (isLast ? client.destroy() : client.write(answer)));
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => {}).once('close', () => other.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(way, 'listening');
  const url = new URL(owned.url);
  url.port = String((way.address() as AddressInfo).port);
  const ended = await runCommand(account, { DATABASE_URL: url.href }, 'create', '--name', 'Shop');
  const tables = await openTables(owned.url);
  const accounts = await tables.query('SELECT name FROM account');
  await tables.close();
  await new Promise((resolve) => way.close(resolve));
  await owned.drop();
  expect(accounts).toEqual([{ name: 'Shop' }]);
  expect([ended.code, ended.stdout]).toEqual([1, '']);
  expect(ended.stderr).toMatch(
    /^The database did not acknowledge the change \(.*\), so it may have been made\. Check with list/,
  );
});
