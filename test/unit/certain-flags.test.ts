import { expect, it } from 'vitest';
import { isOfCertainValues } from '../../launcher/cli/foreign/certain-flags.ts';
import { foreignTools } from '../../launcher/cli/foreign/tables.ts';

it('the list of options for certain values is that of the tables of other launchers', () => {
  const options = foreignTools.flatMap((tool) => tool.options);
  const certain = new Set(options.filter(({ when }) => when !== null).flatMap(({ flags }) => flags));
  const others = options.flatMap(({ flags }) => flags).filter((flag) => !certain.has(flag));
  expect([...certain].filter((flag) => !isOfCertainValues(`${flag}=value`))).toEqual([]);
  expect(
    others.filter((flag) => isOfCertainValues(flag) && !certain.has(flag.slice(1)) && !certain.has(`-${flag}`)),
  ).toEqual([]);
});
