/** Whether a word is a program here. */
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A file of that name in the working directory, or an executable one in a directory of `path`. */
export function isProgram(word: string, path: string): boolean {
  if (existsSync(word)) return true;
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, word), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
