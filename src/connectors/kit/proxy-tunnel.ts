import http from 'node:http';
import https from 'node:https';
import { BlockList, isIP, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { Secret } from '#src/secret.ts';

/** The proxy did not open a tunnel, so nothing was sent to the provider. */
class ProxyRefusedError extends Error {
  readonly code = 'PROXY_REFUSED';
}

/**
 * Returns a connector that connects through a forward proxy (CONNECT, RFC 9110, section 9.3.6). The proxy sees the
 * provider's name and port, and encrypted bytes. undici gets the socket once the tunnel and its TLS are set up: like any
 * failed connection, a failure before that proves that no byte of a request was written.
 *
 * @param proxy URL of the proxy, with its user and password, if any.
 */
export function proxyConnector(proxy: Secret, timeoutMs: number): buildConnector.connector {
  const proxyUrl = new URL(proxy.reveal());
  const connectTls = buildConnector({ timeout: timeoutMs, allowH2: false });
  return (target, callback) => {
    const port = target.port || (target.protocol === 'https:' ? '443' : '80');
    openTunnel(proxyUrl, `${target.hostname}:${port}`, timeoutMs).then(
      (socket) => {
        if (target.protocol === 'https:') connectTls({ ...target, httpSocket: socket }, callback);
        else callback(null, socket);
      },
      (error: Error) => callback(error, null),
    );
  };
}

function authorizationOf({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '') return {};
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` };
}

/** Opens a tunnel to `authority`, the provider's name and port. */
function openTunnel(proxyUrl: URL, authority: string, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const client = proxyUrl.protocol === 'https:' ? https : http;
    const request = client.request(proxyUrl.origin, {
      ...{ method: 'CONNECT', path: authority, agent: false, signal: AbortSignal.timeout(timeoutMs) },
      headers: { host: authority, ...authorizationOf(proxyUrl) },
    });
    request.once('error', reject);
    request.once('connect', ({ statusCode }, socket, head) => {
      if (statusCode === 200) {
        if (head.length > 0) socket.unshift(head);
        resolve(socket as Socket);
        return;
      }
      socket.on('error', () => {}).destroy();
      reject(new ProxyRefusedError(`the proxy answered CONNECT with ${statusCode}`));
    });
    request.end();
  });
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Returns true if an origin is on this machine, such as the mounted sandbox: no proxy could reach it. */
export function isOnThisMachine(origin: string): boolean {
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, '');
  return (
    host === 'localhost' || (isIP(host) !== 0 && loopback.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4'))
  );
}
