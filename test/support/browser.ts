import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import chromium, { inflate } from '@sparticuz/chromium';
import puppeteer, { type Browser } from 'puppeteer-core';

const PACKAGE = join(import.meta.dirname, '../../node_modules/@sparticuz/chromium');

/**
 * Chromium runs without its own sandbox, which needs a user other than root, and without the package's arguments, which
 * turn off web security rules with which the pages must be tested.
 */
const ARGUMENTS = [
  '--no-sandbox',
  '--no-zygote',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--hide-scrollbars',
];

/**
 * Starts a headless Chromium from npm. Use one per test file, since a start takes a second, and close it at the end.
 */
export async function startBrowser(): Promise<Browser> {
  const directory = await unpack();
  return puppeteer.launch({
    executablePath: join(directory, 'chromium'),
    args: ARGUMENTS,
    headless: 'shell',
    timeout: 120_000,
    env: {
      ...process.env,
      FONTCONFIG_PATH: join(directory, 'fonts'),
      // Libraries that a machine without a desktop lacks.
      LD_LIBRARY_PATH: [process.env.LD_LIBRARY_PATH, join(directory, 'al2023/lib')].filter(Boolean).join(':'),
    },
  });
}

/** Unpacks the browser once per machine and version; concurrent test files never see it half unpacked. */
async function unpack(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));
  const directory = join(tmpdir(), `payments-test-chromium-${version}-${process.getuid?.() ?? 0}`);
  if (existsSync(directory)) return directory;
  const own = mkdtempSync(`${directory}-`);
  const before = process.env.TMPDIR;
  // The package can unpack only to the temporary directory.
  process.env.TMPDIR = own;
  try {
    await chromium.executablePath();
    await inflate(join(PACKAGE, 'bin/al2023.tar.br'));
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
  // The package's own file names other directories. Without a font, pages show no text.
  writeFileSync(
    join(own, 'fonts/fonts.conf'),
    `<fontconfig><dir>${directory}/fonts</dir><cachedir>${directory}/fonts-cache</cachedir></fontconfig>`,
  );
  try {
    renameSync(own, directory);
  } catch {
    // Another process was faster.
    rmSync(own, { recursive: true });
  }
  return directory;
}
