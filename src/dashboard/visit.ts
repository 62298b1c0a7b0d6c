import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LARGE_BODY_BYTES } from '#src/api/body-limit.ts';
import type { ClientAddress } from '#src/api/client-address.ts';
import { toServiceError } from '#src/api/errors.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Release } from '#src/slots.ts';
import { type Html, html } from '#src/web/html.ts';
import { DASHBOARD, FRAME_HEADERS, framed } from './frame.ts';
import { isFormToken, type Role, type Session, type Sessions } from './session.ts';
import { readUploadedForm, type UploadedFile, UploadedForm } from './uploaded-form.ts';

/** A request by a signed-in operator. */
export type Visit = {
  readonly session: Session;
  /** For the audit log: the name of the operator's key, which does not reveal the key, and the client's IP address. */
  readonly actor: string;
  /** Parameters of the path, the query and the form; '' if missing. */
  readonly part: (name: string) => string;
  readonly query: (name: string) => string;
  readonly form: (name: string) => string;
  /** A form field in full, with the line ends of this system; only the form's limit limits it. */
  readonly whole: (name: string) => string;
  /** The file that the form sends; undefined if nobody chose one. */
  readonly file: UploadedFile | undefined;
};

/** A page's own content; `framed` adds the frame. */
export type Page = {
  readonly title: string;
  readonly section?: string;
  readonly content: Html;
  /** Seconds after which a browser without scripts loads the page again; never by default. */
  readonly reloadS?: number;
  /** HTTP status, 200 by default. */
  readonly status?: number;
};

/** Response to a visit: a page, or a URL to redirect to. */
export type Reply = Page | { readonly goTo: string };

/** Maximum number of characters read from a query or form field; the rest is ignored. */
const MAX_VALUE_LENGTH = 2_000;
const FORM_LIMIT_BYTES = 16 * 1024;
/** Maximum size of a form of the configuration, with the ids of a thousand accounts. */
export const CONFIGURATION_LIMIT_BYTES = 256 * 1024;

/** Cookie that contains the session's token. Over HTTPS, its name has a prefix that binds the cookie to this host. */
export type Cookie = {
  read(request: FastifyRequest): string | undefined;
  /** Value of the header that sets the cookie; undefined deletes it. */
  set(token: string | undefined): string;
};

/** Creates the session's cookie. @param isSecure true if browsers reach the service only over HTTPS. */
export function sessionCookie(isSecure: boolean): Cookie {
  const name = isSecure ? '__Host-operator' : 'operator';
  return {
    read(request) {
      const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim());
      const values = pairs.filter((pair) => pair.startsWith(`${name}=`));
      // If there are two cookies of this name, somebody else has set one of them.
      return values.length === 1 ? values[0]?.slice(name.length + 1) : undefined;
    },
    set: (token) =>
      `${name}=${token ?? ''}; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}${token === undefined ? '; Max-Age=0' : ''}`,
  };
}

/**
 * Prepares a part of the application for pages: makes it accept only forms of limited size, and show errors as pages.
 */
export function preparePages(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: FORM_LIMIT_BYTES },
    (_request, body, done) => done(null, new URLSearchParams(body as string)),
  );
  const read = (request: FastifyRequest, body: Buffer) =>
    readUploadedForm(body, request.headers['content-type'] ?? '');
  // Only routes of uploads allow larger bodies.
  const options = { parseAs: 'buffer', bodyLimit: FORM_LIMIT_BYTES } as const;
  scope.addContentTypeParser('multipart/form-data', options, read);
  scope.addHook('onRequest', async (request) => {
    if (request.method === 'POST') requireSameOrigin(request);
  });
  scope.setErrorHandler((error, request, reply) => {
    const known = toServiceError(error);
    if (known.reason === 'INTERNAL_ERROR') request.log.error({ err: error }, 'a page failed');
    const content = html`<h1>The request failed</h1><p>${known.message}</p>
<p class="quiet">Request ${request.id}</p><p><a href="${DASHBOARD}">To the overview</a></p>`;
    if (known.retryAfterS !== undefined) reply.header('retry-after', known.retryAfterS);
    return sendPage(reply, { title: 'Error', content, status: known.status }, undefined);
  });
}

/**
 * Refuses a form sent by another site. Browsers send a request's origin in headers that no page can change.
 *
 * @throws ServiceError AUTHORIZATION_REQUIRED.
 */
function requireSameOrigin(request: FastifyRequest): void {
  const { 'sec-fetch-site': site, origin = '' } = request.headers;
  const host = URL.parse(origin)?.host;
  const isOurs = site === undefined ? host === request.host : site === 'same-origin';
  if (!isOurs)
    throw new ServiceError('AUTHORIZATION_REQUIRED', 'the form was sent by another site; nothing was done');
}

/** Mounts pages for signed-in operators. */
export function visits(
  scope: FastifyInstance,
  sessions: Sessions,
  cookie: Cookie,
  clientAddress: ClientAddress,
) {
  const opened = new WeakMap<FastifyRequest, Session>();

  const open = async (request: FastifyRequest, reply: FastifyReply) => {
    const token = cookie.read(request);
    const isRefresh = request.headers['x-refresh'] !== undefined;
    const session = token === undefined ? undefined : await sessions.find(token, !isRefresh);
    if (session) {
      opened.set(request, session);
      return undefined;
    }
    // The cookie is SameSite=Strict: browsers send it with a link from our own page, but not from another site.
    const site = request.headers['sec-fetch-site'];
    if (token === undefined && request.method === 'GET' && (site === 'cross-site' || site === 'same-site')) {
      return sendPage(reply, { title: 'Payments', content: comeIn(request.url) }, undefined);
    }
    if (isRefresh) return reply.code(401).headers(FRAME_HEADERS).send();
    const next = new URLSearchParams(
      request.method === 'GET' ? { next: request.url } : { next: pageOfForm(request.url), unsent: '1' },
    );
    return reply.headers(FRAME_HEADERS).redirect(`${DASHBOARD}/sign-in?${next}`, 303);
  };

  const respond =
    (handle: (visit: Visit) => Promise<Reply>) => async (request: FastifyRequest, reply: FastifyReply) => {
      const session = opened.get(request);
      if (!session) throw new Error('the page was opened without a session');
      const result = await handle(visitOf(request, session, clientAddress(request)));
      if ('goTo' in result) return reply.headers(FRAME_HEADERS).redirect(result.goTo, 303);
      return sendPage(reply, result, session);
    };

  return {
    /** Mounts a page. */
    get(path: string, handle: (visit: Visit) => Promise<Reply>): void {
      scope.get(DASHBOARD + path, { onRequest: open }, respond(handle));
    },
    /** Mounts a file, which `send` sends as it is written. */
    download(
      path: string,
      send: (request: FastifyRequest, reply: FastifyReply, visit: Visit) => Promise<unknown>,
    ): void {
      scope.get(
        DASHBOARD + path,
        { onRequest: open, exposeHeadRoute: false },
        async (request: FastifyRequest, reply: FastifyReply) => {
          const session = opened.get(request);
          if (!session) throw new Error('the file was opened without a session');
          return send(request, reply, visitOf(request, session, clientAddress(request)));
        },
      );
    },
    /** Mounts the target of a form. @param role the role that the operator needs. */
    post(path: string, role: Role, handle: (visit: Visit) => Promise<Reply>, bodyLimit?: number): void {
      const allowed = async (visit: Visit) => {
        requireOwnForm(visit);
        requireRole(visit.session, role);
        return handle(visit);
      };
      scope.post(DASHBOARD + path, { onRequest: open, ...(bodyLimit && { bodyLimit }) }, respond(allowed));
    },
    /**
     * Mounts the target of a form with a file, for operators who may act.
     *
     * @param admit called before the body is read. @throws ServiceError if there is no room for it.
     * @param handle its end is that of the body.
     */
    upload(path: string, admit: AdmitUpload, handle: (visit: Visit) => Promise<Reply>): void {
      const releases = new WeakMap<FastifyRequest, Release>();
      const admitted = async (request: FastifyRequest, reply: FastifyReply) => {
        const session = opened.get(request);
        if (session) requireRole(session, 'operate');
        const release = admit(request);
        releases.set(request, release);
        // The body may never arrive.
        reply.raw.once('close', () => request.body === undefined && release());
      };
      const allowed = async (visit: Visit) => {
        requireOwnForm(visit);
        return handle(visit);
      };
      const respondTo = respond(allowed);
      scope.post(
        DASHBOARD + path,
        { onRequest: [open, admitted], bodyLimit: LARGE_BODY_BYTES },
        (request: FastifyRequest, reply: FastifyReply) =>
          respondTo(request, reply).finally(releases.get(request)),
      );
    },
  };
}

/** Admits a body that may be large. @returns the function that gives its room back. */
export type AdmitUpload = (request: FastifyRequest) => Release;

/** @throws ServiceError AUTHORIZATION_REQUIRED if a form has the token of no session, or of another one. */
function requireOwnForm(visit: Visit): void {
  if (isFormToken(visit.session, visit.form('form_token'))) return;
  const message = 'the form belongs to another session; nothing was done; open the page again';
  throw new ServiceError('AUTHORIZATION_REQUIRED', message);
}

/** @throws ServiceError AUTHORIZATION_REQUIRED if the operator may only read. */
function requireRole(session: Session, role: Role): void {
  if (role === 'read' || session.role === 'operate') return;
  throw new ServiceError('AUTHORIZATION_REQUIRED', 'this key is read-only; nothing was sent');
}

/** Sends a page. */
export function sendPage(reply: FastifyReply, page: Page, session: Session | undefined): FastifyReply {
  return reply
    .code(page.status ?? 200)
    .headers(FRAME_HEADERS)
    .type('text/html; charset=utf-8')
    .send(framed({ ...page, session }));
}

/** Returns the URL of the page that contains a form: for an action, the page of its payment, webhook, dispute, catalogue or settlement. */
function pageOfForm(url: string): string {
  return (
    /^[^?]*\/(?:(?:payments|webhooks|disputes)\/[^/?]+\/[^/?]+|(?:catalogue|settlement)(?=\/))/.exec(
      url,
    )?.[0] ?? url
  );
}

function comeIn(url: string): Html {
  return html`<h1>Payments</h1><p>You followed a link from another site.</p><p><a class="button" href="${url}">Open the dashboard</a></p>`;
}

function visitOf(request: FastifyRequest, session: Session, address: string): Visit {
  // PostgreSQL text cannot contain NUL.
  const text = (value: unknown) =>
    typeof value === 'string' ? value.slice(0, MAX_VALUE_LENGTH).replaceAll('\0', '').trim() : '';
  const params = request.params as Record<string, unknown>;
  const query = request.query as Record<string, unknown>;
  const { body } = request;
  const uploaded = body instanceof UploadedForm ? body : undefined;
  const form = body instanceof URLSearchParams ? body : (uploaded?.fields ?? new URLSearchParams());
  return {
    file: uploaded?.file,
    session,
    actor: `${session.actor} from ${address}`,
    part: (name) => text(params[name]),
    query: (name) => text(query[name]),
    form: (name) => text(form.get(name)),
    whole: (name) => (form.get(name) ?? '').replaceAll('\0', '').replaceAll('\r\n', '\n').trim(),
  };
}
