// dist/bundle/: main, agent, and the parts that are in files of their own (scripts/parts.mjs).
import { entryOf, openerOf, packagesApart, partsApart, takesFromOpener } from './apart.mjs';
import { agentToo, COMMON, LAUNCHER_COMMON, partNames, readParts } from './parts.mjs';

const unwritten = { write: false };

/** `make` makes the bundle of a name with options of esbuild and returns what esbuild says. */
export async function makeParts(root, make) {
  const bundles = {
    root,
    make,
    partOf: readParts(root),
    /** Modules of its openers and of other parts that each part uses. */
    taken: new Map(partNames.map((part) => [part, new Set()])),
    main: new Set(),
    agent: new Set(),
  };
  // First without writing, to learn which modules are where.
  bundles.main = ownFiles(await makeProgram(bundles, 'main', unwritten));
  bundles.agent = ownFiles(await makeProgram(bundles, 'agent', unwritten));
  await moveCommonFiles(bundles);
  for (const names of bundles.taken.values()) names.clear();
  const made = [];
  for (const part of partNames) made.push([part, await makePart(bundles, part, {})]);
  made.push(['main', await makeProgram(bundles, 'main', {})]);
  refuseTwins(made);
  await makeProgram(bundles, 'agent', {});
}

function makeProgram({ root, make, partOf, taken, ...files }, program, options) {
  const hasPart = (part) => program === 'main' || agentToo.has(part);
  // The agent keeps what it has itself of that which parts have in common.
  const isApart = (file) => partOf.has(file) && hasPart(partOf.get(file)) && !files[program].has(file);
  const takenOf = () => [...new Set(partNames.filter(hasPart).flatMap((part) => [...taken.get(part)]))];
  const stdin = entryOf(program === 'main' ? 'launcher/main.ts' : 'worker/agent/main.ts', root);
  const plugins = [packagesApart, partsApart(root, partOf, program, isApart, takenOf)];
  return make(program, { stdin, plugins, ...options });
}

function makePart({ root, make, partOf, taken, main, agent }, part, options) {
  const isOfOpeners = (file) =>
    agentToo.has(part)
      ? partOf.get(file) === COMMON || ((main.has(file) || partOf.has(file)) && agent.has(file))
      : main.has(file) || partOf.has(file);
  const isShared = (file) => partOf.get(file) !== part && isOfOpeners(file);
  const files = [...partOf.keys()].filter((file) => partOf.get(file) === part);
  const plugins = [packagesApart, takesFromOpener(root, isShared, taken.get(part))];
  return make(part, { stdin: openerOf(files, root), plugins, ...options });
}

/** What several parts import goes to a part of its own. */
async function moveCommonFiles(bundles) {
  const partsOf = new Map();
  for (const part of partNames)
    for (const file of ownFiles(await makePart(bundles, part, unwritten)))
      partsOf.set(file, [...(partsOf.get(file) ?? []), part]);
  for (const [file, parts] of partsOf)
    if (parts.length > 1) bundles.partOf.set(file, parts.some((part) => agentToo.has(part)) ? COMMON : LAUNCHER_COMMON);
}

/** Of the classes in such a file there would be two, and an error would not be an instance of the one that is caught. */
function refuseTwins(made) {
  const bundleOf = new Map();
  for (const [name, result] of made)
    for (const file of ownFiles(result)) {
      if (bundleOf.has(file))
        throw new Error(`${file} is in ${bundleOf.get(file)} and in ${name}: see scripts/parts.mjs`);
      bundleOf.set(file, name);
    }
}

/** Of ours, what a bundle is made of. */
function ownFiles({ metafile }) {
  return new Set(Object.keys(metafile.inputs).filter((path) => path.endsWith('.ts') && !path.includes(':')));
}
