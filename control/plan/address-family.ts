/** Families of numeric addresses. */

type Family = 4 | 6;

/** 0 for a text that is not a numeric address. node:net is loaded only here: it costs each start milliseconds, and most communicators stay on one host. */
export function familyOf(address: string): Family | 0 {
  const family = process.getBuiltinModule('node:net').isIP(address);
  return family === 4 || family === 6 ? family : 0;
}
