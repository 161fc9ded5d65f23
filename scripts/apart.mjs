// How the bundles of dist/bundle/ find the modules that are in files of their own (scripts/parts.mjs).
//
// The code imports such a module like any other. In a bundle the import has the module's names alone, and the first use of one reads the
// part. So a part costs a start nothing until it is used. A part takes what its opener has from there, so that there is one of each module.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from 'esbuild';
import { agentToo, packages, READ_AFTER_MS, whileRunning } from './parts.mjs';

const ourImport = { filter: /^\.\.?\/.*\.ts$/ };

/**
 * The entry of main or agent. What it shares with parts comes first: the program begins while its own module is read. All imports are static,
 * so that esbuild makes one scope of all modules.
 */
export function entryOf(file, root) {
  return { contents: `import 'shared modules'; import './${file}';`, resolveDir: root };
}

/** What opens a part: it is given the modules that it shares with its opener. Each of its own is made once: esbuild's require() copies its names. */
export function openerOf(files, root) {
  const modules = files.map((path) => `get '${path}'() { return keep('${path}', require('./${path}')); }`);
  const contents = `const keep = (path, value) => Object.defineProperty(own, path, { value }) && value;
    const own = { ${modules.join(', ')} }; exports.open = (modules) => ((shared = modules), own);`;
  return { contents, resolveDir: root };
}

/** In main and agent: `isApart(file)` says which modules are its parts'; `taken()` which of its own modules they use. */
export function partsApart(root, partOf, program, isApart, taken) {
  return {
    name: 'parts apart',
    setup(builder) {
      builder.onResolve(ourImport, ({ path, resolveDir }) => {
        const file = relative(root, join(resolveDir, path));
        return isApart(file) ? { path: file, namespace: 'apart' } : undefined;
      });
      builder.onResolve({ filter: /^shared modules$/ }, ({ path }) => ({ path, namespace: 'shared modules' }));
      builder.onLoad({ filter: /./, namespace: 'shared modules' }, () => {
        const contents = sharedModules(taken(), program === 'main' ? whileRunning : [...agentToo]);
        return { contents, resolveDir: root };
      });
      builder.onLoad({ filter: /./, namespace: 'apart' }, async ({ path }) => {
        const opened = `load('${partOf.get(path)}').open(shared)['${path}']`;
        return { contents: await namesOnly(root, path, opened), resolveDir: root };
      });
    },
  };
}

function sharedModules(files, later) {
  const imports = files.map((path, at) => `import * as m${at} from './${path}';`);
  const table = files.map((path, at) => `'${path}': m${at}`);
  const read = later.map((part) => `load('${part}');`);
  return `${imports.join('')} shared = { ${table.join(', ')} };
    setTimeout(() => { try { ${read.join('')} } catch {} }, ${READ_AFTER_MS}).unref();`;
}

/** Functions cost a start nothing; where there is anything else, esbuild copies the names for each importer. */
async function namesOnly(root, path, opened) {
  const options = { entryPoints: [path], absWorkingDir: root, outfile: 'none', write: false, format: 'esm' };
  const { metafile } = await build({ ...options, metafile: true });
  const names = Object.values(metafile.outputs)[0].exports;
  const text = readFileSync(join(root, path), 'utf8');
  const functions = new Set(Array.from(text.matchAll(/^export (?:async )?function\*? (\w+)/gm), ([, name]) => name));
  if (names.every((name) => functions.has(name)))
    return names.map((name) => `export const ${name} = (...words) => ${opened}.${name}(...words);`).join('');
  const getters = names.map((name) => `get '${name}'() { return ${opened}['${name}']; }`);
  return `module.exports = { __esModule: true, ${getters.join(', ')} };`;
}

/** In a part: `isShared(file)` says what its openers have, or another part. `taken` gets what it uses of that. */
export function takesFromOpener(root, isShared, taken) {
  return {
    name: 'taken from the opener',
    setup(builder) {
      builder.onResolve(ourImport, ({ path, resolveDir }) => {
        const file = relative(root, join(resolveDir, path));
        if (!isShared(file)) return undefined;
        taken.add(file);
        return { path: file, namespace: 'shared' };
      });
      builder.onLoad({ filter: /./, namespace: 'shared' }, ({ path }) => ({
        contents: `module.exports = shared['${path}'];`,
      }));
    },
  };
}

/** Our own imports of such a package are taken from its file. */
export const packagesApart = {
  name: 'packages apart',
  setup(builder) {
    builder.onResolve({ filter: new RegExp(`^(${Object.keys(packages).join('|')})(/|$)`) }, ({ path, importer }) => {
      if (importer === '' || importer.includes('/node_modules/')) return undefined;
      const name = path.split('/', 1)[0];
      if (!(path in packages[name]))
        return { errors: [{ text: `${path} is not among the parts of ${name} set apart` }] };
      return { path, namespace: 'package' };
    });
    builder.onLoad({ filter: /./, namespace: 'package' }, ({ path }) => ({
      contents: `module.exports = load('${path.split('/', 1)[0]}')['${path}'];`,
    }));
  },
};
