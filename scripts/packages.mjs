// Whether all is there that the build needs of npm: production installs and those without optional packages leave some of it out.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { end } from './end.mjs';

/** The packages of the build. The programs of two are optional packages of theirs, one for each kind of machine. */
const programs = new Map([
  ['execa', null],
  ['esbuild', `@esbuild/linux-${process.arch}`],
  ['typescript', `@typescript/typescript-linux-${process.arch}`],
]);

/** Ends the build with one sentence where one is missing. */
export function needPackages(root) {
  for (const [name, program] of programs) {
    if (!has(join(root, 'package.json'), name))
      end(`${name} is not installed; npm install --include=dev brings what a build needs`);
    if (program !== null && !has(join(root, 'node_modules', name, 'package.json'), program))
      end(`${program} is not installed; npm install --include=dev --include=optional brings what a build needs`);
  }
}

/** As `from`, a file, would find it. */
function has(from, name) {
  const places = createRequire(from).resolve.paths(name) ?? [];
  return places.some((place) => existsSync(join(place, name, 'package.json')));
}
