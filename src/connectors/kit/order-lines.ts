import type { Decimal } from '#gen/google/type/decimal_pb.js';
import type { Order, OrderItem } from '#gen/payments/v1/additional_data_pb.js';
import { type Money, roundMoney } from '#src/money.ts';

/** The items of an order, with its shipping and fee, which add up to exactly the payment's amount. */
export type OrderLines = {
  readonly items: readonly OrderLine[];
  readonly itemTotal: Money;
  readonly shipping: Money | undefined;
  readonly fee: Money | undefined;
};

/** An item with its price and its quantity, which is 1 if the merchant sends none. */
export type OrderLine = { readonly item: OrderItem; readonly unit: Money; readonly quantity: number };

/**
 * Returns the lines of an order; undefined unless it has items, and they add up to exactly the amount. Providers refuse
 * any other sum.
 */
export function orderLinesOf(
  order: Order | undefined,
  { minorUnits, currency }: Money,
): OrderLines | undefined {
  const items = (order?.items ?? []).flatMap((item): OrderLine[] => {
    const unit = amountOf(item.unitAmount, currency);
    const { quantity = 1 } = item;
    return unit && quantity >= 1 ? [{ item, unit, quantity }] : [];
  });
  if (!order || items.length === 0 || items.length < order.items.length) return undefined;
  const [shipping, fee] = [amountOf(order.shippingAmount, currency), amountOf(order.feeAmount, currency)];
  const total = items.reduce((sum, { unit, quantity }) => sum + unit.minorUnits * BigInt(quantity), 0n);
  if (total + (shipping?.minorUnits ?? 0n) + (fee?.minorUnits ?? 0n) !== minorUnits) return undefined;
  return { items, itemTotal: { minorUnits: total, currency }, shipping, fee };
}

/** Rounds an amount of the order to the currency's decimal places. */
function amountOf(decimal: Decimal | undefined, currency: string): Money | undefined {
  return decimal && roundMoney(decimal.value, currency);
}
