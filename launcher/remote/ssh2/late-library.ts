/** Code that needs the package ssh2. Loading takes time, so it happens while the hosts accept our connections. */
import { nextIteration } from '../shell/next-iteration.ts';

type Parts = typeof import('./identity-files.ts') & typeof import('./library.ts');

let loading: Promise<Parts> | null = null;

export function loadParts(): Promise<Parts> {
  loading ??= load();
  return loading;
}

async function load(): Promise<Parts> {
  await nextIteration();
  const library = await import('./library.ts');
  return { ...library, ...(await import('./identity-files.ts')) };
}
