import { expect, it } from 'vitest';
import { run } from '#src/commands/webhook-listen.ts';
import { runCommand } from '../support/run-command.ts';

const NO_SERVICE = {
  code: 1,
  stdout: '',
  stderr: 'Not done: no service responds at http://127.0.0.1:9: start it with npm start\n',
};

it('webhook-listen tells the user what to do if no service responds', async () => {
  const service = 'http://127.0.0.1:9';
  expect(await runCommand(run, {}, '--port', '0', '--service', service)).toEqual(NO_SERVICE);
});

it('webhook-listen connects to the service at the port in PORT', async () => {
  expect(await runCommand(run, { PORT: '9' }, '--port', '0')).toEqual(NO_SERVICE);
});
