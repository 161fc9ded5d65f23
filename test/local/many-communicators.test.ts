/** Nothing of communicators over InfiniBand outlives them. test/long/ makes 1,000. */
import { it } from 'vitest';
import { expectNothingLeft } from '../rig/many-communicators.ts';

it('50 communicators leave no queue pair, registration or descriptor behind', () => expectNothingLeft(50));
