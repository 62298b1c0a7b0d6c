// The script of the page that shows a payer how to pay: it copies values, shows the end in the payer's own time, and
// notices that the payment was paid, has expired or was canceled. Without it, the page reloads itself.
const { path, state, texts } = JSON.parse(document.getElementById('pay-page').textContent);
const said = document.getElementById('said');

for (const button of document.querySelectorAll('.copy')) {
  button.hidden = false;
  button.addEventListener('click', () => copy(button));
}
showOwnTime();
watch();

async function copy(button) {
  const value = document.getElementById(button.dataset.copies);
  const label = button.textContent;
  const isCopied = (await writeText(value.textContent)) || copySelected(value);
  if (!isCopied) return;
  button.textContent = texts.copied;
  if (said) said.textContent = texts.copied;
  setTimeout(() => {
    button.textContent = label;
    if (said) said.textContent = '';
  }, 3_000);
}

async function writeText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Copies for browsers without a clipboard, such as those on an insecure address. */
function copySelected(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
  try {
    return document.execCommand('copy');
  } catch {
    return false;
  }
}

/** Adds the end in the payer's own time zone, if it is another than the method's. */
function showOwnTime() {
  const time = document.querySelector('time[data-zone]');
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  if (!time || timeZone === time.dataset.zone) return;
  const format = { dateStyle: 'short', timeStyle: 'short' };
  const own = new Intl.DateTimeFormat(document.documentElement.lang, format).format(new Date(time.dateTime));
  const line = document.createElement('span');
  line.className = 'quiet';
  line.textContent = ` ${texts.yourTime.replace('{time}', own)}`;
  time.after(line);
}

/** Asks for the state every few seconds, less often after a while, and not at all while nobody looks. */
function watch() {
  const beganAt = Date.now();
  let timer;
  const pauseMs = () => (Date.now() - beganAt < 10 * 60_000 ? 3_000 : 15_000);
  const again = () => {
    clearTimeout(timer);
    if (document.visibilityState === 'visible') timer = setTimeout(look, pauseMs());
  };
  async function look() {
    try {
      const response = await fetch(path, { cache: 'no-store', headers: { accept: 'application/json' } });
      if (response.ok && (await response.json()).state !== state) {
        location.reload();
        return;
      }
    } catch {
      // The payer may be offline for a while, in a shop for example.
    }
    again();
  }
  document.addEventListener('visibilitychange', () => {
    clearTimeout(timer);
    if (document.visibilityState === 'visible') look();
  });
  again();
}
