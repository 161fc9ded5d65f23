/** What of this host was passed over because others may write to it (launcher/remote/staging/trust.ts): the shell that started us says so. */
import { installationRoot } from './installation.ts';

const NAME = 'NCCLRUN_DISTRUST';

/** Once; null: nothing. No business of the ranks. */
export function takeDistrust(): string | null {
  const said = process.env[NAME];
  if (said === undefined) return null;
  delete process.env[NAME];
  return `${said}; used ${installationRoot}`;
}
