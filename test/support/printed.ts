import { vi } from 'vitest';

/** Records what is printed from now on instead of printing it, until mocks are restored. */
export function recordPrinted(): readonly string[] {
  const printed: string[] = [];
  for (const method of ['log', 'info', 'warn', 'error'] as const) {
    vi.spyOn(console, method).mockImplementation((...args) => void printed.push(args.join(' ')));
  }
  return printed;
}
