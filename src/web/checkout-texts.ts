import { type CheckoutTexts, ENGLISH } from './texts/english.ts';
import { FRENCH } from './texts/french.ts';
import { GERMAN } from './texts/german.ts';
import { ITALIAN } from './texts/italian.ts';
import { PORTUGUESE } from './texts/portuguese.ts';
import { SPANISH } from './texts/spanish.ts';

/** Languages of the checkout page: the code, and the name in the language itself. */
export const LANGUAGES = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  fr: 'Français',
  it: 'Italiano',
  pt: 'Português',
} as const;

/** Code of a language of the checkout page. */
export type Language = keyof typeof LANGUAGES;

/** The texts of each language. */
export const CHECKOUT_TEXTS: Readonly<Record<Language, CheckoutTexts>> = {
  en: ENGLISH,
  de: GERMAN,
  es: SPANISH,
  fr: FRENCH,
  it: ITALIAN,
  pt: PORTUGUESE,
};

/**
 * Chooses the language: the requested one, else the one preferred by `accept-language` (RFC 9110, 12.5.4), else
 * another, by default English.
 */
export function chooseLanguage(
  asked: unknown,
  acceptLanguage: string | undefined,
  otherwise: Language = 'en',
): Language {
  if (isLanguage(asked)) return asked;
  const accepted = (acceptLanguage ?? '')
    .split(',', 20)
    .map((range) => {
      const [tag = '', ...parameters] = range.trim().toLowerCase().split(';');
      const quality = parameters.map((one) => /^\s*q=([\d.]+)$/.exec(one)?.[1]).find(Boolean);
      return { language: tag.split('-')[0], quality: Number(quality ?? 1) };
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality);
  return accepted.map(({ language }) => language).find(isLanguage) ?? otherwise;
}

/** Reports whether a value is the code of a language of the checkout page. */
export function isLanguage(text: unknown): text is Language {
  return typeof text === 'string' && Object.hasOwn(LANGUAGES, text);
}

/** Replaces each `{name}` in a string with its value. */
export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
