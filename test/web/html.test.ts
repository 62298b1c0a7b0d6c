import { describe, expect, it } from 'vitest';
import { type Html, html, htmlText, NOTHING } from '#src/web/html.ts';

const text = (content: Html) => htmlText(content);

describe('the html template tag', () => {
  it('the html template tag escapes strings, in text and in quoted attributes', () => {
    const hostile = `<b a="1" c='2'>&amp;`;
    expect(text(html`<p title="${hostile}">${hostile}</p>`)).toBe(
      '<p title="&#60;b a=&#34;1&#34; c=&#39;2&#39;&#62;&#38;amp;">&#60;b a=&#34;1&#34; c=&#39;2&#39;&#62;&#38;amp;</p>',
    );
  });

  it('the html template tag inserts its own HTML, lists and numbers, and nothing for undefined or false', () => {
    const items = [1, 2n].map((n) => html`<li>${n}</li>`);
    expect(text(html`<ul>${items}</ul>${NOTHING}${undefined}${false}${''}`)).toBe(
      '<ul><li>1</li><li>2</li></ul>',
    );
  });

  it('the html template tag never treats a value from outside as HTML', () => {
    const fromOutside = JSON.parse('{"html":"<b>","markup":"<b>","Symbol(markup)":"<b>","map":null}');
    expect(() => text(html`${fromOutside}`)).toThrow();
    expect(text(html`${[JSON.parse('"<b>"')]}`)).toBe('&#60;b&#62;');
    expect(() => text(html`${[fromOutside]}`)).toThrow();
  });
});
