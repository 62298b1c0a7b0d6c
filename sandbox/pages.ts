import type { FastifyInstance } from 'fastify';
import type { Books } from './books.ts';
import { disputePage } from './disputes.ts';
import type { LedgerEntry, OrderDetails } from './ledger-entry.ts';
import { PAGE_HEADERS } from './page.ts';
import {
  agreementPage,
  challengePage,
  checkoutPage,
  codesPage,
  errorPage,
  leftPage,
  notFoundPage,
} from './payer-pages.ts';
import type { PayerAction } from './payment-states.ts';

type PageOf = (payment: LedgerEntry, order: OrderDetails) => string;

const ACTIONS: readonly PayerAction[] = ['pay', 'decline', 'leave', 'pay-half', 'pay-more', 'expire'];
const FORM_LIMIT_BYTES = 1024;

/** Registers the payers' pages. Anyone who knows a payment's id counts as its payer. */
export function registerPages(app: FastifyInstance, books: Books): void {
  // The buttons submit forms without fields.
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: FORM_LIMIT_BYTES },
    async () => ({}),
  );
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) app.log.error({ code: error.name }, 'a page of the sandbox provider failed');
    return reply.code(status).headers(PAGE_HEADERS).send(errorPage());
  });
  app.addHook('onRequest', async (_request, reply) => void reply.headers(PAGE_HEADERS));
  registerPage(app, books, { path: '/checkout', prefix: 'wo', pageOf: checkoutPage });
  registerPage(app, books, { path: '/challenge', prefix: 'ch', pageOf: challengePage });
  registerPage(app, books, { path: '/agreement', prefix: 'wa', pageOf: agreementPage });
  registerPage(app, books, { path: '/codes', prefix: 'cd', pageOf: codesPage });
  app.get<{ Params: { id: string } }>('/dispute/:id', async (request, reply) => {
    const { id } = request.params;
    const dispute = /^dp_[0-9a-f-]{36}$/.test(id) ? await books.findById(id) : undefined;
    return dispute ? reply.send(disputePage(dispute)) : reply.code(404).send(notFoundPage());
  });
}

function registerPage(
  app: FastifyInstance,
  books: Books,
  { path, prefix, pageOf }: { path: string; prefix: string; pageOf: PageOf },
): void {
  type OfPayment = { Params: { id: string } };
  const known = new RegExp(`^${prefix}_[0-9a-f-]{36}$`);

  async function find(id: string): Promise<{ payment: LedgerEntry; order: OrderDetails } | undefined> {
    const payment = known.test(id) ? await books.findById(id) : undefined;
    const order = payment?.details.page;
    return payment && order && { payment, order };
  }

  app.get<OfPayment>(`${path}/:id`, async (request, reply) => {
    const found = await find(request.params.id);
    if (!found) return reply.code(404).send(notFoundPage());
    return reply.send(pageOf(found.payment, found.order));
  });

  app.get<OfPayment>(`${path}/:id/left`, async (request, reply) => {
    const found = await find(request.params.id);
    if (!found) return reply.code(404).send(notFoundPage());
    return reply.send(leftPage(found.payment));
  });

  for (const action of ACTIONS) {
    app.post<OfPayment>(`${path}/:id/${action}`, async (request, reply) => {
      const { id } = request.params;
      if (!(await find(id))) return reply.code(404).send(notFoundPage());
      const payment = await books.act(id, action);
      const isOpen =
        payment?.kind === 'code'
          ? action === 'leave' && payment.status === 'created'
          : payment?.status === 'created' || payment?.status === 'challenge_required';
      // A relative URL, since only the payer's browser knows through which host it reached us.
      return reply
        .code(303)
        .header('location', isOpen ? 'left' : `../${id}`)
        .send();
    });
  }
}
