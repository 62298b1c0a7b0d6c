import { adyen } from './adyen.ts';
import { mercadoPago } from './mercado-pago.ts';
import { paypal } from './paypal.ts';
import type { Provider } from './provider.ts';
import { sandbox } from './sandbox.ts';
import { stripe } from './stripe.ts';

/** Every provider with which the service can be tested: the sandbox and the fakes of real providers. */
export const PROVIDERS: readonly Provider[] = [sandbox, stripe, adyen, paypal, mercadoPago];

/** Returns the provider with a name. @throws Error if there is none. */
export function providerNamed(name: string): Provider {
  const provider = PROVIDERS.find((one) => one.name === name);
  if (provider) return provider;
  throw new Error(
    `there is no provider ${name}; the providers are ${PROVIDERS.map((one) => one.name).join(', ')}`,
  );
}
