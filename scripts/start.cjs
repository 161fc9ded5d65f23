// What bin/ncclrun and bin/ncclrun-agent give to Node, as dist/bundle/main.cjs and dist/bundle/agent.cjs: runs the bundle beside it with the
// code that an earlier run compiled (scripts/record-code.mjs). Half of what a start would cost beyond Node's own is compiling. V8 checks that
// the code is of this bundle, this Node and these flags; else it compiles anew.
const { readFileSync, renameSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { Script, constants } = require('node:vm');

// What bin/start-node.sh has kept from Node is the ranks'.
for (const name of process.env.NCCLRUN_HELD?.split(' ') ?? []) {
  if (name === '') continue;
  process.env[name] = process.env[`NCCLRUN_HELD_${name}`];
  delete process.env[`NCCLRUN_HELD_${name}`];
}
delete process.env.NCCLRUN_HELD;

const bundle = __filename.replace(/cjs$/, 'bundle.cjs');
const recorded = __filename.replace(/cjs$/, 'code');

function read(file) {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

// The build has made the bundle a function expression: copying the source once more to wrap it here would set off a garbage collection.
const script = new Script(readFileSync(bundle, 'utf8'), {
  filename: bundle,
  cachedData: read(recorded),
  importModuleDynamically: constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
});
if (process.env.NCCLRUN_RECORD_CODE?.split(',').includes(path.basename(__filename, '.cjs'))) {
  process.on('exit', () => {
    writeFileSync(`${recorded}.${process.pid}`, script.createCachedData());
    renameSync(`${recorded}.${process.pid}`, recorded);
  });
}
script.runInThisContext()(exports, require, module, bundle, __dirname);
