/**
 * The life cycle of a service.
 *
 * A loaded service is Initialized. `start` makes it Starting. While a service it depends on is not up, or one of its own conditions is
 * not met, it is Waiting, and each event names what is missing. Then it is Preparing: its files are written, its image is pulled,
 * leftovers of an earlier run are removed. Once its runner has started something it is Running. Its health is unknown until the first
 * check; health never changes the state.
 *
 * The restart policy decides what follows when a run exits or an attempt fails before there is a run. Either the service goes back to
 * Waiting for the restart interval and then repeats conditions and preparation (`retry`), or it is down: Finished after success, Failed
 * after failure. A run that was steady is restarted at once, so that a kill costs no interval; the number of such restarts in a row is
 * limited, so that a crash loop does not spin. Preparation may find that there is nothing to run on this node: Skipped.
 *
 * `stop` is accepted in every state in which the service is not down, and makes it Stopping. Pending waits are cancelled. A run gets
 * SIGTERM and, after the stop timeout, SIGKILL. The service is then Finished, or Failed when the run survived. `start` is accepted in
 * every state in which the service is down.
 */

/** The state of a service. */
export type State = 'Initialized' | 'Starting' | 'Waiting' | 'Preparing' | 'Running' | 'Stopping' | 'Finished' | 'Failed' | 'Skipped'

/** A transition between states. */
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

/** The state a step leads to. A step that the table lacks is a bug in the supervisor. */
export function next(state: State, step: Step): State {
  const to = transitions[state][step]
  if (!to) throw new Error(`no step "${step}" from state "${state}"`)
  return to
}

/** Whether nothing of the service runs and nothing will start before the next `start`. */
export function isDown(state: State): boolean {
  return state === 'Initialized' || state === 'Finished' || state === 'Failed' || state === 'Skipped'
}
