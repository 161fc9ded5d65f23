/** The user's home directory: HOME, else that of the password database. A container's user may have neither. */
import { homedir } from 'node:os';

export function homeDirectory(): string | null {
  try {
    return homedir();
  } catch {
    return null;
  }
}
