import { expect, test } from 'bun:test'
import { isDown, next, type State } from '../../src/supervise/state.ts'

test('stop is accepted in every state that is not down, start in every state that is', () => {
  const states: State[] = ['Initialized', 'Starting', 'Waiting', 'Preparing', 'Running', 'Stopping', 'Finished', 'Failed', 'Skipped']
  for (const state of states) expect(next(state, isDown(state) ? 'start' : 'stop')).toBe(isDown(state) ? 'Starting' : 'Stopping')
})

test('a step that the table lacks is refused', () => {
  expect(() => next('Finished', 'run')).toThrow('no step "run" from state "Finished"')
})
