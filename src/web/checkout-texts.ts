/**
 * Texts of the payers' pages, with `{…}` to be filled in. Those in `script` are for the browser, those in `outcome` are titles
 * and texts of the page after a provider's.
 */
export type CheckoutTexts = typeof ENGLISH;

/** Languages of the checkout page, by their code and the name that their speakers give them. */
export const LANGUAGES = { en: 'English', es: 'Español', pt: 'Português' } as const;

/** Code of a language of the checkout page. */
export type Language = keyof typeof LANGUAGES;

const ENGLISH = {
  title: 'Payment',
  titleTo: 'Payment to {payee}',
  order: 'Order {order}',
  payWith: 'Pay with',
  card: 'Card',
  number: 'Card number',
  expiry: 'Expiry date',
  expiryForm: 'MM / YY',
  code: 'Security code',
  holder: 'Name on the card',
  installments: 'Installments',
  once: '1 × {amount}',
  times: '{n} installments',
  wallet: 'You will go to {name} to approve the payment, and then come back here.',
  storedWallet: 'Your wallet will be charged as you agreed. You stay on this page.',
  save: 'Save this card for my next purchases',
  pay: 'Pay {amount}',
  safe: 'Your card number goes to the payment service only. The shop never sees it.',
  noMethod: 'There is no way to pay this order at present. Please go back to the shop.',
  noScript:
    'This page needs its script (JavaScript) to protect your card number, and the script does not run. Please load the page again with JavaScript on, or open it in another browser.',
  languages: 'Language',
  back: 'Back to the shop',
  unknownTitle: 'There is no such payment',
  unknownText: 'The address is wrong or incomplete. Please go back to the shop and start the payment again.',
  expiredTitle: 'This payment page has expired',
  expiredText: 'Nothing was charged. Please go back to the shop and start the payment again.',
  busyTitle: 'Please try again in a moment',
  busyText: 'The payment page cannot be shown at present. If you have paid already, do not pay again.',
  outcome: {
    complete: ['Payment complete', 'You can close this page.'],
    declined: ['Payment declined', 'Nothing was charged. You can try again with another method.'],
    notMade: ['Payment not made', 'Nothing was charged. Start again in the shop.'],
    inProgress: [
      'Payment in progress',
      'Your payment is being confirmed. The shop will tell you the outcome.',
    ],
    closed: ['Payment closed', 'There is nothing left to pay here.'],
    added: ['Wallet added', 'You can close this page.'],
    almostAdded: ['Almost done', 'Your wallet is being confirmed. The shop will tell you.'],
    notAdded: ['Wallet not added', 'Nothing was charged. Start again in the shop.'],
  },
  script: {
    paying: 'Paying…',
    continueTo: 'Continue to {name}',
    badNumber: 'Check the card number.',
    badExpiry: 'Enter the month and the year on the card.',
    oldExpiry: 'This card has expired.',
    badCode: 'Enter the 3 or 4 digits of the security code.',
    badCodeLength: 'Enter the {n} digits of the security code.',
    badHolder: 'Enter the name on the card.',
    declined: 'The payment was declined. Nothing was charged. Check the details, or pay another way.',
    INSUFFICIENT_FUNDS: 'The card has insufficient funds. Nothing was charged. Please pay another way.',
    EXPIRED_CARD: 'The card has expired. Nothing was charged. Please pay another way.',
    INVALID_SECURITY_CODE: 'The security code is wrong. Nothing was charged. Check it and try again.',
    notMade: 'The payment was not made. Nothing was charged. Please try again.',
    notOffered: 'This order cannot be paid that way. Nothing was charged. Please choose another way.',
    failed: 'The payment could not be started. Nothing was charged. Please try again.',
    cannotSave: 'This card cannot be saved: you have too many. Nothing was charged. Pay without saving it.',
    paidTitle: 'Payment complete',
    paidText: 'Thank you. Your payment of {amount} is complete.',
    goingBack: 'You will return to the shop in a few seconds.',
    waitingTitle: 'Your payment is being confirmed',
    waitingText: 'This takes a moment. You do not need to pay again.',
    laterText:
      'This is taking longer than usual. You do not need to pay again: the shop will tell you the outcome.',
    openTitle: 'Your payment is not finished',
    openText: 'You have yet to approve it. Nothing is charged until then.',
    openLink: 'Continue',
    unknownTitle: 'We lost the connection',
    unknownText: 'Your payment may have been made. Please do not pay again before you have checked.',
    check: 'Check again',
    changedTitle: 'The amount has changed',
    changedText: 'Nothing was charged. The shop has changed what there is to pay.',
    changedLink: 'Show the new amount',
    closedTitle: 'This payment is closed',
    closedText: 'There is nothing left to pay here.',
    back: 'Back to the shop',
  },
};

const SPANISH: CheckoutTexts = {
  title: 'Pago',
  titleTo: 'Pago a {payee}',
  order: 'Pedido {order}',
  payWith: 'Pagar con',
  card: 'Tarjeta',
  number: 'Número de tarjeta',
  expiry: 'Vencimiento',
  expiryForm: 'MM / AA',
  code: 'Código (CVV)',
  holder: 'Nombre en la tarjeta',
  installments: 'Cuotas',
  once: '1 × {amount}',
  times: '{n} cuotas',
  wallet: 'Irás a {name} para aprobar el pago y luego volverás aquí.',
  storedWallet: 'Se cobrará a tu billetera como acordaste. Sigues en esta página.',
  save: 'Guardar esta tarjeta para mis próximas compras',
  pay: 'Pagar {amount}',
  safe: 'Tu número de tarjeta llega solo al servicio de pagos. La tienda nunca lo ve.',
  noMethod: 'Por ahora no hay forma de pagar este pedido. Vuelve a la tienda, por favor.',
  noScript:
    'Esta página necesita su script (JavaScript) para proteger tu número de tarjeta, y no está funcionando. Vuelve a cargar la página con JavaScript activado o ábrela en otro navegador.',
  languages: 'Idioma',
  back: 'Volver a la tienda',
  unknownTitle: 'Este pago no existe',
  unknownText:
    'La dirección es incorrecta o está incompleta. Vuelve a la tienda y comienza el pago de nuevo.',
  expiredTitle: 'Esta página de pago ha vencido',
  expiredText: 'No se cobró nada. Vuelve a la tienda y comienza el pago de nuevo.',
  busyTitle: 'Inténtalo de nuevo en un momento',
  busyText: 'La página de pago no se puede mostrar ahora. Si ya pagaste, no pagues de nuevo.',
  outcome: {
    complete: ['Pago realizado', 'Puedes cerrar esta página.'],
    declined: ['Pago rechazado', 'No se cobró nada. Puedes intentarlo de nuevo con otro medio de pago.'],
    notMade: ['El pago no se realizó', 'No se cobró nada. Comienza de nuevo en la tienda.'],
    inProgress: ['Pago en curso', 'Estamos confirmando tu pago. La tienda te dirá el resultado.'],
    closed: ['Pago cerrado', 'Aquí no queda nada por pagar.'],
    added: ['Billetera agregada', 'Puedes cerrar esta página.'],
    almostAdded: ['Ya casi está', 'Estamos confirmando tu billetera. La tienda te avisará.'],
    notAdded: ['Billetera no agregada', 'No se cobró nada. Comienza de nuevo en la tienda.'],
  },
  script: {
    paying: 'Pagando…',
    continueTo: 'Continuar a {name}',
    badNumber: 'Revisa el número de tarjeta.',
    badExpiry: 'Escribe el mes y el año que figuran en la tarjeta.',
    oldExpiry: 'Esta tarjeta está vencida.',
    badCode: 'Escribe los 3 o 4 dígitos del código de seguridad.',
    badCodeLength: 'Escribe los {n} dígitos del código de seguridad.',
    badHolder: 'Escribe el nombre que figura en la tarjeta.',
    declined: 'El pago fue rechazado. No se cobró nada. Revisa los datos o paga de otra forma.',
    INSUFFICIENT_FUNDS: 'La tarjeta no tiene fondos suficientes. No se cobró nada. Paga de otra forma.',
    EXPIRED_CARD: 'La tarjeta está vencida. No se cobró nada. Paga de otra forma.',
    INVALID_SECURITY_CODE:
      'El código de seguridad es incorrecto. No se cobró nada. Revísalo e inténtalo de nuevo.',
    notMade: 'El pago no se realizó. No se cobró nada. Inténtalo de nuevo.',
    notOffered: 'Este pedido no se puede pagar así. No se cobró nada. Elige otra forma.',
    failed: 'No se pudo iniciar el pago. No se cobró nada. Inténtalo de nuevo.',
    cannotSave: 'No se puede guardar la tarjeta: ya tienes demasiadas. No se cobró nada. Paga sin guardarla.',
    paidTitle: 'Pago realizado',
    paidText: 'Gracias. Tu pago de {amount} se realizó con éxito.',
    goingBack: 'Volverás a la tienda en unos segundos.',
    waitingTitle: 'Estamos confirmando tu pago',
    waitingText: 'Tarda un momento. No hace falta que pagues de nuevo.',
    laterText: 'Tarda más de lo habitual. No hace falta que pagues de nuevo: la tienda te dirá el resultado.',
    openTitle: 'Tu pago no ha terminado',
    openText: 'Todavía tienes que aprobarlo. Hasta entonces no se cobra nada.',
    openLink: 'Continuar',
    unknownTitle: 'Se perdió la conexión',
    unknownText: 'Es posible que el pago se haya hecho. No pagues de nuevo antes de comprobarlo.',
    check: 'Comprobar de nuevo',
    changedTitle: 'El importe ha cambiado',
    changedText: 'No se cobró nada. La tienda cambió lo que hay que pagar.',
    changedLink: 'Ver el nuevo importe',
    closedTitle: 'Este pago está cerrado',
    closedText: 'Aquí no queda nada por pagar.',
    back: 'Volver a la tienda',
  },
};

const PORTUGUESE: CheckoutTexts = {
  title: 'Pagamento',
  titleTo: 'Pagamento a {payee}',
  order: 'Pedido {order}',
  payWith: 'Pagar com',
  card: 'Cartão',
  number: 'Número do cartão',
  expiry: 'Validade',
  expiryForm: 'MM / AA',
  code: 'Código (CVV)',
  holder: 'Nome no cartão',
  installments: 'Parcelas',
  once: '1 × {amount}',
  times: '{n} parcelas',
  wallet: 'Você vai a {name} para aprovar o pagamento e depois volta para cá.',
  storedWallet: 'Sua carteira será cobrada como você autorizou. Você continua nesta página.',
  save: 'Salvar este cartão para as próximas compras',
  pay: 'Pagar {amount}',
  safe: 'O número do seu cartão vai apenas para o serviço de pagamentos. A loja nunca o vê.',
  noMethod: 'No momento não há como pagar este pedido. Volte à loja, por favor.',
  noScript:
    'Esta página precisa do seu script (JavaScript) para proteger o número do seu cartão, e ele não está funcionando. Recarregue a página com o JavaScript ativado ou abra-a em outro navegador.',
  languages: 'Idioma',
  back: 'Voltar à loja',
  unknownTitle: 'Este pagamento não existe',
  unknownText: 'O endereço está errado ou incompleto. Volte à loja e comece o pagamento de novo.',
  expiredTitle: 'Esta página de pagamento expirou',
  expiredText: 'Nada foi cobrado. Volte à loja e comece o pagamento de novo.',
  busyTitle: 'Tente de novo em instantes',
  busyText: 'A página de pagamento não pode ser exibida agora. Se você já pagou, não pague de novo.',
  outcome: {
    complete: ['Pagamento concluído', 'Você pode fechar esta página.'],
    declined: [
      'Pagamento recusado',
      'Nada foi cobrado. Você pode tentar de novo com outro meio de pagamento.',
    ],
    notMade: ['Pagamento não realizado', 'Nada foi cobrado. Comece de novo na loja.'],
    inProgress: [
      'Pagamento em andamento',
      'Seu pagamento está sendo confirmado. A loja informará o resultado.',
    ],
    closed: ['Pagamento encerrado', 'Não há mais nada a pagar aqui.'],
    added: ['Carteira adicionada', 'Você pode fechar esta página.'],
    almostAdded: ['Quase pronto', 'Sua carteira está sendo confirmada. A loja avisará você.'],
    notAdded: ['Carteira não adicionada', 'Nada foi cobrado. Comece de novo na loja.'],
  },
  script: {
    paying: 'Pagando…',
    continueTo: 'Continuar para {name}',
    badNumber: 'Confira o número do cartão.',
    badExpiry: 'Informe o mês e o ano que estão no cartão.',
    oldExpiry: 'Este cartão está vencido.',
    badCode: 'Informe os 3 ou 4 dígitos do código de segurança.',
    badCodeLength: 'Informe os {n} dígitos do código de segurança.',
    badHolder: 'Informe o nome que está no cartão.',
    declined: 'O pagamento foi recusado. Nada foi cobrado. Confira os dados ou pague de outra forma.',
    INSUFFICIENT_FUNDS: 'O cartão não tem saldo suficiente. Nada foi cobrado. Pague de outra forma.',
    EXPIRED_CARD: 'O cartão está vencido. Nada foi cobrado. Pague de outra forma.',
    INVALID_SECURITY_CODE: 'O código de segurança está errado. Nada foi cobrado. Confira e tente de novo.',
    notMade: 'O pagamento não foi feito. Nada foi cobrado. Tente de novo.',
    notOffered: 'Este pedido não pode ser pago assim. Nada foi cobrado. Escolha outra forma.',
    failed: 'Não foi possível iniciar o pagamento. Nada foi cobrado. Tente de novo.',
    cannotSave: 'Não é possível salvar o cartão: você já tem muitos. Nada foi cobrado. Pague sem salvá-lo.',
    paidTitle: 'Pagamento concluído',
    paidText: 'Obrigado. Seu pagamento de {amount} foi concluído.',
    goingBack: 'Você volta à loja em alguns segundos.',
    waitingTitle: 'Seu pagamento está sendo confirmado',
    waitingText: 'Leva um instante. Não é preciso pagar de novo.',
    laterText: 'Está demorando mais que o normal. Não é preciso pagar de novo: a loja informará o resultado.',
    openTitle: 'Seu pagamento não terminou',
    openText: 'Falta a sua aprovação. Até lá, nada é cobrado.',
    openLink: 'Continuar',
    unknownTitle: 'Perdemos a conexão',
    unknownText: 'Seu pagamento pode ter sido feito. Não pague de novo antes de verificar.',
    check: 'Verificar de novo',
    changedTitle: 'O valor mudou',
    changedText: 'Nada foi cobrado. A loja mudou o que há a pagar.',
    changedLink: 'Ver o novo valor',
    closedTitle: 'Este pagamento está encerrado',
    closedText: 'Não há mais nada a pagar aqui.',
    back: 'Voltar à loja',
  },
};

/** The texts of each language. */
export const CHECKOUT_TEXTS: Readonly<Record<Language, CheckoutTexts>> = {
  en: ENGLISH,
  es: SPANISH,
  pt: PORTUGUESE,
};

/**
 * Chooses the language: the requested one, else the one that `accept-language` (RFC 9110, 12.5.4) prefers, else English.
 */
export function chooseLanguage(asked: unknown, acceptLanguage: string | undefined): Language {
  if (isLanguage(asked)) return asked;
  const accepted = (acceptLanguage ?? '')
    .split(',', 20)
    .map((range) => {
      const [tag = '', ...parameters] = range.trim().toLowerCase().split(';');
      const quality = parameters.map((one) => /^\s*q=([\d.]+)$/.exec(one)?.[1]).find(Boolean);
      return { language: tag.split('-')[0], quality: Number(quality ?? 1) };
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality);
  return accepted.map(({ language }) => language).find(isLanguage) ?? 'en';
}

/** Returns true if a text is the code of a language of the checkout page. */
export function isLanguage(text: unknown): text is Language {
  return typeof text === 'string' && Object.hasOwn(LANGUAGES, text);
}

/** Replaces each `{name}` in a text by its value. */
export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
