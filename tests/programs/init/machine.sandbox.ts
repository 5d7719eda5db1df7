/** What only a machine of its own goes through, from its assembly on: initialize, the first installation, boot, and its end. */
import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readDiskTable, writeDiskTable } from '../../../src/os/block/device.ts'
import { VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { releaseMethods } from '../../../src/os/lifecycle/api/release.ts'
import { shutdown } from '../../../src/os/lifecycle/stop.ts'
import { LoadedKernelModule } from '../../../src/os/runtime/resources/kernel-module.ts'
import { pause } from '../../../src/timing/pause.ts'
import { Hardware } from './sandbox-hardware.ts'
import { ended, installedOn, installerImage, machineConfig, startMachine } from './sandbox-machine.ts'
import { never, problems, type SandboxNode, unexpected, useSandbox } from './sandbox-node.ts'

useSandbox()
const machines: Hardware[] = []
afterAll(() => {
  for (const each of machines) each.remove()
  expect(unexpected).toEqual([])
})

/** A machine, thrown away after the tests. */
function kept(hardware: Hardware): Hardware {
  machines.push(hardware)
  return hardware
}

/** Waits until something holds. */
async function until(here: SandboxNode, what: string, holds: () => boolean): Promise<void> {
  const end = performance.now() + 40_000
  while (!holds()) {
    if (performance.now() > end || here.ends.length > 0) throw new Error(`${what} does not come: ${problems(here).join('\n')}`)
    await pause(5, never)
  }
}

const maintenance = ({ machine: { store } }: SandboxNode) =>
  store.all().some(({ metadata }) => metadata.type.startsWith('MaintenanceServiceRequests'))
const hasVar = ({ machine: { store } }: SandboxNode) => store.get(VolumeMountStatus, 'machined-EPHEMERAL')?.spec.target === '/var'
const running = ({ machine: { supervisor } }: SandboxNode, id: string) => supervisor.get(id)?.state === 'Running'

describe.each([
  { uefi: true, labels: ['EFI', 'META', 'STATE', 'EPHEMERAL'] },
  { uefi: false, labels: ['EFI', 'BIOS', 'BOOT', 'META', 'STATE', 'EPHEMERAL'] },
])('a machine with UEFI: $uefi', ({ uefi, labels }) => {
  const hardware = kept(new Hardware(uefi))

  test('that is given a configuration installs itself and begins again', async () => {
    const here = await startMachine(hardware, { from: 'medium', config: machineConfig() })
    expect(await ended(here)).toEqual(['reboot'])
    expect(await installedOn(hardware)).toEqual({ labels: [...labels], next: 'a' })
    expect([...hardware.firmware.keys()].sort()).toEqual(uefi ? ['Boot0000', 'BootOrder'] : [])
    expect(here.machine.kernel.mount.mounts().filter(({ source }) => source.startsWith('/dev/vda'))).toEqual([])
  })

  test('comes up from its disk with its configuration, and keeps it over a shutdown', async () => {
    const first = await startMachine(hardware, { from: 'disk' })
    await until(first, 'EPHEMERAL', () => hasVar(first))
    const { machine } = first
    expect(machine.store.get(MachineConfig, 'v1alpha1')?.spec).toBe(readFileSync(join(first.root, 'system/state/config.yaml'), 'utf8'))
    expect(machine.kernel.mount.mountAt('/var')?.source).toBe(`/dev/vda${labels.length}`)
    await until(first, 'start of everything', () => machine.supervisor.get('cri') !== undefined)
    expect(machine.store.get(LoadedKernelModule, 'nbd')).toBeDefined()
    await until(first, 'lock of modules', () => machine.kernel.sysctl.getSysctl('kernel.modules_disabled') === '1')
    expect(readFileSync(join(first.root, 'run/udev/rules.d/99-talos.rules'), 'utf8')).toBe('KERNEL=="vda", GROUP="6"\n')
    for (const id of ['udevd', 'machined', 'containerd']) await until(first, `${id}, running`, () => running(first, id))
    machine.meta.set(0x40, 'kept')
    await machine.meta.flush()
    await machine.sequencer.run('shutdown', shutdown(machine, { force: true }))
    expect(await ended(first)).toEqual(['shutdown'])
    expect(machine.kernel.mount.mounts().filter(({ source }) => source.startsWith('/dev/vda'))).toEqual([])

    const second = await startMachine(hardware, { from: 'disk' })
    await until(second, 'the kept value', () => second.machine.meta.get(0x40) === 'kept')
    await until(second, 'EPHEMERAL', () => hasVar(second))
    await second.stop()
  })
})

describe('a machine', () => {
  test('that is given nothing waits in maintenance with its API, and leaves its disk alone until a configuration fits it', async () => {
    const hardware = kept(new Hardware(true))
    const here = await startMachine(hardware, { from: 'medium' })
    await until(here, 'maintenance', () => maintenance(here) && running(here, 'apid'))
    expect(await installedOn(hardware)).toEqual({ labels: [], next: undefined })
    here.machine.store.put(MachineConfig, 'v1alpha1', machineConfig('/dev/sdz'))
    await until(here, 'the refusal', () => problems(here).some((line) => /was not installed.*there is no disk .{1,3}\/dev\/sdz/.test(line)))
    await until(here, 'maintenance', () => here.machine.store.get(MachineConfig, 'v1alpha1') === undefined && maintenance(here))
    expect(existsSync(join(here.root, 'system/state/config.yaml'))).toBe(false)
    here.machine.store.put(MachineConfig, 'v1alpha1', machineConfig())
    expect(await ended(here)).toEqual(['reboot'])
    expect((await installedOn(hardware)).next).toBe('a')
  })

  test('that waits in maintenance is installed with an older release by an administrator only', async () => {
    const hardware = kept(new Hardware(true))
    const here = await startMachine(hardware, { from: 'medium' })
    await until(here, 'maintenance', () => maintenance(here))
    const methods = releaseMethods(here.machine)
    const handleOf = (path: string) => methods.find((method) => method.path === `ichor.v1.ReleaseService/${path}`)!.handle
    const install = async (role: string) => {
      const pieces = async function* () {
        yield { data: installerImage('v1.12.9'), sha256: '' }
      }
      const { imageName } = (await handleOf('Send')(pieces() as never, {} as never)) as { imageName: string }
      const request = { imageName, disk: '/dev/vda', wipe: true, reboot: false }
      const context = { roles: new Set([role]), signal: never } as never
      await Array.fromAsync(handleOf('Install')(request as never, context) as AsyncIterable<object>)
      return (await installedOn(hardware)).next
    }
    await expect(install('os:reader')).rejects.toThrow('install: v1.12.9 is older than')
    expect((await installedOn(hardware)).labels).toEqual([])
    expect(await install('os:admin')).toBe('a')
    await here.stop()
  })

  const installed = async () => {
    const hardware = kept(new Hardware(true))
    await ended(await startMachine(hardware, { from: 'medium', config: machineConfig() }))
    return hardware
  }

  test('whose kernel lacks its hardening is started over, and starts no service', async () => {
    const here = await startMachine(kept(new Hardware(true)), { from: 'medium', commandLine: 'talos.platform=metal slab_nomerge' })
    expect(await ended(here)).toEqual(['reboot'])
    expect(problems(here).filter((line) => /start failed.*pti=on.* is missing/.test(line))).toHaveLength(3)
    expect(here.machine.supervisor.list()).toEqual([])
  })

  test('whose kernel lacks its hardening stays as it is with panic=0', async () => {
    const here = await startMachine(kept(new Hardware(true)), { from: 'medium', commandLine: 'slab_nomerge panic=10 panic=0' })
    await until(here, 'the end of its tries', () => problems(here).some((line) => line.includes('the machine stays as it is')))
    expect(here.ends).toEqual([])
    expect(here.machine.sequencer.running).toBeUndefined()
    await here.stop()
  })

  test('whose installation was cut off before its last step completes it and comes up', async () => {
    const hardware = await installed()
    const device = hardware.open('/dev/vda')
    const table = (await readDiskTable(device))!
    table.partitions.find(({ name }) => name === 'META')!.name = 'INSTALLING'
    await writeDiskTable(device, table)
    const here = await startMachine(hardware, { from: 'disk' })
    await until(here, 'EPHEMERAL', () => hasVar(here))
    expect((await installedOn(hardware)).labels).toContain('META')
    await here.stop()
  })

  test('with the kernel parameter to wipe its disk does so at its start, and begins again without it', async () => {
    const hardware = await installed()
    const here = await startMachine(hardware, {
      from: 'disk',
      commandLine: 'talos.platform=metal slab_nomerge pti=on talos.config=none talos.experimental.wipe=system',
    })
    expect(await ended(here)).toEqual(['reboot'])
    expect((await installedOn(hardware)).labels).toEqual([])
  })
})
