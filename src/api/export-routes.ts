import type { FastifyInstance, FastifyRequest } from 'fastify';
import { EXPORT_KINDS, readExportRequest } from '#src/exports/export-request.ts';
import { accountOf, type Caller, requireOwnAccount } from '#src/payments/caller.ts';
import type { Ticket } from './admission.ts';
import type { Credentials } from './authenticate.ts';
import type { SendExport } from './send-export.ts';

/** A call by an account or an operator. */
type Call = Pick<Caller, 'accountId' | 'secretPresented' | 'address'> &
  Pick<Credentials, 'operator'> & { readonly ticket: Pick<Ticket, 'close'> };

/**
 * Mounts the files `GET /v1/exports/movements.csv` and the like. They are raw HTTP, because no rpc can send a file that is
 * larger than the memory.
 *
 * @param open opens a call, by the header `operator-key` or an account's keys.
 */
export function mountExports(
  app: FastifyInstance,
  open: {
    readonly accounts: (request: FastifyRequest) => Promise<Call>;
    readonly operators: (request: FastifyRequest) => Promise<Call>;
  },
  send: SendExport,
): void {
  const calls = new WeakMap<FastifyRequest, Call>();
  for (const kind of EXPORT_KINDS) {
    app.route({
      method: 'GET',
      url: `/v1/exports/${kind}.csv`,
      exposeHeadRoute: false,
      onRequest: async (request) => {
        const isOperator = request.headers['operator-key'] !== undefined;
        calls.set(request, await (isOperator ? open.operators(request) : open.accounts(request)));
      },
      handler: async (request, reply) => {
        const call = calls.get(request) as Call;
        const asked = readExportRequest(kind, request.query as Record<string, unknown>);
        // A file takes minutes, most of them in waiting. It has slots of its own.
        call.ticket.close();
        if (call.operator) {
          const { actor, mayOnlyRead } = call.operator;
          return send(request, reply, asked, { actor, mayIncludePayer: !mayOnlyRead });
        }
        const accountId = accountOf(call);
        requireOwnAccount(asked.accountId ?? accountId, call);
        const actor = `the account’s key from ${call.address}`;
        return send(request, reply, { ...asked, accountId }, { actor, mayIncludePayer: true });
      },
    });
  }
}
