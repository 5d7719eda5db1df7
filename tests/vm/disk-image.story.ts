/**
 * The disk image as it is given to a virtual machine: it starts from slot A and makes its volumes on the rest of the disk. The machine has a
 * TPM, in which firmware, boot loader, stub, kernel and the system measure the start.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SpecOf } from '../../src/cosi/resource.ts'
import type { PCRMeasurement } from '../../src/os/hardware/resources/pcr-measurement.ts'
import { machineTpm } from '../support/swtpm.ts'
import { dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'

const folder = stateFolder('disk-image')
const minutes = 60_000
let machine: TestMachine
let tpm: Awaited<ReturnType<typeof machineTpm>>

beforeAll(async () => {
  const [log, file] = [join(folder, 'console.log'), join(folder, 'disk.qcow2')]
  console.log(`console: ${log}`)
  copyFileSync(join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.qcow2'), file)
  const disks = [{ file, format: 'qcow2', bus: 'virtio' } as const]
  // What it was installed from may still be in the drive, and hold the very same root.
  const cdrom = join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso')
  tpm = await machineTpm(folder)
  machine = await TestMachine.start({ console: log, disks, cdrom, firmware: uefi(folder), tpm: tpm.socket })
})
afterAll(async () => {
  await machine.unplug()
  await tpm.stop()
  forgetState(folder)
})

test(
  'stage 0 finds the root on the EFI partition of the disk',
  async () => {
    await machine.shows(/\[stage0\] root file system \/ichor\/[0-9a-f]{16}\.sqsh from \/dev\/vda1 vfat/, 10 * minutes)
  },
  11 * minutes,
)

test(
  'the machine is installed already: it waits for a configuration only',
  async () => {
    await machine.shows(/addresses=10\.0\.2\.15 port=50000/, 10 * minutes)
    const partitions = await machine.until(
      'the partitions are known',
      async () => {
        const { stdout } = await machine.insecurely('get', 'discoveredvolumes')
        return /vda1 .*vfat.* EFI/.test(stdout) && stdout
      },
      10 * minutes,
    )
    expect(partitions).toMatch(/vda2 .* META/)
    expect(machine.console).not.toMatch(/init dies|Kernel panic/)
  },
  21 * minutes,
)

test(
  'the event logs explain every PCR of its TPM',
  async () => {
    const seen = await machine.until(
      'the PCRs are known',
      async () => {
        const { stdout } = await machine.insecurely('get', 'pcrmeasurements', '-o', 'yaml')
        return stdout.includes('subject: enter-machined') && stdout
      },
      10 * minutes,
    )
    const pcrs = seen
      .split('---\n')
      .map((text) => Bun.YAML.parse(text) as { metadata: { id: string }; spec: SpecOf<typeof PCRMeasurement> })
    expect(pcrs.map(({ metadata, spec }) => [metadata.id, spec.explained])).toEqual(pcrs.map(({ metadata }) => [metadata.id, true]))
    const events = (id: string) => pcrs.find(({ metadata }) => metadata.id === id)?.spec.events ?? []
    expect(
      events('4')
        .map(({ subject }) => subject)
        .join('\n'),
    ).toMatch(/\\EFI\\BOOT\\BOOTX64\.EFI/i)
    expect(events('10')).toContainEqual(expect.objectContaining({ subject: 'boot_aggregate' }))
    const started = events('9').find(({ subject }) => subject === 'LOADED_IMAGE::LoadOptions')
    expect(started?.detail).toContain('talos.platform=metal')
  },
  11 * minutes,
)
