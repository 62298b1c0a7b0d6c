import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD, notice } from './frame.ts';

/** Renders the operators' sign-in form. @param next the page to open afterwards. */
export function signInPage(next: string, refusal: string | undefined): Html {
  return html`<h1>Sign in</h1>
${refusal === undefined ? NOTHING : notice('refused', refusal)}
<form method="post" action="${DASHBOARD}/sign-in" class="stack">
<input type="hidden" name="next" value="${next}">
<label for="key">Operator key</label>
<input id="key" name="key" type="password" required autofocus autocomplete="current-password" maxlength="255" spellcheck="false">
<button>Sign in</button>
</form>
<p class="quiet">Use a key from OPERATOR_KEYS, or from OPERATOR_READ_KEYS for read-only access.</p>`;
}

/** Returns the page to open after sign-in. It is always one of ours, so that a link cannot redirect elsewhere. */
export function nextOf(text: string): string {
  return text.length <= 1_000 && NEXT.test(text) ? text : DASHBOARD;
}

const NEXT = new RegExp(`^${DASHBOARD}(/[A-Za-z0-9/_-]*)?(\\?[A-Za-z0-9=&%._:+*~-]*)?$`);
