/** The tables of a batch. Times are milliseconds since 1970. */

export const SCHEMA_VERSION = 1;

export const SCHEMA = `
CREATE TABLE batch (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  id TEXT NOT NULL,
  file TEXT NOT NULL,
  spec TEXT NOT NULL,
  generation INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE TABLE task (
  task INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  position INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN
    ('held', 'queued', 'claimed', 'running', 'succeeded', 'failed', 'timed-out', 'lost', 'cancelled', 'skipped')),
  attempt INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  interruptions INTEGER NOT NULL,
  host_deaths INTEGER NOT NULL,
  queued_at INTEGER NOT NULL,
  not_before INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  exit_code INTEGER,
  message TEXT NOT NULL,
  cancel_asked INTEGER NOT NULL CHECK (cancel_asked IN (0, 1)),
  UNIQUE (job, position)
) STRICT;
CREATE TABLE attempt (
  task INTEGER NOT NULL REFERENCES task (task),
  number INTEGER NOT NULL,
  placement TEXT NOT NULL,
  launcher TEXT,
  claimed_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  outcome TEXT,
  exit_code INTEGER,
  message TEXT NOT NULL,
  PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE host (
  name TEXT PRIMARY KEY,
  quarantined_until INTEGER NOT NULL,
  quarantines INTEGER NOT NULL,
  reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`;
