import type { DescMessage, Message } from '@bufbuild/protobuf';

/**
 * Builds the Link header for the next page (RFC 8288), for a response whose body is only the list, without
 * `next_page_token` (AIP-158).
 *
 * @param url the call's path and query string, of which the link keeps everything but page_token.
 * @returns the header, with a relative reference; undefined on the last page, and for a response without that field.
 */
export function nextPageLink(desc: DescMessage, message: Message, url: string): string | undefined {
  const field = desc.fields.find(({ name }) => name === 'next_page_token');
  const token = field && (message as Message & Record<string, unknown>)[field.localName];
  if (typeof token !== 'string' || token === '') return undefined;
  const [path = '', ...query] = url.split('?');
  const parameters = new URLSearchParams(query.join('?'));
  parameters.set('page_token', token);
  return `<${path}?${parameters}>; rel="next"`;
}
