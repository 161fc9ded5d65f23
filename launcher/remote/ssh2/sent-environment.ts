/** SendEnv and SetEnv of the ssh configuration: what a host is asked to set for the command. Its AcceptEnv decides. */
import { matchesPattern } from '../shell/pattern.ts';
import type { Answer } from '../ssh-config/configuration.ts';

/** `ours`: the environment that SendEnv takes values from. SetEnv wins, as in OpenSSH. */
export function sentEnvironment(settings: Answer['settings'], ours: NodeJS.ProcessEnv): Record<string, string> {
  const sent: Record<string, string> = {};
  const patterns = settings.get('sendenv') ?? [];
  for (const [name, value] of patterns.length === 0 ? [] : Object.entries(ours)) {
    if (value !== undefined && patterns.some((pattern) => matchesPattern(pattern, name))) sent[name] = value;
  }
  for (const text of settings.get('setenv') ?? []) {
    const equals = text.indexOf('=');
    if (equals > 0) sent[text.slice(0, equals)] = text.slice(equals + 1);
  }
  return sent;
}
