/** `ncclrun version`, `ncclrun --version` */
import { installedVersion } from '../../remote/local.ts';
import { standardStreams } from '../../report/standard-streams.ts';

export async function version(): Promise<number> {
  await standardStreams().stdout.write(Buffer.from(`ncclrun ${installedVersion()}\n`));
  return 0;
}
