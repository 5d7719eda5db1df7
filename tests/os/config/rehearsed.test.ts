/** A dry run runs the controllers that declare to have no effects: they must have none. */
import { expect, test } from 'bun:test'
import { onlyComputes } from '../../../src/cosi/rehearse.ts'
import { areas } from '../../../src/programs/init/areas.ts'

/** A machine that has every property and method, and does nothing. */
const nothing: unknown = new Proxy(() => {}, {
  get: (_, key) => (key === 'mode' ? 'container' : key === Symbol.toPrimitive ? () => '' : nothing),
  apply: () => nothing,
})

const rehearsed = areas.flatMap((area) => area.parts?.(nothing as never).controllers ?? []).filter(onlyComputes)

test('the configuration’s controllers are among them', () => {
  const names = rehearsed.map(({ name }) => name)
  for (const name of [
    'network.HostnameConfigController',
    'k8s.KubeletSpecController',
    'k8s.ControlPlaneStaticPodController',
    'cri.RegistriesConfigController',
  ])
    expect(names).toContain(name)
})

const effects = /\b(files|kernel|mount|uts|net|supervisor|spawn|store|sequencer|events)\.\w+\(|\b(fetch|connect|setTimeout|setInterval)\(/g

test.each(rehearsed.map((controller) => [controller.name, controller] as const))('%s touches nothing but resources', (_, controller) => {
  // What a background task does is left out of a rehearsal.
  const rounds = String(controller.reconcile).replace(/background\(.*/gs, '')
  const handles = new Set([...Object.keys(controller.inputs), ...Object.keys(controller.outputs)])
  expect((rounds.match(effects) ?? []).filter((call) => !handles.has(call.split('.')[0] ?? ''))).toEqual([])
})

test('those that keep what a task found are named: a rehearsal must not change what the running controller keeps', () => {
  const keeping = rehearsed.filter(({ reconcile }) => /\bbackground\(/.test(String(reconcile))).map(({ name }) => name)
  expect(keeping.toSorted()).toEqual([
    'k8s.ControlPlaneStaticPodController', // only its task writes it
    'network.PlatformConfigController', // the same
  ])
})

test.each(rehearsed.map((controller) => [controller.name, controller] as const))(
  '%s is synchronous and starts nothing',
  (_, controller) => {
    expect(controller.start).toBeUndefined()
    expect(Object.getPrototypeOf(controller.reconcile)).toBe(Function.prototype) // that of an async function is another one
    expect([Object.keys(controller.inputs), Object.keys(controller.outputs)]).not.toContainEqual([])
  },
)
