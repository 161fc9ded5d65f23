/** The agent as a process of its own: of a launcher elsewhere, or of processes of this host that no launcher has started. */
import { INVITED_AGENT, PRIVATE_AGENT } from './installation.ts';
import { takeNcclConfiguration } from '../../control/nccl-configuration.ts';

takeNcclConfiguration();
if (process.argv[2] === PRIVATE_AGENT) void import('./private.ts').then(({ servePrivately }) => servePrivately());
else if (process.argv[2] === INVITED_AGENT) void import('./invited.ts').then(({ serveInvited }) => serveInvited());
else void import('./launched.ts');
