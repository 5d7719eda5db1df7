/** A machine whose TPM measures its start: it shows the measurements, and compares them with those that a good start left on STATE. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { PCRMeasurement } from '../../../src/os/hardware/resources/pcr-measurement.ts'
import { goodStartPath, keepGoodStart } from '../../../src/os/lifecycle/measurements/good-start.ts'
import { PCRChange } from '../../../src/os/lifecycle/resources/pcr-change.ts'
import { eventLog, imageOf, measureImage, newPcrKey, policyFiles } from '../../support/measured-image.ts'
import { noSwtpm, type Swtpm, startSwtpm } from '../../support/swtpm.ts'
import { Hardware } from './sandbox-hardware.ts'
import { ended, machineConfig, startMachine } from './sandbox-machine.ts'
import { type SandboxNode, unexpected, useSandbox } from './sandbox-node.ts'
import { ready, stop, until } from './sandbox-volumes.ts'

describe.skipIf(noSwtpm !== undefined)(noSwtpm ?? 'a machine with a TPM', () => {
  useSandbox()
  const maker = newPcrKey()
  const hardware = new Hardware(true)
  let swtpm: Swtpm
  beforeAll(async () => {
    swtpm = await startSwtpm()
    hardware.tpm = swtpm.transmit
  })
  afterAll(async () => {
    await swtpm.stop()
    hardware.remove()
    expect(unexpected).toEqual([])
  })

  /** Turns the power on with an image of this command line. */
  async function start(from: 'medium' | 'disk', commandLine: string): Promise<SandboxNode> {
    const image = imageOf(maker, commandLine)
    await swtpm.restart()
    await measureImage(swtpm.transmit, image)
    const left = { ...policyFiles(image), '/sys/kernel/security/tpm0/binary_bios_measurements': eventLog(image) }
    return startMachine(hardware, { from, left, uncounted: true, ...(from === 'medium' && { config: machineConfig() }) })
  }
  const measured = ({ machine: { store } }: SandboxNode) =>
    store.list(PCRMeasurement).map(({ metadata, spec }) => [metadata.id, spec.explained])
  const changed = ({ machine: { store } }: SandboxNode) => store.list(PCRChange).map(({ metadata, spec }) => [metadata.id, spec.changed])

  test('shows what is measured, and has nothing to compare with at first', async () => {
    expect(await ended(await start('medium', 'quiet'))).toEqual(['reboot'])
    const here = await start('disk', 'quiet')
    await until(here, 'EPHEMERAL', () => ready(here))
    await until(
      here,
      'start-the-world',
      () => here.machine.store.get(PCRMeasurement, '11')?.spec.events.at(-1)?.subject === 'start-the-world',
    )
    expect(measured(here)).toEqual([
      ['11', true],
      ['7', true],
    ])
    expect([changed(here), here.machine.kernel.files.exists(goodStartPath)]).toEqual([[], false])
    // Without a network it never is ready, so it is written here.
    const { store, kernel } = here.machine
    const pcrs = Object.fromEntries(store.list(PCRMeasurement).map(({ metadata, spec }) => [metadata.id, spec]))
    await keepGoodStart(kernel.files, { time: '2026-11-21T08:00:00.000Z', release: 'v1.0.0', bank: 'sha256', pcrs })
    await stop(here)
  }, 120_000)

  test('finds nothing changed after a restart, and names the section that changed after it did', async () => {
    const same = await start('disk', 'quiet')
    await until(same, 'the comparison', () => changed(same).length > 0)
    expect(changed(same)).toEqual([
      ['11', false],
      ['7', false],
    ])
    await stop(same)
    const other = await start('disk', 'quiet debug')
    await until(other, 'the comparison', () => changed(other).length > 0)
    expect(changed(other)).toEqual([
      ['11', true],
      ['7', false],
    ])
    expect(other.machine.store.get(PCRChange, '11')?.spec.changes).toEqual([
      {
        kind: 'changed',
        type: 'EV_IPL',
        subject: 'section .cmdline',
        before: expect.stringMatching(/…$/),
        after: expect.stringMatching(/…$/),
      },
    ])
    await stop(other)
  }, 120_000)
})
