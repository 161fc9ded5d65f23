// Resolves 'ncclrun' to the library beside this file (dist/bundle). The agent gives it to a rank's Node that would not find the package otherwise.
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== 'ncclrun') return next(specifier, context);
    return { url: new URL('library.mjs', import.meta.url).href, format: 'module', shortCircuit: true };
  },
});
