import { CHECKOUT_TEXTS, chooseLanguage } from './checkout-texts.ts';
import { renderPage } from './page.ts';

/** The parts of a request that the page depends on. */
type Asked = {
  readonly method: string;
  readonly url: string;
  readonly headers: { readonly accept?: string | undefined; readonly 'accept-language'?: string | undefined };
};

/**
 * Renders the page for an unknown path under /dashboard or /checkout, where people use a browser.
 *
 * @returns undefined for any other path, and for a client that does not accept HTML.
 */
export function notFoundPage({ method, url, headers }: Asked): string | undefined {
  const [, area] = /^\/(dashboard|checkout)(?:[/?]|$)/.exec(url) ?? [];
  const isRead = method === 'GET' || method === 'HEAD';
  if (area === undefined || !isRead || !/text\/html|\*\/\*|^$/.test(headers.accept ?? '')) return undefined;
  const language = area === 'checkout' ? chooseLanguage(undefined, headers['accept-language']) : 'en';
  const { unknownTitle, unknownText } = CHECKOUT_TEXTS[language];
  const [title, text] =
    area === 'checkout'
      ? [unknownTitle, unknownText]
      : ['There is no such page', 'The address is wrong or incomplete. The dashboard begins at /dashboard.'];
  return renderPage({ language, title, amount: '', text, small: '' });
}
