import type { CheckoutTexts } from './english.ts';

/** The texts in German. */
export const GERMAN: CheckoutTexts = {
  title: 'Zahlung',
  titleTo: 'Zahlung an {payee}',
  order: 'Bestellung {order}',
  payWith: 'Zahlen mit',
  card: 'Karte',
  number: 'Kartennummer',
  expiry: 'Gültig bis',
  expiryForm: 'MM / JJ',
  code: 'Prüfnummer',
  holder: 'Name auf der Karte',
  installments: 'Raten',
  once: '1 × {amount}',
  times: '{n} Raten',
  wallet: 'Sie werden zu {name} weitergeleitet, bestätigen dort die Zahlung und kehren dann hierher zurück.',
  storedWallet: 'Ihre Wallet wird wie vereinbart belastet. Sie bleiben auf dieser Seite.',
  save: 'Diese Karte für meine nächsten Einkäufe speichern',
  pay: '{amount} zahlen',
  safe: 'Ihre Kartennummer geht nur an den Zahlungsdienst. Der Shop sieht sie nie.',
  noMethod: 'Diese Bestellung kann zurzeit nicht bezahlt werden. Bitte kehren Sie zum Shop zurück.',
  noScript:
    'Diese Seite braucht ihr Skript (JavaScript), um Ihre Kartennummer zu schützen, und das Skript läuft nicht. Bitte laden Sie die Seite mit eingeschaltetem JavaScript neu, oder öffnen Sie sie in einem anderen Browser.',
  languages: 'Sprache',
  back: 'Zurück zum Shop',
  unknownTitle: 'Diese Zahlung gibt es nicht',
  unknownText:
    'Die Adresse ist falsch oder unvollständig. Bitte kehren Sie zum Shop zurück und beginnen Sie die Zahlung neu.',
  expiredTitle: 'Diese Zahlungsseite ist abgelaufen',
  expiredText:
    'Es wurde nichts abgebucht. Bitte kehren Sie zum Shop zurück und beginnen Sie die Zahlung neu.',
  busyTitle: 'Bitte versuchen Sie es gleich noch einmal',
  busyText:
    'Die Zahlungsseite kann gerade nicht angezeigt werden. Wenn Sie schon bezahlt haben, zahlen Sie nicht noch einmal.',
  outcome: {
    complete: ['Zahlung abgeschlossen', 'Sie können diese Seite schließen.'],
    declined: [
      'Zahlung abgelehnt',
      'Es wurde nichts abgebucht. Sie können es mit einer anderen Zahlungsart noch einmal versuchen.',
    ],
    canceled: ['Zahlung abgebrochen', 'Sie haben abgebrochen. Es wurde nichts abgebucht.'],
    notMade: ['Zahlung nicht ausgeführt', 'Es wurde nichts abgebucht. Beginnen Sie im Shop neu.'],
    inProgress: [
      'Zahlung in Bearbeitung',
      'Ihre Zahlung wird gerade bestätigt. Der Shop teilt Ihnen das Ergebnis mit.',
    ],
    closed: ['Zahlung geschlossen', 'Hier ist nichts mehr zu bezahlen.'],
    added: ['Wallet hinzugefügt', 'Sie können diese Seite schließen.'],
    almostAdded: ['Fast fertig', 'Ihre Wallet wird gerade bestätigt. Der Shop teilt es Ihnen mit.'],
    notAdded: ['Wallet nicht hinzugefügt', 'Es wurde nichts abgebucht. Beginnen Sie im Shop neu.'],
  },
  payLater: {
    how: 'So bezahlen Sie',
    payUntil: 'Bezahlen Sie bis {time} ({zone})',
    received: 'Bisher sind {received} angekommen. Bitte überweisen Sie den Rest.',
    qrCode: 'QR-Code für die App Ihrer Bank',
    barcode: 'Strichcode mit der Nummer {number}',
    labels: {
      code: 'Pix-Code',
      line: 'Nummer des Boletos',
      number: 'Referenz zum Bezahlen',
      account: 'Konto',
      reference: 'Referenz der Überweisung',
      bank: 'Bank',
      beneficiary: 'Empfänger',
    },
    copy: 'Kopieren',
    document: 'Dokument des Anbieters zeigen',
    printed: 'Nehmen Sie diese Seite mit, und bewahren Sie den Beleg auf.',
    reload: 'Diese Seite wird alle paar Sekunden neu geladen und zeigt, wenn Ihre Zahlung da ist.',
    steps: {
      PIX: [
        'Öffnen Sie die App Ihrer Bank, und wählen Sie Pix.',
        'Scannen Sie den QR-Code, oder kopieren Sie den Code, und fügen Sie ihn unter „Pix copia e cola“ ein.',
        'Prüfen Sie den Betrag, und bestätigen Sie. Diese Seite zeigt, wenn Ihre Zahlung da ist.',
      ],
      BOLETO: [
        'Öffnen Sie die App Ihrer Bank, und wählen Sie „Boleto bezahlen“, oder gehen Sie zu einer Bank oder Lotterie.',
        'Scannen Sie den Strichcode, oder kopieren Sie die Nummer, und fügen Sie sie ein.',
        'Prüfen Sie den Betrag, und bestätigen Sie. Die Zahlung braucht ein bis drei Werktage.',
      ],
      OXXO: [
        'Gehen Sie vor der genannten Zeit in ein OXXO-Geschäft.',
        'Zeigen Sie den Strichcode, oder nennen Sie die Referenz, und zahlen Sie bar.',
        'Bewahren Sie den Beleg auf. Die Zahlung ist spätestens am nächsten Werktag da. Sie lässt sich hier nicht stornieren.',
      ],
      SPEI: [
        'Öffnen Sie die App Ihrer Bank, und wählen Sie eine Überweisung (SPEI).',
        'Kopieren Sie die CLABE, und geben Sie genau den Betrag oben ein.',
        'Bestätigen Sie. Diese Seite zeigt, wenn Ihre Überweisung da ist.',
      ],
      EFECTY: [
        'Gehen Sie vor der genannten Zeit zu einer Efecty-Stelle.',
        'Sagen Sie, dass Sie für diesen Shop zahlen, nennen Sie die Referenz, und zahlen Sie bar.',
        'Bewahren Sie den Beleg auf. Die Zahlung lässt sich hier nicht stornieren.',
      ],
      OTHER: [
        'Bezahlen Sie mit den Angaben oben genau diesen Betrag.',
        'Bestätigen Sie vor der genannten Zeit. Diese Seite zeigt, wenn Ihre Zahlung da ist.',
      ],
    },
    preparing: [
      'Ihr Code wird vorbereitet',
      'Das dauert einen Moment. Er erscheint hier, sobald er bereit ist.',
    ],
    confirming: [
      'Ihre Zahlung wird bestätigt',
      'Sie brauchen nicht noch einmal zu bezahlen. Diese Seite zeigt, wenn sie abgeschlossen ist.',
    ],
    paid: ['Zahlung abgeschlossen', 'Vielen Dank. Der Shop weiß, dass Sie bezahlt haben.'],
    expired: [
      'Die Zeit zum Bezahlen ist um',
      'Bezahlen Sie mit diesem Code nicht mehr. Bitte beginnen Sie im Shop neu.',
    ],
    canceled: [
      'Diese Zahlung wurde storniert',
      'Bezahlen Sie mit ihrem Code nicht mehr. Bitte beginnen Sie im Shop neu.',
    ],
    declined: [
      'Die Zahlung kam nicht zustande',
      'Es wurde nichts abgebucht. Bitte beginnen Sie im Shop neu.',
    ],
    script: { copied: 'Kopiert', yourTime: 'In Ihrer Zeit: {time}' },
  },
  local: {
    shows: 'Die nächste Seite zeigt Ihnen, wie Sie zahlen, und sagt Ihnen, wann die Zahlung eingegangen ist.',
    bankPage: 'Die nächste Seite ist die Ihrer Bank, wo Sie der Zahlung zustimmen.',
    noCancel:
      'Wenn Sie fortfahren, lässt sich diese Zahlung nicht mehr abbrechen, und diese Bestellung lässt sich nicht anders zahlen, bis sie abläuft.',
    choose: 'Bitte wählen',
    fields: {
      first_name: 'Vorname',
      last_name: 'Nachname',
      email: 'E-Mail',
      document_type: 'Ausweis',
      document_number: 'Ausweisnummer',
      number: 'Telefon',
      country_code: 'Ländervorwahl',
      address_line_1: 'Straße und Hausnummer',
      address_line_2: 'Adresszusatz',
      neighborhood: 'Stadtteil',
      city: 'Ort',
      state: 'Bundesstaat',
      zip_code: 'Postleitzahl',
      bank_id: 'Ihre Bank',
    },
  },
  script: {
    emptyField: 'Bitte füllen Sie dieses Feld aus.',
    badField: 'Bitte prüfen Sie dieses Feld.',
    paying: 'Wird bezahlt…',
    continueTo: 'Weiter zu {name}',
    badNumber: 'Prüfen Sie die Kartennummer.',
    badExpiry: 'Geben Sie Monat und Jahr an, die auf der Karte stehen.',
    oldExpiry: 'Diese Karte ist abgelaufen.',
    badCode: 'Geben Sie die 3 oder 4 Ziffern der Prüfnummer an.',
    badCodeLength: 'Geben Sie die {n} Ziffern der Prüfnummer an.',
    badHolder: 'Geben Sie den Namen an, der auf der Karte steht.',
    declined:
      'Die Zahlung wurde abgelehnt. Es wurde nichts abgebucht. Prüfen Sie die Angaben, oder zahlen Sie anders.',
    INSUFFICIENT_FUNDS:
      'Die Karte ist nicht ausreichend gedeckt. Es wurde nichts abgebucht. Bitte zahlen Sie anders.',
    EXPIRED_CARD: 'Die Karte ist abgelaufen. Es wurde nichts abgebucht. Bitte zahlen Sie anders.',
    INVALID_SECURITY_CODE:
      'Die Prüfnummer ist falsch. Es wurde nichts abgebucht. Prüfen Sie sie, und versuchen Sie es noch einmal.',
    CANCELED_BY_PAYER: 'Sie haben abgebrochen. Es wurde nichts abgebucht.',
    expired: 'Jene Zahlung ist geschlossen. Es wurde nichts abgebucht. Sie können anders zahlen.',
    notMade:
      'Die Zahlung wurde nicht ausgeführt. Es wurde nichts abgebucht. Bitte versuchen Sie es noch einmal.',
    notOffered:
      'So kann diese Bestellung nicht bezahlt werden. Es wurde nichts abgebucht. Bitte zahlen Sie anders.',
    failed:
      'Die Zahlung konnte nicht begonnen werden. Es wurde nichts abgebucht. Bitte versuchen Sie es noch einmal.',
    cannotSave:
      'Diese Karte kann nicht gespeichert werden: Sie haben schon zu viele. Es wurde nichts abgebucht. Zahlen Sie, ohne sie zu speichern.',
    paidTitle: 'Zahlung abgeschlossen',
    paidText: 'Vielen Dank. Ihre Zahlung von {amount} ist abgeschlossen.',
    goingBack: 'Sie kehren in wenigen Sekunden zum Shop zurück.',
    waitingTitle: 'Ihre Zahlung wird bestätigt',
    waitingText: 'Das dauert einen Moment. Sie müssen nicht noch einmal zahlen.',
    laterText:
      'Das dauert länger als üblich. Sie müssen nicht noch einmal zahlen: Der Shop teilt Ihnen das Ergebnis mit.',
    openTitle: 'Ihre Zahlung ist nicht abgeschlossen',
    openText: 'Sie müssen sie noch bestätigen. Bis dahin wird nichts abgebucht.',
    openLink: 'Weiter',
    anotherWay: 'Anders zahlen',
    closingTitle: 'Einen Moment',
    closingText: 'Wir schließen die begonnene Zahlung, damit sie nicht mehr abgebucht werden kann.',
    cannotClose:
      'Diese Zahlung kann gerade nicht geschlossen werden, und Sie sollen nicht zweimal zahlen. Setzen Sie sie fort, oder versuchen Sie es in einigen Minuten noch einmal.',
    unknownTitle: 'Die Verbindung ist abgebrochen',
    unknownText:
      'Ihre Zahlung wurde vielleicht ausgeführt. Bitte zahlen Sie nicht noch einmal, bevor Sie das geprüft haben.',
    check: 'Noch einmal prüfen',
    changedTitle: 'Der Betrag hat sich geändert',
    changedText: 'Es wurde nichts abgebucht. Der Shop hat geändert, was zu zahlen ist.',
    changedLink: 'Neuen Betrag anzeigen',
    closedTitle: 'Diese Zahlung ist geschlossen',
    closedText: 'Hier ist nichts mehr zu bezahlen.',
    back: 'Zurück zum Shop',
  },
};
