/** Encrypted volumes of a machine in a sandbox: how they are declared, and how far they are. */
import { expect } from 'bun:test'
import { VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { shutdown } from '../../../src/os/lifecycle/stop.ts'
import { pause } from '../../../src/timing/pause.ts'
import { type Header, readHeader } from '../../../src/wire/luks2/header.ts'
import { openSlot } from '../../../src/wire/luks2/key-slots.ts'
import type { Hardware } from './sandbox-hardware.ts'
import { ended } from './sandbox-machine.ts'
import { never, problems, type SandboxNode } from './sandbox-node.ts'

/** A document that encrypts a volume with these keys, in YAML's flow style. */
export const volume = (name: string, keys: string): string =>
  `---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: ${name}\nencryption:\n  provider: luks2\n  keys: ${keys}\n`

export const status = ({ machine: { store } }: SandboxNode, id: string) => store.get(VolumeStatus, id)?.spec

/** Whether EPHEMERAL is mounted. */
export const ready = ({ machine: { store } }: SandboxNode): boolean =>
  store.get(VolumeMountStatus, 'machined-EPHEMERAL')?.spec.target === '/var'

/** The header of a partition of the disk. */
export function headerOf(hardware: Hardware, index: number): Promise<Header> {
  const device = hardware.open(`/dev/vda${index}`)
  return readHeader(device.read, device.size)
}

/** Whether a passphrase opens a slot of a partition. */
export async function opensSlot(hardware: Hardware, index: number, slot: number, passphrase: string): Promise<boolean> {
  const { metadata } = await headerOf(hardware, index)
  return (await openSlot(metadata, slot, Buffer.from(passphrase), hardware.open(`/dev/vda${index}`).read)) !== undefined
}

/** Waits at most `limit` milliseconds; throws what the node has logged when it ends before, or in vain. */
export async function until(here: SandboxNode, what: string, holds: () => boolean | Promise<boolean>, limit = 40_000): Promise<void> {
  const end = performance.now() + limit
  while (!(await holds())) {
    if (performance.now() > end || here.ends.length > 0) throw new Error(`${what} does not come: ${problems(here).join('\n')}`)
    await pause(5, never)
  }
}

export async function stop(here: SandboxNode): Promise<void> {
  await here.machine.sequencer.run('shutdown', shutdown(here.machine, { force: true }))
  expect(await ended(here)).toEqual(['shutdown'])
}
