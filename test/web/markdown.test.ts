import { expect, it } from 'vitest';
import { renderMarkdown } from '#src/web/guide-page.ts';

const render = (markdown: string) =>
  renderMarkdown(markdown, (target) => (target.startsWith('a.md') ? `/a${target.slice(4)}` : undefined));

it.each([
  [
    '# One\n\n## Two words, `code`',
    '<h1 id="one">One</h1>\n<h2 id="two-words-code">Two words, <code>code</code></h2>',
  ],
  ['One\nline.\n\nAnother.', '<p>One line.</p>\n<p>Another.</p>'],
  [
    'Text:\n- one\n  goes on\n- two\n\n1. first\n2. second',
    '<p>Text:</p>\n<ul><li>one goes on</li><li>two</li></ul>\n<ol><li>first</li><li>second</li></ol>',
  ],
  [
    '| a | b |\n|---|---|\n| `c` | |\nafter',
    '<div class="box" tabindex="0"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><code>c</code></td><td></td></tr></tbody></table></div>\n<p>after</p>',
  ],
  [
    '```sh\na < "b" **c**\n\n# d\n```',
    '<pre tabindex="0"><code>a &#60; &#34;b&#34; **c**\n\n# d</code></pre>',
  ],
  [
    '**bold [a](a.md#x)**, *it*, 2 * 3 * 4',
    '<p><strong>bold <a href="/a#x">a</a></strong>, <em>it</em>, 2 * 3 * 4</p>',
  ],
  ['[`code` here](b.md) stays text', '<p><code>code</code> here stays text</p>'],
  ['`**not bold**` and a_name_ and <b>', '<p><code>**not bold**</code> and a_name_ and &#60;b&#62;</p>'],
])('the Markdown %j is rendered', (markdown, html) => {
  expect(render(markdown)).toBe(html);
});

it('Markdown rendering terminates for any input', () => {
  for (const markdown of ['', '```', '|', '- ', '[a](', '**', '#', '\n\n'])
    expect(render(markdown)).not.toContain('undefined');
});
