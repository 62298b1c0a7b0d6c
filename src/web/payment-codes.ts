import bwip from 'bwip-js/node';

/** Longest text of a QR code: the greatest version with medium error correction holds 2,331 bytes. */
const MAX_QR_LENGTH = 2_000;
/** Longest text of a barcode that a page can show. */
const MAX_BARCODE_LENGTH = 60;

/**
 * Draws a QR code (ISO/IEC 18004) as an SVG document, with medium error correction.
 *
 * @returns undefined if the text is empty or too long.
 */
export function drawQrCode(text: string): string | undefined {
  if (text === '' || text.length > MAX_QR_LENGTH) return undefined;
  // Readers accept every mask. The search for the best one takes four fifths of the time, in which no payment is served.
  const options = { bcid: 'qrcode', text, eclevel: 'M', mask: 4, paddingwidth: 4, paddingheight: 4 };
  return bwip.toSVG({ ...options, backgroundcolor: 'FFFFFF' });
}

/**
 * Draws a barcode as an SVG document: Interleaved 2 of 5 for the 44 digits of a boleto, Code 128 for everything else.
 *
 * @returns undefined if the text is empty or too long, or has characters that no barcode has.
 */
export function drawBarcode(text: string): string | undefined {
  if (!/^[\x20-\x7e]+$/.test(text) || text.length > MAX_BARCODE_LENGTH) return undefined;
  const bcid = /^\d{44}$/.test(text) ? 'interleaved2of5' : 'code128';
  const svg = bwip.toSVG({
    bcid,
    text,
    height: 13,
    paddingwidth: 10,
    paddingheight: 4,
    backgroundcolor: 'FFFFFF',
  });
  // The many thin bars of a boleto may be as high as others: only their widths matter.
  return svg.replace('>', ' preserveAspectRatio="none">');
}
