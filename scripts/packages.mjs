// Whether all is there that the build needs of npm: production installs and those without optional packages leave some of it out.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { end } from './tool.mjs';

/** The programs of two packages are optional packages of theirs, one for each kind of machine. */
const programs = new Map([
  ['esbuild', `@esbuild/linux-${process.arch}`],
  ['typescript', `@typescript/typescript-linux-${process.arch}`],
]);

/** Ends the build with one sentence where one is missing. */
export function needPackages(root) {
  for (const [name, program] of programs) {
    if (!has(join(root, 'package.json'), name))
      end(`${name} is not installed; npm install --include=dev brings what a build needs`);
    if (!has(join(root, 'node_modules', name, 'package.json'), program))
      end(`${program} is not installed; npm install --include=dev --include=optional brings what a build needs`);
  }
}

/** As `from`, a file, would find it. */
function has(from, name) {
  try {
    createRequire(from).resolve(`${name}/package.json`);
    return true;
  } catch {
    return false;
  }
}
