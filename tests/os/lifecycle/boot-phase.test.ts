import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { observeBootPhases } from '../../../src/os/lifecycle/controllers/boot-phase.ts'
import { PhaseLog } from '../../../src/os/lifecycle/phase-log.ts'
import { BootPhase } from '../../../src/os/lifecycle/resources/boot-phase.ts'
import { Sequencer } from '../../../src/os/lifecycle/sequencer.ts'
import { Events } from '../../../src/os/runtime/events.ts'

test('every boot phase is a resource with its times and error', async () => {
  let clock = 3_500
  const phases = new PhaseLog(() => clock)
  phases.before('start', 'kernel', ['kernel'])
  const sequencer = new Sequencer(new Events(), silent, phases)
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(observeBootPhases(phases))
  runtime.start()
  const passes = (milliseconds: number) => () => {
    clock += milliseconds
  }
  await sequencer.run('initialize', [{ name: 'meta', tasks: [{ name: 'reloadMeta', run: passes(1250) }] }])
  const broken = { name: 'mount', run: () => Promise.reject(new Error('disk is gone')) }
  await expect(sequencer.run('boot', [{ name: 'ephemeral', tasks: [broken] }])).rejects.toThrow('disk is gone')
  const held = Promise.withResolvers<void>()
  const running = sequencer.run('reboot', [{ name: 'cleanup', tasks: [{ name: 'stopAllPods', run: () => held.promise }] }])
  await runtime.settled()
  expect(
    store.list(BootPhase).map(({ metadata, spec: { state, began, took, error } }) => [metadata.id, state, began, took, error]),
  ).toEqual([
    ['000-start-kernel', 'done', '0.000', '3.500', undefined],
    ['001-initialize-meta', 'done', '3.500', '1.250', undefined],
    ['002-boot-ephemeral', 'failed', '4.750', '0.000', 'task "mount": disk is gone'],
    ['003-reboot-cleanup', 'running', '4.750', undefined, undefined],
  ])
  held.resolve()
  await running
  await runtime.settled()
  expect(store.get(BootPhase, '003-reboot-cleanup')?.spec.state).toBe('done')
  runtime.stop()
})
