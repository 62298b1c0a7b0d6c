/** A stretch of a text, by its offsets, and what takes its place. */
export type Edit = { readonly start: number; readonly end: number; readonly replacement: string };
