/**
 * Every call to the kernel fails once, in turn, while a machine of its own is installed, while it is started from its disk, and
 * while it runs, and init lives: nothing is unhandled, what failed is logged, and the machine comes to what it is without the fault.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { sample } from '../../support/runs.ts'
import { Hardware } from './sandbox-hardware.ts'
import { ended, installedOn, machineConfig, startMachine } from './sandbox-machine.ts'
import { becomes, type Fails, problems, type SandboxNode, settledShape, unexpected, useSandbox } from './sandbox-node.ts'

useSandbox()
const configuration = machineConfig()
const changedConfiguration = configuration.replace('127.0.0.1]', '127.0.0.2]').replace('name: nbd', 'name: fuse')

/** A machine right after its installation, and what a start of it comes to without faults. */
const fresh = new Hardware(true)
const shapes: { started: string[]; changed: string[] } = { started: [], changed: [] }
const uses: Record<'install' | 'boot' | 'change', Map<string, number>> = { install: new Map(), boot: new Map(), change: new Map() }

beforeAll(async () => {
  const installing = await startMachine(fresh, { from: 'medium', config: configuration })
  expect(await ended(installing)).toEqual(['reboot'])
  uses.install = installing.calls
  const hardware = fresh.copy()
  const here = await startMachine(hardware, { from: 'disk' })
  shapes.started = await settledShape(here)
  uses.boot = new Map(here.calls)
  here.calls.clear()
  change(here)
  shapes.changed = await settledShape(here)
  uses.change = here.calls
  await here.stop()
  hardware.remove()
})
afterAll(() => fresh.remove())

function change({ machine: { store } }: SandboxNode): void {
  store.put(MachineConfig, 'v1alpha1', changedConfiguration)
}

/** Installs a machine with its calls failing on the way; it starts from its disk afterwards. Gives what failed. */
async function installs(fails: Fails): Promise<string[]> {
  const hardware = new Hardware(true)
  const here = await startMachine(hardware, { from: 'medium', config: configuration, fails })
  expect(await ended(here)).toEqual(['reboot'])
  expect(unexpected.splice(0)).toEqual([])
  expect(await installedOn(hardware)).toEqual({ labels: ['EFI', 'META', 'STATE', 'EPHEMERAL'], next: 'a' })
  const installed = await startMachine(hardware, { from: 'disk' })
  await becomes(installed, shapes.started)
  await installed.stop()
  hardware.remove()
  return here.fired
}

/** Starts a machine from its disk and changes it, with its calls failing on the way; counts begin again with the change. */
async function lives(fails: Fails): Promise<SandboxNode> {
  const hardware = fresh.copy()
  let here = await startMachine(hardware, { from: 'disk', fails })
  if (await endsInstead(here)) {
    // Where as many faults met the start as it has tries, the machine is started over.
    expect(problems(here).filter((line) => line.includes('start failed'))).toHaveLength(3)
    await here.stop()
    here = await startMachine(hardware, { from: 'disk' })
    await becomes(here, shapes.started)
  }
  here.calls.clear()
  change(here)
  await becomes(here, shapes.changed)
  expect(unexpected.splice(0)).toEqual([])
  expect(here.ends).toEqual([])
  await here.stop()
  hardware.remove()
  return here
}

/** Whether a machine ends in place of coming up. */
const endsInstead = (here: SandboxNode): Promise<boolean> =>
  becomes(here, shapes.started).then(
    () => false,
    (error) => {
      if (here.ends.length === 0) throw error
      return true
    },
  )

test('a machine that nothing fails on has its volumes, its watchdog and its drivers', () => {
  for (const name of [
    'block.talos.dev/EPHEMERAL',
    'WatchdogTimerStatuses.runtime.talos.dev/timer',
    'KernelModules.runtime.talos.dev/nbd',
    'sequence boot',
  ])
    expect(shapes.started.some((each) => each.endsWith(name))).toBe(true)
  expect(shapes.changed).not.toEqual(shapes.started)
})

describe('the machine is installed, and starts from its disk,', () => {
  const calls = [
    'block.openDevice',
    'block.openDevice().read',
    'block.openDevice().write',
    'block.openDevice().flush',
    'block.syncPartitions',
    'efi.writeEfiVariable',
    'files.read',
    'files.openRead',
    'mount.mount',
    'spawn mkfs.xfs',
    'exit mkfs.xfs',
  ]
  test.each(sample(calls, { fewest: 2 }))('when %s fails in the middle', async (call) => {
    // How many rounds controllers take varies, and with them the uses of a call: where it was used less often, an earlier use fails.
    let which = uses.install.get(call) ?? 0
    let fired: string[] = []
    do {
      which = Math.ceil(which / 2)
      fired = await installs((name, use) => name === call && use === which)
    } while (fired.length === 0 && which > 1)
    expect(fired).toEqual([call])
  })
})

describe('the machine comes up from its disk', () => {
  test.each(sample([1, 2, 3, 5, 8], { fewest: 1 }))('when use %d of every call fails', async (which) => {
    const here = await lives((_, use) => use === which)
    expect(here.fired.length).toBeGreaterThan(0)
    expect(problems(here).length).toBeGreaterThan(0)
  })
})

// Half an hour: for a change of what a start or an installation is made of.
test.if(process.env.ICHOR_FAULTS === 'all')(
  'when any single use of any call fails',
  async () => {
    const wrong: string[] = []
    const each = async (made: Map<string, number>, run: (fails: Fails) => Promise<unknown>) => {
      for (const [call, most] of made)
        for (let which = 1; which <= most; which++)
          await run((name, use) => name === call && use === which).catch((error: Error) => {
            unexpected.splice(0)
            wrong.push(`use ${which} of ${call}: ${error.message}`)
          })
    }
    await each(uses.install, installs)
    await each(uses.boot, lives)
    expect(wrong).toEqual([])
  },
  7_200_000,
)
