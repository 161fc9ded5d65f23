/** The first words that are commands of ours; any other begins an option or the user's program. */
export const commandNames = [
  'perf',
  'tune',
  'plan',
  'topo',
  'hosts',
  'doctor',
  'ps',
  'stop',
  'logs',
  'attach',
  'stack',
  'status',
  'dump',
  'replay',
  'batch',
  'submit',
  'jobs',
  'cancel',
  'hold',
  'release',
  'rerun',
  'sbatch',
  'bundle',
  'build',
  'prefix',
  'config',
  'completion',
  'man',
  'help',
  'version',
] as const;

export type CommandName = (typeof commandNames)[number];

export function isCommandName(word: string): word is CommandName {
  return commandNames.some((name) => name === word);
}
