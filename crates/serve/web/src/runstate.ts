// States of runs.

import type { RunState } from './documents.ts';

const ACTIVE: readonly RunState[] = ['preparing', 'prepared', 'armed', 'running', 'draining'];

/** Returns whether the run has not ended. */
export function isActive(run: { state: RunState }): boolean {
  return ACTIVE.includes(run.state);
}
