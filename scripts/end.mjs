/** Ends a script of the build with one sentence, and a status that tells. Needs no package: it is there before they are. */
export function end(sentence) {
  console.error(`ncclrun build: ${sentence}`);
  process.exit(1);
}
