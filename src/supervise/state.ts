/**
 * One service's life, in prose.
 *
 * A loaded service is Initialized: known, not asked to run. `start` makes it Starting. While a service it depends on is not up, or a
 * condition of its own is not met, it is Waiting, and each event names what is missing. Then it is Preparing: its files are written, its
 * image is fetched, leftovers of an earlier run are removed. When its runner has started something it is Running, and its health is
 * unknown until the first check says otherwise; health never changes the state.
 *
 * A run that ends by itself, and an attempt that fails before there is one, are judged by the restart policy: either the service goes
 * back to Waiting for the restart interval and then through conditions and preparation once more (`retry`), or it is over: Finished when
 * it ended well, Failed when it did not. A run that was steady is followed by the next at once, so that one kill costs no interval; what
 * ends again soon waits. Preparation may find that there is nothing to run here: Skipped.
 *
 * `stop` is heard in every state that is not an end. It makes the service Stopping: what it waits for is given up, what runs is asked to
 * end and, after the stop timeout, made to end; the service is then Finished, or Failed when it could not be ended. From each end `start`
 * begins a new life.
 */

/** Where a service stands. */
export type State = 'Initialized' | 'Starting' | 'Waiting' | 'Preparing' | 'Running' | 'Stopping' | 'Finished' | 'Failed' | 'Skipped'

/** What may happen to it. */
export type Step = 'start' | 'wait' | 'prepare' | 'run' | 'retry' | 'stop' | 'finish' | 'fail' | 'skip'

const transitions: Record<State, Partial<Record<Step, State>>> = {
  Initialized: { start: 'Starting' },
  Starting: { wait: 'Waiting', prepare: 'Preparing', retry: 'Waiting', stop: 'Stopping', fail: 'Failed' },
  Waiting: { wait: 'Waiting', prepare: 'Preparing', retry: 'Waiting', stop: 'Stopping', fail: 'Failed' },
  Preparing: { prepare: 'Preparing', run: 'Running', retry: 'Waiting', stop: 'Stopping', fail: 'Failed', skip: 'Skipped' },
  Running: { retry: 'Waiting', stop: 'Stopping', finish: 'Finished', fail: 'Failed' },
  Stopping: { stop: 'Stopping', finish: 'Finished', fail: 'Failed' },
  Finished: { start: 'Starting' },
  Failed: { start: 'Starting' },
  Skipped: { start: 'Starting' },
}

/** The state a step leads to; a step that the table does not have is a mistake in the supervisor. */
export function next(state: State, step: Step): State {
  const to = transitions[state][step]
  if (!to) throw new Error(`no step "${step}" from state "${state}"`)
  return to
}

/** Whether nothing of the service is left running and nothing will start without being asked. */
export function isDown(state: State): boolean {
  return state === 'Initialized' || state === 'Finished' || state === 'Failed' || state === 'Skipped'
}
