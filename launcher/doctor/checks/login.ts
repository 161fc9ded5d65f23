/** What the login does before a command runs. */
import { warn, type Check } from '../finding.ts';

export const loginChecks: readonly Check[] = [
  {
    id: 'login.output',
    about: 'what the files of the login write before a command runs',
    ofHost: ({ login }) => {
      if (login === null) return null;
      if (login.bytes === 0) return [];
      return [
        warn(
          `${login.shell} writes ${login.bytes} bytes before a command runs: "${login.line}"`,
          'move echo out of ~/.bashrc, or below a line: [ -t 1 ] || return',
        ),
      ];
    },
  },
];
