// The checkout page in the browser. When the payer pays, it sends the card number from the form field to this origin in
// exchange for a one-time token. It stores the number nowhere else.
const data = JSON.parse(document.getElementById('checkout').textContent);
const { texts, methods } = data;
const base = `/v1/checkout/sessions/${data.session}`;
const form = document.getElementById('pay');
const notice = document.getElementById('notice');
const outcome = document.getElementById('outcome');
const { title: formTitle } = document;
const field = (id) => document.getElementById(id);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// ---- The form ----

/**
 * Brands by range. The first match counts, so local schemes come before the international ranges that contain theirs.
 */
const BRANDS = [
  [
    'Elo',
    /^(401178|401179|431274|438935|451416|457393|45763[12]|504175|5067|5090|627780|636297|636368|650[0-57-9]|6516|6550)/,
  ],
  ['Hipercard', /^606282/],
  ['American Express', /^3[47]/, /^(\d{1,4})(\d{1,6})?(\d+)?/],
  ['Diners Club', /^3(0[0-5]|[689])/, /^(\d{1,4})(\d{1,6})?(\d+)?/],
  ['JCB', /^35(2[89]|[3-8])/],
  ['Visa', /^4/],
  ['Mastercard', /^(5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/],
  ['Discover', /^(6011|64[4-9]|65)/],
  ['Maestro', /^(50|5[6-9]|6)/],
];
/** Number of digits of the security code by brand. Maestro is missing: its range also contains other brands' cards. */
const CODE_DIGITS = {
  'American Express': 4,
  'Diners Club': 3,
  Discover: 3,
  Elo: 3,
  Hipercard: 3,
  JCB: 3,
  Mastercard: 3,
  Visa: 3,
};
const brandOf = (digits) => BRANDS.find(([, range]) => range.test(digits));
const digitsOf = (id) => field(id).value.replace(/\D/g, '');

function showNumber() {
  const input = field('number');
  const digits = digitsOf('number').slice(0, 19);
  const brand = brandOf(digits);
  field('brand').value = brand?.[0] ?? '';
  // While the payer corrects a digit in the middle, the cursor must not move.
  if (input.selectionStart !== input.value.length) return;
  const groups = brand?.[2]?.exec(digits)?.slice(1).filter(Boolean) ?? digits.match(/\d{1,4}/g) ?? [];
  input.value = groups.join(' ');
}

function showExpiry(event) {
  const input = field('expiry');
  if (event.inputType?.startsWith('delete') || input.selectionStart !== input.value.length) return;
  const parts = /^\s*(\d{1,2})([\s/.-]*)(\d*)\s*$/.exec(input.value);
  if (!parts) return;
  let [, month, separator, year] = parts;
  // "13" is January of a year that begins with 3.
  if (month > 12) [month, year] = [month[0], month[1] + year];
  if (month.length === 1 && (separator || year || month > 1)) month = `0${month}`;
  if (month.length === 2) input.value = `${month} / ${year}`;
}

/** Reads the month and the two-digit year; undefined if the field contains no date. Some browsers autofill 2030-12. */
function readExpiry() {
  const text = field('expiry')
    .value.trim()
    .replace(/^(20\d\d)-(\d\d)$/, '$2/$1');
  const [, month, year] = /^(\d{1,2})[\s/.-]*(?:20)?(\d{2})$/.exec(text) ?? [];
  return month >= 1 && month <= 12 ? { month: Number(month), year: Number(year) } : undefined;
}

function isPast({ month, year }) {
  const now = new Date();
  return (2000 + year) * 12 + month < now.getFullYear() * 12 + now.getMonth() + 1;
}

/** Reports whether the digits can be a card number: the length is valid, and the Luhn check passes (ISO/IEC 7812-1). */
function isNumber(digits) {
  if (!/^\d{12,19}$/.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, i) => {
    const weighted = i % 2 ? digit * 2 : Number(digit);
    return total + (weighted > 9 ? weighted - 9 : weighted);
  }, 0);
  return sum % 10 === 0;
}

/**
 * Returns the message for a security code that is impossible for the method's card; undefined if the code is possible.
 */
function codeFault(i) {
  const { vaultedToken, name } = methods[i];
  // A stored card's name begins with its brand, in capitals.
  const isStoredBrand = (brand) => name.startsWith(`${brand.toUpperCase()} `);
  const brand = vaultedToken
    ? Object.keys(CODE_DIGITS).find(isStoredBrand)
    : brandOf(digitsOf('number'))?.[0];
  const n = CODE_DIGITS[brand];
  const code = field(`code-${i}`).value.trim();
  if (/^\d{3,4}$/.test(code) && code.length === (n ?? code.length)) return undefined;
  return n ? fill(texts.badCodeLength, { n }) : texts.badCode;
}

/** Returns the faults in a method's fields, each as a field's id and a message. */
function faultsOf(i) {
  const { isCard, vaultedToken, inputs } = methods[i];
  const empty = inputs.filter(({ id }) => field(id).value.trim() === '');
  if (empty.length > 0) return empty.map(({ id }) => [id, texts.emptyField]);
  const badCode = isCard ? codeFault(i) : undefined;
  const code = [badCode, `code-${i}`, badCode];
  const expiry = vaultedToken || !isCard ? undefined : readExpiry();
  const checks = !isCard
    ? []
    : vaultedToken
      ? [code]
      : [
          [!isNumber(digitsOf('number')), 'number', texts.badNumber],
          [!expiry, 'expiry', texts.badExpiry],
          [expiry && isPast(expiry), 'expiry', texts.oldExpiry],
          code,
          [field('holder').value.trim().length < 2, 'holder', texts.badHolder],
        ];
  return checks.filter(([isWrong]) => isWrong).map(([, id, text]) => [id, text]);
}

function showFaults(faults) {
  for (const input of form.querySelectorAll('[aria-invalid]')) clearFault(input);
  for (const [id, text] of faults) {
    field(id).setAttribute('aria-invalid', 'true');
    field(`${id}-error`).textContent = text;
    field(`${id}-error`).hidden = false;
  }
  if (faults.length > 0) field(faults[0][0]).focus();
}

function clearFault(input) {
  input.removeAttribute('aria-invalid');
  // Cleared as well as hidden: screen readers also read hidden descriptions.
  field(`${input.id}-error`).textContent = '';
  field(`${input.id}-error`).hidden = true;
}

function showNotice(text) {
  notice.textContent = text;
  notice.hidden = text === '';
  if (text !== '') notice.focus();
}

const chosen = () => Number(form.elements.method.value || form.querySelector('[name=method]').value);

function showChosen() {
  const i = chosen();
  for (const [j] of methods.entries()) field(`panel-${j}`).hidden = j !== i;
  showButton();
  showNotice('');
}

/** Labels the button for the payment in progress, if any, or for the chosen method. */
function showButton() {
  const button = form.querySelector('[type=submit]');
  button.dataset.pay ??= button.textContent;
  const { isCard, vaultedToken, name } = methods[chosen()];
  const label = isCard || vaultedToken ? button.dataset.pay : fill(texts.continueTo, { name });
  button.textContent = busy ? texts.paying : label;
  button.setAttribute('aria-disabled', String(busy));
}

// ---- The calls ----

/** A call's error. `sent` is true if the call may have had an effect. */
class CallError extends Error {
  constructor(code, sent, errors = []) {
    super(code);
    this.code = code;
    this.sent = sent;
    this.errors = errors;
  }
}

async function call(path, body, key) {
  let response;
  try {
    response = await fetch(base + path, {
      method: body ? 'POST' : 'GET',
      headers: {
        'public-api-key': data.publicKey,
        ...(body && { 'content-type': 'application/json' }),
        ...(key && { 'x-idempotency-key': key }),
      },
      ...(body && { body: JSON.stringify(body) }),
      credentials: 'omit',
      // A phone may take minutes to notice that it has lost its network.
      signal: AbortSignal.timeout?.(60_000),
      cache: 'no-store',
    });
    const json = await response.json();
    if (response.ok) return json;
    const mayBeSent = response.status >= 500 || json.code === 'REQUEST_IN_PROGRESS';
    throw new CallError(json.code, mayBeSent || response.status === 429, json.errors);
  } catch (error) {
    throw error instanceof CallError ? error : new CallError('NO_RESPONSE', true);
  }
}

/** Makes a call, and repeats it with the same key until the response is conclusive. */
async function callUntilClear(path, body, key) {
  for (let tries = 1; ; tries++) {
    try {
      return await call(path, body, key);
    } catch (error) {
      if (!error.sent || tries === 5) throw error;
      await pause(1000 * tries);
    }
  }
}

/** Generates a key of 128 random bits. `crypto.randomUUID` does not exist over plain HTTP. */
function randomKey() {
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

// ---- Paying ----

let busy = false;
/** The request of the current payment, which a retry repeats exactly. */
let attempt;

function setBusy(isBusy) {
  busy = isBusy;
  showButton();
}

async function pay() {
  if (busy) return;
  const i = chosen();
  showNotice('');
  const faults = faultsOf(i);
  showFaults(faults);
  if (faults.length > 0) return;
  setBusy(true);
  try {
    attempt = { key: randomKey(), body: { ...(await requestOf(i)), amount: data.shown } };
  } catch (error) {
    setBusy(false);
    // Nothing was charged: only a token was requested.
    refuse(error);
    return;
  }
  await send();
}

async function send() {
  try {
    const payment = await callUntilClear('/payments', attempt.body, attempt.key);
    attempt = undefined;
    // A replica that runs an earlier release does not check that the amount is still the one shown.
    if (!isAsShown(payment)) return location.reload();
    setBusy(false);
    show(payment, true);
  } catch (error) {
    setBusy(false);
    if (error.sent) return showUnknown();
    attempt = undefined;
    refuse(error);
  }
}

function isAsShown({ amount: { currency, value } }) {
  return currency === data.shown.currency && Number(value) === Number(data.shown.value);
}

async function requestOf(i) {
  const { type, isCard, isLocal, vaultedToken } = methods[i];
  if (isLocal) return localRequest(i);
  const installments = Number(field(`installments-${i}`)?.value ?? 1);
  const options = installments > 1 ? { installments } : {};
  const customer_payer = { browser_info: browserInfo() };
  if (!isCard)
    return { payment_method: { type, ...(vaultedToken && { vaulted_token: vaultedToken }) }, customer_payer };
  const security_code = field(`code-${i}`).value.trim();
  if (vaultedToken) {
    const detail = { card: { ...options, card_data: { security_code } } };
    return { payment_method: { type, vaulted_token: vaultedToken, detail }, customer_payer };
  }
  const { month, year } = readExpiry();
  const card_data = {
    number: digitsOf('number'),
    expiration_month: month,
    expiration_year: year,
    security_code,
    holder_name: field('holder').value.trim(),
  };
  const { token } = await call('/token', { card_data });
  return {
    payment_method: {
      token,
      ...(field('save')?.checked && { vault_on_success: true }),
      ...(installments > 1 && { detail: { card: options } }),
    },
    customer_payer,
  };
}

/** Returns the request of a local method, with the payer's entries where its provider needs them. */
function localRequest(i) {
  const { type, inputs } = methods[i];
  const request = { payment_method: { type }, customer_payer: { browser_info: browserInfo() } };
  for (const { id, path } of inputs) {
    const names = path.split('.');
    const last = names.pop();
    let part = request;
    for (const name of names) {
      part[name] ??= {};
      part = part[name];
    }
    part[last] = field(id).value.trim();
  }
  return request;
}

/** Returns the facts about the browser that 3-D Secure needs. */
function browserInfo() {
  return {
    user_agent: navigator.userAgent,
    language: navigator.language,
    color_depth: String(screen.colorDepth),
    screen_height: String(screen.height),
    screen_width: String(screen.width),
    browser_time_difference: String(new Date().getTimezoneOffset()),
    javascript_enabled: true,
    java_enabled: 'false',
  };
}

function refuse({ code, errors }) {
  const faults = errors.flatMap(({ field: path }) => {
    if (path.endsWith('card_data.number')) return [['number', texts.badNumber]];
    if (/card_data\.expiration_/.test(path)) return [['expiry', texts.badExpiry]];
    if (path.endsWith('card_data.security_code')) return [[`code-${chosen()}`, texts.badCode]];
    if (path.endsWith('card_data.holder_name')) return [['holder', texts.badHolder]];
    const input = methods[chosen()].inputs.find((one) => one.path === path);
    return input ? [[input.id, texts.badField]] : [];
  });
  if (faults.length > 0) return showFaults(faults);
  if (errors.some(({ field: path }) => path.startsWith('amount'))) {
    const act = () => location.reload();
    return showOutcome({
      title: texts.changedTitle,
      text: texts.changedText,
      action: texts.changedLink,
      act,
    });
  }
  // The session has expired, or was used in another window or by an earlier attempt at this call. The reloaded page
  // shows which.
  if (['CHECKOUT_SESSION_NOT_FOUND', 'NOT_FOUND', 'IDEMPOTENCY_KEY_REUSED'].includes(code))
    return location.reload();
  if (code === 'STORED_METHOD_LIMIT_REACHED') {
    field('save').checked = false;
    return showNotice(texts.cannotSave);
  }
  const isNotOffered = code === 'PAYMENT_METHOD_NOT_AVAILABLE' || code === 'OPERATION_NOT_SUPPORTED';
  showNotice(isNotOffered ? texts.notOffered : texts.failed);
}

// ---- The outcome ----

const OPEN = ['READY_TO_PAY', 'PENDING'];
const mustGo = ({ status, redirect_url: url }) => OPEN.includes(status) && Boolean(url);
const mustWait = ({ status, sub_status: subStatus, redirect_url: url }) =>
  OPEN.includes(status) && !url && subStatus !== 'AUTHORIZED';
/** Id of the payment that the page shows. */
let told;
const waiting = { title: texts.waitingTitle, text: texts.waitingText, isWaiting: true };

/**
 * Shows the state of a payment. @param isNew true if it was just made: the payer is then redirected at once if
 * necessary.
 */
function show(payment, isNew) {
  told = payment.id;
  const { status, sub_status: subStatus } = payment;
  if (['SUCCEEDED', 'VERIFIED'].includes(status) || subStatus === 'AUTHORIZED') return showPaid(payment);
  if (mustGo(payment)) return void showOpen(payment, isNew);
  if (OPEN.includes(status)) return void confirm();
  if (status === 'DECLINED') return tryAgain(texts[payment.response_code] ?? texts.declined);
  if (status === 'EXPIRED') return tryAgain(texts.expired);
  if (['ERROR', 'CANCELED'].includes(status)) return tryAgain(texts.notMade);
  showOutcome({ title: texts.closedTitle, text: texts.closedText, backUrl: payment.callback_url });
}

function tryAgain(text) {
  // A page that was opened during a payment has no form.
  if (!form) return location.reload();
  outcome.hidden = true;
  form.hidden = false;
  document.title = formTitle;
  // The redirect reset the form, which may have changed the chosen method.
  showChosen();
  showNotice(text);
}

/**
 * Sends the payer to the provider. When they come back, the cookie makes the service return them to this page in their
 * chosen language.
 */
function goTo({ id, redirect_url: url }) {
  const language = new URLSearchParams(location.search).has('lang') ? document.documentElement.lang : '1';
  const secure = location.protocol === 'https:' ? '; secure' : '';
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API does not exist over plain HTTP.
  document.cookie = `checkout_page=${language}; path=/v1/payments/${id}/return; max-age=86400; samesite=lax${secure}`;
  form?.reset();
  location.assign(isOwnPage(url, id) ? `${url}?lang=${document.documentElement.lang}` : url);
}

/** Returns true for this service's page of a payment, which shows how to pay. */
const isOwnPage = (url, id) => new URL(url).pathname === `/v1/payments/${id}/pay`;

function showPaid({ callback_url: backUrl }) {
  form?.reset();
  const thanks = fill(texts.paidText, { amount: data.amount });
  const text = backUrl ? `${thanks} ${texts.goingBack}` : thanks;
  showOutcome({ title: texts.paidTitle, text, backUrl, isGood: true });
  if (backUrl) setTimeout(() => location.assign(backUrl), 6000);
}

/** Number of the current watch. Earlier watches no longer show anything. */
let watches = 0;

/**
 * Shows that the payer still has to approve the payment elsewhere, until they approve it (in another window or a
 * wallet's app) or choose to pay another way.
 */
async function showOpen(payment, isNew, text = texts.openText) {
  const go = () => goTo(payment);
  showOutcome({
    ...{ title: texts.openTitle, text, backUrl: payment.callback_url },
    ...{ action: texts.openLink, act: go },
    ...{ other: texts.anotherWay, actOther: () => payAnotherWay(payment) },
  });
  // The next page may load slowly. Meanwhile, this page offers no second payment.
  if (isNew) go();
  watches += 1;
  const own = watches;
  const isOver = () => own !== watches;
  let last = await watch(mustGo, isOver);
  while (!isOver() && (!last || mustGo(last))) {
    await seenAgain();
    last = await watch(mustGo, isOver);
  }
  if (!isOver()) show(last, false);
}

/** Closes the payment at its provider. Only then may the payer pay another way, so that they cannot pay twice. */
async function payAnotherWay(payment) {
  watches += 1;
  showOutcome({ title: texts.closingTitle, text: texts.closingText, isWaiting: true });
  const closed = await callUntilClear(`/payments/${payment.id}/close`, {}).catch(() => payment);
  // Another window has made another payment.
  if (closed.id !== payment.id) return location.reload();
  if (mustGo(closed)) return void showOpen(closed, false, texts.cannotClose);
  show(closed, false);
}

/** Waits until the payer returns to the page, for example from a wallet's app. */
async function seenAgain() {
  do await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
  while (document.hidden);
}

/** Shows that the outcome is unknown. Until it is known, the page sends no new payment. */
function showUnknown() {
  const act = attempt ? () => retry() : () => location.reload();
  showOutcome({ title: texts.unknownTitle, text: texts.unknownText, action: texts.check, act });
}

function retry() {
  showOutcome(waiting);
  send();
}

const FIRST_POLLS_MS = [500, 500, 1000, 1000, 2000];
const LAST_POLLS = 40;

/** Polls the payment for some minutes, until it changes. Returns the last response, if any. */
async function watch(isAsBefore, isOver = () => false) {
  let last;
  for (let i = 0; i < LAST_POLLS && (!last || isAsBefore(last)); i++) {
    await pause(FIRST_POLLS_MS[i] ?? 3000);
    if (isOver()) return last;
    last = await call('/payment').catch(() => last);
    if (isOver()) return last;
    // Another window has made another payment, perhaps for another amount.
    if (last && last.id !== told) return location.reload();
  }
  return last;
}

async function confirm() {
  showOutcome(waiting);
  const last = await watch(mustWait);
  if (last && !mustWait(last)) return show(last, true);
  const { callback_url: backUrl } = last ?? {};
  showOutcome({
    ...waiting,
    text: texts.laterText,
    isWaiting: false,
    backUrl,
    action: texts.check,
    act: confirm,
  });
}

function showOutcome({ title, text, backUrl, action, act, other, actOther, isGood, isWaiting }) {
  if (form) form.hidden = true;
  showNotice('');
  outcome.className = isGood ? 'good' : '';
  outcome.querySelector('.spinner').hidden = !isWaiting;
  const heading = outcome.querySelector('h2');
  heading.textContent = title;
  outcome.querySelector('p').textContent = text;
  const link = outcome.querySelector('a');
  link.hidden = !backUrl;
  link.className = action ? 'button second' : 'button';
  link.textContent = texts.back;
  if (backUrl) link.href = backUrl;
  const [button, second] = outcome.querySelectorAll('button');
  showAction(button, action, act);
  showAction(second, other, actOther);
  outcome.hidden = false;
  document.title = title;
  heading.focus();
}

function showAction(button, label, act) {
  button.hidden = !label;
  button.textContent = label ?? '';
  button.onclick = act ?? null;
}

// ---- The start ----

async function showLast() {
  showOutcome(waiting);
  try {
    show(await callUntilClear('/payment'), false);
  } catch {
    showUnknown();
  }
}

form?.addEventListener('submit', (event) => {
  event.preventDefault();
  pay();
});
form?.addEventListener('change', (event) => event.target.name === 'method' && showChosen());
form?.addEventListener('input', (event) => {
  if (event.target.id === 'number') showNumber();
  if (event.target.id === 'expiry') showExpiry(event);
  if (event.target.hasAttribute('aria-invalid')) clearFault(event.target);
});
// A page that the browser restores from memory may show an outdated payment.
addEventListener('pageshow', (event) => event.persisted && location.reload());
if (form) {
  // Some browsers preserve the chosen method across a reload.
  showChosen();
  if (field('number')?.value) showNumber();
}
if (data.hasPayment) showLast();
// Last, so that if the script fails earlier, the page stays as it is without a script.
if (form) form.querySelector('[type=submit]').disabled = false;
const noScript = document.getElementById('no-script');
if (noScript) noScript.hidden = true;
