import { probeProblem } from '../kit/provider-answer.ts';
import type { Bank } from '../port/connector.ts';
import { readJsonList, readPaymentMethod } from './answers.ts';
import { listPaymentMethods } from './payment-request.ts';
import type { Send } from './to-provider.ts';

/**
 * Lists the banks of a payment method. Mercado Pago names a bank by its ACH Colombia code.
 *
 * @param id Mercado Pago's name of the method.
 * @throws Error if the provider is away, or the account does not have the method.
 */
export async function listBanks(id: string, send: Send): Promise<readonly Bank[]> {
  const result = await send(listPaymentMethods());
  const isListed = result.kind === 'answer' && result.status === 200;
  const list = isListed ? readJsonList(result.body)?.map(readPaymentMethod) : undefined;
  if (!list) throw new Error(`the banks cannot be listed: ${probeProblem(result)}`);
  const method = list.find((one) => one.id === id);
  if (!method) throw new Error(`the account does not have the payment method ${id}`);
  return method.financial_institutions.flatMap(({ id: bank, description: name }) =>
    bank === undefined || name === '' ? [] : [{ id: bank, name }],
  );
}
