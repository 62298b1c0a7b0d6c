import type { IncomingMessage } from 'node:http';

/**
 * Reports whether a request names two hosts, in Host, `:authority` or its target. It is refused (RFC 9112, section 3.2;
 * RFC 9113, section 8.3.1), since a proxy may have used the other one.
 */
export function namesTwoHosts(request: IncomingMessage): boolean {
  const { host } = request.headers;
  const authority = request.headers[':authority'] ?? host;
  return repeatsHost(request) || differ(host, authority) || targetDiffers(request.url ?? '', authority);
}

/** Reports whether a request has several Host headers: Node keeps only the first in `headers`. */
function repeatsHost({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts++;
  }
  return hosts > 1;
}

const HOST = 'host';

function differ(host: string | undefined, authority: string | string[] | undefined): boolean {
  return host !== undefined && host !== authority && host.toLowerCase() !== String(authority).toLowerCase();
}

const ABSOLUTE_FORM = /^[a-z][a-z0-9+.-]*:/i;

/**
 * Reports whether a target in absolute form (RFC 9112, section 3.2.2), as clients send it to proxies, names another host
 * than the request: the target's would count, but handlers read Host.
 */
function targetDiffers(target: string, authority: string | string[] | undefined): boolean {
  if (!ABSOLUTE_FORM.test(target)) return false;
  const url = URL.parse(target);
  return !url || url.host !== URL.parse(`${url.protocol}//${authority}`)?.host;
}
