import { expect, it, vi } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { ownDataDir, startProgram } from '../support/service-process.ts';

const DATA_DIR = ownDataDir();

it('npm run demo starts the service on PORT and a shop that leads to it, and stops both', async () => {
  const port = String(await freePort());
  const service = `http://127.0.0.1:${port}`;
  const demo = startProgram('examples/demo-shop/main.ts', { PORT: port, DATA_DIR }, ['--port', '0']);
  try {
    await vi.waitFor(() => expect(demo.printed.stdout).toContain('The shop is open: '), 60_000);
    const [, shop = ''] = /The shop is open: (\S+)/.exec(demo.printed.stdout) ?? [];
    const body = new URLSearchParams({ coffee: '1', country: 'US' });
    const bought = await fetch(`${shop}buy`, { method: 'POST', body, redirect: 'manual' });
    expect(bought.headers.get('location')).toMatch(new RegExp(`^${service}/checkout/[0-9a-f-]{36}$`));
    const checkout = await fetch(bought.headers.get('location') ?? '');
    expect(await checkout.text()).toContain('<p class="payee">Payment to Demo Shop</p>');
  } finally {
    demo.child.kill('SIGTERM');
  }
  expect(await demo.ended).toMatchObject({ code: 0, signal: null });
  await expect(fetch(service)).rejects.toThrow();
});

it('npm run demo leaves no service running if it is told to stop while the service starts', async () => {
  const demo = startProgram('examples/demo-shop/main.ts', { PORT: String(await freePort()), DATA_DIR }, [
    '--port',
    '0',
  ]);
  await vi.waitFor(() => expect(demo.printed.stdout).toContain('Starting the service…'), 60_000);
  demo.child.kill('SIGTERM');
  // The service shares the demo's standard error, so it closes when both have exited.
  expect(await demo.ended).toMatchObject({ code: 1, stderr: expect.stringContaining('did not start') });
});
