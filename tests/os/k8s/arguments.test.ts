import { expect, test } from 'bun:test'
import { ArgumentError, additive, buildArguments, denied, overwrite } from '../../../src/os/k8s/arguments.ts'

const ours = { a: overwrite('1'), list: additive(['x', 'y']), mine: denied('/secret'), later: denied(), open: additive() }

test('flags come in the order of their names, those without a value are left out', () => {
  expect(buildArguments('c', ours)).toEqual(['--a=1', '--list=x,y', '--mine=/secret'])
})

test('the operator replaces, adds to lists once, and repeats what they say more than once', () => {
  const theirs = { a: { values: ['2'] }, list: { values: ['y,z'] }, open: { values: ['A=true'] }, own: { values: ['1', '2'] } }
  expect(buildArguments('c', ours, theirs)).toEqual(['--a=2', '--list=x,y,z', '--mine=/secret', '--open=A=true', '--own=1', '--own=2'])
})

test.each(['mine', 'later'])("flag %s is not the operator's", (name) => {
  expect(() => buildArguments('kubelet', ours, { [name]: { values: ['x'] } })).toThrow(ArgumentError)
  expect(() => buildArguments('kubelet', ours, { [name]: { values: ['x'] } })).toThrow(`extra argument "${name}" of kubelet may not be set`)
})
