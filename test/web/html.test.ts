import { describe, expect, it } from 'vitest';
import { type Html, html, htmlText, NOTHING } from '#src/web/html.ts';

const text = (content: Html) => htmlText(content);

describe('a template of HTML', () => {
  it('escapes texts, in text and in quoted attributes', () => {
    const hostile = `<b a="1" c='2'>&amp;`;
    expect(text(html`<p title="${hostile}">${hostile}</p>`)).toBe(
      '<p title="&#60;b a=&#34;1&#34; c=&#39;2&#39;&#62;&#38;amp;">&#60;b a=&#34;1&#34; c=&#39;2&#39;&#62;&#38;amp;</p>',
    );
  });

  it('inserts its own HTML unescaped, lists of it, numbers, and nothing for undefined or false', () => {
    const items = [1, 2n].map((n) => html`<li>${n}</li>`);
    expect(text(html`<ul>${items}</ul>${NOTHING}${undefined}${false}${''}`)).toBe(
      '<ul><li>1</li><li>2</li></ul>',
    );
  });

  it('never takes a value from outside for HTML, whatever it looks like', () => {
    const fromOutside = JSON.parse('{"html":"<b>","markup":"<b>","Symbol(markup)":"<b>","map":null}');
    expect(() => text(html`${fromOutside}`)).toThrow();
    expect(text(html`${[JSON.parse('"<b>"')]}`)).toBe('&#60;b&#62;');
    expect(() => text(html`${[fromOutside]}`)).toThrow();
  });
});
