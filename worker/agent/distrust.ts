/** Files of this host that the starting shell rejected because others may write to them (launcher/remote/staging/trust.ts). */
import { installationRoot } from './installation.ts';

const NAME = 'NCCLRUN_DISTRUST';

/** Returns the notice once, else null; removes the variable, so that ranks do not inherit it. */
export function takeDistrust(): string | null {
  const distrusted = process.env[NAME];
  if (distrusted === undefined) return null;
  delete process.env[NAME];
  return `${distrusted}; used ${installationRoot}`;
}
