/** What ssh expands in its settings' values: ~, ${VARIABLE} and %tokens (ssh_config(5), "TOKENS"). */
import { homedir, hostname, userInfo } from 'node:os';
import { join } from 'node:path';

export interface TokenFacts {
  /** The host as the user named it (%n), what it is really called (%h), and by which name its key is kept (%k). */
  readonly name: string;
  readonly hostName: string;
  readonly keyName: string;
  readonly port: number;
  readonly user: string;
}

/** A path; null if it holds a token or variable that we do not know. */
export function expandPath(value: string, facts: TokenFacts): string | null {
  const expanded = expand(value, facts);
  if (expanded === null || !expanded.startsWith('~')) return expanded;
  if (expanded === '~') return homedir();
  return expanded.startsWith('~/') ? join(homedir(), expanded.slice(2)) : null;
}

function expand(value: string, facts: TokenFacts): string | null {
  let whole = true;
  const expanded = value.replace(/%(.)|\$\{([^}]*)\}/g, (_match, token?: string, variable?: string) => {
    const found = token === undefined ? process.env[variable ?? ''] : tokenValue(token, facts);
    if (found === undefined) whole = false;
    return found ?? '';
  });
  return whole ? expanded : null;
}

function tokenValue(token: string, facts: TokenFacts): string | undefined {
  switch (token) {
    case '%':
      return '%';
    case 'd':
      return homedir();
    case 'h':
      return facts.hostName;
    case 'i':
      return String(userInfo().uid);
    case 'k':
      return facts.keyName;
    case 'L':
      return hostname().split('.')[0];
    case 'l':
      return hostname();
    case 'n':
      return facts.name;
    case 'p':
      return String(facts.port);
    case 'r':
      return facts.user;
    case 'u':
      return userInfo().username;
    default:
      return undefined;
  }
}
