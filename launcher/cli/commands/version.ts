/** `ncclrun version`, `ncclrun --version` */
import { installedVersion } from '../installation.ts';

export async function version(): Promise<number> {
  const { standardStreams } = await import('../../report/standard-streams.ts');
  await standardStreams().stdout.write(Buffer.from(`ncclrun ${installedVersion()}\n`));
  return 0;
}
