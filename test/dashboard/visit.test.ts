import Fastify from 'fastify';
import { expect, it } from 'vitest';
import { createSessions } from '#src/dashboard/session.ts';
import { preparePages, sessionCookie, visits } from '#src/dashboard/visit.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { NOTHING } from '#src/web/html.ts';

const query = () => Promise.reject(new DatabaseUnavailableError(new Error('connect ECONNREFUSED')));
const database = { query } as unknown as Database;

it('a dashboard page asks the operator to come back while the database is unavailable', async () => {
  const sessions = createSessions(database, { operate: [], read: [] });
  const app = Fastify();
  app.register(async (scope) => {
    preparePages(scope);
    visits(scope, sessions, sessionCookie(false), (request) => request.ip).get('', async () => ({
      title: '',
      content: NOTHING,
    }));
  });
  const cookie = `operator=${'A'.repeat(43)}`;
  const { statusCode, headers, body } = await app.inject({ url: '/dashboard', headers: { cookie } });
  expect([statusCode, headers['retry-after'], headers['content-type']]).toEqual([
    503,
    '1',
    'text/html; charset=utf-8',
  ]);
  expect(body).toContain('retry later');
});

it('a dashboard page that fails for another reason does not ask the operator to come back', async () => {
  const app = Fastify();
  app.register(async (scope) => {
    preparePages(scope);
    scope.get('/page', () => Promise.reject(new ServiceError('PAYMENT_NOT_FOUND', 'there is none')));
  });
  const { statusCode, headers } = await app.inject({ url: '/page' });
  expect([statusCode, headers['retry-after']]).toEqual([404, undefined]);
});
