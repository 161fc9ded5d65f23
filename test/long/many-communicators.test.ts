/** Nothing of communicators over InfiniBand outlives them. A smaller number runs in test/local. */
import { it } from 'vitest';
import { expectNothingLeft } from '../rig/many-communicators.ts';

it('1,000 communicators leave no queue pair, registration or descriptor behind', () => expectNothingLeft(1000));
