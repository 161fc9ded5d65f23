/** A machine with files that exist in the test only. */
import type { LauncherMachine } from '../../launcher/allocation/grammar/machine.ts';

export const fakeMachine = (
  files: Readonly<Record<string, string>> = {},
  hostName = 'head.cluster',
  own: readonly string[] = [],
): LauncherMachine => ({
  hostName,
  isOwn: (name) => own.includes(name),
  userName: () => 'me',
  readFile(path) {
    const content = files[path];
    if (content === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
    return content;
  },
});
